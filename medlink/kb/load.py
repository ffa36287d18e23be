"""Loads a terminology release into the SQL store in one transaction: all of it, or nothing."""

import hashlib
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.exc import DBAPIError

from medlink.errors import StoreError, UnknownValueError
from medlink.kb import orm
from medlink.kb.bulk import TARGETS, Progress, Target, Writer, table_of
from medlink.kb.database import checkpoint, writing
from medlink.kb.readers.report import Reader
from medlink.kb.readers.rrf_tables import COLUMNS as RRF_FILES

_CONTENT_VERSION = 1  # raise it when a reader or the loader makes something else of the same file
_LOAD_LOCK = 0x6D65646C6F6164
_HASH_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a load stored and left out, by table; `read` and `skipped` as the reader counts them, by file."""

    name: str
    already_loaded: bool = False
    rows: Mapping[str, int] = field(default_factory=dict)
    read: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[tuple[str, str], int] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    """Optional files that the release does not have."""
    duplicates: Mapping[str, int] = field(default_factory=dict)
    orphans: Mapping[str, int] = field(default_factory=dict)
    """Rows that refer to a concept without a name: "concept not loaded"."""
    orphans_elsewhere: int = 0
    """Rows of other loads that lost their concept because this load no longer brings it."""
    seconds: float = 0.0


def fingerprint(path: Path, options: Mapping[str, Any]) -> str:
    """Return the hash of what decides a load: the files' names and content, and the reader's options.

    Args:
        path: The release: a file or a directory.
        options: What the reader was told; JSON-like values.
    """
    digest = hashlib.sha256()
    for file in _files(path):
        content = hashlib.sha256()
        with file.open("rb") as stream:
            while block := stream.read(_HASH_BLOCK):
                content.update(block)
        digest.update(f"{file.name}\0{content.hexdigest()}\n".encode())
    digest.update(json.dumps([_CONTENT_VERSION, dict(options)], sort_keys=True).encode())
    return digest.hexdigest()


def _files(path: Path) -> list[Path]:
    """Return the files to hash, in order; of a UMLS release, tens of gigabytes, only those that are read."""
    if path.is_file():
        return [path]
    files = {file: file.name.removesuffix(".gz").removesuffix(".zst") for file in path.rglob("*") if file.is_file()}
    rrf = "MRCONSO.RRF" in files.values()
    return sorted(file for file, name in files.items() if not rrf or name in RRF_FILES)


def load(
    engine: Engine,
    reader: Reader,
    *,
    name: str,
    format: str = "",
    options: Mapping[str, Any] | None = None,
    fingerprint: str = "",
    force: bool = False,
    progress: Progress | None = None,
) -> LoadReport:
    """Load a release under a name, in place of what was loaded under that name before.

    Other loads stay as they are, and several may name the same concept. Whatever fails, and whenever, the store
    keeps its previous content.

    Args:
        engine: A migrated store.
        reader: Yields the release; it is consumed.
        name: Name of the load.
        format: The reader's format, for the record.
        options: What the reader was told, for the record.
        fingerprint: Hash of the input. If the last load under this name had the same, nothing is done; empty
            means that the input is not known.
        force: Load even so.
        progress: Told how far the load is.

    Raises:
        SourceError: The release cannot be read as it is.
        StoreError: The store refused, another load is running, or the release has nothing to store: an empty file
            in place of a vocabulary is a mistake.
    """
    started, clock = datetime.now(UTC), time.monotonic()
    with _store_errors(), writing(engine) as connection:
        _lock(connection)
        load_id, previous = _register(connection, name)
        if fingerprint and previous == fingerprint and not force:
            return LoadReport(name, already_loaded=True)
        if previous is not None:
            _remove(connection, load_id)
        writer = Writer(connection, load_id)
        writer.write(reader, progress)
        if writer.written.total() == writer.written["source"]:
            raise StoreError(f"the release for {name!r} has nothing to store, not one name; the store is as it was")
        report = _finish(writer, reader, name, replaced=previous is not None, clock=clock)
        counts = {
            "rows": dict(report.rows),
            "read": dict(report.read),
            "skipped": [[*key, count] for key, count in sorted(report.skipped.items())],
            "duplicates": dict(report.duplicates),
            "orphans": dict(report.orphans),
        }
        values = {"format": format, "options": dict(options or {}), "fingerprint": fingerprint, "counts": counts}
        moments = {"state": "complete", "started_at": started, "finished_at": datetime.now(UTC)}
        connection.execute(update(orm.Load).where(orm.Load.id == load_id).values(**values, **moments))
    checkpoint(engine)
    return report


def _lock(connection: Connection) -> None:
    # SQLite has one writer anyway.
    if connection.dialect.name == "postgresql" and not connection.scalar(
        select(func.pg_try_advisory_xact_lock(_LOAD_LOCK))
    ):
        raise StoreError("another load is running on this store; wait for its end")


def _register(connection: Connection, name: str) -> tuple[int, str | None]:
    """Return the load's id and the fingerprint of its content in the store, None if it is new."""
    found = connection.execute(select(orm.Load.id, orm.Load.fingerprint).where(orm.Load.name == name)).first()
    if found is not None:
        return found.id, found.fingerprint
    values = {"name": name, "format": "", "fingerprint": "", "options": {}, "state": "loading", "counts": {}}
    new = insert(orm.Load).values(started_at=datetime.now(UTC), **values).returning(orm.Load.id)
    return connection.scalars(new).one(), None


