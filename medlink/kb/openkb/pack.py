"""Writes a pack: one JSON object a line, compressed, the same bytes from the same records."""

import hashlib
import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import zstandard

from medlink.kb.openkb.xref_namespaces import is_cui
from medlink.kb.readers.jsonl import write_jsonl
from medlink.kb.records import NameRecord, Record, RetiredRecord

_LEVEL = 19
# 32 MiB: finds repetitions far apart, yet a reader needs no more memory than that.
_WINDOW_LOG = 25


class PackCounts:
    """What went into a pack, counted on the way."""

    def __init__(self) -> None:
        self.retired = 0
        self.names: Counter[str] = Counter()
        self._concepts: set[str] = set()
        self._texts: set[str] = set()

    def watch(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the records unchanged, counting them."""
        for record in records:
            if isinstance(record, NameRecord):
                self._concepts.add(record.concept_id)
                self.names[record.sab] += 1
                self._texts.add(record.text.lower())
            self.retired += isinstance(record, RetiredRecord)
            yield record

    @property
    def concepts(self) -> int:
        """All concepts."""
        return len(self._concepts)

    @property
    def cui_concepts(self) -> int:
        """Concepts whose id is a UMLS CUI."""
        return sum(map(is_cui, self._concepts))

    @property
    def distinct_names(self) -> int:
        """Names that differ in more than case: what an index has to encode."""
        return len(self._texts)


def write_pack(path: Path, records: Iterable[Record]) -> str:
    """Write the records to `path` and return the sha256 of the file; an interrupted write leaves nothing there."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _LEVEL, window_log=_WINDOW_LOG, enable_ldm=True, write_content_size=False
    )
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            packer = zstandard.ZstdCompressor(compression_params=parameters)
            with (
                packer.stream_writer(file, closefd=False) as packed,
                io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text,
            ):
                write_jsonl(text, records)
            file.flush()
            os.fsync(file.fileno())
        digest = hashlib.sha256(partial.read_bytes()).hexdigest()
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return digest
