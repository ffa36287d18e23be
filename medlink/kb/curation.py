"""Corrections of the knowledge base by people: who made them, when and why, and which are in force."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Literal

from sqlalchemy import Connection, Engine, exists, func, insert, select, update

from medlink.errors import CurationError, UnknownConceptError, UnknownValueError
from medlink.kb import orm
from medlink.kb.database import reading, writing
from medlink.text import encoder_text, match_key
from medlink.types import concept_id

Action = Literal["add_synonym", "block_name", "block_concept", "pin_mention"]

# The longest match key that may be an acronym, in which capitals tell one word from another.
_SHORT = 5
_SHOWN = 20
# PostgreSQL stores neither.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def curated_key(text: str) -> tuple[str, str]:
    """Return what a text must share with the text of a correction for the correction to hold for it.

    That is the match key, and with a short one that has a capital after its first letter the case too.

    >>> curated_key("Type-2 Diabetes") == curated_key("type 2 diabetes"), curated_key("ALS") == curated_key("als")
    (True, False)
    """
    key, written = match_key(text), encoder_text(text, lowercase=False)
    is_cased = len(key) <= _SHORT and written[1:] != written[1:].lower()
    return key, written if is_cased else ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One correction; `text` is a name or a mention, which may stem from a patient's record and is not shown."""

    id: int
    action: Action
    text: str | None = field(repr=False)
    concept_id: str | None
    who: str
    why: str = field(repr=False)
    created_at: datetime
    revoked_at: datetime | None = None
    revoked_by: str | None = None


_FIELDS = [f.name for f in fields(Entry)]


@dataclass(frozen=True, slots=True)
class CurationState:
    """The corrections in force, in the order in which they were made, and how many changes led to them."""

    revision: int = 0
    entries: tuple[Entry, ...] = ()


class Curations:
    """The corrections in the store; nothing is ever deleted, an entry is undone by another change.

    Every change counts the revision up by one in its own transaction, and changes are made one after the other.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add_synonym(self, concept: str, name: str, *, who: str, why: str) -> Entry:
        """Give a concept one more name.

        Raises:
            UnknownConceptError: The store has no such concept.
            CurationError: Another correction says so already or contradicts it, or a text is blank.
        """
        return self._add("add_synonym", concept, name, who=who, why=why)

    def block_name(self, name: str, *, concept: str | None = None, who: str, why: str) -> Entry:
        """Let a name of the loads answer no longer, for one concept or, if none is given, for all of them.

        A name that a correction added is not touched: that correction can be undone.

        Raises:
            UnknownConceptError: The store has no such concept.
            CurationError: The concept has no such name, no concept has a name of this very spelling, another
                correction says so already, or a text is blank.
        """
        return self._add("block_name", concept, name, who=who, why=why)

    def block_concept(self, concept: str, *, who: str, why: str) -> Entry:
        """Let a concept answer no longer.

        Raises:
            UnknownConceptError: The store has no such concept.
            CurationError: Another correction says so already, or a text is blank.
        """
        return self._add("block_concept", concept, None, who=who, why=why)

    def pin(self, mention: str, concept: str, *, who: str, why: str) -> Entry:
        """Let a mention be linked to one concept before all others.

        Raises:
            UnknownConceptError: The store has no such concept.
            CurationError: Another correction says so already or contradicts it, or a text is blank.
        """
        return self._add("pin_mention", concept, mention, who=who, why=why)

    def undo(self, entry_id: int, *, who: str) -> int:
        """Put a correction out of force and return the new revision.

        Raises:
            UnknownValueError: No such correction is in force.
            CurationError: Nobody says to have done it.
        """
        _check_words(who=who)
        entry = orm.Curation
        values = {"revoked_at": datetime.now(UTC), "revoked_by": who}
        with self._changing() as connection:
            of_id = (entry.id == entry_id, entry.revoked_at.is_(None))
            if not connection.execute(update(entry).where(*of_id).values(**values)).rowcount:
                valid = [str(known.id) for known in _in_force(connection)]
                raise UnknownValueError("curation entry in force", str(entry_id), valid)
            return _revision(connection)

    def revision(self) -> int:
        """Return how many changes there were."""
        with self._engine.connect() as connection:
            return _revision(connection)

    def in_force(self) -> CurationState:
        """Return the corrections in force with the revision that they belong to."""
        with reading(self._engine) as connection:
            return CurationState(_revision(connection), tuple(_in_force(connection)))

    def entries(self) -> list[Entry]:
        """Return every correction there ever was, the oldest first."""
        with reading(self._engine) as connection:
            return _entries(connection)

    def dangling(self) -> dict[int, str]:
        """Return, by entry, why a correction in force has no effect on the store as it is now."""
        with reading(self._engine) as connection:
            # What is said last counts: a concept that is gone has no names either.
            return {**_without_name(connection), **_under_blocks(_in_force(connection)), **_without_concept(connection)}

    def _add(self, action: Action, concept: str | None, text: str | None, *, who: str, why: str) -> Entry:
        _check_words(who=who, why=why)
        if text is not None:
            _check_words(text=text)
            if not match_key(text):
                raise CurationError("the text has neither letters nor digits, so that nothing can match it")
        with self._changing() as connection:
            known = None if concept is None else _known_concept(connection, concept)
            if action == "block_name" and text is not None:
                _check_name(connection, text, known)
            _check_consistent(_in_force(connection), action, known, text)
            values = {"action": action, "text": text, "concept_id": known, "who": who, "why": why}
            new = insert(orm.Curation).values(created_at=datetime.now(UTC), **values).returning(orm.Curation.id)
            entry_id = connection.scalars(new).one()
            return next(entry for entry in _in_force(connection) if entry.id == entry_id)

    @contextmanager
    def _changing(self) -> Iterator[Connection]:
        row = orm.CurationRevision
        with writing(self._engine) as connection:
            # First of all: the row's lock makes other writers wait, so that what is checked stays true.
            connection.execute(update(row).values(revision=row.revision + 1))
            yield connection


def _revision(connection: Connection) -> int:
    return connection.scalars(select(orm.CurationRevision.revision)).one()


def _entries(connection: Connection) -> list[Entry]:
    entry = orm.Curation
    columns = [getattr(entry, name) for name in _FIELDS]
    return [Entry(*row) for row in connection.execute(select(*columns).order_by(entry.id))]


def _in_force(connection: Connection) -> list[Entry]:
    return [entry for entry in _entries(connection) if entry.revoked_at is None]


def _check_words(**texts: str) -> None:
    for what, text in texts.items():
        if not text.strip():
            raise CurationError(f"{what} is blank")
        if _UNSTORABLE.search(text):
            raise CurationError(f"{what} has a NUL character or a lone surrogate")


def _known_concept(connection: Connection, identifier: str) -> str:
    concept = orm.Concept
    for spelled in dict.fromkeys((identifier, concept_id(identifier))):
        if connection.scalar(select(concept.id).where(concept.id == spelled)):
            return spelled
        if successors := _successors(connection, [spelled]).get(spelled):
            raise UnknownConceptError(f"{spelled} is retired; its successor is {successors}")
    # Only the prefix may be in other letters, of which `lower` is a first sieve.
    alike = connection.scalars(select(concept.id).where(func.lower(concept.id) == identifier.lower()))
    for found in sorted(id_ for id_ in alike if concept_id(id_) == concept_id(identifier)):
        return found
    # Who mixes up the arguments has sent a mention.
    raise UnknownConceptError("the store has no concept of this id; `medlink link` finds the id of a name")


def _successors(connection: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return the successors of retired ids as words; an id without any is left out."""
    retired = orm.Retired
    found: dict[str, list[str]] = {}
    query = select(retired.concept_id, retired.successor_id).where(retired.concept_id.in_(ids)).distinct()
    for old, new in connection.execute(query.order_by(retired.concept_id, retired.successor_id)):
        if new is not None:
            found.setdefault(old, []).append(new)
    return {old: " or ".join(new) for old, new in found.items()}


