"""Rows of different lengths in two arrays: the names of each vector, the concepts of each text."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Ragged:
    """Row i is `values[offsets[i] : offsets[i + 1]]`; int64 (n + 1,) and int32."""

    offsets: NDArray[np.int64]
    values: NDArray[np.int32]

    @classmethod
    def of_sorted(cls, rows: NDArray[np.int32], values: NDArray[np.int32], count: int) -> "Ragged":
        """Return `count` rows, given each value's row in ascending order."""
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:])
        return cls(offsets, values)

    @classmethod
    def group(cls, row_of_value: NDArray[np.int32], rows: int) -> "Ragged":
        """Gather the values 0, 1, 2, ... under the row that each names; values of a row stay in order."""
        offsets = np.concatenate(([0], np.cumsum(np.bincount(row_of_value, minlength=rows))))
        return cls(offsets.astype(np.int64), np.argsort(row_of_value, kind="stable").astype(np.int32))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of values of each row."""
        return np.diff(self.offsets)

    def row(self, index: int) -> NDArray[np.int32]:
        """Return the values of one row."""
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def take(self, indices: NDArray[np.integer]) -> "Ragged":
        """Return the chosen rows, in the order asked for; one may be asked for twice."""
        starts = self.offsets[indices]
        lengths = self.offsets[indices + 1] - starts
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Ragged(offsets, self.values[places])

    def any(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return for each row whether one of its values is flagged; an empty row is not."""
        picked = np.concatenate(([0], np.cumsum(flags[self.values])))
        return picked[self.offsets[1:]] > picked[self.offsets[:-1]]
