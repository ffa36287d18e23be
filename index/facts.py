"""What a build knows of how common and how broad its concepts are, as memory-mapped arrays."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.arrays import Ints, map_array, map_ragged, save_ragged
from medlink.ragged import Ragged
from medlink.types import Concept, ConceptFacts

_PARENTS = "facts_parents"
# Pairs of a concept and one above it are held in memory for so many concepts at a time.
_TOGETHER = 2_048


class FactsWriter:
    """Collects which concepts are broader than which, in snapshot order."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._broader: list[tuple[str, ...]] = []

    def add(self, concept: Concept) -> None:
        """Append one concept."""
        self._numbers[concept.id] = len(self._broader)
        self._broader.append(concept.broader)

    def save(self, directory: Path, names: Ints) -> None:
        """Write the facts, with the number of names of each concept."""
        parents = self._parents()
        children = np.bincount(parents.values, minlength=len(parents)).astype(np.int32)
        save_ragged(parents, directory, _PARENTS)
        for stem, counts in (("names", names), ("descendants", count_descendants(parents)), ("children", children)):
            np.save(directory / f"facts_{stem}.npy", counts, allow_pickle=False)

    def _parents(self) -> Ragged:
        """Return the broader concepts that there are; none is its own."""
        rows, values = [], []
        for number, broader in enumerate(self._broader):
            for parent in sorted({self._numbers[id_] for id_ in broader if id_ in self._numbers} - {number}):
                rows.append(number)
                values.append(parent)
        return Ragged.of_sorted(np.array(rows, np.int32), np.array(values, np.int32), len(self._broader))


class Facts:
    """Answers how many names each concept has, and how many concepts are below it."""

    def __init__(self, directory: Path) -> None:
        self.parents = map_ragged(directory, _PARENTS)
        """The concepts directly above each, by number."""
        self._counts = [map_array(directory / f"facts_{stem}.npy") for stem in ("names", "descendants", "children")]

    def of(self, numbers: Sequence[int]) -> list[ConceptFacts]:
        """Return the facts of concepts by number."""
        at = np.array(numbers, np.int64)
        columns = [counts[at].tolist() for counts in self._counts]
        return [ConceptFacts(*row) for row in zip(*columns, strict=True)]


def count_descendants(parents: Ragged) -> Ints:
    """Return how many other concepts lie below each, however many ways lead there; cycles do no harm.

    Args:
        parents: The concepts directly above each.
    """
    below = np.zeros(len(parents), np.int64)
    for start in range(0, len(parents), _TOGETHER):
        np.add.at(below, _above(parents, np.arange(start, min(start + _TOGETHER, len(parents)))), 1)
    return np.minimum(below, np.iinfo(np.int32).max).astype(np.int32)


def _above(parents: Ragged, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what lies above any of some concepts, once for each of them that it lies above."""
    # A pair of a concept and one that it leads to is one number.
    own = np.arange(len(numbers)) * len(parents) + numbers
    seen = new = own
    while len(new):
        up = parents.take(new % len(parents))
        reached = np.repeat(new // len(parents), up.lengths) * len(parents) + up.values
        new = np.setdiff1d(reached, seen)
        seen = np.union1d(seen, new)
    return np.setdiff1d(seen, own) % len(parents)
