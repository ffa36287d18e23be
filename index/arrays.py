"""Which name belongs to which concept, and which concepts a filter lets through, as memory-mapped arrays."""

import json
from array import array
from collections.abc import Collection, Iterable
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medlink.errors import UnknownValueError
from medlink.ragged import Ragged
from medlink.types import Concept, LinkOptions

Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]


def save_ragged(ragged: Ragged, directory: Path, stem: str) -> None:
    """Write both arrays as plain npy files."""
    np.save(directory / f"{stem}.offsets.npy", ragged.offsets, allow_pickle=False)
    np.save(directory / f"{stem}.values.npy", ragged.values, allow_pickle=False)


def map_ragged(directory: Path, stem: str) -> Ragged:
    """Map both arrays into memory."""
    return Ragged(map_array(directory / f"{stem}.offsets.npy"), map_array(directory / f"{stem}.values.npy"))


class _RaggedWriter:
    def __init__(self) -> None:
        self._offsets = array("q", [0])
        self._values = array("i")

    def append(self, row: Iterable[int]) -> None:
        self._values.extend(row)
        self._offsets.append(len(self._values))

    def ragged(self) -> Ragged:
        return Ragged(np.array(self._offsets, np.int64), np.array(self._values, np.int32))


class NameArraysWriter:
    """Collects, concept by concept in snapshot order, what the filters need to know."""

    def __init__(self) -> None:
        self._concept_of_name = array("i")
        self._suppressed = bytearray()
        self._types = _RaggedWriter()
        self._sabs = _RaggedWriter()
        self._concepts = 0
        self._tuis: dict[str, int] = {}
        self._sab_numbers: dict[str, int] = {}

    def add(self, concept: Concept) -> None:
        """Append one concept with its names."""
        for name in concept.names:
            self._concept_of_name.append(self._concepts)
            self._suppressed.append(name.suppressed)
        sabs = {n.sab for n in concept.names} | {c.sab for c in concept.codes}
        self._types.append(self._tuis.setdefault(t.tui, len(self._tuis)) for t in concept.semantic_types)
        self._sabs.append(self._sab_numbers.setdefault(s, len(self._sab_numbers)) for s in sorted(sabs))
        self._concepts += 1

    def save(self, directory: Path) -> None:
        """Write the arrays and the vocabulary of semantic types and sources."""
        np.save(directory / "name_concept.npy", np.array(self._concept_of_name, np.int32), allow_pickle=False)
        np.save(directory / "name_suppressed.npy", np.frombuffer(self._suppressed, np.bool_), allow_pickle=False)
        save_ragged(self._types.ragged(), directory, "concept_types")
        save_ragged(self._sabs.ragged(), directory, "concept_sabs")
        vocabulary = {"tuis": list(self._tuis), "sabs": list(self._sab_numbers)}
        (directory / "vocabulary.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")


class NameArrays:
    """Answers, for a build, which concept a name belongs to and which names a request may be answered with."""

    def __init__(self, directory: Path) -> None:
        self.concept_of_name: Ints = map_array(directory / "name_concept.npy")
        self._suppressed: Bools = map_array(directory / "name_suppressed.npy")
        self._types = map_ragged(directory, "concept_types")
        self._sabs = map_ragged(directory, "concept_sabs")
        vocabulary = json.loads((directory / "vocabulary.json").read_text(encoding="utf-8"))
        self.tuis: list[str] = vocabulary["tuis"]
        self.sabs: list[str] = vocabulary["sabs"]
        self._any_suppressed = bool(self._suppressed.any())
        self._blocked: list[int] = []
        self._remember()

    def without(self, names: Collection[int]) -> "NameArrays":
        """Return the same arrays, but that these names may not answer whatever the options are."""
        if not names:
            return self
        other = copy(self)
        other._blocked = sorted({*self._blocked, *names})
        other._remember()
        return other

    def allowed(self, options: LinkOptions) -> Bools | None:
        """Return, for each name, whether the options let it answer; None when all may.

        Filters are OR inside a list and AND between lists. A concept passes a source filter if it has a name or
        a code there, whichever name it was found by.

        Raises:
            UnknownValueError: A semantic type or source that this build does not have.
        """
        if not (options.filtered or self._any_suppressed or self._blocked):
            return None
        return self._names(options.semantic_types, options.sabs, options.include_suppressed)

    def allowed_concepts(self, options: LinkOptions) -> Bools | None:
        """Return, for each concept, whether it passes the filters; None when all do.

        Raises:
            UnknownValueError: A semantic type or source that this build does not have.
        """
        return self._concepts(options.semantic_types, options.sabs) if options.filtered else None

    def _remember(self) -> None:
        self._concepts = lru_cache(maxsize=64)(self._compute_concepts)
        self._names = lru_cache(maxsize=64)(self._compute_names)

    def _compute_concepts(self, tuis: frozenset[str], sabs: frozenset[str]) -> Bools:
        concepts = np.ones(len(self._types.offsets) - 1, np.bool_)
        if tuis:
            concepts &= self._types.any(_flags("semantic type", tuis, self.tuis))
        if sabs:
            concepts &= self._sabs.any(_flags("source", sabs, self.sabs))
        return concepts

    def _compute_names(self, tuis: frozenset[str], sabs: frozenset[str], include_suppressed: bool) -> Bools:
        names: Bools = self._concepts(tuis, sabs)[self.concept_of_name]
        if not include_suppressed:
            names &= ~self._suppressed
        names[self._blocked] = False
        return names


def _flags(kind: str, chosen: frozenset[str], valid: list[str]) -> Bools:
    for value in sorted(chosen - set(valid)):
        raise UnknownValueError(kind, value, sorted(valid))
    return np.fromiter((v in chosen for v in valid), np.bool_, len(valid))


def map_array(path: Path) -> Any:  # noqa: ANN401  # each caller knows the dtype that it wrote
    """Map one array into memory."""
    # Without numpy's own wrapper of mapped files, which makes every small step slower.
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
