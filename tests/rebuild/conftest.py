"""A store with a few names on each of the two databases, and workers as processes that can be held at a stage."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.settings import Settings
from index.store import BuildStore
from medlink.kb.builds import Builds
from medlink.kb.database import migrate, open_engine
from medlink.kb.jobs import Job, Jobs
from medlink.kb.load import load
from medlink.kb.readers import open_reader

NAMES = "id,name,sab\nC0004096,asthma,OURS\nC0004096,wheezing disease,OURS\nC0009443,common cold,OURS\n"

# The worker as it is, but that it says where it is and waits there: for a signal, as it would at work.
_HELD = """
import signal, sys
from app import worker
from app.settings import Settings
from medlink.kb.database import open_engine

def held(at, act):
    def run(*arguments):
        if at == sys.argv[1] or arguments[1:2] == (sys.argv[1],):
            print("held", flush=True)
            signal.pause()
        return act(*arguments)
    return run

worker._Run._build = held("start", worker._Run._build)
worker._Run._advance = held("", worker._Run._advance)
worker._Run._complete = held("complete", worker._Run._complete)
settings = Settings()
worker.run_next(settings, open_engine(settings.database_url))
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'var' / 'medlink.sqlite'}"
        return
    with request.getfixturevalue("fresh_database")() as url:
        yield url


@pytest.fixture
def settings(database_url: str, encoder_dir: Path, tmp_path: Path) -> Settings:
    (tmp_path / "models").mkdir()
    return Settings(
        data_dir=tmp_path / "var",
        database_url=database_url,
        encoder_dir=encoder_dir,
        models_dir=tmp_path / "models",
        build_poll_seconds=0.05,
        rebuild_niceness=0,
        threads=1,
    )


@pytest.fixture
def load_names(engine: Engine, tmp_path: Path) -> Callable[[str], None]:
    """Puts a table of names in the place of the one before."""

    def put(names: str) -> None:
        table = tmp_path / "names.csv"
        table.write_text(names)
        load(engine, open_reader(table), name="ours", format="csv", options={}, fingerprint=str(len(names)))

    return put


@pytest.fixture
def empty_engine(settings: Settings) -> Iterator[Engine]:
    engine = open_engine(settings.database_url)
    migrate(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def engine(empty_engine: Engine, tmp_path: Path) -> Engine:
    """A store that holds the names."""
    table = tmp_path / "first.csv"
    table.write_text(NAMES)
    load(empty_engine, open_reader(table), name="ours", format="csv", options={}, fingerprint="first")
    return empty_engine


@pytest.fixture
def jobs(engine: Engine) -> Jobs:
    return Jobs(engine)


@pytest.fixture
def builds(engine: Engine) -> Builds:
    return Builds(engine)


@pytest.fixture
def disk(settings: Settings) -> BuildStore:
    return BuildStore(settings.builds_dir)


@pytest.fixture
def start(settings: Settings) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a worker as users do, or one that is held at a stage, and ends those that are left."""
    started = []

    def one(*, hold: str = "", lease: int = 60, **options) -> subprocess.Popen[str]:
        program = ["-c", _HELD, hold] if hold else ["-m", "medlink.cli", "index", "worker", "--once"]
        environment = {**os.environ, **settings.environment(), "MEDLINK_JOB_LEASE_SECONDS": str(lease)}
        process = subprocess.Popen(
            [sys.executable, *program], env=environment, stdout=subprocess.PIPE, text=True, **options
        )
        started.append(process)
        while hold and (line := process.stdout.readline()) != "held\n":
            assert line, "the worker ended before it was held"
        return process

    yield one
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def finished(jobs: Jobs, job_id: str, seconds: float = 60) -> Job:
    """Wait for the end of a job and return it."""
    until = time.monotonic() + seconds
    while (job := jobs.job(job_id)).state in ("queued", "running"):
        assert time.monotonic() < until, job
        time.sleep(0.05)
    return job


@pytest.fixture
def wait() -> Callable[..., Job]:
    return finished
