"""What a build knows of how common and how broad its concepts are, as memory-mapped arrays."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.arrays import Ints, map_array, map_ragged, save_ragged
from index.snapshot import Described
from medlink.ragged import Ragged
from medlink.types import Concept, ConceptFacts

_PARENTS = "facts_parents"
# So many pairs of concepts are told apart at a time, which takes 64 MiB.
_CELLS = 1 << 24


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

    def of(self, described: Sequence[Described]) -> list[ConceptFacts]:
        """Return the facts of concepts."""
        at = np.array([d.number for d in described], np.int64)
        columns = [counts[at].tolist() for counts in self._counts]
        return [
            ConceptFacts(d.concept, d.words, d.name_sources, *row) for d, *row in zip(described, *columns, strict=True)
        ]


def count_descendants(parents: Ragged) -> Ints:
    """Return how many other concepts lie below each, however many ways lead there; cycles do no harm.

    Args:
        parents: The concepts directly above each.
    """
    count = len(parents)
    together = max(1, _CELLS // max(1, count))
    below = np.zeros(count, np.int64)
    cells = np.full(together * count, -1, np.int32)
    for start in range(0, count, together):
        for above in _levels_above(parents, np.arange(start, min(start + together, count)), cells):
            np.add.at(below, above, 1)
    return np.minimum(below, np.iinfo(np.int32).max).astype(np.int32)


def _levels_above(parents: Ragged, numbers: NDArray[np.int64], cells: Ints) -> Iterator[NDArray[np.int64]]:
    """Yield what lies above any of some concepts, once for each of them that it lies above.

    Args:
        parents: The concepts directly above each.
        numbers: The concepts to start from.
        cells: Of -1, one for each of the numbers and each concept, to work with; -1 again afterwards.
    """
    # A pair of a concept and one that it leads to is the number of a cell.
    new = np.arange(len(numbers)) * len(parents) + numbers
    seen = [new]
    cells[new] = 0
    while len(new):
        up = parents.take(new % len(parents))
        reached = np.repeat(new - new % len(parents), up.lengths) + up.values
        reached = reached[cells[reached] < 0]
        # Of pairs that are reached twice at once, the last one stays in the cell.
        places = np.arange(len(reached), dtype=np.int32)
        cells[reached] = places
        new = reached[cells[reached] == places]
        seen.append(new)
        yield new % len(parents)
    cells[np.concatenate(seen)] = -1
