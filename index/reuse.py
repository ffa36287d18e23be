"""Vectors that earlier builds hold already, so that a build encodes only what is new."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index import dense, snapshot
from index.dense import StoredVectors, Vectors
from index.recipes import Recipe
from index.snapshot import Snapshot
from index.store import FORMAT
from medlink.errors import IndexMismatchError
from medlink.manifest import read_manifest, sha256
from medlink.protocols import Encoder
from medlink.text import ENCODER_TEXT_VERSION, encoder_text

# In these files nothing that is read here has changed since the first format.
_NEEDED = (snapshot.FILE, dense.FILE, f"{dense.ROWS}.offsets.npy", f"{dense.ROWS}.values.npy")


@dataclass(frozen=True, slots=True)
class _Part:
    """Which rows of an earlier build serve which of the new one: `old[i]` for `new[i]`, ascending in `new`."""

    vectors: StoredVectors
    new: NDArray[np.int64]
    old: NDArray[np.int32]


class KnownVectors:
    """The vectors of a new build's texts, as far as earlier builds have them; the encoder gives the rest.

    A text that an earlier build has gets the very numbers that encoding it gave then. A build that does not keep them
    as they were is passed over, and so is one of another encoder or another version of `encoder_text`, of a newer
    format, damaged or gone. Some ten bytes a text are held in memory, the vectors stay on disk.

    Args:
        builds: Directories of the builds, the likeliest first.
        encoder: Encoder of the new build.
        row_of_text: Row of each distinct encoder text in the new build, from 0.
        encode: Gives the vectors of texts that no build has; the encoder if left out.
    """

    def __init__(
        self,
        builds: Sequence[Path],
        encoder: Encoder,
        row_of_text: Mapping[str, int],
        encode: Callable[[Sequence[str]], Vectors] | None = None,
    ) -> None:
        self._dim = encoder.dim
        self._encode = encode or (lambda texts: encoder.encode(texts).vectors)
        self._parts: list[_Part] = []
        wanted = np.ones(len(row_of_text), np.bool_)
        for directory in builds:
            stored = _open(directory, encoder) if wanted.any() else None
            if stored is None:
                continue
            rows = _matching(directory, stored, row_of_text, encoder.lowercase)
            found = np.flatnonzero(wanted & (rows >= 0))
            wanted[found] = False
            self._parts.append(_Part(stored, found, rows[found]))

    def __len__(self) -> int:
        """Return how many texts need not be encoded."""
        return sum(len(part.new) for part in self._parts)

    def vectors(self, texts: Sequence[str], start: int) -> Vectors:
        """Return the vectors, (n, dim), of consecutive texts, the first of which has the row `start`."""
        vectors = np.empty((len(texts), self._dim), np.float32)
        unknown = np.ones(len(texts), np.bool_)
        for part in self._parts:
            here = slice(*np.searchsorted(part.new, (start, start + len(texts))))
            places = part.new[here] - start
            if len(places):
                vectors[places] = part.vectors.take(part.old[here])
                unknown[places] = False
        if unknown.any():
            vectors[unknown] = self._encode(list(compress(texts, unknown)))
        return vectors


def _open(directory: Path, encoder: Encoder) -> StoredVectors | None:
    """Open the vectors of a build if they can serve; what is read is compared with the manifest first."""
    try:
        facts = read_manifest(directory)
        recipe = Recipe(**facts["recipe"])
        same = (
            facts["encoder"]["fingerprint"] == encoder.fingerprint
            and facts["text"]["encoder_text"] == ENCODER_TEXT_VERSION
            and facts["format"] <= FORMAT
        )
        sound = (sha256(directory / name) == facts["files"][name]["sha256"] for name in _NEEDED)
        return StoredVectors(directory, recipe) if same and recipe.lossless and all(sound) else None
    except (OSError, ValueError, KeyError, TypeError, IndexMismatchError):
        # Whatever is wrong with it, the build can be done without.
        return None


def _matching(
    directory: Path, stored: StoredVectors, row_of_text: Mapping[str, int], lowercase: bool
) -> NDArray[np.int32]:
    """Return for each text of the new build its row in the earlier one, -1 if it has none."""
    rows = np.full(len(row_of_text), -1, np.int32)
    try:
        for number, text in Snapshot(directory / snapshot.FILE).texts():
            row = row_of_text.get(encoder_text(text, lowercase=lowercase))
            if row is not None:
                rows[row] = stored.row_of_name[number]
    except sqlite3.Error:
        rows[:] = -1
    return rows
