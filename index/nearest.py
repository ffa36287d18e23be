"""From scored names to ranked concepts, the same for every channel that searches rows of distinct texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.arrays import Bools, Ints
from index.snapshot import Snapshot
from medlink.ragged import Ragged
from medlink.types import Retrieved

DECIMALS = 4
"""Scores are rounded before they are sorted, so that no order hangs on the last bits of a sum."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Concepts found for a run of queries, sorted by query, then score, then concept; all arrays (m,)."""

    query: NDArray[np.int64]
    concept: Ints
    name: Ints
    score: NDArray[np.float64]

    def take(self, which: NDArray[np.int64] | Bools | slice) -> "Scored":
        """Return some of them, in the order asked for."""
        return Scored(self.query[which], self.concept[which], self.name[which], self.score[which])


@dataclass(frozen=True, slots=True)
class Names:
    """The names behind each row, and the concept of each name."""

    of_row: Ragged
    concept: Ints

    def concepts(
        self,
        query: NDArray[np.int64],
        row: NDArray[np.int64],
        score: NDArray[np.float64],
        allowed: Bools | None,
    ) -> Scored:
        """Turn scored rows into concepts: every concept once a query, by its best name.

        Args:
            query: Which query found each row, (m,).
            row: The rows, (m,).
            score: Their scores, (m,).
            allowed: Whether each name may answer; None if all may.
        """
        behind = self.of_row.take(row)
        source = np.repeat(np.arange(len(row)), behind.lengths)
        name = behind.values
        all_names = Scored(query[source], self.concept[name], name, score[source])
        if allowed is not None:
            all_names = all_names.take(allowed[name])
        # A concept's names are numbered preferred name first.
        order = np.lexsort((all_names.name, -all_names.score, all_names.concept, all_names.query))
        ordered = all_names.take(order)
        first = np.ones(len(order), np.bool_)
        first[1:] = (np.diff(ordered.query) != 0) | (np.diff(ordered.concept) != 0)
        best = ordered.take(first)
        # Concepts are numbered in the order of their ids.
        return best.take(np.lexsort((best.concept, -best.score, best.query)))


def retrieved(scored: Sequence[Scored], queries: int, snapshot: Snapshot) -> list[list[Retrieved]]:
    """Return what was found for each of the queries 0, 1, 2, ..., best first."""
    names = snapshot.names(sorted({int(n) for s in scored for n in s.name}))
    ids = snapshot.concept_ids(sorted({int(c) for s in scored for c in s.concept}))
    found: list[list[Retrieved]] = [[] for _ in range(queries)]
    for part in scored:
        for q, c, n, score in zip(part.query, part.concept, part.name, part.score, strict=True):
            row = names[int(n)]
            found[q].append(Retrieved(ids[int(c)], row.name, float(score), row.is_preferred, row.words))
    return found


def rank_in_query(query: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each entry within its run of equal values, from 0.

    >>> rank_in_query(np.array([0, 0, 3, 3, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    return np.arange(len(query)) - np.repeat(starts, np.diff(starts, append=len(query)))
