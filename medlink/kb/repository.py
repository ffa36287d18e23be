"""Reads the SQL store: whole concepts, sources, history and counts, as records of the domain."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Engine, Row, Select, exists, func, select
from sqlalchemy.orm import InstrumentedAttribute, aliased

from medlink.errors import UnknownConceptError
from medlink.kb import orm
from medlink.kb.database import reading
from medlink.kb.history import resolve
from medlink.kb.records import RetiredRecord, SourceRecord
from medlink.types import Code, Concept, Definition, Name, Retirement, SemanticType

_BATCH = 5000
_Row = Row[*tuple[Any, ...]]
_Query = Select[*tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class LoadSummary:
    """A load as it stands in the store."""

    name: str
    format: str
    finished_at: datetime
    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Stats:
    """What the store holds; counts of rows by table, and of names by language, source and SUPPRESS."""

    rows: Mapping[str, int]
    names_by_language: Mapping[str, int]
    names_by_sab: Mapping[str, int]
    names_by_suppress: Mapping[str, int]
    loads: tuple[LoadSummary, ...]


# Every stream is ordered by concept id only: within a concept Python sorts, which is the same on each database.
_NAMES: _Query = select(
    orm.Name.concept_id,
    orm.Name.text,
    orm.Name.sab,
    orm.Name.tty,
    orm.Name.language,
    orm.Name.code,
    orm.Name.suppress,
    orm.Name.load_id,
    orm.Name.rank,
)
_DETAILS: dict[str, _Query] = {
    "semantic_types": select(orm.SemanticType.concept_id, orm.SemanticType.tui, orm.SemanticType.name),
    "codes": select(orm.Code.concept_id, orm.Code.sab, orm.Code.code),
    "definitions": select(orm.Definition.concept_id, orm.Definition.sab, orm.Definition.text),
    "broader": select(orm.Broader.concept_id, orm.Broader.broader_id),
}
_BUILD: dict[str, Callable[..., Any]] = {
    "semantic_types": SemanticType,
    "codes": Code,
    "definitions": Definition,
    "broader": str,
}
_CONTENT = (
    orm.Concept,
    orm.Name,
    orm.SemanticType,
    orm.Definition,
    orm.Code,
    orm.Broader,
    orm.TradeName,
    orm.Retired,
)


class Repository:
    """Questions to the store about what is in it; see `builds` for index builds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def concepts(self, batch: int = _BATCH) -> Iterator[Concept]:
        """Stream every concept, whole, in ascending order of id; its names come preferred first.

        All of it is one snapshot of the store, and memory does not grow with it.

        Args:
            batch: Rows fetched at a time.
        """
        with reading(self._engine) as connection, ExitStack() as cursors:

            def groups(query: _Query) -> Iterator[tuple[str, list[_Row]]]:
                return _groups(_stream(connection, cursors, query.order_by(query.selected_columns[0]), batch))

            names = groups(_NAMES)
            details = {field: _Lookup(groups(query)) for field, query in _DETAILS.items()}
            for concept_id, rows in names:
                yield _concept(concept_id, rows, {field: stream.at(concept_id) for field, stream in details.items()})

    def concept(self, concept_id: str) -> Concept:
        """Return one concept, whole.

        Raises:
            UnknownConceptError: The store has no name for that id.
        """
        with reading(self._engine) as connection:

            def rows(query: _Query) -> list[Any]:
                column = query.selected_columns[0]
                return list(connection.execute(query.where(column == concept_id)))

            names = rows(_NAMES)
            if not names:
                raise UnknownConceptError(
                    f"no concept {concept_id!r} in the store; `medlink kb stats` shows its sources"
                )
            return _concept(concept_id, names, {field: rows(query) for field, query in _DETAILS.items()})

    def concepts_with_code(self, sab: str, code: str) -> list[str]:
        """Return the ids of all concepts that bear a source's code; there may be several."""
        query = select(orm.Code.concept_id).where(orm.Code.sab == sab, orm.Code.code == code).distinct()
        with reading(self._engine) as connection:
            return list(connection.scalars(query.order_by(orm.Code.concept_id)))

    def retirements(self) -> Iterator[Retirement]:
        """Stream what became of each id that is out of use, in ascending order of id.

        An id that has a name again is in use, whatever an old release said.
        """
        retired, successor = orm.Retired, aliased(orm.Retired)
        columns = [getattr(retired, f.name) for f in fields(RetiredRecord)]
        query = select(*columns).where(~exists().where(orm.Concept.id == retired.concept_id))
        ordered = query.order_by(retired.concept_id, retired.id)
        with reading(self._engine) as connection, ExitStack() as cursors:
            links: dict[str, list[RetiredRecord]] = {}
            for row in connection.execute(ordered.where(exists().where(successor.successor_id == retired.concept_id))):
                links.setdefault(row[0], []).append(RetiredRecord(*row))
            rows = _stream(connection, cursors, ordered, _BATCH)
            yield from resolve((RetiredRecord(*row) for row in rows), links)

    def trade_names(self) -> Iterator[tuple[str, str]]:
        """Stream pairs of (generic id, trade-name id) in ascending order."""
        columns = (orm.TradeName.generic_id, orm.TradeName.trade_id)
        with reading(self._engine) as connection, ExitStack() as cursors:
            pairs: _Query = select(*columns).distinct().order_by(*columns)
            yield from ((generic, trade) for generic, trade in _stream(connection, cursors, pairs, _BATCH))

    def sources(self) -> list[SourceRecord]:
        """Return the vocabularies that the loads brought, by SAB; two loads may bring two versions of one."""
        columns = [getattr(orm.Source, f.name) for f in fields(SourceRecord)]
        with reading(self._engine) as connection:
            rows = connection.execute(select(*columns).distinct().order_by(*columns))
            return [SourceRecord(*row) for row in rows]

    def semantic_types(self) -> list[tuple[str, str]]:
        """Return every (TUI, name) that a concept has, by TUI."""
        columns = (orm.SemanticType.tui, orm.SemanticType.name)
        with reading(self._engine) as connection:
            return [(tui, name) for tui, name in connection.execute(select(*columns).distinct().order_by(*columns))]

    def sabs(self) -> list[str]:
        """Return every SAB that a name comes from."""
        with reading(self._engine) as connection:
            return list(connection.scalars(select(orm.Name.sab).distinct().order_by(orm.Name.sab)))

    def fingerprints(self) -> dict[str, str]:
        """Return what each load was made of, by its name; when it was made, where its input is not known."""
        load = orm.Load
        query = select(load.name, load.fingerprint, load.finished_at).order_by(load.name)
        with reading(self._engine) as connection:
            return {name: made_of or f"loaded at {at}" for name, made_of, at in connection.execute(query)}

    def concept_count(self) -> int:
        """Return how many concepts there are."""
        with reading(self._engine) as connection:
            return connection.scalar(select(func.count()).select_from(orm.Concept)) or 0

    def stats(self) -> Stats:
        """Count what the store holds."""
        with reading(self._engine) as connection:

            def count(column: InstrumentedAttribute[str]) -> dict[str, int]:
                groups = select(column, func.count()).group_by(column).order_by(column)
                return {value: number for value, number in connection.execute(groups)}

            rows = {
                model.__tablename__: connection.scalar(select(func.count()).select_from(model)) or 0
                for model in _CONTENT
            }
            load = orm.Load
            columns = (load.name, load.format, load.finished_at, load.counts)
            loads = connection.execute(select(*columns).where(load.state == "complete").order_by(load.name))
            return Stats(
                rows=rows,
                names_by_language=count(orm.Name.language),
                names_by_sab=count(orm.Name.sab),
                names_by_suppress=count(orm.Name.suppress),
                loads=tuple(
                    LoadSummary(name, kind, finished, counts["rows"]) for name, kind, finished, counts in loads
                ),
            )


