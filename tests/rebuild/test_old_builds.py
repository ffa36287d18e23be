"""Old builds go on request, never those that are needed; what a dead builder left published is found."""

import time
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from app.main import create_app
from app.old_builds import prune, superfluous, tidy
from app.worker import run_next, tidy_up
from medlink.cli import app
from medlink.errors import BuildInUseError
from medlink.kb.keys import Keys
from medlink.manifest import read_manifest


@pytest.fixture
def make(jobs, settings, engine) -> Callable[..., str]:
    """Makes a build, by a worker with other settings if some are given, and returns its id."""

    def one(*, activate: bool = True, **others: object) -> str:
        job = jobs.request("rebuild", by="ann", parameters={"activate": activate})
        run_next(settings, engine)
        tidy_up(settings.model_copy(update=others), engine)
        return jobs.job(job.id).build_id

    return one


@pytest.fixture
def serve(settings, engine) -> Callable[..., TestClient]:
    """Makes a service, and a client that administers it."""
    key = Keys(engine).create("boss", ["admin"])[1]

    def one(**others: object) -> TestClient:
        service = create_app(settings.model_copy(update={"rebuild_in_service": False, **others}))
        return TestClient(service, headers={"X-API-Key": key})

    return one


@pytest.fixture
def client(serve):
    with serve() as client:
        yield client


@pytest.fixture
def medlink(settings, engine, monkeypatch):
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)
    return lambda *arguments: CliRunner().invoke(app, arguments, catch_exceptions=False).stdout


def test_the_active_build_the_one_before_and_the_latest_stay(make, medlink, builds, disk, settings, engine):
    made = [make() for _ in range(3)] + [make(activate=False) for _ in range(2)]
    builds.activate_build(made[0])

    told = medlink("index", "prune", "--keep", "1", "--dry-run")
    untouched = disk.ids()
    medlink("index", "prune", "--keep", "1")

    assert untouched == made
    assert [build_id in told for build_id in made] == [False, True, False, True, False]
    # The first is active, the third was before it, the last is the latest.
    assert disk.ids() == [made[0], made[2], made[4]]
    states = builds.states()
    assert [states[build_id] for build_id in made] == ["ready", "deleted", "ready", "deleted", "ready"]
    assert list(settings.builds_dir.glob(".*")) == []
    assert builds.roll_back() == made[2]
    assert prune(engine, disk, 1) == []


def test_a_service_goes_on_from_a_build_that_is_removed_under_it(make, serve, builds, disk):
    first = make()
    with serve(build_poll_seconds=600) as slow:
        _wait_for(slow, first)
        second = make()

        removed = slow.delete(f"/admin/index/{first}")
        answer = slow.post("/link", json={"mentions": ["asthma"]})
        shown = slow.get("/concepts/C0004096")

    assert (removed.status_code, removed.json()["state"], removed.json()["here"]) == (200, "deleted", False)
    assert disk.ids() == [second]
    assert answer.json()["index"]["id"] == first
    assert answer.json()["results"][0]["candidates"][0]["cui"] == "C0004096"
    assert shown.status_code == 200


def _wait_for(client: TestClient, build_id: str) -> None:
    for _ in range(1000):
        if client.get("/readyz").json().get("index") == build_id:
            return
        time.sleep(0.05)
    raise AssertionError(client.get("/readyz").text)


def test_what_is_removed_is_neither_activated_nor_gone_back_to_and_what_answers_is_not_removed(make, client, builds):
    first, second = make(), make()

    gone = client.delete(f"/admin/index/{first}")
    active = client.delete(f"/admin/index/{second}")
    unknown = client.delete("/admin/index/20200101T000000000Z")
    activated = client.post(f"/admin/index/{first}/activate")
    back = client.post("/admin/index/rollback")
    listed = client.get("/admin/index").json()["builds"]

    assert [r.status_code for r in (gone, active, unknown, activated, back)] == [200, 409, 404, 409, 409]
    assert active.json()["code"] == "build_in_use"
    assert "was removed" in activated.json()["detail"]
    assert [(b["id"], b["state"], b["here"]) for b in listed] == [(first, "deleted", False), (second, "ready", True)]
    with pytest.raises(BuildInUseError):
        builds.delete(second)


def test_a_rollback_to_a_build_whose_files_are_gone_is_refused(make, client, disk, builds):
    first, second = make(), make()
    disk.discard(first)

    back = client.post("/admin/index/rollback")

    assert (back.status_code, first in back.json()["detail"]) == (409, True)
    assert builds.active_build().build_id == second


def test_a_rebuild_leaves_as_many_builds_as_it_is_told_to(make, disk):
    made = [make(), make(), make(), make(keep_builds=1)]

    assert disk.ids() == made[2:]


def test_what_a_worker_published_before_it_was_killed_is_registered_and_not_activated(
    start, jobs, builds, disk, engine
):
    job_id = jobs.request("rebuild", by="ann", parameters={}).id
    killed = start(hold="complete")
    tidy(engine, disk)
    while_it_lived = builds.states()
    killed.kill()
    killed.wait()

    assert start().wait(200) == 0

    (build_id,) = disk.ids()
    assert (while_it_lived, builds.states()) == ({}, {build_id: "ready"})
    assert (jobs.job(job_id).state, builds.active_build()) == ("failed", None)
    assert builds.activate_build(build_id) == 1


def test_a_damaged_build_that_nobody_registered_is_put_aside_and_not_looked_at_again(
    make, builds, disk, settings, engine, monkeypatch
):
    sound = make()
    damaged = settings.builds_dir / "20200101T000000000Z"
    damaged.mkdir()
    (settings.builds_dir / "lost+found").mkdir()

    tidy_up(settings, engine)
    monkeypatch.setattr("app.old_builds.checked_manifest", None)  # calling it would fail
    tidy_up(settings, engine)

    assert builds.states() == {sound: "ready", damaged.name: "quarantined"}
    assert superfluous(builds, 3) == [damaged.name]


def test_a_removal_that_was_broken_off_is_ended_by_the_next_worker(make, builds, disk, settings, engine):
    first, second = make(), make()
    builds.delete(first)
    assert read_manifest(settings.builds_dir / first)["id"] == first

    tidy_up(settings, engine)

    assert disk.ids() == [second]