def remove(engine: Engine, name: str) -> None:
    """Take a load out of the store, with everything that only it said; all of it, or nothing.

    Raises:
        UnknownValueError: There is no load of that name.
        StoreError: The store refused.
    """
    with _store_errors(), writing(engine) as connection:
        ids = {known: load_id for known, load_id in connection.execute(select(orm.Load.name, orm.Load.id))}
        if name not in ids:
            raise UnknownValueError("load", name, sorted(ids))
        _remove(connection, ids[name])
        connection.execute(delete(orm.Load).where(orm.Load.id == ids[name]))
        _derive_concepts(connection)
        for target in TARGETS:
            if target.refers:
                _drop_orphans(connection, target)


def _remove(connection: Connection, load_id: int) -> None:
    _forget_concepts(connection, load_id)
    alone = connection.scalar(select(func.count()).select_from(orm.Load)) == 1
    for table in [target.table for target in TARGETS] + [table_of(orm.Source)]:
        # Without a condition SQLite frees whole pages.
        connection.execute(delete(table) if alone else delete(table).where(table.c.load_id == load_id))


def _forget_concepts(connection: Connection, load_id: int) -> None:
    named = exists().where(orm.Name.concept_id == orm.Concept.id, orm.Name.load_id == load_id)
    connection.execute(delete(orm.Concept).where(named))


def _finish(writer: Writer, reader: Reader, name: str, *, replaced: bool, clock: float) -> LoadReport:
    connection, load_id = writer.connection, writer.load_id
    _analyse(connection)
    for target in TARGETS:
        if target.distinct:
            writer.duplicates[target.table.name] += _drop_duplicates(connection, target, load_id)
    _forget_concepts(connection, load_id)
    _derive_concepts(connection)
    _analyse(connection)
    orphans: Counter[str] = Counter()
    for target in TARGETS:
        if target.refers:
            orphans[target.table.name] = _drop_orphans(connection, target, target.table.c.load_id == load_id)
    elsewhere = sum(_drop_orphans(connection, t) for t in TARGETS if t.refers) if replaced else 0
    return LoadReport(
        name=name,
        rows={table: count - orphans[table] for table, count in sorted(writer.written.items())},
        read=dict(reader.report.rows),
        skipped=reader.report.skipped + writer.skipped,
        missing=tuple(reader.report.missing),
        duplicates=+writer.duplicates,
        orphans=+orphans,
        orphans_elsewhere=elsewhere,
        seconds=time.monotonic() - clock,
    )


def _analyse(connection: Connection) -> None:
    """Tell PostgreSQL's planner what was written: it takes a table filled just now for empty, and joins by loops."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("ANALYZE"))


def _drop_duplicates(connection: Connection, target: Target, load_id: int) -> int:
    table = target.table
    order = func.row_number().over(partition_by=[table.c[name] for name in target.columns], order_by=table.c.id)
    numbered = select(table.c.id, order.label("copy")).where(table.c.load_id == load_id).subquery()
    again = select(numbered.c.id).where(numbered.c.copy > 1)
    return connection.execute(delete(table).where(table.c.id.in_(again))).rowcount


def _derive_concepts(connection: Connection) -> None:
    """Give a row to every concept that has names and no row yet; see `repository` for the same order of names."""
    name = orm.Name
    order = [case((name.suppress == "N", 0), else_=1), name.load_id, name.rank, name.text]
    place = func.row_number().over(partition_by=name.concept_id, order_by=order)
    missing = ~exists().where(orm.Concept.id == name.concept_id)
    ordered = select(name.concept_id, name.text, place.label("place")).where(missing).subquery()
    first = select(ordered.c.concept_id, ordered.c.text).where(ordered.c.place == 1)
    connection.execute(insert(orm.Concept).from_select(["id", "preferred_name"], first))


def _drop_orphans(connection: Connection, target: Target, *where: ColumnElement[bool]) -> int:
    absent = [~exists().where(orm.Concept.id == target.table.c[name]) for name in target.refers]
    return connection.execute(delete(target.table).where(or_(*absent), *where)).rowcount


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except (DBAPIError, sqlite3.Error, psycopg.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
        # What follows the first line may quote the row.
        problem = (str(cause).splitlines() or [type(cause).__name__])[0]
        raise StoreError(f"load failed and was undone: {problem}") from error
