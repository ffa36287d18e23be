"""Opens the SQL store, migrates it, and says when its schema is not the one that this code was written for."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import psycopg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, create_engine, event, func, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry

from medlink.errors import StoreError
from medlink.kb import postgresql

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor

_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
_MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"
_MIGRATION_LOCK = 0x6D65646C696E6B  # "medlink": any number that no other application takes
_WAIT = "PRAGMA busy_timeout = 30000"  # milliseconds
_MAY_WRITE = (
    "SELECT has_table_privilege('job', 'UPDATE') AND NOT pg_is_in_recovery()"
    " AND NOT current_setting('transaction_read_only')::boolean"
)
_PRAGMAS = (
    _WAIT,
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cache_size = -65536",  # KiB
)


def open_engine(url: str, *, patience: float | None = None) -> Engine:
    """Open the store and prove that it can be reached.

    Args:
        url: `sqlite:///file` (its directory is created) or `postgresql://...`.
        patience: How many seconds PostgreSQL may take for a statement; as long as it needs if left out.

    Raises:
        StoreError: The URL is malformed or the database does not answer; never names the password.
    """
    parsed = _parse(url)
    # A statement's parameters are terminology text or curated mentions: they stay out of error messages.
    options: dict[str, Any] = {"pool_pre_ping": True, "hide_parameters": True}
    if parsed.get_backend_name() == "postgresql":
        options |= {**postgresql.POOL, "connect_args": postgresql.connect_arguments(parsed, patience)}
    engine = create_engine(parsed, **options)
    if patience is not None and engine.dialect.name == "postgresql":
        postgresql.lose_patience(engine, patience)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    try:
        if engine.dialect.name == "sqlite" and parsed.database and "uri" not in parsed.query:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        engine.connect().close()
    except (DBAPIError, sqlite3.Error, psycopg.Error, OSError) as error:
        engine.dispose()
        where = f"{parsed.get_backend_name()} at {parsed.host or 'local'}, database {parsed.database}"
        problem = _without_secrets(parsed, error)
        check = "check MEDLINK_DATABASE_URL and that it runs"
        if engine.dialect.name == "sqlite":
            check = "SQLite must be able to write the file and its directory, even to read, and needs room there"
        raise StoreError(f"cannot open the store ({where}): {problem}; {check}") from None
    return engine


def is_read_only(error: Exception) -> bool:
    """Say whether a statement was refused because this user, or everybody, may only read."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY
    return isinstance(cause, psycopg.errors.InsufficientPrivilege | psycopg.errors.ReadOnlySqlTransaction)


def may_write(engine: Engine) -> bool:
    """Say whether this user may write to the store, as far as that can be known without trying: not on SQLite."""
    if engine.dialect.name == "sqlite":
        return engine.url.query.get("mode") != "ro"
    with engine.connect() as connection:
        return bool(connection.scalar(text(_MAY_WRITE)))


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Give a connection in a transaction that is committed at the end, or rolled back on an exception.

    On SQLite the write lock is taken at the start: a transaction that reads first and writes later fails at once
    when another process wrote in between, whatever the time-out.
    """
    with engine.connect().execution_options(sqlite_begin="IMMEDIATE") as connection, connection.begin():
        yield connection


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Give a connection whose queries all see the same state of the store."""
    with engine.connect() as connection:
        if connection.dialect.name == "postgresql":  # SQLite has no other
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


def checkpoint(engine: Engine) -> None:
    """Move what SQLite's write-ahead log holds into the database file, as far as readers let it; no-op elsewhere."""
    if engine.dialect.name != "sqlite":
        return
    with engine.connect() as connection:
        raw = cast(sqlite3.Connection, connection.connection.driver_connection)
        raw.execute("PRAGMA busy_timeout = 0")  # whoever reads an older state keeps the log; not worth a wait
        # On a full disk the log keeps what was committed, and is read with the file.
        with suppress(sqlite3.OperationalError):
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw.execute(_WAIT)


@contextmanager
def migration_lock(engine: Engine) -> Iterator[Connection]:
    """Give a transaction in which no other process migrates."""
    with writing(engine) as connection:
        if engine.dialect.name == "postgresql":
            # Another's migration may take its time, and so may a load that this one waits for.
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(select(func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        yield connection


def migrate(engine: Engine) -> None:
    """Bring the schema up to this code's version; safe when several processes do so at once.

    Raises:
        StoreError: The schema is newer than this code.
    """
    config = alembic_config()
    with migration_lock(engine) as connection:
        if _revision(connection) == _head(config):
            return
        _refuse_newer(connection, config)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def check_schema(engine: Engine) -> None:
    """Check that the schema is this code's version.

    Raises:
        StoreError: It is older or newer.
    """
    config = alembic_config()
    with engine.connect() as connection:
        _refuse_newer(connection, config)
        revision = _revision(connection)
    if revision != _head(config):
        raise StoreError(
            f"the store has schema {revision or 'none'}, this program needs {_head(config)}; "
            "run `medlink kb load` or `alembic upgrade head`"
        )


def alembic_config() -> Config:
    """Return alembic's configuration; it needs no file."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return config


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        if "@" in (parsed.host or ""):
            raise StoreError("the password in the database URL must be percent-encoded")
        return parsed.set(drivername=_DRIVERS[backend])
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise StoreError(
            "the database URL cannot be read; it looks like sqlite:///file or postgresql://user@host/database"
        ) from None
    except KeyError:
        valid = ", ".join(sorted(_DRIVERS))
        raise StoreError(f"no support for the database {backend!r}; valid: {valid}") from None


def _without_secrets(url: URL, error: Exception) -> str:
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    lines = str(cause).splitlines() or [type(cause).__name__]
    secrets = [url.password, *(value for key, value in url.query.items() if "pass" in key)]
    said = lines[0]
    for secret in secrets:
        said = said.replace(str(secret), "***") if secret else said
    return said


def _configure_sqlite(connection: "DBAPIConnection", _entry: ConnectionPoolEntry) -> None:
    # The driver would open transactions on its own terms (not for DDL, not for SELECT); `_begin_sqlite` does it.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(pragma)
    _use_write_ahead_log(cursor)
    cursor.close()


def _use_write_ahead_log(cursor: "DBAPICursor") -> None:
    # A file is switched once and for ever; while another process does so, SQLite refuses without waiting.
    deadline = time.monotonic() + 30
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _begin_sqlite(connection: Connection) -> None:
    mode = connection.get_execution_options().get("sqlite_begin", "DEFERRED")
    connection.exec_driver_sql(f"BEGIN {mode}")


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _head(config: Config) -> str | None:
    return ScriptDirectory.from_config(config).get_current_head()


def _refuse_newer(connection: Connection, config: Config) -> None:
    revision = _revision(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if revision is not None and revision not in known:
        raise StoreError(f"the store has schema {revision}, which is newer than this program; update medlink")
