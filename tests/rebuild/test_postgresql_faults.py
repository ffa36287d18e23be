"""PostgreSQL is killed, restarted or hangs: answers go on, jobs and loads end well or say why, and all recovers."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from starlette.testclient import TestClient

from app import auth
from app.main import create_app
from app.worker import recover
from medlink.kb.repository import Repository

ASK = {"json": {"mentions": ["asthma", "common cold"]}}


@pytest.fixture
def database_url(server) -> str:
    return server.url


@pytest.fixture
def elsewhere(settings):
    return settings.model_copy(update={"rebuild_in_service": False, "store_timeout_seconds": 1.0})


def until(good: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not good():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def traffic(client: TestClient, headers: dict[str, str]) -> Iterator[dict[str, list[tuple[int, float]]]]:
    """Link all the time, and give the statuses of the answers and how long they took, by path."""
    answers: dict[str, list[tuple[int, float]]] = {"/link": [], "/link/bulk": []}
    enough = threading.Event()

    def ask(path: str) -> None:
        while not enough.wait(0.02):
            started = time.monotonic()
            status = client.post(path, headers=headers, **ASK).status_code
            answers[path].append((status, time.monotonic() - started))

    threads = [threading.Thread(target=ask, args=[path]) for path in answers]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        enough.set()
        for thread in threads:
            thread.join()


def is_well(client: TestClient) -> bool:
    return client.get("/readyz").json()["status"] == "ready"


def test_answers_go_on_while_the_database_is_killed_and_everything_follows_once_it_is_back(
    server, elsewhere, engine, builds, admin, make, monkeypatch
):
    monkeypatch.setattr(auth, "_REMEMBER_SECONDS", 0.0)
    first, second = make(), make()
    with TestClient(create_app(elsewhere)) as client:
        until(lambda: is_well(client) and client.post("/link", headers=admin, **ASK).status_code == 200)
        with traffic(client, admin) as answers:
            server.kill_backends()
            until(lambda: client.get("/admin/jobs", headers=admin).status_code == 200)
            builds.activate_build(first)
            until(lambda: client.get("/info").json()["index"]["id"] == first)

            server.kill()
            until(lambda: not is_well(client))
            ready = client.get("/readyz").json()
            asked = client.get("/admin/jobs", headers=admin)
            known = client.post("/link", headers=admin, **ASK).status_code
            stranger = client.post("/link", headers={"X-API-Key": "medlink_00000000_x"}, **ASK).status_code

            server.start()
            until(lambda: is_well(client))
            after = [client.get("/admin/jobs", headers=admin).status_code for _ in range(20)]
            builds.activate_build(second)
            until(lambda: client.get("/info").json()["index"]["id"] == second)

    assert (ready["status"], ready["store"], ready["index"]) == ("degraded", "unreachable", first)
    assert (asked.status_code, asked.json()["code"]) == (503, "store")
    assert asked.headers["content-type"] == "application/problem+json"
    assert (known, stranger) == (200, 401)
    assert set(after) == {200}
    for path in answers:
        assert {status for status, _ in answers[path]} == {200}


def test_a_database_that_hangs_holds_nothing_up_and_is_followed_again(
    server, elsewhere, engine, builds, admin, make, monkeypatch
):
    monkeypatch.setattr(auth, "_REMEMBER_SECONDS", 0.0)
    monkeypatch.setattr(auth, "_WAIT_SECONDS", 0.1)
    first, second = make(), make()
    with TestClient(create_app(elsewhere)) as client:
        until(lambda: is_well(client) and client.post("/link", headers=admin, **ASK).status_code == 200)
        server.suspend()
        try:
            with traffic(client, admin) as answers:
                until(lambda: not is_well(client))
                asked = client.get("/admin/jobs", headers=admin)
                started = time.monotonic()
                alive = client.get("/livez").status_code
                until(lambda: len(answers["/link"]) > 20)
                took = time.monotonic() - started
        finally:
            server.resume()
        until(lambda: is_well(client))
        builds.activate_build(first)
        until(lambda: client.get("/info").json()["index"]["id"] == first)

    assert second != first
    assert (asked.status_code, asked.json()["code"], alive) == (503, "store", 200)
    for path in answers:
        assert {status for status, _ in answers[path]} == {200}
    # The store's own time-outs, of two seconds and more, would show.
    assert sorted(seconds for _, seconds in answers["/link"])[len(answers["/link"]) // 2] < 1
    assert took < 30


@pytest.mark.parametrize("stage", ["start", "verify", "complete"])
def test_a_rebuild_outlives_a_restart_of_the_database(stage, server, start, jobs, builds, disk):
    job_id = jobs.request("rebuild", by="ann", parameters={}).id
    worker = start(hold=stage)

    server.kill()
    worker.send_signal(signal.SIGUSR2)
    with pytest.raises(subprocess.TimeoutExpired):
        worker.wait(1)
    server.start()

    assert worker.wait(60) == 0
    job = jobs.job(job_id)
    assert (job.state, job.error) == ("done", None)
    assert builds.active_build().build_id == job.build_id
    assert disk.open(job.build_id).id == job.build_id


def test_a_rebuild_whose_database_stays_away_for_longer_than_its_lease_is_given_up(
    server, start, jobs, builds, disk, engine, settings
):
    job_id = jobs.request("rebuild", by="ann", parameters={}).id
    worker = start(hold="verify", lease=3)

    server.kill()
    worker.send_signal(signal.SIGUSR2)
    worker.wait(60)
    server.start()
    until(lambda: recover(engine, disk) == [job_id])

    assert jobs.job(job_id).state == "failed"
    assert list(settings.builds_dir.iterdir()) == []
    assert builds.active_build() is None


def _is_copying(url: str) -> bool:
    with psycopg.connect(url) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'medlink' AND query LIKE 'COPY%'"
        return connection.execute(query).fetchone() != (0,)


def test_a_load_whose_database_is_killed_says_so_and_can_be_repeated(server, engine, settings, tmp_path):
    before = list(Repository(engine).concepts())
    table = tmp_path / "many.csv"
    rows = (f"C{number:07},name {number},OURS\n" for number in range(300_000))
    table.write_text("id,name,sab\n" + "".join(rows))
    environment = {**os.environ, **settings.environment()}
    command = [sys.executable, "-m", "medlink.cli", "kb", "load", str(table), "--name", "ours"]
    loading = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    until(lambda: _is_copying(server.url))

    server.kill()
    said = loading.communicate(timeout=60)[1]
    server.start()

    assert loading.returncode == 1
    assert "medlink: load failed and was undone: " in said
    assert "Traceback" not in said
    assert list(Repository(engine).concepts()) == before
    small = tmp_path / "small.csv"
    small.write_text("id,name,sab\nC0000001,fever,OURS\n")
    subprocess.run([*command[:5], str(small), "--name", "ours"], env=environment, check=True, capture_output=True)
    assert [concept.id for concept in Repository(engine).concepts()] == ["C0000001"]