class _Lookup:
    """An ordered stream of groups, read forward as a merge join asks for one id after another."""

    def __init__(self, groups: Iterator[tuple[str, list[_Row]]]) -> None:
        self._groups = groups
        self._current = next(groups, None)

    def at(self, concept_id: str) -> list[_Row]:
        """Return the group of an id, which must be greater than the one asked for before."""
        while self._current is not None and self._current[0] < concept_id:
            self._current = next(self._groups, None)
        return self._current[1] if self._current is not None and self._current[0] == concept_id else []


def _stream(connection: Connection, cursors: ExitStack, query: _Query, batch: int) -> Iterator[_Row]:
    """Start a query whose rows are fetched as they are asked for.

    Its cursor is closed with `cursors`, before the connection: a reader may leave in the middle, and PostgreSQL's
    cursors would stay open on a connection that goes back to the pool.
    """
    return cursors.enter_context(connection.execute(query, execution_options={"yield_per": batch}))


def _groups(rows: Iterator[_Row]) -> Iterator[tuple[str, list[_Row]]]:
    for concept_id, group in groupby(rows, key=itemgetter(0)):
        yield concept_id, list(group)


def _concept(concept_id: str, names: list[_Row], details: Mapping[str, list[_Row]]) -> Concept:
    """Build a concept; what two loads or two atoms say in the same words is said once."""
    ordered = sorted(names, key=_preference)
    kept = dict.fromkeys(
        Name(text, sab, tty, language, code, suppress != "N")
        for _, text, sab, tty, language, code, suppress, *_ in map(tuple, ordered)
    )
    parts: dict[str, Any] = {
        field: tuple(build(*values) for values in sorted({tuple(row[1:]) for row in details[field]}))
        for field, build in _BUILD.items()
    }
    return Concept(concept_id, ordered[0][1], tuple(kept), **parts)


def _preference(row: Sequence[Any]) -> tuple[Any, ...]:
    """Order the names of a concept, preferred first; `load` picks the preferred name by the same first four.

    Ranks compare within a load only: a list of local synonyms must not rename what an earlier load named.
    """
    _, text, sab, tty, language, code, suppress, load_id, rank = row
    return suppress != "N", load_id, rank, text, sab, tty, code, language, suppress
