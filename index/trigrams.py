"""Texts as TF-IDF weighted character trigrams within words, in memory-mapped arrays that are read both ways."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


def write_trigrams(directory: Path, texts: Sequence[str]) -> None:
    """Write what `Trigrams` reads.

    A trigram's weight in a text is how often it is there times its rarity, ln((1 + texts) / (1 + texts with it)) + 1,
    over the length of the text's vector: scikit-learn's defaults.
    """
    vocabulary, holding = _count(texts)
    rarities = np.log((1 + len(texts)) / (1 + holding)) + 1
    of_text = _taken_apart(texts, vocabulary)
    np.save(directory / _CODES, vocabulary, allow_pickle=False)
    np.save(directory / _RARITIES, rarities, allow_pickle=False)
    np.save(directory / _SCALES, _scales(of_text, rarities), allow_pickle=False)
    save_ragged(of_text, directory, _OF_TEXT)
    save_ragged(_turned(of_text, len(vocabulary)), directory, _OF_TRIGRAM)


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


def _taken_apart(texts: Sequence[str], vocabulary: Integers) -> Ragged:
    """Return the trigrams of each text in ascending order, a repeated one as often as it is there."""
    lengths, numbers = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    for start in range(0, len(texts), _TOGETHER):
        codes, text = trigrams(texts[start : start + _TOGETHER])
        # Texts of the same words in another order must get the same sum, to the last bit.
        ordered = np.sort(text * len(vocabulary) + np.searchsorted(vocabulary, codes))
        lengths.append(np.bincount(text, minlength=min(_TOGETHER, len(texts) - start)))
        numbers.append((ordered % max(1, len(vocabulary))).astype(np.int32))
    offsets = np.concatenate(([0], np.cumsum(np.concatenate(lengths)))).astype(np.int64)
    return Ragged(offsets, np.concatenate(numbers))


def _scales(of_text: Ragged, rarities: Floats) -> NDArray[np.float32]:
    """Return one over the length of each text's vector, 0 where there is no trigram."""
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
        self._codes = map_array(directory / _CODES)
        self._rarities = map_array(directory / _RARITIES)
        self._of_text = map_ragged(directory, _OF_TEXT)
        self._of_trigram = map_ragged(directory, _OF_TRIGRAM)
        self.scales: NDArray[np.float32] = map_array(directory / _SCALES)
        """One over the length of each text's vector, (n,)."""
        self.mean_length = len(self._of_text.values) / max(1, len(self._of_text))

    def __len__(self) -> int:
        return len(self._of_text)

    def weigh(self, texts: Sequence[str]) -> list[Weighed]:
        """Return texts as unit vectors over the trigrams that are known, as scikit-learn does."""
        codes, text = trigrams(texts)
        place = np.minimum(np.searchsorted(self._codes, codes), max(0, len(self._codes) - 1))
        known = self._codes[place] == codes if len(self._codes) else np.zeros(len(codes), np.bool_)
        place, text = place[known], text[known]
        bounds = np.searchsorted(text, np.arange(len(texts) + 1))
        return [self._weighed(place[bounds[i] : bounds[i + 1]]) for i in range(len(texts))]

    def _weighed(self, places: Integers) -> Weighed:
        trigram, times = np.unique(places, return_counts=True)
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

    def cosines(self, weighed: Weighed, texts: Integers) -> Floats:
        """Return the cosines of some texts, by their number, with a weighed one; each has a trigram."""
        adds = np.zeros(len(self._codes))
        adds[weighed.trigram] = weighed.weight * self._rarities[weighed.trigram]
        products = np.empty(len(texts))
        for start in range(0, len(texts), _TOGETHER):
            some = self._of_text.take(texts[start : start + _TOGETHER])
            products[start : start + len(some)] = np.add.reduceat(adds[some.values], some.offsets[:-1])
        return products * self.scales[texts]
