"""What a reader read and left out, and how far it has come."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from medlink.kb.records import Record, SourceRecord

UNKNOWN_LICENCE_LEVEL = 9
"""Licence level of a source that states none: it is treated like the most restricted one."""


@dataclass(slots=True)
class ReadReport:
    """Counts that a reader keeps while it streams: rows by file, rows left out by (file, reason), bytes.

    Bytes are those on disk, so compressed ones where a file is compressed. `missing` names the optional files
    that the release does not have.
    """

    rows: Counter[str] = field(default_factory=Counter)
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)
    bytes_total: int = 0
    bytes_read: int = 0

    def start(self, bytes_total: int, missing: Iterable[str] = ()) -> None:
        """Forget an earlier pass and say how much there is to read."""
        self.rows.clear()
        self.skipped.clear()
        self.missing[:] = missing
        self.bytes_total = bytes_total
        self.bytes_read = 0

    def skip(self, file: str, reason: str) -> None:
        """Count one row of `file` as left out because of `reason`."""
        self.skipped[file, reason] += 1


def undeclared_sources(seen: Iterable[str], declared: Iterable[str]) -> Iterator[SourceRecord]:
    """Yield a source for every SAB that was used but never described, under the unknown licence level."""
    for sab in sorted(set(seen) - set(declared)):
        yield SourceRecord(sab, sab, "", licence_level=UNKNOWN_LICENCE_LEVEL)


class Reader(Protocol):
    """Streams a release as records, in bounded memory and in no promised order."""

    @property
    def report(self) -> ReadReport:
        """Counts so far; complete once `records` is exhausted."""

    def records(self) -> Iterator[Record]:
        """Yield every record once.

        Raises:
            SourceError: A file is missing or a line is not what the format says; names file and line.
        """
