"""The service rebuilds, switches and goes back while it answers, and says clearly what keeps it from doing so."""

import json
import signal
import threading
import time
from collections.abc import Callable

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from app.main import create_app
from app.rebuilds import Rebuilds
from app.serving import ActiveBuilds
from medlink.kb.keys import Keys


@pytest.fixture
def elsewhere(settings):
    """Settings of a service whose workers run elsewhere, or not at all."""
    return settings.model_copy(update={"rebuild_in_service": False})


def until(good: Callable[[], bool], seconds: float = 200) -> None:
    end = time.monotonic() + seconds
    while not good():
        assert time.monotonic() < end
        time.sleep(0.05)


class Asking(threading.Thread):
    """Links one mention again and again, and keeps what it was answered."""

    def __init__(self, client: TestClient) -> None:
        super().__init__()
        self._client = client
        self._enough = threading.Event()
        self.answers: list[tuple[int, str | None]] = []

    def run(self) -> None:
        while not self._enough.is_set():
            answer = self._client.post("/link", json={"mentions": ["asthma"]})
            self.answers.append((answer.status_code, answer.json().get("index", {}).get("id")))
            time.sleep(0.02)

    def __enter__(self) -> "Asking":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self.join()


def test_it_rebuilds_switches_and_goes_back_without_a_failed_request(settings, engine, admin, make, load_names):
    first = make()
    load_names("id,name,sab\nC0004096,asthma,OURS\nC0027051,heart attack,OURS\n")
    with TestClient(create_app(settings)) as client, TestClient(create_app(settings)) as replica:

        def answers(build_id: str) -> None:
            until(lambda: all(c.get("/info").json().get("index", {}).get("id") == build_id for c in (client, replica)))

        answers(first)
        with Asking(client) as asking:
            job = client.post("/admin/index/rebuild", json={"recipe": "flat"}, headers=admin)
            refused = replica.post("/admin/index/rebuild", headers=admin)
            at = f"/admin/jobs/{job.json()['id']}"
            until(lambda: client.get(at, headers=admin).json()["state"] not in ("queued", "running"))
            done = client.get(at, headers=admin).json()
            second = done["build_id"]
            answers(second)
            back = client.post("/admin/index/rollback", headers=admin).json()
            answers(first)
            forth = replica.post(f"/admin/index/{second}/activate", headers=admin).json()
            answers(second)
        listed = client.get("/admin/index", headers=admin).json()

    assert (job.status_code, job.json()["requested_by"]) == (202, "boss")
    assert (refused.status_code, refused.json()["code"], refused.json()["job"]) == (409, "job", job.json()["id"])
    assert (done["state"], done["error"], done["counts"]["names"]) == ("done", None, 2)
    assert {status for status, _ in asking.answers} == {200}
    assert {build_id for _, build_id in asking.answers} == {first, second}
    assert (back["active"], forth["active"]) == (first, second)
    assert (listed["active"], listed["serving"]) == (second, second)
    assert [(b["id"], b["active"], b["here"]) for b in listed["builds"]] == [(first, False, True), (second, True, True)]


def test_a_worker_that_was_killed_is_found_while_the_service_runs(start, elsewhere, admin, wait, jobs, settings):
    with TestClient(create_app(elsewhere)) as client:
        job_id = client.post("/admin/index/rebuild", headers=admin).json()["id"]
        worker = start(hold="encode")
        shown = client.get(f"/admin/jobs/{job_id}", headers=admin).json()
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        lost = wait(jobs, job_id)
        again = client.post("/admin/index/rebuild", headers=admin).status_code

    assert (shown["state"], shown["stage"]) == ("running", "start")
    assert (lost.state, lost.error) == ("failed", "its worker was killed in stage " + lost.stage)
    assert not list(settings.builds_dir.glob(".*"))
    assert again == 202


def test_a_job_is_cancelled_over_http(elsewhere, admin):
    with TestClient(create_app(elsewhere)) as client:
        job_id = client.post("/admin/index/rebuild", headers=admin).json()["id"]
        cancelled = client.delete(f"/admin/jobs/{job_id}", headers=admin)
        again = client.delete(f"/admin/jobs/{job_id}", headers=admin)

    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelled")
    assert (again.status_code, again.json()["job"]) == (409, job_id)


