"""The read-only copy of all concept data that an answer needs, in one SQLite file a build."""

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from sys import intern
from typing import Any

from medlink.errors import UnknownConceptError
from medlink.loose_key import loose_key
from medlink.text import match_key
from medlink.types import Code, Concept, Definition, Name, Retirement, SemanticType, concept_id

FILE = "concepts.sqlite"
_SCHEMA = """
CREATE TABLE concept (number INTEGER PRIMARY KEY, id TEXT NOT NULL, preferred TEXT NOT NULL, facts TEXT NOT NULL);
CREATE TABLE name (number INTEGER PRIMARY KEY, concept INTEGER NOT NULL, text TEXT NOT NULL, key TEXT NOT NULL,
    loose TEXT NOT NULL, sab TEXT NOT NULL, tty TEXT NOT NULL, language TEXT NOT NULL, code TEXT NOT NULL,
    suppressed INTEGER NOT NULL, preferred INTEGER NOT NULL);
CREATE TABLE code (sab TEXT NOT NULL, code TEXT NOT NULL, concept INTEGER NOT NULL);
CREATE TABLE retired (id TEXT PRIMARY KEY, successors TEXT NOT NULL, reason TEXT NOT NULL, release TEXT NOT NULL);
"""
_INDEXES = """
CREATE UNIQUE INDEX concept_id ON concept (id);
CREATE INDEX name_key ON name (key);
CREATE INDEX name_loose ON name (loose);
CREATE INDEX name_concept ON name (concept);
CREATE INDEX code_code ON code (code, sab);
"""
# SQLite takes at most 32,766 bound values; a few hundred is as fast.
_SLICE = 500
_KEY, _LOOSE = 3, 4
# Some 450 bytes each.
_REMEMBER = 100_000


@dataclass(frozen=True, slots=True)
class NameRow:
    """A name of the snapshot with the numbers that the build's arrays use for it and its concept."""

    number: int
    concept: int
    name: Name
    is_preferred: bool
    words: tuple[str, ...]
    """Of its loose key."""


@dataclass(frozen=True, slots=True)
class Described:
    """A concept of the snapshot without its names, but with their sources and the words of the preferred one."""

    number: int
    concept: Concept
    name_sources: frozenset[str]
    words: tuple[str, ...]


