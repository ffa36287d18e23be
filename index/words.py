"""How rare a word is among the names of a build: a table of hashed words, memory-mapped."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from index.arrays import map_array

FILE = "word_counts.npy"
# Two words of one hash count as one, which makes them look less rare than they are.
_HASHES = 1 << 20


def write_words(directory: Path, loose_keys: Iterable[str]) -> None:
    """Count in how many names each word is.

    Args:
        directory: Where the table goes.
        loose_keys: That of each distinct name.
    """
    names, holding = 0, Counter[int]()
    for key in loose_keys:
        names += 1
        holding.update({_hash(word) for word in key.split()})
    # The last entry is the number of names.
    counts = np.zeros(_HASHES + 1, np.uint32)
    counts[list(holding)] = list(holding.values())
    counts[-1] = names
    np.save(directory / FILE, counts, allow_pickle=False)


class Words:
    """Answers how rare words are, given as the loose key has them."""

    def __init__(self, directory: Path) -> None:
        self._counts: NDArray[np.uint32] = map_array(directory / FILE)

    def rarity(self, words: Sequence[str]) -> NDArray[np.float64]:
        """Return log((n + 1) / (df + 1)) of each word, n being the number of names and df of those with the word."""
        holding = self._counts[np.array([_hash(word) for word in words], np.int64)]
        rarity: NDArray[np.float64] = np.log((self._counts[-1] + 1.0) / (holding + 1.0))
        return rarity


def _hash(word: str) -> int:
    return crc32(word.encode()) % _HASHES
