"""A directory of training pairs: five Parquet files and a manifest, the same bytes for the same input."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from medlink.errors import SourceError
from medlink.manifest import find_damage, read_manifest
from medlink.ragged import Ragged
from training.sampler import Pairs

FORMAT = 2
KIND = "pairs"
PAIRS, TEXTS, CONCEPTS, MEMBERSHIPS = "pairs.parquet", "texts.parquet", "concepts.parquet", "memberships.parquet"
BROADER = "broader.parquet"
_ROW_GROUP = 1 << 18

# An index into concepts or texts is a row of that file.
_SCHEMAS = {
    PAIRS: pa.schema({"concept": pa.int32(), "left": pa.int32(), "right": pa.int32()}),
    TEXTS: pa.schema({"text": pa.large_string()}),
    CONCEPTS: pa.schema({"id": pa.string()}),
    MEMBERSHIPS: pa.schema({"concepts": pa.list_(pa.int32())}),
    BROADER: pa.schema({"concepts": pa.list_(pa.int32())}),
}


@dataclass(frozen=True, slots=True)
class PairSet:
    """Pairs in memory, with what a batch of them needs.

    `memberships` has a row for each text: every concept that it is a name of, trade-name links included. Two texts
    may serve as negatives of each other only if their rows have nothing in common. `broader` has a row for each
    concept: those directly above it.
    """

    pairs: Pairs
    memberships: Ragged
    broader: Ragged
    manifest: Mapping[str, Any]
    _concepts: pa.StringArray
    _texts: pa.LargeStringArray

    @property
    def concepts(self) -> list[str]:
        """The id of every concept, in order, as a new list: Arrow holds them in a tenth of the memory."""
        return list(self._concepts.to_pylist())

    @property
    def text_count(self) -> int:
        """Number of distinct texts."""
        return len(self._texts)

    def texts(self, indices: NDArray[np.integer]) -> list[str]:
        """Return the texts with these indices."""
        return list(self._texts.take(pa.array(indices)).to_pylist())


def read_pairs(directory: Path) -> PairSet:
    """Read what `make_pairs` wrote, after comparing every file with the manifest.

    Raises:
        SourceError: The directory is not one of pairs, is of another format, or is damaged.
    """
    try:
        facts = read_manifest(directory)
    except ValueError as error:
        raise SourceError(f"{error}; run `medlink train pairs`", file=str(directory)) from None
    if (facts.get("kind"), facts.get("format")) != (KIND, FORMAT):
        raise SourceError("not pairs of this format; run `medlink train pairs` again", file=str(directory))
    if problems := find_damage(directory, facts["files"]):
        raise SourceError(f"{'; '.join(problems)}; run `medlink train pairs` again", file=str(directory))
    columns = {name: pq.read_table(directory / name).combine_chunks() for name in _SCHEMAS}
    concept, left, right = (_numbers(columns[PAIRS][name]) for name in ("concept", "left", "right"))
    return PairSet(
        pairs=Pairs(concept, left, right),
        memberships=_lists(columns[MEMBERSHIPS]["concepts"]),
        broader=_lists(columns[BROADER]["concepts"]),
        manifest=facts,
        _concepts=_array(columns[CONCEPTS]["id"]),
        _texts=_array(columns[TEXTS]["text"]),
    )


class PairSetWriter:
    """Writes the files one by one, in pieces that depend on nothing but the content."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def texts(self, texts: Iterable[str]) -> None:
        """Write the distinct texts, in order."""
        with self._open(TEXTS) as writer:
            for piece in _pieces(texts):
                writer.write_table(pa.table([piece], schema=_SCHEMAS[TEXTS]))

    def concepts(self, ids: Iterable[str]) -> None:
        """Write the concept ids, in order."""
        with self._open(CONCEPTS) as writer:
            for piece in _pieces(ids):
                writer.write_table(pa.table([piece], schema=_SCHEMAS[CONCEPTS]))

    def memberships(self, rows: Ragged) -> None:
        """Write the concepts of each text."""
        self._write_lists(MEMBERSHIPS, rows)

    def broader(self, rows: Ragged) -> None:
        """Write the concepts directly above each concept."""
        self._write_lists(BROADER, rows)

    def _write_lists(self, name: str, rows: Ragged) -> None:
        with self._open(name) as writer:
            for start in range(0, len(rows), _ROW_GROUP):
                offsets = rows.offsets[start : start + _ROW_GROUP + 1]
                values = rows.values[offsets[0] : offsets[-1]]
                lists = pa.ListArray.from_arrays(pa.array(offsets - offsets[0], pa.int32()), pa.array(values))
                writer.write_table(pa.table([lists], schema=_SCHEMAS[name]))

    def pairs(self, found: Iterable[tuple[int, NDArray[np.int32], NDArray[np.int32]]]) -> int:
        """Write pairs as (concept, left texts, right texts) and return how many there were."""
        written = 0
        with self._open(PAIRS) as writer:
            for group in _grouped(found):
                concept = np.repeat(np.array([c for c, _, _ in group], np.int32), [len(left) for _, left, _ in group])
                left = np.concatenate([left for _, left, _ in group])
                right = np.concatenate([right for _, _, right in group])
                writer.write_table(pa.table([concept, left, right], schema=_SCHEMAS[PAIRS]))
                written += len(left)
        return written

    @contextmanager
    def _open(self, name: str) -> Iterator[pq.ParquetWriter]:
        schema = _SCHEMAS[name]
        options = {"compression": "zstd", "compression_level": 3, "use_dictionary": False}
        with pq.ParquetWriter(self._directory / name, schema, **options) as writer:
            yield writer


def _pieces(texts: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(texts)
    while piece := list(islice(rest, _ROW_GROUP)):
        yield piece


_Group = list[tuple[int, NDArray[np.int32], NDArray[np.int32]]]


def _grouped(found: Iterable[tuple[int, NDArray[np.int32], NDArray[np.int32]]]) -> Iterator[_Group]:
    group: _Group = []
    size = 0
    for part in found:
        group.append(part)
        size += len(part[1])
        if size >= _ROW_GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def _array(column: pa.ChunkedArray) -> Any:  # noqa: ANN401 - an array of the column's type
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _lists(column: pa.ChunkedArray) -> Ragged:
    lists = _array(column)
    return Ragged(np.asarray(lists.offsets, np.int64), np.asarray(lists.values, np.int32))


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int32]:
    return np.asarray(_array(column), np.int32)