def test_a_request_with_an_idempotency_key_may_be_sent_again_to_any_replica(elsewhere, engine, admin):
    keyed = {**admin, "Idempotency-Key": "8e03978e-40d5"}
    other = {"X-API-Key": Keys(engine).create("deputy", ["admin"])[1], "Idempotency-Key": "8e03978e-40d5"}
    with TestClient(create_app(elsewhere)) as client, TestClient(create_app(elsewhere)) as replica:
        first = client.post("/admin/index/rebuild", headers=keyed)
        again = replica.post("/admin/index/rebuild", json={"recipe": "auto"}, headers=keyed)
        client.delete(f"/admin/jobs/{first.json()['id']}", headers=admin)
    with TestClient(create_app(elsewhere)) as restarted:
        later = restarted.post("/admin/index/rebuild", headers=keyed)
        changed = restarted.post("/admin/index/rebuild", json={"recipe": "flat"}, headers=keyed)
        malformed = restarted.post("/admin/index/rebuild", headers={**admin, "Idempotency-Key": "x" * 256})
        of_other = restarted.post("/admin/index/rebuild", headers=other)

    assert [r.status_code for r in (first, again, later)] == [202, 202, 202]
    assert {r.json()["id"] for r in (first, again, later)} == {first.json()["id"]}
    assert later.json()["state"] == "cancelled"
    assert (changed.status_code, changed.json()["code"]) == (422, "key_reused")
    assert (malformed.status_code, malformed.json()["code"]) == (422, "invalid_request")
    assert (of_other.status_code, of_other.json()["id"] != first.json()["id"]) == (202, True)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/admin/jobs/nobody"),
        ("DELETE", "/admin/jobs/nobody"),
        ("POST", "/admin/index/20200101T000000000Z/activate"),
        ("GET", "/admin/index/a/diff/b"),
        ("DELETE", "/admin/curation/4711"),
    ],
)
def test_what_is_not_there_is_a_404(method, path, elsewhere, admin):
    with TestClient(create_app(elsewhere)) as client:
        assert client.request(method, path, headers=admin).status_code == 404


@pytest.mark.parametrize("path", ["/admin/jobs/..%2F..", "/admin/index/..%2Fx/activate", "/admin/jobs/%00"])
def test_an_id_that_is_a_path_opens_nothing(path, elsewhere, admin):
    with TestClient(create_app(elsewhere)) as client:
        answers = [client.request(method, path, headers=admin).status_code for method in ("GET", "POST")]

    assert set(answers) <= {404, 405, 422}


def test_without_an_earlier_build_there_is_nothing_to_go_back_to(elsewhere, admin, make):
    make()
    with TestClient(create_app(elsewhere)) as client:
        refused = client.post("/admin/index/rollback", headers=admin)

    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


def test_a_build_with_a_flipped_byte_in_any_file_is_not_activated(elsewhere, admin, make):
    damaged, sound = make(), make()
    directory = elsewhere.builds_dir / damaged
    with TestClient(create_app(elsewhere)) as client:
        until(lambda: client.get("/readyz").status_code == 200)
        for path in sorted(p for p in directory.rglob("*") if p.is_file()):
            content = path.read_bytes()
            middle = len(content) // 2
            path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])

            refused = client.post(f"/admin/index/{damaged}/activate", headers=admin)

            path.write_bytes(content)
            assert refused.status_code == 409, path
            assert path.name in refused.json()["detail"]
            assert str(elsewhere.builds_dir) not in refused.text
        ready = client.get("/readyz").json()
        assert ready == {"status": "ready", "index": sound, "refused": {}, "store": "reachable"}
        assert client.post(f"/admin/index/{damaged}/activate", headers=admin).status_code == 200


@pytest.mark.parametrize(
    ("revision", "message"), [("0001", "alembic upgrade head"), ("9999", "newer than this program")]
)
def test_a_database_of_another_version_is_named_and_the_service_is_up(revision, message, elsewhere, engine, admin):
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :to"), {"to": revision})

    with TestClient(create_app(elsewhere)) as client:
        until(lambda: message in client.get("/readyz").text)
        linked = client.post("/link", json={"mentions": ["asthma"]})
        asked = client.get("/admin/jobs", headers=admin)
        alive = client.get("/livez").status_code

    assert (linked.status_code, asked.status_code, asked.json()["code"], alive) == (503, 503, "store", 200)


