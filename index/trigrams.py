"""Texts as TF-IDF weighted character trigrams within words, in memory-mapped arrays that are read both ways."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.arrays import map_array, map_ragged, save_ragged
from medlink.ragged import Ragged

_CODES = "lexical_codes.npy"
_RARITIES = "lexical_rarities.npy"
_SCALES = "lexical_scales.npy"
_OF_TEXT = "lexical_trigrams"
_OF_TRIGRAM = "lexical_texts"

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_BLANK = ord(" ")
_CODE_POINT_BITS = 21
# Texts taken apart at once while writing, and scored at once.
_TOGETHER = 1 << 16


def trigrams(texts: Sequence[str]) -> tuple[Integers, Integers]:
    """Take texts apart: one trigram a letter, the letter with its neighbours, words standing between blanks.

    These are the trigrams of scikit-learn's analyzer `char_wb`.

    Args:
        texts: Words with one blank between them.

    Returns:
        The trigrams as numbers, and the place of the text that each is from; both (m,), texts in order.
    """
    joined = np.frombuffer(f" {' '.join(texts)} ".encode("utf-32-le"), np.uint32).astype(np.int64)
    before, letter, after = joined[:-2], joined[1:-1], joined[2:]
    codes = before << 2 * _CODE_POINT_BITS | letter << _CODE_POINT_BITS | after
    text = np.repeat(np.arange(len(texts)), [len(text) + 1 for text in texts])[:-1]
    inside = letter != _BLANK
    return codes[inside], text[inside]


def _none() -> Integers:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """The known trigrams, each list ascending; `more` are numbered on from the stored ones."""

    stored: Integers
    more: Integers = field(default_factory=_none)

    def __len__(self) -> int:
        return len(self.stored) + len(self.more)

    def numbers(self, codes: Integers) -> Integers:
        """Return the number of each trigram, -1 where it is not known."""
        stored, more = _places(codes, self.stored), _places(codes, self.more)
        return np.where(more < 0, stored, len(self.stored) + more)


def _places(codes: Integers, ascending: Integers) -> Integers:
    """Return where each of the codes is in a list, -1 where it is not."""
    if not len(ascending):
        return np.full(len(codes), -1)
    place = np.minimum(np.searchsorted(ascending, codes), len(ascending) - 1)
    return np.where(ascending[place] == codes, place, -1)


@dataclass(frozen=True, slots=True)
class Texts:
    """The trigrams of texts, a repeated one as often as it is there."""

    trigrams: Ragged
    scales: NDArray[np.float32]
    """One over the length of each text's vector, 0 where there is no trigram, (n,)."""


def write_trigrams(directory: Path, texts: Sequence[str]) -> None:
    """Write what `Trigrams` reads.

    A trigram's weight in a text is how often it is there times its rarity, ln((1 + texts) / (1 + texts with it)) + 1,
    over the length of the text's vector: scikit-learn's defaults.
    """
    vocabulary, holding = _count(texts)
    rarities = np.log((1 + len(texts)) / (1 + holding)) + 1
    taken = _taken_apart(texts, _Vocabulary(vocabulary), rarities)
    np.save(directory / _CODES, vocabulary, allow_pickle=False)
    np.save(directory / _RARITIES, rarities, allow_pickle=False)
    np.save(directory / _SCALES, taken.scales, allow_pickle=False)
    save_ragged(taken.trigrams, directory, _OF_TEXT)
    save_ragged(_turned(taken.trigrams, len(vocabulary)), directory, _OF_TRIGRAM)


def _count(texts: Sequence[str]) -> tuple[Integers, Integers]:
    """Return the vocabulary in ascending order, and how many texts hold each trigram."""
    codes, holding = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for start in range(0, len(texts), _TOGETHER):
        found, text = trigrams(texts[start : start + _TOGETHER])
        some, place = np.unique(found, return_inverse=True)
        once = np.unique(text * len(some) + place) % max(1, len(some))
        codes.append(some)
        holding.append(np.bincount(once, minlength=len(some)))
    vocabulary, place = np.unique(np.concatenate(codes), return_inverse=True)
    total = np.bincount(place, np.concatenate(holding), minlength=len(vocabulary))
    return vocabulary, total.astype(np.int64)


def _taken_apart(texts: Sequence[str], vocabulary: _Vocabulary, rarities: Floats) -> Texts:
    """Return the trigrams of texts that have no others, in ascending order."""
    lengths, numbers = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    for start in range(0, len(texts), _TOGETHER):
        codes, text = trigrams(texts[start : start + _TOGETHER])
        # Texts of the same words in another order must get the same sum, to the last bit.
        ordered = np.sort(text * len(vocabulary) + vocabulary.numbers(codes))
        lengths.append(np.bincount(text, minlength=min(_TOGETHER, len(texts) - start)))
        numbers.append((ordered % max(1, len(vocabulary))).astype(np.int32))
    offsets = np.concatenate(([0], np.cumsum(np.concatenate(lengths)))).astype(np.int64)
    of_text = Ragged(offsets, np.concatenate(numbers))
    return Texts(of_text, _scales(of_text, rarities))


