"""Boosted regression trees as plain arrays: what fusion and calibration learn, readable as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Rows times trees that are walked at a time: small enough for the caches of a core.
_TOGETHER = 1 << 16


@dataclass(frozen=True, slots=True)
class Trees:
    """Binary trees over the same features, one after another; the prediction is the sum of one leaf of each.

    All arrays but `roots` have one entry a node. The right child comes next after the left one. A leaf leads to itself,
    since nothing is above its threshold.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: Floats
    left: NDArray[np.int32]
    value: Floats
    depth: int

    @classmethod
    def of_nodes(cls, trees: Sequence[Sequence[Sequence[float]]]) -> "Trees":
        """Put trees together.

        Args:
            trees: Each a list of nodes in which children come after their parent, two by two: `[feature, threshold,
                left]` with the place in the list of the left child, for values of at most the threshold, and the right
                child next; or `[value]` for a leaf.

        Raises:
            ValueError: A node is of another form.
        """
        roots, depth = [], 0
        rows: list[tuple[int, float, int, float]] = []
        for nodes in trees:
            if not nodes:
                raise ValueError("a tree has no nodes")
            first = len(rows)
            roots.append(first)
            levels = [0] * len(nodes)
            for at, node in enumerate(nodes):
                if len(node) == 1:
                    rows.append((0, np.inf, first + at, float(node[0])))
                    continue
                left = _left(node, at, len(nodes))
                rows.append((int(node[0]), float(node[1]), first + left, 0.0))
                levels[left] = levels[left + 1] = levels[at] + 1
            depth = max([depth, *levels])
        feature, threshold, left_child, value = zip(*rows, strict=True) if rows else ((), (), (), ())
        if np.isnan([*threshold, *value]).any():
            raise ValueError("a tree has thresholds or leaves that are no numbers")
        return cls(
            np.array(roots, np.int32),
            np.array(feature, np.int32),
            np.array(threshold, np.float64),
            np.array(left_child, np.int32),
            np.array(value, np.float64),
            depth,
        )

    def predict(self, rows: Floats) -> Floats:
        """Return the sum of the leaves that each row comes to, (n,).

        Args:
            rows: Features, (n, f), without NaN.
        """
        sums = np.zeros(len(rows))
        together = max(1, _TOGETHER // max(1, len(self.roots)))
        for start in range(0, len(rows), together):
            part = rows[start : start + together]
            flat, offsets = part.ravel(), np.arange(len(part))[:, None] * rows.shape[1]
            node = np.broadcast_to(self.roots, (len(part), len(self.roots)))
            for _ in range(self.depth):
                node = self.left[node] + (flat[offsets + self.feature[node]] > self.threshold[node])
            sums[start : start + together] = self.value[node].sum(axis=1)
        return sums


def is_model(stored: object, version: int, features: Sequence[str], others: Mapping[str, type]) -> bool:
    """Say whether a JSON object is a model of this version that looks at these features.

    Args:
        stored: The object.
        version: The one that it is to name as its `format`.
        features: Their names.
        others: What it must hold besides, and of which type.
    """
    return (
        isinstance(stored, Mapping)
        and stored.get("format") == version
        and stored.get("features") == [*features]
        and all(isinstance(stored.get(key), kind) for key, kind in others.items())
    )


def read_trees(stored: Mapping[str, Any], features: int) -> Trees:
    """Read the trees of a model file.

    Args:
        stored: Its JSON object, with the trees as `Trees.of_nodes` takes them under `trees`.
        features: How many features the model has.

    Raises:
        ValueError: They are not trees, or ask for a feature that is not there.
    """
    try:
        trees = Trees.of_nodes(stored["trees"])
    except (KeyError, TypeError) as error:
        raise ValueError("the model has no trees") from error
    if len(trees.feature) and not 0 <= trees.feature.min() <= trees.feature.max() < features:
        raise ValueError(f"the trees ask for features that are not among the {features} of the model")
    return trees


def _left(node: Sequence[float], at: int, nodes: int) -> int:
    if len(node) != 3 or not at < int(node[2]) < nodes - 1:
        raise ValueError(f"node {at} of a tree is neither a split nor a leaf")
    return int(node[2])
