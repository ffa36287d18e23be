"""What a reader read and left out, and how far it has come."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from medlink.kb.records import Record


@dataclass(slots=True)
class ReadReport:
    """Counts that a reader keeps while it streams: rows by file, rows left out by (file, reason), bytes."""

    rows: Counter[str] = field(default_factory=Counter)
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter)
    bytes_total: int = 0
    bytes_read: int = 0

    def skip(self, file: str, reason: str) -> None:
        """Count one row of `file` as left out because of `reason`."""
        self.skipped[file, reason] += 1


class Reader(Protocol):
    """Streams a terminology release as records, in bounded memory; a concept's names come before what refers to it."""

    @property
    def report(self) -> ReadReport:
        """Counts so far; complete once `records` is exhausted."""

    def records(self) -> Iterator[Record]:
        """Yield every record once.

        Raises:
            SourceError: A file is missing or a line is not what the format says; names file and line.
        """
