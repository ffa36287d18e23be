"""The lexical channel: nearest names by TF-IDF weighted character trigrams, found without comparing all of them."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.arrays import Bools, NameArrays, map_ragged, save_ragged
from index.nearest import DECIMALS, Names, Scored, retrieved
from index.overlay import AddedNames, Overlay
from index.snapshot import Snapshot
from index.trigrams import Floats, Integers, Texts, Trigrams, Weighed, write_trigrams
from medlink.ragged import Ragged
from medlink.text import encoder_text, match_key
from medlink.types import LinkOptions, Retrieval, Retrieved

ROWS = "lexical_rows"

# A list that reaches this far below the k-th score has all that may round up to it, sums in float32 included.
_BELOW = 1.1 * 10**-DECIMALS
_SUMS_ERROR = 1e-5
# Entries of the lists of texts that are read before the search first asks whether it may stop.
_FIRST_ENTRIES = 4_096
# It hardly ever may while so much of the mention, of length one, is not read.
_HOPELESS = 0.75
# What it takes to read a trigram of a text to score it, in entries of such a list.
_SCORING = 3


def lexical_text(text: str) -> str:
    """Return the form whose trigrams are compared: the match key, lone Greek letters spelled out.

    >>> lexical_text("β-Thalassaemia, Ménière’s")
    'beta thalassaemia meniere'
    """
    return encoder_text(match_key(text), lowercase=True)


class LexicalWriter:
    """Collects the distinct lexical texts of names, in the order the names come."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}

    def row(self, name: str) -> int:
        """Return the row of a name's lexical text, a new one if it is new."""
        return self._rows.setdefault(lexical_text(name), len(self._rows))

    def save(self, directory: Path, row_of_name: NDArray[np.int32]) -> None:
        """Write the trigrams of every row, and which names stand behind it."""
        write_trigrams(directory, list(self._rows))
        save_ragged(Ragged.group(row_of_name, len(self._rows)), directory, ROWS)


@dataclass(frozen=True, slots=True)
class _Added:
    """Names that curation adds, with their trigrams, and which of them have any."""

    names: AddedNames
    texts: Texts
    worded: Integers


@dataclass(frozen=True, slots=True)
class _Filter:
    """Which names may answer, which rows have such a name, and how many rows that is."""

    names: Bools | None = None
    rows: Bools | None = None
    count: int = 0


