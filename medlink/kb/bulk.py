"""Writes records into their tables in batches: COPY on PostgreSQL, executemany on SQLite."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import chain
from operator import attrgetter
from typing import Any, cast

import psycopg
from psycopg import sql
from sqlalchemy import Connection, Table, insert

from medlink.kb import orm
from medlink.kb.readers.report import Reader
from medlink.kb.records import (
    BroaderRecord,
    CodeRecord,
    DefinitionRecord,
    NameRecord,
    Record,
    RetiredRecord,
    SemanticTypeRecord,
    SourceRecord,
    TradeNameRecord,
)

Progress = Callable[[int, int, int], None]
"""Called with bytes read, bytes in all and rows so far, some times a second."""

UNSTORABLE = "character that no store holds"
"""Why a row with a NUL or a lone surrogate is left out: PostgreSQL refuses the one, UTF-8 the other."""

_BATCH = 20_000
_Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """Where records of one type go; `refers` are the columns that must name a loaded concept."""

    table: Table
    record: type[Record]
    refers: tuple[str, ...] = ("concept_id",)
    distinct: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that a record fills, named as its fields are."""
        return tuple(f.name for f in fields(self.record))


def table_of(model: type[orm.Base]) -> Table:
    """Return the table behind a model."""
    return cast(Table, model.__table__)


# Two atoms may agree in all that is kept of them, and a definition is long to compare: those stay as they come.
TARGETS = (
    Target(table_of(orm.Name), NameRecord, (), distinct=False),
    Target(table_of(orm.SemanticType), SemanticTypeRecord),
    Target(table_of(orm.Definition), DefinitionRecord, distinct=False),
    Target(table_of(orm.Code), CodeRecord),
    Target(table_of(orm.Broader), BroaderRecord, ("concept_id", "broader_id")),
    Target(table_of(orm.TradeName), TradeNameRecord, ("generic_id", "trade_id")),
    Target(table_of(orm.Retired), RetiredRecord, ()),
)


class Writer:
    """Collects records by type and writes them in batches, so that memory does not grow with the release."""

    def __init__(self, connection: Connection, load_id: int) -> None:
        self.connection = connection
        self.load_id = load_id
        self.written: Counter[str] = Counter()
        self.duplicates: Counter[str] = Counter()
        self.skipped: Counter[tuple[str, str]] = Counter()
        self._sources: dict[str, SourceRecord] = {}
        self._copy = _copy_postgresql if connection.dialect.name == "postgresql" else _insert_sqlite

    def write(self, reader: Reader, progress: Progress | None) -> None:
        """Write all that a reader yields."""
        # Tuples, not the records: the garbage collector, a fifth of the time, has no interest in them.
        batches = {target.record: (target, attrgetter(*target.columns), list[_Row]()) for target in TARGETS}
        for record in reader.records():
            if isinstance(record, SourceRecord):
                self._sources.setdefault(record.sab, record)
                continue
            target, values, rows = batches[type(record)]
            rows.append((self.load_id, *values(record)))
            if len(rows) >= _BATCH:
                self._flush(target, rows)
                if progress:
                    progress(reader.report.bytes_read, reader.report.bytes_total, self.written.total())
        for target, _, rows in batches.values():
            self._flush(target, rows)
        self._write_sources()
        if progress:
            progress(reader.report.bytes_read, reader.report.bytes_total, self.written.total())

    def _flush(self, target: Target, rows: list[_Row]) -> None:
        name = target.table.name
        storable = rows if _all_storable(rows) else [row for row in rows if _all_storable([row])]
        if len(storable) < len(rows):
            self.skipped[name, UNSTORABLE] += len(rows) - len(storable)
        kept = list(dict.fromkeys(storable)) if target.distinct else storable
        self.duplicates[name] += len(storable) - len(kept)
        if kept:
            self._copy(self.connection, target.table, ("load_id", *target.columns), kept)
        self.written[name] += len(kept)
        rows.clear()

    def _write_sources(self) -> None:
        for source in self._sources.values():
            values = {f.name: getattr(source, f.name) for f in fields(source)}
            if _all_storable([tuple(values.values())]):
                self.connection.execute(insert(orm.Source).values(load_id=self.load_id, **values))
                self.written["source"] += 1
            else:
                self.skipped["source", UNSTORABLE] += 1


def _all_storable(rows: list[_Row]) -> bool:
    joined = "".join(map(str, chain.from_iterable(rows)))
    try:
        joined.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in joined


def _insert_sqlite(connection: Connection, table: Table, columns: tuple[str, ...], rows: list[_Row]) -> None:
    statement = insert(table).compile(dialect=connection.dialect, column_keys=list(columns))
    positions = [columns.index(name) for name in statement.positiontup or ()]
    if positions != sorted(positions):
        raise ValueError("the columns of a record and of its table must come in the same order")
    connection.exec_driver_sql(str(statement), rows)


def _copy_postgresql(connection: Connection, table: Table, columns: tuple[str, ...], rows: list[_Row]) -> None:
    raw = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), names)
    with raw.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)