def _check_name(connection: Connection, text: str, concept: str | None) -> None:
    name = orm.Name
    if concept is None:
        if not connection.scalar(select(exists().where(name.text == text))):
            raise CurationError("no name in the store is spelled exactly so; correct it, or say whose name it is")
        return
    names = _names(connection, concept)
    if curated_key(text) not in map(curated_key, names):
        shown = "; ".join(names[:_SHOWN]) + ("; ..." if len(names) > _SHOWN else "")
        raise CurationError(f"{concept} has no such name; it has: {shown}")


def _names(connection: Connection, concept: str) -> list[str]:
    name = orm.Name
    return sorted(set(connection.scalars(select(name.text).where(name.concept_id == concept))))


def _check_consistent(in_force: Sequence[Entry], action: Action, concept: str | None, text: str | None) -> None:
    key = None if text is None else curated_key(text)
    for entry in in_force:
        same_text = (None if entry.text is None else curated_key(entry.text)) == key
        if (entry.action, entry.concept_id) == (action, concept) and same_text:
            raise CurationError(f"entry {entry.id} says so already")
        if entry.action == action == "pin_mention" and same_text:
            raise CurationError(f"entry {entry.id} pins the mention to {entry.concept_id}; undo it first")
        names_concept = action in ("add_synonym", "pin_mention") and entry.concept_id == concept
        if entry.action == "block_concept" and names_concept:
            raise CurationError(f"entry {entry.id} blocks {concept}; undo it first")


def _without_concept(connection: Connection) -> dict[int, str]:
    entry = orm.Curation
    there = exists().where(orm.Concept.id == entry.concept_id)
    query = select(entry.id, entry.concept_id).where(entry.revoked_at.is_(None), entry.concept_id.is_not(None), ~there)
    lost = {entry_id: str(concept) for entry_id, concept in connection.execute(query)}
    successors = _successors(connection, sorted(set(lost.values())))
    return {
        entry_id: f"retired, successor {successors[concept]}" if concept in successors else "no such concept"
        for entry_id, concept in lost.items()
    }


def _under_blocks(in_force: Sequence[Entry]) -> dict[int, str]:
    blocks = {entry.concept_id: entry.id for entry in in_force if entry.action == "block_concept"}
    return {
        entry.id: f"entry {blocks[entry.concept_id]} blocks the concept"
        for entry in in_force
        if entry.action != "block_concept" and entry.concept_id in blocks
    }


def _without_name(connection: Connection) -> dict[int, str]:
    blocks = [entry for entry in _in_force(connection) if entry.action == "block_name"]
    everywhere = [entry.text for entry in blocks if entry.concept_id is None]
    name = orm.Name
    spelled = set(connection.scalars(select(name.text).where(name.text.in_(everywhere)).distinct()))
    lost = {}
    for entry in blocks:
        keys = map(curated_key, spelled if entry.concept_id is None else _names(connection, entry.concept_id))
        if curated_key(entry.text or "") not in keys:
            lost[entry.id] = "no such name"
    return lost