def _scales(of_text: Ragged, rarities: Floats) -> NDArray[np.float32]:
    squares = np.zeros(len(of_text))
    for start in range(0, len(of_text), _TOGETHER):
        some = of_text.take(np.arange(start, min(start + _TOGETHER, len(of_text))))
        text = np.repeat(np.arange(len(some)), some.lengths)
        once, times = np.unique(text * len(rarities) + some.values, return_counts=True)
        weights = times * rarities[once % max(1, len(rarities))]
        squares[start : start + len(some)] = np.bincount(once // max(1, len(rarities)), weights**2, len(some))
    return np.divide(1, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0).astype(np.float32)


def _turned(of_text: Ragged, vocabulary: int) -> Ragged:
    """Return the texts that hold each trigram in ascending order, repeated like the trigrams of a text."""
    offsets = np.concatenate(([0], np.cumsum(np.bincount(of_text.values, minlength=vocabulary)))).astype(np.int64)
    texts = np.empty(len(of_text.values), np.int32)
    free = offsets[:-1].copy()
    # In parts: one sort of everything would hold several times the result in memory.
    for start in range(0, len(of_text), _TOGETHER):
        some = of_text.take(np.arange(start, min(start + _TOGETHER, len(of_text))))
        order = np.argsort(some.values, kind="stable")
        number = some.values[order]
        counts = np.bincount(number, minlength=vocabulary)
        within = np.arange(len(number)) - np.repeat(np.cumsum(counts) - counts, counts)
        texts[free[number] + within] = start + np.repeat(np.arange(len(some)), some.lengths)[order]
        free += counts
    return Ragged(offsets, texts)


@dataclass(frozen=True, slots=True)
class Weighed:
    """A text as those of its trigrams that are known, rarest first; all arrays (m,)."""

    trigram: Integers
    weight: Floats
    """Weights of a unit vector."""
    costs: Integers
    """How long the list of texts is that hold the trigram."""


class Trigrams:
    """Reads the trigrams of texts and the texts of trigrams, memory-mapped; safe to share between threads."""

    def __init__(self, directory: Path) -> None:
        self._vocabulary = _Vocabulary(map_array(directory / _CODES))
        self._rarities: Floats = map_array(directory / _RARITIES)
        self._of_trigram = map_ragged(directory, _OF_TRIGRAM)
        self._texts = Texts(map_ragged(directory, _OF_TEXT), map_array(directory / _SCALES))
        self.mean_length = len(self._texts.trigrams.values) / max(1, len(self))

    def __len__(self) -> int:
        return len(self._texts.trigrams)

    @property
    def scales(self) -> NDArray[np.float32]:
        """One over the length of each text's vector, (n,)."""
        return self._texts.scales

    def beside(self, texts: Sequence[str]) -> tuple["Trigrams", Texts]:
        """Take texts apart that are not stored.

        Returns:
            The same trigrams with those that the texts have alone, as rare as can be, and the texts in terms of them.
        """
        vocabulary = _Vocabulary(self._vocabulary.stored)
        codes, _ = trigrams(texts)
        vocabulary = replace(vocabulary, more=np.unique(codes[vocabulary.numbers(codes) < 0]))
        stored, more = len(vocabulary.stored), len(vocabulary.more)
        other = copy(self)
        other._vocabulary = vocabulary
        other._rarities = np.append(self._rarities[:stored], np.full(more, np.log(1 + len(self)) + 1))
        offsets = self._of_trigram.offsets[: stored + 1]
        other._of_trigram = Ragged(np.append(offsets, np.full(more, offsets[-1])), self._of_trigram.values)
        return other, _taken_apart(texts, vocabulary, other._rarities)

    def weigh(self, texts: Sequence[str]) -> list[Weighed]:
        """Return texts as unit vectors over the trigrams that are known, as scikit-learn does."""
        codes, text = trigrams(texts)
        number = self._vocabulary.numbers(codes)
        number, text = number[number >= 0], text[number >= 0]
        bounds = np.searchsorted(text, np.arange(len(texts) + 1))
        return [self._weighed(number[bounds[i] : bounds[i + 1]]) for i in range(len(texts))]

    def _weighed(self, numbers: Integers) -> Weighed:
        trigram, times = np.unique(numbers, return_counts=True)
        weight = times * self._rarities[trigram]
        costs = self._of_trigram.offsets[trigram + 1] - self._of_trigram.offsets[trigram]
        rarest = np.argsort(costs, kind="stable")
        unit = weight / np.sqrt(np.square(weight).sum()) if len(weight) else weight
        return Weighed(trigram[rarest], unit[rarest], costs[rarest])

    def texts_with(self, weighed: Weighed) -> Iterator[tuple[NDArray[np.int32], np.float32]]:
        """Yield, for each trigram, the texts with it, and what it adds to their products before scaling."""
        adds = (weighed.weight * self._rarities[weighed.trigram]).astype(np.float32)
        for trigram, add in zip(weighed.trigram, adds, strict=True):
            yield self._of_trigram.row(trigram), add

    def cosines(self, weighed: Weighed, rows: Integers, texts: Texts | None = None) -> Floats:
        """Return the cosines of some texts with a weighed one.

        Args:
            weighed: The one text.
            rows: Which other texts, (m,); each has a trigram.
            texts: What the rows are of; the stored texts if left out.
        """
        of = texts or self._texts
        adds = np.zeros(len(self._vocabulary))
        adds[weighed.trigram] = weighed.weight * self._rarities[weighed.trigram]
        products = np.empty(len(rows))
        for start in range(0, len(rows), _TOGETHER):
            some = of.trigrams.take(rows[start : start + _TOGETHER])
            products[start : start + len(some)] = np.add.reduceat(adds[some.values], some.offsets[:-1])
        return products * of.scales[rows]