class SnapshotWriter:
    """Writes concepts in the order they come, numbering concepts and names from 0."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path)
        self._connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _SCHEMA)
        self.concepts = 0
        self.names = 0

    def add(self, concept: Concept) -> None:
        """Append one concept with all its names; the first name is the preferred one."""
        facts = {
            "types": [[t.tui, t.name] for t in concept.semantic_types],
            "codes": [[c.sab, c.code] for c in concept.codes],
            "definitions": [[d.sab, d.text] for d in concept.definitions],
            "broader": list(concept.broader),
            "name_sources": sorted({n.sab for n in concept.names}),
            "words": loose_key(concept.preferred_name).split(),
        }
        number = self.concepts
        row = (number, concept.id, concept.preferred_name, json.dumps(facts, ensure_ascii=False))
        self._connection.execute("INSERT INTO concept VALUES (?,?,?,?)", row)
        # Several sources may have the same string, and a loose key takes its time.
        keys = {text: (match_key(text), loose_key(text)) for text in {name.text for name in concept.names}}
        self._connection.executemany(
            "INSERT INTO name VALUES (?,?,?,?,?,?,?,?,?,?,?)",
            (
                (
                    self.names + i,
                    number,
                    n.text,
                    *keys[n.text],
                    n.sab,
                    n.tty,
                    n.language,
                    n.code,
                    n.suppressed,
                    i == 0,
                )
                for i, n in enumerate(concept.names)
            ),
        )
        self._connection.executemany(
            "INSERT INTO code VALUES (?,?,?)", ((c.sab, c.code, number) for c in concept.codes)
        )
        self.concepts += 1
        self.names += len(concept.names)

    def retire(self, retirement: Retirement) -> None:
        """Note what became of a concept id that is no longer in use."""
        row = (retirement.id, json.dumps(retirement.successors), retirement.reason, retirement.release)
        self._connection.execute("INSERT INTO retired VALUES (?,?,?,?)", row)

    def close(self) -> None:
        """Build the lookup tables and close the file."""
        self._connection.executescript(_INDEXES + "PRAGMA optimize;")
        self._connection.close()


class Snapshot:
    """Reads a build's concept data, memory-mapped; safe to share between threads."""

    def __init__(self, path: Path) -> None:
        self._uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        self._local = threading.local()
        # For threads that come once the build is removed, which those that have it open outlive.
        self._first = self._open()
        self._remembered: dict[int, NameRow] = {}

    def names_by_key(self, keys: Sequence[str]) -> dict[str, list[NameRow]]:
        """Return the names under each match key, in name order; keys without names are left out."""
        return _by_column(_KEY, self._in("SELECT * FROM name WHERE key IN", keys))

    def names_by_loose_key(self, keys: Sequence[str]) -> dict[str, list[NameRow]]:
        """Return the names under each loose key, in name order; keys without names are left out."""
        return _by_column(_LOOSE, self._in("SELECT * FROM name WHERE loose IN", keys))

    def names_of(self, ids: Sequence[str]) -> dict[str, list[NameRow]]:
        """Return the names of concepts by id, preferred first; ids that are not there are left out."""
        query = "SELECT name.*,concept.id FROM concept JOIN name ON name.concept = concept.number WHERE concept.id IN"
        return _by_column(-1, self._in(query, ids))

    def texts(self) -> Iterator[tuple[int, str]]:
        """Stream the number and text of every name, in the order of their numbers."""
        yield from self._connection.execute("SELECT number,text FROM name ORDER BY number")

    def names(self, numbers: Sequence[int]) -> dict[int, NameRow]:
        """Return names by number."""
        remembered = self._remembered
        found = {number: remembered[number] for number in numbers if number in remembered}
        new = [number for number in numbers if number not in found]
        rows = {row[0]: _name_row(row) for row in self._in("SELECT * FROM name WHERE number IN", new)}
        if len(remembered) > _REMEMBER:
            # Others may be reading the old one.
            self._remembered = remembered = {}
        remembered.update(rows)
        return found | rows

    def concept_ids(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return concept ids by number."""
        return dict(self._in("SELECT number,id FROM concept WHERE number IN", numbers))

    def concept_numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Return concept numbers by id; ids that are not there are left out."""
        return dict(self._in("SELECT id,number FROM concept WHERE id IN", ids))

    def name_counts(self) -> list[int]:
        """Return how many distinct match keys the names of each concept have, by number."""
        query = (
            "SELECT (SELECT COUNT(DISTINCT key) FROM name WHERE name.concept = concept.number)"
            " FROM concept ORDER BY number"
        )
        return [row[0] for row in self._connection.execute(query)]

    def distinct_loose_keys(self) -> Iterator[str]:
        """Yield one loose key for each distinct match key; two may be the same."""
        query = "SELECT MIN(loose) FROM name WHERE key <> '' GROUP BY key"
        return (row[0] for row in self._connection.execute(query))

    def concepts(self, ids: Sequence[str]) -> dict[str, Concept]:
        """Return concepts by id, without their names; ids that are not there are left out."""
        return {row[1]: _concept(row, ()) for row in self._in("SELECT * FROM concept WHERE id IN", ids)}

    def described(self, ids: Sequence[str]) -> dict[str, Described]:
        """Return concepts by id with what else the build says of them; ids that are not there are left out."""
        return {row[1]: _described(row) for row in self._in("SELECT * FROM concept WHERE id IN", ids)}

    def concept(self, concept_id: str) -> Concept:
        """Return one concept with all its names.

        Raises:
            UnknownConceptError: No concept has this id.
        """
        row = self._one("SELECT * FROM concept WHERE id=?", concept_id)
        if row is None:
            raise UnknownConceptError("no concept has this id in the active index build")
        names = self._connection.execute("SELECT * FROM name WHERE concept=? ORDER BY number", (row[0],))
        return _concept(row, tuple(_name_row(n).name for n in names))

    def coded(self, sab: str, code: str) -> list[str]:
        """Return the ids of all concepts that carry a code, in order; one code may belong to several."""
        query = (
            "SELECT DISTINCT concept.id FROM code JOIN concept ON concept.number = code.concept"
            " WHERE code.sab=? COLLATE NOCASE AND code.code IN (?,?) ORDER BY concept.id"
        )
        # Ontologies write their own prefix into the code (MONDO:0005068), MeSH and OMIM do not.
        return [row[0] for row in self._connection.execute(query, (sab, code, f"{sab}:{code}"))]

    def coded_as(self, curie: str) -> list[str]:
        """Return the ids of all concepts that carry the code of a CURIE, in order."""
        query = "SELECT DISTINCT concept.id FROM concept JOIN code ON concept.number = code.concept WHERE code.code IN"
        sab, _, code = concept_id(curie).partition(":")
        # HPO's codes begin with HP.
        return sorted({*self.coded(sab, code), *(row[0] for row in self._in(query, self.spellings(curie)))})

    def spellings(self, identifier: str) -> list[str]:
        """Return how the build may spell an id or CURIE: whether its prefix is in capitals says nothing."""
        plain = concept_id(identifier)
        prefix, colon, local = plain.partition(":")
        stored = self._prefixes.get(prefix, ()) if colon else ()
        return list(dict.fromkeys((identifier, plain, *(f"{spelt}:{local}" for spelt in stored))))

    @cached_property
    def _prefixes(self) -> dict[str, tuple[str, ...]]:
        """How the build spells each prefix of its ids, by the prefix in capitals."""
        # CUIs, of which there may be millions, lie between.
        query = (
            "SELECT DISTINCT substr(id, 1, instr(id, ':') - 1) FROM {}"
            " WHERE (id < 'C0' OR id >= 'C:') AND instr(id, ':') > 1"
        )
        found: dict[str, set[str]] = {}
        for table in ("concept", "retired"):
            for (prefix,) in self._connection.execute(query.format(table)):
                found.setdefault(prefix.upper(), set()).add(prefix)
        return {capitals: tuple(sorted(spelt)) for capitals, spelt in found.items()}

    def retirement(self, concept_id: str) -> Retirement | None:
        """Return what became of a retired id, or None if it was never retired."""
        row = self._one("SELECT * FROM retired WHERE id=?", concept_id)
        return Retirement(row[0], tuple(json.loads(row[1])), row[2], row[3]) if row else None

    @property
    def _connection(self) -> sqlite3.Connection:
        if not hasattr(self._local, "connection"):
            try:
                self._local.connection = self._open()
            except sqlite3.OperationalError:
                self._local.connection = self._first
        connection: sqlite3.Connection = self._local.connection
        return connection

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._uri, uri=True, check_same_thread=False)
        connection.execute(f"PRAGMA mmap_size={1 << 40}")
        return connection

    def _in(self, query: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(values), _SLICE):
            part = values[start : start + _SLICE]
            yield from self._connection.execute(f"{query} ({','.join('?' * len(part))})", part)

    def _one(self, query: str, value: str) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._connection.execute(query, (value,)).fetchone()
        return row


