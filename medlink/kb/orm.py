"""The tables of the SQL store; alembic makes them, and nothing outside `medlink.kb` sees them.

Content tables (name, semantic_type, definition, code, broader, trade_name, retired) carry no foreign keys. A
release is streamed file by file, so a row may come before the concept it belongs to, and checking a key for
each of some 30 million rows costs more than the load itself. Instead the loader, which is the only writer,
drops what refers to a concept that has no name in the same transaction, and counts it. Nor is there an index on
`load_id`: only a load looks there, a scan serves it, and the index would be paid for on every row.

Every string compares by code point (collation "C" on PostgreSQL; SQLite does so by default), so that ORDER BY,
a comparison and Python's `sorted` agree.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Text,
    TypeDecorator,
    false,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

_STRING = Text().with_variant(Text(collation="C"), "postgresql")
_LONG = BigInteger().with_variant(Integer(), "sqlite")  # only INTEGER counts up by itself on SQLite
_ACTIVE = text("state IN ('queued', 'running')")


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC; SQLite forgets the zone, so it is put back."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the moment in UTC; one without a zone is a programming error."""
        if value is not None and value.tzinfo is None:
            raise ValueError("a moment needs a time zone")
        return value.astimezone(UTC) if value is not None else None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the moment with its zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Root of the tables, with named constraints so that a migration can drop them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {str: _STRING, datetime: UtcDateTime(), dict[str, Any]: JSON(), list[str]: JSON()}  # noqa: RUF012 - SQLAlchemy's own form


