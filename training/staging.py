"""Names on their way to pairs: put on disk as they come, taken back sorted and without duplicates."""

import sqlite3
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

_BATCH = 10_000
_CACHE_KIB = 65_536  # also the most that SQLite's sorter holds in memory before it goes to disk
_SCHEMA = """
CREATE TABLE concept (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE name (text TEXT NOT NULL, concept INTEGER NOT NULL);
CREATE TABLE link (one TEXT NOT NULL, other TEXT NOT NULL);
CREATE TABLE broader (one TEXT NOT NULL, other TEXT NOT NULL);
"""


class Staging:
    """A scratch database of (text, concept), trade-name links and broader concepts; memory does not grow with it.

    Concepts have numbers in the order of their first name. Text and ids are ordered by code point.

    Args:
        path: File to create. SQLite sorts in its own temporary folder (`SQLITE_TMPDIR`, `TMPDIR`), which needs
            about as much room again.
    """

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        # Lost in a crash, which is what scratch is for.
        for pragma in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{_CACHE_KIB}"):
            self._database.execute(f"PRAGMA {pragma}")
        self._database.executescript(_SCHEMA)
        self._database.execute("BEGIN")
        self._concept_id = ""
        self._number = 0
        self._names: list[tuple[str, int]] = []
        self._pairs: dict[str, list[tuple[str, str]]] = {"link": [], "broader": []}

    def add(self, concept_id: str, text: str) -> None:
        """Take one name; fastest when those of a concept come in a row."""
        if not self._number or concept_id != self._concept_id:
            self._concept_id, self._number = concept_id, self._number_of(concept_id)
        self._names.append((text, self._number))
        if len(self._names) >= _BATCH:
            self._flush()

    def link(self, one: str, other: str) -> None:
        """Take a link between two concepts, which may never get a name."""
        self._relate("link", one, other)

    def broaden(self, concept_id: str, broader_id: str) -> None:
        """Take a concept and one directly above it, which may never get names."""
        self._relate("broader", concept_id, broader_id)

    def sort(self) -> None:
        """Sort the names; none can be added any more."""
        self._flush()
        self._database.execute(
            "CREATE TABLE sorted AS SELECT text, concept FROM name GROUP BY text, concept ORDER BY text, concept"
        )
        self._database.execute("DROP TABLE name")

    def names(self) -> Iterator[tuple[str, Iterator[int]]]:
        """Yield each text once, in order, with the numbers of its concepts."""
        rows = self._database.execute("SELECT text, concept FROM sorted ORDER BY rowid")
        for text, group in groupby(rows, key=itemgetter(0)):
            yield text, (number for _, number in group)

    def concepts(self) -> Iterator[tuple[int, str]]:
        """Yield (number, id) in order of id."""
        yield from self._database.execute("SELECT number, id FROM concept ORDER BY id")

    def links(self) -> Iterator[tuple[int, int]]:
        """Yield each link once, by the numbers of its concepts; 0 stands for a concept without a name."""
        yield from self._database.execute(
            "SELECT coalesce(a.number, 0), coalesce(b.number, 0) FROM (SELECT DISTINCT one, other FROM link)"
            " LEFT JOIN concept a ON a.id = one LEFT JOIN concept b ON b.id = other"
        )

    def broader(self) -> Iterator[tuple[int, int]]:
        """Yield (concept, one directly above it) once each, by number, where both have names; a loop is left out."""
        yield from self._database.execute(
            "SELECT DISTINCT a.number, b.number FROM broader JOIN concept a ON a.id = one"
            " JOIN concept b ON b.id = other WHERE a.number <> b.number"
        )

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _relate(self, table: str, one: str, other: str) -> None:
        self._pairs[table].append((one, other))
        if len(self._pairs[table]) >= _BATCH:
            self._flush()

    def _number_of(self, concept_id: str) -> int:
        query = "INSERT INTO concept (id) VALUES (?) ON CONFLICT (id) DO UPDATE SET id = id RETURNING number"
        return int(self._database.execute(query, (concept_id,)).fetchone()[0])

    def _flush(self) -> None:
        self._database.executemany("INSERT INTO name VALUES (?, ?)", self._names)
        self._names.clear()
        for table, pairs in self._pairs.items():
            self._database.executemany(f"INSERT INTO {table} VALUES (?, ?)", pairs)  # noqa: S608 - names of our own
            pairs.clear()
