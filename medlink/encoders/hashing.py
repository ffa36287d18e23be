"""An encoder without weights: character n-grams hashed into buckets. For tests, and for spelling alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from medlink.encoders.artefact import FORMAT, damaged, new_directory, read_facts
from medlink.encoders.inputs import check_texts
from medlink.errors import EncoderError
from medlink.manifest import describe_files, fingerprint, write_manifest
from medlink.types import Embeddings

KIND = "hashing"

_BEGIN, _END = 2, 3  # code points that no text holds after `encoder_text`
_GRAMS = (2, 3)
_TOGETHER = 4096
_FIELDS: dict[str, type] = {"dim": int, "max_length": int, "lowercase": bool, "grams": list}


class HashingEncoder:
    """Counts signed character n-grams in `dim` buckets.

    A vector is a sum of whole numbers scaled once, so it is the same on every machine and in every batch. A text
    of n characters has 2n + 1 n-grams, an odd number of signs, so no vector is zero: the empty text has one too.
    """

    def __init__(self, dim: int = 256, *, max_length: int = 256, lowercase: bool = True) -> None:
        """`max_length` is in characters."""
        if dim < 1 or max_length < 1:
            raise ValueError(f"dim and max_length must be positive, not {dim} and {max_length}")
        self._dim = dim
        self._max_length = max_length
        self._lowercase = lowercase

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Make the encoder that the manifest of a directory describes.

        Raises:
            EncoderError: The directory is damaged, or is not of this kind.
        """
        facts = read_facts(directory, KIND, _FIELDS)
        if facts["grams"] != list(_GRAMS):
            raise damaged(directory, f"its n-grams are {facts['grams']}, this version has {list(_GRAMS)}")
        try:
            return cls(facts["dim"], max_length=facts["max_length"], lowercase=facts["lowercase"])
        except ValueError as error:
            raise damaged(directory, str(error)) from None

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    @property
    def lowercase(self) -> bool:
        """Whether `encoder_text` lower-cases for this encoder."""
        return self._lowercase

    @property
    def fingerprint(self) -> str:
        """Hash of everything that decides a vector."""
        return fingerprint({"kind": KIND, **self._facts()})

    def save(self, directory: Path) -> None:
        """Write an encoder directory that `load_encoder` reads; it must not exist or be empty.

        Raises:
            EncoderError: The directory holds something.
        """
        try:
            with new_directory(directory) as unfinished:
                facts = {"format": FORMAT, "kind": KIND, "files": describe_files(unfinished), **self._facts()}
                write_manifest(unfinished, facts)
        except OSError as error:
            raise EncoderError(f"cannot write {directory}: {error.strerror}") from error

    def encode(self, texts: Sequence[str]) -> Embeddings:
        """Encode texts that went through `encoder_text`.

        Raises:
            ValueError: A text is not a string that UTF-8 can hold; the message names its index.
        """
        check_texts(texts)
        vectors = np.empty((len(texts), self._dim), dtype=np.float32)
        for start in range(0, len(texts), _TOGETHER):
            part = [text[: self._max_length] for text in texts[start : start + _TOGETHER]]
            vectors[start : start + len(part)] = self._encode(part)
        truncated = np.fromiter((len(text) > self._max_length for text in texts), dtype=np.bool_, count=len(texts))
        return Embeddings(vectors, truncated)

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        characters = "".join(f"{chr(_BEGIN)}{text}{chr(_END)}" for text in texts).encode("utf-32-le")
        points = np.frombuffer(characters, dtype="<u4").astype(np.uint64)
        lengths = np.array([len(text) + 2 for text in texts])
        rows = np.repeat(np.arange(len(texts)), lengths)
        counts = np.zeros(len(texts) * self._dim)
        for size in _GRAMS:
            # An n-gram that begins in one text and ends in the next is none.
            inside = rows[: len(rows) - size + 1] == rows[size - 1 :]
            hashes = _hash_grams(points, size)[inside]
            buckets = rows[: len(inside)][inside] * self._dim + (hashes % np.uint64(self._dim)).astype(np.int64)
            signs = np.where(hashes >> np.uint64(63), 1.0, -1.0)
            counts += np.bincount(buckets, weights=signs, minlength=len(counts))
        vectors = counts.reshape(len(texts), self._dim)
        lengths_of_vectors = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
        unit: NDArray[np.float32] = (vectors / lengths_of_vectors).astype(np.float32)
        return unit

    def _facts(self) -> dict[str, Any]:
        return {
            "dim": self._dim,
            "max_length": self._max_length,
            "lowercase": self._lowercase,
            "grams": list(_GRAMS),
        }


def _hash_grams(points: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    # The finaliser of SplitMix64 after each character: every bit of the hash depends on every character.
    hashes = np.full(len(points) - size + 1, size, dtype=np.uint64)
    for offset in range(size):
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + points[offset : len(points) - size + 1 + offset]
        hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes ^= hashes >> np.uint64(31)
    return hashes