class Load(Base):
    """One terminology release as it was last loaded under a name of the user's choice."""

    __tablename__ = "load"
    __table_args__ = (CheckConstraint("state IN ('loading', 'complete')", name="state"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    format: Mapped[str]
    fingerprint: Mapped[str]
    options: Mapped[dict[str, Any]]
    state: Mapped[str]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    counts: Mapped[dict[str, Any]]


class Source(Base):
    """A vocabulary that a load brought, and its terms."""

    __tablename__ = "source"

    load_id: Mapped[int] = mapped_column(primary_key=True)
    sab: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    version: Mapped[str]
    licence: Mapped[str]
    licence_level: Mapped[int]
    attribution: Mapped[str]
    url: Mapped[str]


class Concept(Base):
    """A concept that has a name; derived from `name` at the end of a load."""

    __tablename__ = "concept"

    id: Mapped[str] = mapped_column(primary_key=True)
    preferred_name: Mapped[str]


class _Content(Base):
    __abstract__ = True

    id: Mapped[int] = mapped_column(_LONG, primary_key=True, sort_order=-2)
    load_id: Mapped[int] = mapped_column(sort_order=-1)


class Name(_Content):
    """One string of one concept in one source."""

    __tablename__ = "name"

    concept_id: Mapped[str] = mapped_column(index=True)
    text: Mapped[str]
    sab: Mapped[str]
    tty: Mapped[str]
    language: Mapped[str]
    code: Mapped[str]
    suppress: Mapped[str]
    rank: Mapped[int]


class SemanticType(_Content):
    """A semantic type of a concept."""

    __tablename__ = "semantic_type"

    concept_id: Mapped[str] = mapped_column(index=True)
    tui: Mapped[str]
    name: Mapped[str]


class Definition(_Content):
    """A definition of a concept."""

    __tablename__ = "definition"

    concept_id: Mapped[str] = mapped_column(index=True)
    sab: Mapped[str]
    text: Mapped[str]


class Code(_Content):
    """An identifier of a concept in a source; one code may belong to several concepts."""

    __tablename__ = "code"
    __table_args__ = (Index("ix_code_sab_code", "sab", "code"),)

    concept_id: Mapped[str] = mapped_column(index=True)
    sab: Mapped[str]
    code: Mapped[str]


class Broader(_Content):
    """A directly broader concept of a concept."""

    __tablename__ = "broader"

    concept_id: Mapped[str] = mapped_column(index=True)
    broader_id: Mapped[str]
    sab: Mapped[str]


class TradeName(_Content):
    """A generic drug and one of its trade-name concepts."""

    __tablename__ = "trade_name"

    generic_id: Mapped[str] = mapped_column(index=True)
    trade_id: Mapped[str]


class Retired(_Content):
    """A concept id that went out of use, with one successor if there is any."""

    __tablename__ = "retired"

    concept_id: Mapped[str] = mapped_column(index=True)
    successor_id: Mapped[str | None] = mapped_column(index=True)
    relation: Mapped[str]
    release: Mapped[str]


class IndexBuild(Base):
    """An index build whose directory was written and verified."""

    __tablename__ = "index_build"
    __table_args__ = (CheckConstraint("state IN ('ready', 'quarantined', 'deleted')", name="state"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    created_at: Mapped[datetime]
    state: Mapped[str]
    manifest: Mapped[dict[str, Any]]


class ActiveBuild(Base):
    """The one row that says which build answers; the first migration inserts it with no build."""

    __tablename__ = "active_build"
    __table_args__ = (CheckConstraint("id = 1", name="one_row"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    build_id: Mapped[str | None] = mapped_column(ForeignKey("index_build.id"))
    generation: Mapped[int]


class Activation(Base):
    """Which build became active when; the log that a rollback reads."""

    __tablename__ = "activation"

    generation: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    build_id: Mapped[str] = mapped_column(ForeignKey("index_build.id"))
    at: Mapped[datetime]


class Job(Base):
    """A long task, run by whoever holds its lease; a stale holder is told by its fencing token."""

    __tablename__ = "job"
    __table_args__ = (
        CheckConstraint("state IN ('queued', 'running', 'done', 'failed', 'cancelled')", name="state"),
        Index("uq_job_active", "kind", unique=True, sqlite_where=_ACTIVE, postgresql_where=_ACTIVE),
        Index("uq_job_idempotency", "kind", "requested_by", "idempotency_key", unique=True),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    state: Mapped[str]
    stage: Mapped[str] = mapped_column(server_default="")
    progress: Mapped[float] = mapped_column(Float, server_default="0")
    done: Mapped[int] = mapped_column(_LONG, server_default="0")
    total: Mapped[int] = mapped_column(_LONG, server_default="0")
    rate: Mapped[float | None] = mapped_column(Float)
    eta_seconds: Mapped[float | None] = mapped_column(Float)
    parameters: Mapped[dict[str, Any]]
    counts: Mapped[dict[str, Any]]
    requested_by: Mapped[str] = mapped_column(server_default="")
    idempotency_key: Mapped[str | None]
    cancel_requested: Mapped[bool] = mapped_column(server_default=false())
    lease_owner: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    heartbeat_at: Mapped[datetime | None]
    fencing_token: Mapped[int] = mapped_column(server_default="0")
    build_id: Mapped[str | None]
    error: Mapped[str | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class Curation(Base):
    """A correction of the knowledge base by a person, laid over every build until it is revoked."""

    __tablename__ = "curation"
    __table_args__ = (
        CheckConstraint("action IN ('add_synonym', 'block_name', 'block_concept', 'pin_mention')", name="action"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    action: Mapped[str]
    text: Mapped[str | None]
    concept_id: Mapped[str | None] = mapped_column(index=True)
    who: Mapped[str]
    why: Mapped[str]
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    revoked_by: Mapped[str | None]


class CurationRevision(Base):
    """The one row that counts changes of `curation`; the migration that makes it inserts it."""

    __tablename__ = "curation_revision"
    __table_args__ = (CheckConstraint("id = 1", name="one_row"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    revision: Mapped[int]


class ApiKey(Base):
    """A key that lets a client in; only its hash is kept."""

    __tablename__ = "api_key"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    hash: Mapped[str] = mapped_column(unique=True)
    scopes: Mapped[list[str]]
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
