"""`medlink serve` with several workers: one is lost, all leave, all follow the active build, none is left behind."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from app.serving import threads_of_a_worker
from app.settings import Settings
from app.worker import run_next
from medlink.client import Client
from medlink.encoders.onnx import available_cores
from medlink.kb.database import migrate, open_engine
from medlink.kb.jobs import Jobs
from medlink.kb.keys import Keys
from medlink.kb.load import load
from medlink.kb.readers import open_reader

COMMAND = [sys.executable, "-m", "medlink.cli", "serve"]
ASKED = {"mentions": ["asthma", "common cold"]}


def until(true: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


class Service:
    """A running service with two workers, and what it has logged."""

    def __init__(self, environment: dict[str, str], port: int, log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._log = log
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(COMMAND, env=environment, stderr=stderr)

    def workers(self) -> list[int]:
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def logged(self, event: str) -> list[dict]:
        whole = self._log.read_text().rpartition("\n")[0]
        return [line for line in map(json.loads, whole.splitlines()) if line["event"] == event]

    def loaded(self, build: str) -> int:
        return sum(line["build"] == build for line in self.logged("build_loaded"))

    def until_up(self) -> None:
        until(lambda: len(self.logged("Application startup complete.")) >= 2 and len(self.workers()) == 2)

    def end(self) -> None:
        if self.process.poll() is None:
            for pid in self.workers():
                # One that a test has stopped cannot leave.
                os.kill(pid, signal.SIGCONT)
            self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60)


class Home:
    """A data directory with a store and a first build of a few names."""

    def __init__(self, directory: Path, encoder: Path) -> None:
        self._directory = directory
        self._served = 0
        (directory / "models").mkdir()
        self.settings = Settings(
            data_dir=directory / "var",
            encoder_dir=encoder,
            models_dir=directory / "models",
            build_poll_seconds=0.2,
            drain_notice_seconds=0,
            rebuild_niceness=0,
        )
        self.engine = open_engine(self.settings.database_url)
        migrate(self.engine)
        self.load_names("Asthma")
        jobs = Jobs(self.engine)
        job = jobs.request("rebuild", by="ann", parameters={})
        run_next(self.settings, self.engine)
        self.first = jobs.job(job.id).build_id

    def load_names(self, preferred: str) -> None:
        """Put names in the place of those before; the name of asthma tells them apart."""
        table = self._directory / "names.csv"
        table.write_text(f"id,name,sab\nC0004096,{preferred},OURS\nC0004096,asthma,OURS\nC0009443,common cold,OURS\n")
        load(self.engine, open_reader(table), name="ours", format="csv", options={}, fingerprint=preferred)

    @contextmanager
    def serving(self, **more: str) -> Iterator[Service]:
        port = free_port()
        settings = {**self.settings.environment(), "MEDLINK_PORT": str(port), "MEDLINK_WORKERS": "2"}
        self._served += 1
        service = Service({**os.environ, **settings, **more}, port, self._directory / f"log-{self._served}")
        try:
            service.until_up()
            yield service
        finally:
            service.end()


@pytest.fixture(scope="module")
def home(tmp_path_factory, encoder_dir) -> Iterator[Home]:
    made = Home(tmp_path_factory.mktemp("home"), encoder_dir)
    yield made
    made.engine.dispose()


@pytest.fixture(scope="module")
def service(home) -> Iterator[Service]:
    """One that tests leave as they found it, with two workers that answer from the first build."""
    with home.serving() as running:
        yield running


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def lives(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Traffic:
    """People who ask again and again, each over a connection of their own."""

    def __init__(self, service: Service, people: int, *, reconnecting: bool = False) -> None:
        self._enough = threading.Event()
        self._reconnecting = reconnecting
        self.answers: list[httpx.Response] = []
        self.broken = [0] * people
        self._threads = [threading.Thread(target=self._ask, args=(service, place)) for place in range(people)]

    def _ask(self, service: Service, place: int) -> None:
        with service.client() as client:
            headers = {"Connection": "close"} if self._reconnecting else {}
            while not self._enough.is_set():
                try:
                    self.answers.append(client.post("/link", json=ASKED, headers=headers))
                except httpx.TransportError:
                    self.broken[place] += 1

    def __enter__(self) -> "Traffic":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()


def figure(text: str, name: str) -> float:
    return sum(float(value) for value in re.findall(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE))


def test_a_killed_worker_costs_only_the_requests_in_it_and_is_replaced(service):
    doomed, other = service.workers()
    with service.client() as plain, Client(service.url) as ours, ThreadPoolExecutor() as pool:
        with Traffic(service, 4) as traffic:
            with stopped(other):
                # While the other cannot, this one takes their connections.
                seen = [plain.post("/link", json=ASKED).status_code, len(ours.link(ASKED["mentions"])["results"])]
            os.kill(doomed, signal.SIGSTOP)
            lost: Future[httpx.Response] = pool.submit(plain.post, "/link", json=ASKED)
            retried = pool.submit(ours.link, ASKED["mentions"])
            time.sleep(0.2)
            os.kill(doomed, signal.SIGKILL)
            error, reply = lost.exception(60), retried.result(60)
            before = len(traffic.answers)
            until(lambda: len(service.logged("Application startup complete.")) == 3)
            until(lambda: len(traffic.answers) > before + 20)
        workers = service.workers()
        scraped = plain.get("/metrics").text

    assert seen == [200, 2]
    assert isinstance(error, httpx.TransportError)
    assert len(reply["results"]) == 2
    assert {answer.status_code for answer in traffic.answers} == {200}
    assert max(traffic.broken) <= 1
    (line,) = service.logged("serving_worker_lost")
    assert (line["process"], line["signal"], line["reason"]) == (doomed, signal.SIGKILL, "ended")
    assert (len(workers), doomed in workers, other in workers) == (2, False, True)
    answered = figure(scraped, 'http_requests_total{method="POST",route="/link",status="200"}')
    # What the dead one has counted counts; it may have counted what it could not send any more.
    assert 0 <= answered - len(traffic.answers) - 3 <= sum(traffic.broken) + 2
    assert len(re.findall(r"^medlink_resident_memory_bytes\{", scraped, re.MULTILINE)) == 2


def test_a_worker_that_is_told_to_stop_refuses_nobody(home):
    with home.serving() as service:
        told, other = service.workers()
        with Traffic(service, 4, reconnecting=True) as traffic:
            until(lambda: len(traffic.answers) > 10)
            os.kill(told, signal.SIGTERM)
            until(lambda: len(service.logged("Application startup complete.")) == 3)
            before = len(traffic.answers)
            until(lambda: len(traffic.answers) > before + 10)
        workers = service.workers()

    assert {answer.status_code for answer in traffic.answers} == {200}
    # One that it had accepted, of which it had read nothing.
    assert sum(traffic.broken) <= 1
    assert (len(workers), told in workers, other in workers) == (2, False, True)


def test_one_rebuild_is_started_and_all_workers_follow_it_and_go_back_without_mixing(home, service):
    admin = {"X-API-Key": Keys(home.engine).create("boss", ["admin"])[1]}
    home.load_names("Bronchial asthma")

    def answers() -> set[str]:
        """Return the builds of some answers to requests that begin from now on."""
        begun = len(traffic.answers) + len(traffic.broken)
        until(lambda: len(traffic.answers) > begun + 20)
        return {answer.json()["index"]["id"] for answer in traffic.answers[begun:]}

    with service.client() as client, Traffic(service, 2, reconnecting=True) as traffic:
        job = client.post("/admin/index/rebuild", headers=admin).json()["id"]
        until(lambda: Jobs(home.engine).job(job).state not in ("queued", "running"))
        second = Jobs(home.engine).job(job).build_id
        until(lambda: service.loaded(second) == 2)
        followed, times = answers(), service.loaded(home.first)
        client.post("/admin/index/rollback", headers=admin)
        until(lambda: service.loaded(home.first) == times + 2)
        returned = answers()

    assert len(service.logged("worker_started")) == 1
    assert (followed, returned) == ({second}, {home.first})
    assert {answer.status_code for answer in traffic.answers} == {200}
    assert traffic.broken == [0, 0]
    replies = [answer.json() for answer in traffic.answers]
    told = {(reply["index"]["id"], reply["results"][0]["candidates"][0]["preferred_name"]) for reply in replies}
    assert told == {(home.first, "Asthma"), (second, "Bronchial asthma")}


def test_all_workers_drain_at_a_signal_and_the_supervisor_ends_after_them(home):
    many = {"mentions": [f"cold {i}" for i in range(1000)]}
    with (
        home.serving(MEDLINK_DRAIN_NOTICE_SECONDS="3", MEDLINK_DRAIN_SECONDS="100") as service,
        ThreadPoolExecutor() as pool,
    ):
        first, second = service.workers()
        directory = Path(f"/proc/{first}/environ").read_bytes().partition(b"MULTIPROC_DIR=")[2].partition(b"\0")[0]
        shared = Path(directory.decode())
        clients = []
        for other in (first, second):
            with stopped(other):
                client = service.client()
                assert client.get("/readyz").status_code == 200
                clients.append(client)
        was_shared = shared.is_dir()
        asked = [pool.submit(client.post, "/link/bulk", json=many) for client in clients]
        with service.client() as watching:
            until(lambda: figure(watching.get("/metrics").text, "http_requests_in_progress") == 3)
            service.process.send_signal(signal.SIGTERM)
            until(lambda: watching.get("/readyz").status_code == 503)
        refused = httpx.post(f"{service.url}/link", json=ASKED)
        answers = [future.result(60) for future in asked]
        for client in clients:
            client.close()
        status = service.process.wait(60)
        left = [pid for pid in (first, second) if lives(pid)]

    assert (refused.status_code, refused.json()["code"]) == (503, "not_serving")
    assert [(answer.status_code, len(answer.json()["results"])) for answer in answers] == [(200, 1000)] * 2
    assert (status, left) == (-signal.SIGTERM, [])
    assert service.logged("serving_worker_lost") == []
    assert (was_shared, shared.exists()) == (True, False)


def test_a_worker_that_hangs_is_replaced_and_none_outlives_the_supervisor(home, tmp_path):
    # What a killed supervisor cannot remove goes with the test.
    with home.serving(MEDLINK_WORKER_SILENCE_SECONDS="5", TMPDIR=str(tmp_path)) as service:
        hanging, _ = service.workers()
        os.kill(hanging, signal.SIGSTOP)
        until(lambda: any(line["process"] == hanging for line in service.logged("serving_worker_lost")))
        until(lambda: len(service.workers()) == 2)
        workers = service.workers()
        maps = Path(f"/proc/{service.process.pid}/maps").read_text()
        service.process.kill()
        service.process.wait()
        until(lambda: not any(map(lives, workers)))

    (line,) = (line for line in service.logged("serving_worker_lost") if line["process"] == hanging)
    assert (line["reason"], line["signal"]) == ("silent", signal.SIGKILL)
    assert hanging not in workers
    assert re.search("faiss|onnxruntime|/builds/", maps) is None


def ended(directory: Path, port: int, **more: str) -> subprocess.CompletedProcess[str]:
    """Return how a service ended that cannot serve."""
    of_service = {"MEDLINK_DATA_DIR": str(directory), "MEDLINK_PORT": str(port), "MEDLINK_WORKERS": "2", **more}
    environment = {**os.environ, **of_service}
    return subprocess.run(COMMAND, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        ({"MEDLINK_MAX_TOGETHER": "0"}, 1, "medlink: MEDLINK_MAX_TOGETHER: "),
        ({"PROMETHEUS_MULTIPROC_DIR": "/dev/null/nowhere"}, 3, '"event": "serving_worker_did_not_start"'),
    ],
)
def test_a_service_whose_workers_cannot_start_ends_and_says_so(tmp_path, more, status, said):
    done = ended(tmp_path, free_port(), **more)

    assert done.returncode == status
    assert said in done.stderr


def test_a_port_that_is_taken_is_told_at_once(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = ended(tmp_path, taken.getsockname()[1])

    assert (done.returncode, "in use" in done.stderr, "serving_worker" in done.stderr) == (1, True, False)


def test_workers_share_the_cores_unless_told_how_many_threads_to_use():
    cores = available_cores()

    assert threads_of_a_worker(Settings()) == cores
    assert threads_of_a_worker(Settings(workers=2)) == max(1, cores // 2)
    assert threads_of_a_worker(Settings(workers=2 * cores)) == 1
    assert threads_of_a_worker(Settings(workers=2, threads=3)) == 3
