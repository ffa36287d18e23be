"""Wrong names for mentions: the nearest by vector, the best by BM25, and random ones."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from medlink.ragged import Ragged
from training.baselines import largest
from training.mentions import Mentions, Names

Vectors = NDArray[np.float32]

# Scores at a time, whatever the number of names.
_IN_MEMORY = 1 << 24
# Sums of 32 bits depend on the shape of the product in their last digits.
_DECIMALS = 6


def forbidden_names(mentions: Mentions, names: Names) -> Ragged:
    """Return for each mention the names that must never be its negatives, ascending: those that share an id."""
    return _unique(names.of_id.take(mentions.ids.row(at)).values for at in range(len(mentions)))


def right_names(mentions: Mentions, names: Names) -> Ragged:
    """Return for each mention the names of its gold concepts, ascending."""
    return _unique(names.of_concept.take(mentions.concepts.row(at)).values for at in range(len(mentions)))


def nearest_names(mentions: Vectors, names: Vectors, forbidden: Ragged, k: int) -> Ragged:
    """Return for each mention the k nearest names that are allowed, best first; equal ones in the order of the names.

    Every name is looked at.

    Args:
        mentions: Unit vectors, shape (mentions, dim).
        names: Unit vectors, shape (names, dim).
        forbidden: Names to leave out of each mention's.
        k: Fewer come back where fewer are allowed.
    """
    rows: list[list[int]] = []
    for part in np.array_split(np.arange(len(mentions)), len(mentions) * len(names) // _IN_MEMORY + 1):
        scores = np.round(mentions[part] @ names.T, _DECIMALS)  # (part, names)
        for row, at in zip(scores, part, strict=True):
            row[forbidden.row(at)] = -np.inf
            allowed = min(k, len(names) - len(forbidden.row(at)))
            rows.append(largest(row, allowed) if allowed else [])
    return _rows(rows)


class Bm25:
    """Names by BM25 over their words (Robertson and Zaragoza 2009, section 3).

    A name d scores, for each word w of a text, idf(w) tf(w,d) (k1 + 1) / (tf(w,d) + k1 (1 - b + b |d| / mean |d|)),
    where idf(w) = log(1 + (N - df(w) + 0.5) / (df(w) + 0.5)), which is never below 0; a word counts as often as the
    text has it.

    Args:
        texts: Encoder texts of the names.
        k1: How much a word's second occurrence still adds.
        b: How much long names are held back, from 0 to 1.
    """

    def __init__(self, texts: Sequence[str], *, k1: float = 1.2, b: float = 0.75) -> None:
        self._counter = CountVectorizer(analyzer=str.split)
        weights = self._counter.fit_transform(texts).astype(np.float64)  # (names, words)
        lengths = np.asarray(weights.sum(axis=1)).ravel()
        document_frequency = np.asarray((weights > 0).sum(axis=0)).ravel()
        idf = np.log1p((len(texts) - document_frequency + 0.5) / (document_frequency + 0.5))
        held_back = k1 * (1 - b + b * lengths / lengths.mean())
        of_entry = np.repeat(held_back, np.diff(weights.indptr))
        weights.data = idf[weights.indices] * weights.data * (k1 + 1) / (weights.data + of_entry)
        self._weights = weights.T.tocsr()

    def scores(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 - scipy leaves its matrices without types
        """Return the score of every name that shares a word with a text: a sparse matrix of rows (texts, names)."""
        return self._counter.transform(texts) @ self._weights

    def best_names(self, texts: Sequence[str], forbidden: Ragged, k: int) -> Ragged:
        """Return for each text the k best names that are allowed and share a word with it, best first.

        Equal scores stand in the order of the names.

        Args:
            texts: Encoder texts of the mentions.
            forbidden: Names to leave out of each mention's, ascending.
            k: Fewer come back where fewer share a word.
        """
        scores = self.scores(texts).sorted_indices()
        rows: list[NDArray[np.int32]] = []
        for at, (start, end) in enumerate(pairwise(scores.indptr)):
            names, values = scores.indices[start:end], scores.data[start:end]
            allowed = np.isin(names, forbidden.row(at), assume_unique=True, invert=True)
            # Words added up in another order give other last digits.
            rows.append(names[allowed][largest(np.round(values[allowed], _DECIMALS), k)] if k else names[:0])
        return _rows(rows)


def random_names(forbidden: Ragged, names: int, k: int, rng: np.random.Generator) -> Ragged:
    """Return for each mention k distinct names, each that is allowed as likely as any other.

    Args:
        forbidden: Names to leave out of each mention's, ascending.
        names: Number of names.
        k: Fewer come back where fewer are allowed.
        rng: Draws them.
    """
    rows: list[NDArray[np.int64]] = []
    for at in range(len(forbidden)):
        out = forbidden.row(at)
        place = rng.choice(names - len(out), size=min(k, names - len(out)), replace=False)
        # The n-th allowed name comes after as many forbidden ones as have at most n allowed ones before them.
        rows.append(place + np.searchsorted(out - np.arange(len(out)), place, side="right"))
    return _rows(rows)


def one_a_concept(found: Ragged, concepts: Ragged, k: int) -> Ragged:
    """Keep the first k names of each mention none of whose concepts an earlier one has.

    A concept may have a dozen names that differ in the order of their words, and one of them teaches what all do.

    Args:
        found: Names of each mention, best first.
        concepts: Concepts of each name.
        k: Fewer come back where `found` holds fewer concepts.
    """
    rows: list[list[int]] = []
    for at in range(len(found)):
        kept: list[int] = []
        seen: set[int] = set()
        for name in found.row(at).tolist():
            bearers = concepts.row(name).tolist()
            if len(kept) < k and seen.isdisjoint(bearers):
                kept.append(name)
            seen.update(bearers)
        rows.append(kept)
    return _rows(rows)


def _unique(rows: Iterable[NDArray[np.int32]]) -> Ragged:
    return _rows([np.unique(row) for row in rows])


def _rows(rows: Sequence[Sequence[int] | NDArray[np.integer]]) -> Ragged:
    offsets = np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=np.int64))).astype(np.int64)
    return Ragged(offsets, np.concatenate([np.empty(0, np.int32), *(np.asarray(row, np.int32) for row in rows)]))