def _by_column(column: int, rows: Iterable[tuple[Any, ...]]) -> dict[str, list[NameRow]]:
    """Gather names under what one column of their rows says, in name order."""
    found: dict[str, list[NameRow]] = {}
    for row in rows:
        found.setdefault(row[column], []).append(_name_row(row))
    for names in found.values():
        names.sort(key=lambda name: name.number)
    return found


def _name_row(row: tuple[Any, ...]) -> NameRow:
    number, concept, text, _key, loose, sab, tty, language, code, suppressed, preferred, *_ = row
    # A few strings that all names share; the database gives a new one each time.
    name = Name(text, intern(sab), intern(tty), intern(language), code, bool(suppressed))
    return NameRow(number, concept, name, bool(preferred), tuple(map(intern, loose.split())))


def _described(row: tuple[Any, ...]) -> Described:
    facts = json.loads(row[3])
    sources = frozenset(map(intern, facts["name_sources"]))
    return Described(row[0], _concept(row, ()), sources, tuple(map(intern, facts["words"])))


def _concept(row: tuple[Any, ...], names: tuple[Name, ...]) -> Concept:
    facts = json.loads(row[3])
    return Concept(
        id=row[1],
        preferred_name=row[2],
        names=names,
        semantic_types=tuple(_semantic_type(*t) for t in facts["types"]),
        codes=tuple(Code(intern(sab), code) for sab, code in facts["codes"]),
        definitions=tuple(Definition(intern(sab), text) for sab, text in facts["definitions"]),
        broader=tuple(facts["broader"]),
    )


@lru_cache(maxsize=1024)
def _semantic_type(tui: str, name: str) -> SemanticType:
    return SemanticType(tui, name)
