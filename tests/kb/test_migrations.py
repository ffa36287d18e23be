"""The schema goes up and down on both databases, and is the one the models describe."""

import subprocess
import sys

import pytest
from alembic import command
from sqlalchemy import Engine, inspect, text

from medlink.errors import StoreError
from medlink.kb.database import alembic_config, check_schema, migrate, migration_lock, open_engine
from medlink.kb.orm import Base


@pytest.fixture
def engine(empty_url):
    engine = open_engine(empty_url)
    yield engine
    engine.dispose()


def run_alembic(engine: Engine, action, *arguments: str) -> None:
    config = alembic_config()
    with migration_lock(engine) as connection:
        config.attributes["connection"] = connection
        action(config, *arguments)


def schema(engine: Engine) -> dict[str, list[str]]:
    found = inspect(engine)
    return {table: [column["name"] for column in found.get_columns(table)] for table in found.get_table_names()}


def test_the_schema_goes_up_down_and_up_again(engine):
    migrate(engine)
    first = schema(engine)

    run_alembic(engine, command.downgrade, "base")
    emptied = schema(engine)
    migrate(engine)

    assert set(emptied) == {"alembic_version"}
    assert schema(engine) == first
    assert set(first) == {"alembic_version", *Base.metadata.tables}


def test_the_migrations_make_what_the_models_say(engine):
    migrate(engine)

    run_alembic(engine, command.check)


def test_migrating_twice_changes_nothing(engine):
    migrate(engine)

    migrate(engine)

    check_schema(engine)


def test_several_processes_may_migrate_at_once(empty_url):
    program = "import sys; from medlink.kb.database import *; migrate(open_engine(sys.argv[1]))"

    processes = [subprocess.Popen([sys.executable, "-c", program, empty_url]) for _ in range(3)]

    assert [process.wait(60) for process in processes] == [0, 0, 0]
    engine = open_engine(empty_url)
    check_schema(engine)
    engine.dispose()


def test_a_store_without_schema_says_what_to_run(engine):
    with pytest.raises(StoreError, match=r"has schema none.*medlink kb load"):
        check_schema(engine)


@pytest.mark.parametrize("action", [check_schema, migrate])
def test_a_store_newer_than_the_program_is_refused(engine, action):
    migrate(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    with pytest.raises(StoreError, match="9999, which is newer"):
        action(engine)


def test_a_failed_migration_leaves_no_table_behind(engine):
    def upgrade_and_fail(config) -> None:
        command.upgrade(config, "head")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        run_alembic(engine, upgrade_and_fail)

    assert schema(engine) == {}


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://user:s3cret@host/db", "valid: postgres, postgresql, sqlite"),
        ("no url at all s3cret", "cannot be read"),
        ("postgresql://user:s3cret@127.0.0.1:1/db", "cannot open the store"),
        ("postgresql://user:s3@cret@127.0.0.1:1/db", "percent-encoded"),
        ("sqlite:////proc/none/kb.sqlite", "cannot open the store"),
    ],
)
def test_a_store_that_cannot_be_opened_says_so_without_the_password(url, message):
    with pytest.raises(StoreError, match=message) as caught:
        open_engine(url)

    assert "cret" not in str(caught.value)


def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "kb.sqlite"
    path.write_text("anything but a database " * 1000)

    with pytest.raises(StoreError, match="not a database"):
        open_engine(f"sqlite:///{path}")


def test_the_log_of_a_sqlite_store_is_its_own_and_survives_a_crash(tmp_path):
    engine = open_engine(f"sqlite:///{tmp_path / 'deep' / 'er' / 'kb.sqlite'}")

    with engine.connect() as connection:
        pragmas = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
    engine.dispose()

    assert pragmas == ["wal", 1]
