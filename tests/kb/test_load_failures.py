"""A load that fails, is killed or meets another one leaves the store as it was."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import text

from medlink.errors import SourceError, StoreError
from medlink.kb import bulk
from medlink.kb.database import open_engine, writing
from medlink.kb.records import DefinitionRecord, NameRecord, RetiredRecord, SourceRecord
from medlink.kb.repository import Repository

ROOT = Path(__file__).resolve().parents[2]
CONTENT = (
    NameRecord("C1", "fever", "VOC"),
    NameRecord("C2", "sign", "VOC"),
    DefinitionRecord("C1", "VOC", "A raised temperature."),
    RetiredRecord("C0", "C1", "SY", "2020AA"),
)


@pytest.fixture
def repository(store):
    return Repository(store)


def content(repository: Repository):
    return list(repository.concepts()), list(repository.retirements()), repository.stats()


def test_a_failure_in_the_middle_leaves_the_previous_content(load_records, repository, monkeypatch):
    monkeypatch.setattr(bulk, "_BATCH", 2)
    load_records(*CONTENT)
    before = content(repository)
    names = [NameRecord("C5", f"name {n}", "VOC") for n in range(9)]

    with pytest.raises(SourceError, match=r"MRCONSO\.RRF:10"):
        load_records(*names, SourceError("18 columns expected", file="MRCONSO.RRF", line=10))

    assert content(repository) == before


def test_a_release_with_nothing_in_it_does_not_empty_the_store(load_records, repository):
    load_records(*CONTENT)
    before = content(repository)

    with pytest.raises(StoreError, match="nothing to store"):
        load_records(SourceRecord("VOC", "A vocabulary", "2027"))

    assert content(repository) == before


def test_a_list_of_retired_ids_alone_is_a_release(load_records, repository):
    load_records(CONTENT[3], name="history")

    assert [retired.id for retired in repository.retirements()] == ["C0"]


def test_a_refusal_by_the_database_is_told_without_the_row(load_records, repository):
    load_records(*CONTENT)
    before = content(repository)

    with pytest.raises(StoreError, match="undone") as caught:
        load_records(NameRecord("C5", "secret name", None))

    assert "secret name" not in str(caught.value)
    assert content(repository) == before


def test_a_second_load_at_the_same_time_is_refused(store, store_url, load_records):
    other = open_engine(store_url)
    with writing(other) as connection:
        if store.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": 0x6D65646C6F6164})
        else:
            _hurry(store)

        with pytest.raises(StoreError, match=r"another load is running|locked"):
            load_records(*CONTENT)
    other.dispose()

    assert load_records(*CONTENT).rows["name"] == 2


def _hurry(engine) -> None:
    """Let SQLite wait for a lock for a moment only."""
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout = 50")


KILLED = """
import sys, time
from medlink.kb.database import open_engine
from medlink.kb.load import load
from medlink.kb.readers.report import ReadReport
from medlink.kb.records import NameRecord

class Endless:
    report = ReadReport()

    def records(self):
        for number in range(10**9):
            yield NameRecord(f"C{number // 3}", f"name {number}", "VOC")
            if number == 50_000:
                print("half way", flush=True)

load(open_engine(sys.argv[1]), Endless(), name="first")
"""


def test_a_load_that_is_killed_leaves_the_previous_content(store_url, load_records, repository):
    load_records(*CONTENT)
    before = content(repository)
    process = subprocess.Popen([sys.executable, "-c", KILLED, store_url], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "half way\n"

    process.send_signal(signal.SIGKILL)
    process.communicate()

    assert content(repository) == before
    _wait_for_lock(repository)
    load_records(NameRecord("C6", "after the crash", "VOC"))
    assert [concept.id for concept in repository.concepts()] == ["C6"]


def _wait_for_lock(repository: Repository) -> None:
    """Wait until PostgreSQL has noticed that the loader's connection is dead."""
    if repository._engine.dialect.name == "postgresql":
        deadline = time.monotonic() + 20
        query = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        while time.monotonic() < deadline:
            with repository._engine.connect() as connection:
                if not connection.scalar(query):
                    return
            time.sleep(0.05)
