"""Draws pairs of things by number, without ever listing all pairs."""

from hashlib import shake_128

import numpy as np
from numpy.typing import NDArray


def draw(names: int, most: int, seed: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw pairs i < j of `names` things, all of them or `most`, each at most once; memory grows with `most` only.

    >>> i, j = draw(3, 50, "any")
    >>> list(zip(i.tolist(), j.tolist()))
    [(0, 1), (0, 2), (1, 2)]
    """
    return unrank(_some(names * (names - 1) // 2, most, seed))


def unrank(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs i < j that have these numbers when counted (0,1) (0,2) (1,2) (0,3) (1,3) (2,3) ..."""
    # Exact for up to 2**25 things: 1 + 8 * number is then whole in a float, and its root far enough from the next.
    j = ((1 + np.sqrt(1.0 + 8.0 * numbers)) / 2).astype(np.int64)
    return numbers - j * (j - 1) // 2, j


def _some(total: int, most: int, seed: str) -> NDArray[np.int64]:
    """Return numbers below `total` in order: all, or `most` of them by Floyd's method, the same on every machine."""
    if total <= most:
        return np.arange(total, dtype=np.int64)
    words = np.frombuffer(shake_128(seed.encode()).digest(8 * most), "<u8").tolist()
    chosen: set[int] = set()
    for word, top in zip(words, range(total - most, total), strict=True):
        number = word % (top + 1)
        chosen.add(number if number not in chosen else top)
    return np.array(sorted(chosen), np.int64)