def test_a_store_that_fails_in_the_middle_is_a_503(elsewhere, engine, admin):
    with TestClient(create_app(elsewhere)) as client:
        assert client.get("/admin/jobs", headers=admin).status_code == 200
        with engine.begin() as connection:
            connection.execute(text("ALTER TABLE job RENAME TO lost"))

        failed = client.get("/admin/jobs", headers=admin)

    assert (failed.status_code, failed.json()["code"]) == (503, "store")
    assert "lost" not in failed.text
    assert "SELECT" not in failed.text


def test_corrections_are_made_listed_and_undone(elsewhere, engine, admin):
    def send(**body):
        return client.post("/admin/curation", json={"why": "our word", **body}, headers=admin)

    with TestClient(create_app(elsewhere)) as client:
        added = send(action="add_synonym", concept="C0004096", text="the wheezes", who="ann")
        pinned = send(action="pin_mention", concept="umls:C0009443", text="cold")
        blocked = send(action="block_name", text="wheezing disease", concept="C0004096")
        away = send(action="block_concept", concept="C0009443")
        twice = send(action="add_synonym", concept="C0004096", text="the wheezes")
        unknown = send(action="block_concept", concept="C7777777")
        undone = client.delete(f"/admin/curation/{pinned.json()['entry']['id']}", headers=admin)
        again = client.delete(f"/admin/curation/{pinned.json()['entry']['id']}", headers=admin)
        listed = client.get("/admin/curation", headers=admin).json()
        everything = client.get("/admin/curation", params={"undone": True}, headers=admin).json()

    entry = added.json()["entry"]
    assert (added.status_code, entry["who"], entry["text"]) == (201, "ann (key boss)", "the wheezes")
    assert pinned.json()["entry"]["concept_id"] == "C0009443"
    assert [r.status_code for r in (blocked, away, twice, unknown, undone, again)] == [201, 201, 409, 404, 200, 404]
    assert undone.json() == {"revision": 5}
    assert listed["revision"] == 5
    assert [e["action"] for e in listed["entries"]] == ["add_synonym", "block_name", "block_concept"]
    assert [e["revoked_by"] for e in everything["entries"]] == [None, "boss", None, None]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "drop_table", "why": "x"},
        {"action": "add_synonym", "concept": "C0004096", "text": "", "why": "x"},
        {"action": "add_synonym", "concept": "C\u0000", "text": "t", "why": "x"},
        {"action": "block_concept", "concept": "\ud800", "why": "x"},
        {"action": "block_concept", "concept": "C0004096", "why": "x", "path": "/etc/passwd"},
        {"action": "block_concept", "concept": "C" * 2000, "why": "x"},
    ],
)
def test_a_correction_that_is_not_as_documented_is_a_422(body, elsewhere, admin):
    with TestClient(create_app(elsewhere)) as client:
        sent = {**admin, "Content-Type": "application/json"}
        refused = client.post("/admin/curation", content=json.dumps(body), headers=sent)

    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")


def test_a_correction_reaches_the_answers(elsewhere, admin, make):
    make()
    with TestClient(create_app(elsewhere)) as client:
        until(lambda: client.get("/readyz").status_code == 200)
        body = {"action": "add_synonym", "concept": "C0004096", "text": "the wheezes", "why": "x"}
        client.post("/admin/curation", json=body, headers=admin)
        until(lambda: client.get("/info").json()["index"]["curation_revision"] == 1)
        (result,) = client.post("/link", json={"mentions": ["the wheezes"]}).json()["results"]

    assert result["candidates"][0]["cui"] == "C0004096"


def test_a_job_that_nobody_took_is_taken_up_by_a_service_that_looks(settings, engine, jobs, monkeypatch):
    monkeypatch.setattr("app.rebuilds._PATIENCE", 0.0)
    job_id = jobs.request("rebuild", by="ann", parameters={}).id
    builds = ActiveBuilds(settings)
    rebuilds = Rebuilds(settings, builds)

    rebuilds.look()
    at_work = not rebuilds.is_idle
    until(lambda: rebuilds.is_idle)
    builds.close()

    assert (at_work, jobs.job(job_id).state) == (True, "done")


def test_where_workers_run_elsewhere_the_service_starts_none(elsewhere, engine, jobs, monkeypatch):
    monkeypatch.setattr("app.rebuilds._PATIENCE", 0.0)
    monkeypatch.setattr("app.rebuilds.subprocess.Popen", None)  # calling it would fail
    job_id = jobs.request("rebuild", by="ann", parameters={}).id
    builds = ActiveBuilds(elsewhere)

    Rebuilds(elsewhere, builds).look()
    builds.close()

    assert jobs.job(job_id).state == "queued"