class LexicalRetriever:
    """Finds the concepts whose names share the most, and the rarest, trigrams with a mention.

    The lists of the rarest trigrams are read first. What was not read of the mention's unit vector has some length,
    and no name can get more than that length from it: once that is below the k-th best score, names that are on none
    of the lists read cannot answer any more, and of the others only those with a large enough sum are scored.
    """

    def __init__(self, directory: Path, *, arrays: NameArrays, snapshot: Snapshot) -> None:
        self._trigrams = Trigrams(directory)
        self._arrays = arrays
        self._snapshot = snapshot
        self._names = Names(map_ragged(directory, ROWS), arrays.concept_of_name)
        self._filter = lru_cache(maxsize=8)(self._compute_filter)
        self._added: _Added | None = None

    def under(self, overlay: Overlay) -> "LexicalRetriever":
        """Return the same channel as curation leaves it; how rare a trigram is stays as the build has it."""
        other = copy(self)
        other._arrays = overlay.arrays
        other._filter = lru_cache(maxsize=8)(other._compute_filter)
        other._trigrams, texts = self._trigrams.beside([lexical_text(row.name.text) for row in overlay.added.rows])
        other._added = _Added(overlay.added, texts, np.flatnonzero(texts.scales)) if overlay.added else None
        return other

    def search(self, mentions: Sequence[str], options: LinkOptions) -> list[Retrieval]:
        """Return, for each mention, `top_k` distinct concepts if that many share a trigram with it, best first.

        Equal scores are ordered by concept id. Trigrams that no name has do not count.
        """
        texts = [lexical_text(mention) for mention in mentions]
        distinct = list(dict.fromkeys(texts))
        allowed = self._filter(options.semantic_types, options.sabs, options.include_suppressed)
        sums = np.zeros(len(self._trigrams), np.float32)
        weighed = self._trigrams.weigh(distinct)
        scored = [self._best_concepts(number, w, options.top_k, allowed, sums) for number, w in enumerate(weighed)]
        found = retrieved(scored, len(distinct), self._snapshot)
        if self._added:
            found = self._with_added(self._added, weighed, found, options)
        of_text = dict(zip(distinct, found, strict=True))
        return [Retrieval(tuple(of_text[text])) for text in texts]

    def _with_added(
        self, added: _Added, weighed: Sequence[Weighed], found: Sequence[Sequence[Retrieved]], options: LinkOptions
    ) -> list[list[Retrieved]]:
        joined = []
        for mention, concepts in zip(weighed, found, strict=True):
            scores: Floats = np.round(self._trigrams.cosines(mention, added.worded, added.texts), DECIMALS)
            near = scores > 0
            joined.append(added.names.join(concepts, added.worded[near], scores[near], options))
        return joined

    def _compute_filter(
        self, semantic_types: frozenset[str], sabs: frozenset[str], include_suppressed: bool
    ) -> _Filter:
        options = LinkOptions(semantic_types=semantic_types, sabs=sabs, include_suppressed=include_suppressed)
        names = self._arrays.allowed(options)
        if names is None:
            return _Filter()
        rows = self._names.of_row.any(names) & (self._trigrams.scales > 0)
        return _Filter(names, rows, int(rows.sum()))

    def _best_concepts(
        self, number: int, weighed: Weighed, k: int, allowed: _Filter, sums: NDArray[np.float32]
    ) -> Scored:
        """Return the k best concepts of one mention.

        Args:
            number: Which mention it is.
            weighed: The mention.
            k: How many concepts to find.
            allowed: What may answer.
            sums: Zeros, one a row, to work with; zeros again afterwards.
        """
        if allowed.rows is not None and _SCORING * allowed.count * self._trigrams.mean_length < weighed.costs.sum():
            rows = np.flatnonzero(allowed.rows)
        else:
            rows = self._candidates(weighed, k, allowed, sums)
        return self._scored(number, weighed, rows, allowed).take(slice(k))

    def _candidates(self, weighed: Weighed, k: int, allowed: _Filter, sums: NDArray[np.float32]) -> Integers:
        """Return rows among which are all that the k best concepts are found by."""
        touched = [np.empty(0, np.int32)]
        lists = self._trigrams.texts_with(weighed)
        try:
            for count, rest, next_entries in _parts(weighed):
                for _ in range(count):
                    rows, add = next(lists)
                    touched.append(rows[sums[rows] == 0])
                    np.add.at(sums, rows, add)
                if rest > _HOPELESS:
                    continue
                candidates = self._sufficient(weighed, k, allowed, np.concatenate(touched), sums, rest)
                if candidates is not None and _SCORING * len(candidates) * self._trigrams.mean_length <= next_entries:
                    return np.unique(candidates).astype(np.int64)
        finally:
            for rows in touched:
                sums[rows] = 0
        return np.empty(0, np.int64)

    def _sufficient(
        self,
        weighed: Weighed,
        k: int,
        allowed: _Filter,
        touched: NDArray[np.int32],
        sums: NDArray[np.float32],
        rest: float,
    ) -> NDArray[np.int32] | None:
        """Return the rows that can still be among the best, some twice; None while that may be any row.

        Args:
            weighed: The mention.
            k: How many concepts to find.
            allowed: What may answer.
            touched: Rows that are on a list read.
            sums: For each row, its product with what was read of the mention, not yet scaled.
            rest: Length of what was not read of the mention's vector.
        """
        rows = touched if allowed.rows is None else touched[allowed.rows[touched]]
        products = sums[rows] * self._trigrams.scales[rows]
        floor = self._kth_score(weighed, k, allowed, rows, products) - _BELOW
        if rest >= max(floor, _SUMS_ERROR):
            return None
        # A name at angle phi from what was read, itself at angle beta from the mention, is at least phi - beta from
        # the mention: it reaches the floor, the cosine of gamma, only if phi <= beta + gamma.
        read = np.sqrt(1 - rest**2)
        least = read * (read * floor - rest * np.sqrt(1 - floor**2)) if floor > 0 else 0.0
        return rows[products >= least - _SUMS_ERROR]

    def _kth_score(
        self, weighed: Weighed, k: int, allowed: _Filter, rows: NDArray[np.int32], products: NDArray[np.float32]
    ) -> float:
        """Return the k-th best score among the rows that look best so far; 0 if they are fewer than k concepts."""
        some = 4 * k + 32
        while True:
            promising = rows if some >= len(rows) else rows[np.argpartition(products, -some)[-some:]]
            scored = self._scored(0, weighed, np.unique(promising).astype(np.int64), allowed)
            if len(scored.score) >= k:
                return float(scored.score[k - 1])
            if some >= len(rows):
                return 0.0
            some *= 4

    def _scored(self, number: int, weighed: Weighed, rows: Integers, allowed: _Filter) -> Scored:
        """Return the concepts behind some rows with their scores, best first."""
        scores: Floats = np.round(self._trigrams.cosines(weighed, rows), DECIMALS)
        found = scores > 0
        query = np.full(int(found.sum()), number)
        return self._names.concepts(query, rows[found], scores[found], allowed.names)


def _parts(weighed: Weighed) -> Iterator[tuple[int, float, float]]:
    """Cut a mention into parts, each about as long to read as all before it.

    Yields:
        How many trigrams a part has, the length of the vector of those after it, and how many entries the next part
        has: infinitely many after the last.
    """
    entries = np.cumsum(weighed.costs)
    after = np.sqrt(np.append(np.cumsum(np.square(weighed.weight[::-1]))[::-1], 0.0))
    ends, goal = [0], _FIRST_ENTRIES
    while ends[-1] < len(entries):
        end = min(int(np.searchsorted(entries, goal)) + 1, len(entries))
        ends.append(max(end, ends[-1] + 1))
        goal = max(goal, 2 * int(entries[ends[-1] - 1]))
    for start, end, following in zip(ends, ends[1:], [*ends[2:], None], strict=False):
        to_read = np.inf if following is None else float(entries[following - 1] - entries[end - 1])
        yield end - start, float(after[end]), to_read
