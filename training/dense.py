"""Names of a dictionary by vector, in memory and exhaustively: any encoder, without an index build."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from medlink.protocols import Encoder
from medlink.text import encoder_text
from training.baselines import batches, largest

Vectors = NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with how many texts are encoded and how many there are."""

# Sums of 32 bits depend on the shape of the product in their last digits.
_DECIMALS = 6
_TOGETHER = 16_384


class EncodedNames:
    """Vectors of names, kept, so that dictionaries that share names share the work.

    Args:
        encoder: Reads the names after `encoder_text`.
        progress: Told how far encoding is.
    """

    def __init__(self, encoder: Encoder, progress: Progress = lambda done, total: None) -> None:
        self.encoder = encoder
        self._progress = progress
        self._row_of_text: dict[str, int] = {}
        self._vectors: Vectors = np.empty((0, encoder.dim), np.float32)

    def vectors(self, names: Sequence[str]) -> Vectors:
        """Return the unit vectors of names, (n, dim); a text is encoded once, however often it comes."""
        texts = [encoder_text(name, lowercase=self.encoder.lowercase) for name in names]
        new = [text for text in dict.fromkeys(texts) if text not in self._row_of_text]
        parts = [self._vectors]
        for start in range(0, len(new), _TOGETHER):
            parts.append(self.encoder.encode(new[start : start + _TOGETHER]).vectors)
            self._progress(min(start + _TOGETHER, len(new)), len(new))
        self._row_of_text.update(zip(new, range(len(self._vectors), len(self._vectors) + len(new)), strict=True))
        self._vectors = np.concatenate(parts) if new else self._vectors
        return self._vectors[[self._row_of_text[text] for text in texts]]


class DenseNames:
    """Names by cosine of their vectors, in 32 bits, every name looked at."""

    def __init__(self, names: Sequence[str], encoded: EncodedNames) -> None:
        self._names = list(names)
        self._encoder = encoded.encoder
        self._vectors = encoded.vectors(self._names)

    def search(self, texts: Sequence[str], k: int) -> list[list[str]]:
        """Find the k nearest names; equal scores stand in the order of the names.

        A text of nothing but blanks finds nothing.
        """
        read = [encoder_text(text, lowercase=self._encoder.lowercase) for text in texts]
        distinct = list(dict.fromkeys(text for text in read if text))
        found: dict[str, list[str]] = {"": []}
        for batch in batches(distinct, len(self._names)):
            scores = self._encoder.encode(batch).vectors @ self._vectors.T  # (texts, names)
            for text, row in zip(batch, np.round(scores, _DECIMALS), strict=True):
                found[text] = [self._names[at] for at in largest(row, k)]
        return [found[text] for text in read]
