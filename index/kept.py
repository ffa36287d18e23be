"""Vectors that a build has encoded, kept until a published build has them: one that was killed costs only its rest."""

import shutil
import time
from collections.abc import Sequence
from hashlib import blake2b
from itertools import compress
from pathlib import Path
from secrets import token_hex

import numpy as np
from numpy.typing import NDArray

from index.dense import Vectors
from medlink.manifest import sha256
from medlink.protocols import Encoder
from medlink.text import ENCODER_TEXT_VERSION

_PREFIX = ".encoded-"
# Fewer are encoded again sooner than they are found.
_WORTH_KEEPING = 1_000
_FORGET_SECONDS = 7 * 86_400


class KeptVectors:
    """Gives vectors of encoder texts: those that an unpublished build left, the rest from the encoder, which it keeps.

    They lie in shards named by the hash of their content, so that one that was written in part or damaged is passed
    over. The numbers are those that encoding gives. Some 24 bytes a text are held in memory.

    Args:
        store: Directory of builds.
        encoder: Encoder of the build; what another one, or another version of `encoder_text`, gave is left alone.
    """

    def __init__(self, store: Path, encoder: Encoder) -> None:
        self._encoder = encoder
        self._directory = store / f"{_PREFIX}{encoder.fingerprint[:16]}-{ENCODER_TEXT_VERSION}"
        self._row = np.dtype([("hash", "<u8", (2,)), ("vector", "<f4", (encoder.dim,))])
        shards = [shard for path in sorted(self._directory.glob("*.npy")) if (shard := self._read(path)) is not None]
        self._vectors = [shard["vector"] for shard in shards]
        hashes = np.concatenate([np.zeros((0, 2), np.uint64), *(shard["hash"] for shard in shards)])
        places = [np.stack((np.full(len(s), i), np.arange(len(s))), axis=1) for i, s in enumerate(shards)]
        by_hash = np.argsort(hashes[:, 0], kind="stable")
        self._hashes = hashes[by_hash]
        self._places = np.concatenate([np.zeros((0, 2), np.int64), *places])[by_hash]
        self._can_keep = True
        self.found = 0
        """How many texts were not encoded again."""

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors, (n, dim), of distinct texts."""
        hashes = _hashes(texts)
        known, places = self._find(hashes)
        vectors = np.empty((len(texts), self._encoder.dim), np.float32)
        for shard in np.unique(places[:, 0]):
            here = places[:, 0] == shard
            vectors[np.flatnonzero(known)[here]] = self._vectors[shard][places[here, 1]]
        self.found += len(places)
        if not known.all():
            vectors[~known] = self._encoder.encode(list(compress(texts, ~known))).vectors
            self._keep(hashes[~known], vectors[~known])
        return vectors

    def _find(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return which of (n, 2) hashes are known, and for those the shard and the row in it, (known, 2)."""
        if not len(self._hashes):
            return np.zeros(len(hashes), np.bool_), self._places
        at = np.searchsorted(self._hashes[:, 0], hashes[:, 0]).clip(max=len(self._hashes) - 1)
        known = (self._hashes[at] == hashes).all(axis=1)
        return known, self._places[at[known]]

    def clear(self) -> None:
        """Forget the vectors of this encoder."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def tidy(self) -> None:
        """Forget those of other encoders that have not been added to for a week."""
        for directory in self._directory.parent.glob(f"{_PREFIX}*"):
            if directory != self._directory and time.time() - directory.stat().st_mtime > _FORGET_SECONDS:
                shutil.rmtree(directory, ignore_errors=True)

    def _keep(self, hashes: NDArray[np.uint64], vectors: Vectors) -> None:
        if len(hashes) < _WORTH_KEEPING or not self._can_keep:
            return
        shard = np.empty(len(hashes), self._row)
        shard["hash"], shard["vector"] = hashes, vectors
        unnamed = self._directory / f"{token_hex(8)}.tmp"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with unnamed.open("wb") as file:
                np.save(file, shard, allow_pickle=False)
            unnamed.rename(self._directory / f"{sha256(unnamed)}.npy")
        except OSError:
            # The build itself may still have room.
            self._can_keep = False
            unnamed.unlink(missing_ok=True)

    def _read(self, path: Path) -> NDArray[np.void] | None:
        try:
            if sha256(path) != path.stem:
                return None
            shard: NDArray[np.void] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError):
            return None
        return shard if shard.dtype == self._row else None


def _hashes(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return a hash of each text as two numbers, (n, 2)."""
    joined = b"".join(blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.frombuffer(joined, "<u8").reshape(-1, 2)
