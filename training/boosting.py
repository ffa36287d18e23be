"""Boosted trees by LightGBM, turned into the plain arrays that serving reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Enough digits for no sum of leaves to change its fourth decimal.
_DIGITS = 7


@dataclass(frozen=True, slots=True)
class Boosting:
    """How trees are grown."""

    trees: int
    leaves: int
    learning_rate: float
    least_rows: int
    """Rows that a leaf must have."""
    columns: float = 1.0
    """Share of the features that a tree may look at."""
    depth: int = 8
    """Most splits on the way to a leaf."""


def rank_trees(rows: Floats, right: NDArray[np.bool_], sizes: Sequence[int], boosting: Boosting) -> list[Any]:
    """Return trees that put right candidates before wrong ones, by LambdaMART (Burges 2010).

    Args:
        rows: Features, (n, f).
        right: Whether each is right, (n,).
        sizes: How many candidates each mention has, in the order of the rows.
        boosting: How trees are grown.
    """
    objective = {"objective": "lambdarank", "lambdarank_truncation_level": 5, "label_gain": [0, 1]}
    return _grow(objective, rows, right, boosting, group=sizes)


def probability_trees(
    rows: Floats,
    right: NDArray[np.bool_],
    boosting: Boosting,
    *,
    rising: Sequence[int] = (),
    weights: Floats | None = None,
) -> list[Any]:
    """Return trees whose sum is the logit of being right.

    Args:
        rows: Features, (n, f).
        right: Whether each is right, (n,).
        boosting: How trees are grown.
        rising: Columns that can only raise the probability.
        weights: How much each row counts; all the same when left out.
    """
    signs = [int(column in rising) for column in range(rows.shape[1])]
    objective = {"objective": "binary", "boost_from_average": False, "monotone_constraints": signs}
    return _grow(objective, rows, right, boosting, weight=weights)


def _grow(
    objective: Mapping[str, Any],
    rows: Floats,
    right: NDArray[np.bool_],
    boosting: Boosting,
    **data: Any,  # noqa: ANN401  # passed on
) -> list[Any]:
    import lightgbm  # noqa: PLC0415  # evaluation works without it

    parameters = {
        **objective,
        "num_leaves": boosting.leaves,
        "max_depth": boosting.depth,
        "learning_rate": boosting.learning_rate,
        "min_data_in_leaf": boosting.least_rows,
        "feature_fraction": boosting.columns,
        "lambda_l2": 1.0,
        "seed": 0,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }
    dataset = lightgbm.Dataset(rows, right.astype(np.int32), params={"verbosity": -1}, **data)
    booster = lightgbm.train(parameters, dataset, boosting.trees)
    return [_nodes(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]]


def _nodes(structure: Mapping[str, Any]) -> list[list[float]]:
    """Return the nodes of a tree as `Trees.of_nodes` reads them."""
    nodes: list[list[float]] = [[]]
    waiting = [(structure, 0)]
    while waiting:
        node, at = waiting.pop(0)
        if "leaf_value" in node:
            nodes[at] = [_short(node["leaf_value"])]
            continue
        left = len(nodes)
        nodes[at] = [node["split_feature"], _short(node["threshold"]), left]
        nodes += [[], []]
        waiting += [(node["left_child"], left), (node["right_child"], left + 1)]
    return nodes


def _short(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")
