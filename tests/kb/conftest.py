"""A migrated store on each of the two databases, and releases made up in memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Engine

from medlink.kb.database import migrate, open_engine
from medlink.kb.load import load
from medlink.kb.orm import Base
from medlink.kb.readers.report import ReadReport
from medlink.kb.records import Record


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
def postgres_store(fresh_database) -> Iterator[str]:
    """URL of a migrated database that one test after the other uses, emptied: a new one takes half a second."""
    with fresh_database() as url:
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
        connection.execute("UPDATE curation_revision SET revision = 0")
        for table in reversed(Base.metadata.sorted_tables):
            if table.name not in ("active_build", "curation_revision"):
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
    with request.getfixturevalue("fresh_database")() as url:
        yield url


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
