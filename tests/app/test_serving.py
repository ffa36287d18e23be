import time
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog
from sqlalchemy import insert, text
from starlette.testclient import TestClient

from app.main import create_app
from app.serving import ActiveBuilds, load_active_build
from app.settings import Settings
from index.store import BuildStore
from medlink.errors import IndexMismatchError, NoIndexError, StoreError
from medlink.kb import orm
from medlink.kb.builds import Builds
from medlink.kb.curation import Curations
from medlink.kb.database import migrate, open_engine, writing
from medlink.manifest import read_manifest, write_manifest
from medlink.types import LinkOptions, Mention


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(data_dir=tmp_path, build_poll_seconds=0.05)


@pytest.fixture
def activate(settings, make_build) -> Callable[[], str]:
    """Make a build, say that it is the active one, and return its id."""
    engine = open_engine(settings.database_url)
    migrate(engine)

    def one() -> str:
        build = make_build(settings.builds_dir)
        Builds(engine).register_build(build.id, read_manifest(settings.builds_dir / build.id))
        Builds(engine).activate_build(build.id)
        return build.id

    return one


@pytest.fixture
def curations(settings) -> Curations:
    """Corrections in a store that knows the concepts of the builds."""
    engine = open_engine(settings.database_url)
    migrate(engine)
    with writing(engine) as connection:
        concepts = [{"id": "HP:0000001", "preferred_name": "Cold"}, {"id": "C0004096", "preferred_name": "Asthma"}]
        connection.execute(insert(orm.Concept), concepts)
    return Curations(engine)


def top(build, mention: str) -> str:
    (result,) = build.linker.link([Mention(mention)], LinkOptions(top_k=1))
    return result.candidates[0].concept.id


def damage(directory: Path) -> None:
    path = directory / "dense.faiss"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_the_active_build_is_followed(settings, activate):
    builds = ActiveBuilds(settings)
    with pytest.raises(NoIndexError, match="medlink index build"):
        builds.current()

    first = activate()
    builds.refresh()
    assert builds.current().id == first

    second = activate()
    builds.refresh()
    assert builds.current().id == second


def test_a_damaged_build_is_refused_and_the_one_before_stays(settings, activate):
    builds = ActiveBuilds(settings)
    first = activate()
    builds.refresh()

    second = activate()
    damage(settings.builds_dir / second)
    builds.refresh()

    assert builds.current().id == first
    assert "dense.faiss differs from its hash" in builds.refused[second]


def test_a_build_that_could_not_be_loaded_is_tried_again(settings, activate, monkeypatch):
    builds = ActiveBuilds(settings)
    first = activate()
    builds.refresh()
    second = activate()
    directory = settings.builds_dir / second
    directory.rename(settings.builds_dir / ".late")
    builds.refresh()
    refused = dict(builds.refused)
    (settings.builds_dir / ".late").rename(directory)

    builds.refresh()
    too_soon = builds.current().id
    now = time.monotonic()
    monkeypatch.setattr("app.serving.time.monotonic", lambda: now + 3)
    builds.refresh()

    assert list(refused) == [second]
    assert too_soon == first
    assert (builds.current().id, builds.refused) == (second, {})


def test_a_build_that_stays_bad_is_tried_ever_more_seldom(settings, activate, monkeypatch):
    builds = ActiveBuilds(settings)
    activate()
    builds.refresh()
    damage(settings.builds_dir / activate())
    now, tried = time.monotonic(), []
    with structlog.testing.capture_logs() as logs:
        for second in range(60):
            monkeypatch.setattr("app.serving.time.monotonic", lambda at=second: now + at)
            seen = len(logs)
            builds.refresh()
            tried += [second] * (len(logs) - seen)

    assert tried == [0, 2, 6, 14, 30]


def test_a_start_on_a_damaged_build_falls_back_to_an_earlier_one(settings, activate):
    first, second = activate(), activate()
    damage(settings.builds_dir / second)

    with TestClient(create_app(settings)) as client:
        ready = wait_ready(client)

    assert (ready["status"], ready["index"]) == ("degraded", first)
    assert list(ready["refused"]) == [second]


def test_without_a_sound_build_the_service_is_up_and_says_503(settings, activate):
    damage(settings.builds_dir / activate())

    with TestClient(create_app(settings)) as client:
        wait_refused(client)
        answer = client.post("/link", json={"mentions": ["cold"]})

        assert client.get("/livez").status_code == 200
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert answer.json()["code"] == "no_index"
    assert "dense.faiss" in answer.json()["detail"]


def test_a_service_started_before_the_first_build_picks_it_up(settings, activate):
    with TestClient(create_app(settings)) as client:
        assert client.get("/readyz").status_code == 503
        first = activate()

        assert wait_ready(client)["index"] == first


def test_an_unreachable_store_changes_nothing_for_a_running_service(settings, activate, tmp_path):
    builds = ActiveBuilds(settings)
    first = activate()
    builds.refresh()

    with open_engine(settings.database_url).begin() as connection:
        connection.execute(text("ALTER TABLE active_build RENAME TO lost"))
    builds.refresh()

    assert builds.current().id == first
    assert builds.store_problem == "OperationalError"


def test_the_service_follows_on_after_an_error_that_nobody_foresaw(settings, activate):
    broken = activate()
    directory = settings.builds_dir / broken
    facts = read_manifest(directory)
    del facts["recipe"]
    write_manifest(directory, facts)

    with TestClient(create_app(settings)) as client:
        time.sleep(0.3)
        sound = activate()

        assert wait_ready(client)["index"] == sound


def test_in_process_linking_refuses_what_is_damaged(settings, activate):
    with pytest.raises(StoreError):
        load_active_build(Settings(data_dir=settings.data_dir / "elsewhere"))
    active = activate()
    assert load_active_build(settings).id == active

    damage(settings.builds_dir / active)

    with pytest.raises(IndexMismatchError):
        load_active_build(settings)
    assert BuildStore(settings.builds_dir).ids() == [active]


BY = {"who": "ann", "why": "our own word"}


def test_curation_is_followed_back_and_forth(settings, activate, curations):
    builds = ActiveBuilds(settings)
    activate()
    builds.refresh()
    uncurated = builds.current()

    entry = curations.add_synonym("C0004096", "the wheezes", **BY)
    builds.refresh()
    curated = builds.current()
    curations.undo(entry.id, who="ann")
    builds.refresh()

    assert [b.overlay.revision for b in (uncurated, curated, builds.current())] == [0, 1, 2]
    assert top(curated, "the wheezes") == "C0004096"
    assert curated.linker.link([Mention("the wheezes")], LinkOptions())[0].candidates[0].score == 1.0
    assert builds.current().linker.link([Mention("the wheezes")], LinkOptions(channels=("exact",)))[0].status == "nil"


def test_without_a_change_nothing_is_made_anew(settings, activate, curations):
    builds = ActiveBuilds(settings)
    activate()
    curations.block_concept("HP:0000001", **BY)
    builds.refresh()
    before = builds.current()

    builds.refresh()

    assert builds.current() is before


def test_corrections_lie_over_a_new_build_from_its_first_answer(settings, activate, curations):
    curations.pin("cold", "C0004096", **BY)
    builds = ActiveBuilds(settings)
    for _ in range(2):
        active = activate()
        with structlog.testing.capture_logs() as logs:
            builds.refresh()

        # Not loaded first and curated afterwards.
        assert [entry["event"] for entry in logs] == ["build_loaded"]
        assert (builds.current().id, builds.current().overlay.revision) == (active, 1)
        assert top(builds.current(), "cold") == "C0004096"


def test_in_process_linking_is_curated(settings, activate, curations):
    activate()
    curations.pin("cold", "C0004096", **BY)

    build = load_active_build(settings)

    assert (build.overlay.revision, top(build, "cold")) == (1, "C0004096")


def test_a_running_service_names_and_follows_the_revision(settings, activate, curations):
    activate()
    with TestClient(create_app(settings)) as client:
        wait_ready(client)
        request = {"mentions": ["cold"], "top_k": 1, "explain": True}
        before = client.post("/link", json=request).json()
        entry = curations.pin("cold", "C0004096", **BY)
        wait(client, lambda response: response.json()["index"]["curation_revision"] == 1, "/info")
        after = client.post("/link", json=request).json()
        described = client.get("/concepts/C0004096").json()

    assert before["index"]["curation_revision"] == 0
    assert after["index"]["curation_revision"] == described["index"]["curation_revision"] == 1
    (candidate,) = after["results"][0]["candidates"]
    assert (candidate["cui"], after["results"][0]["status"]) == ("C0004096", "linked")
    assert candidate["explanation"]["pin"] == {"entry": entry.id, "why": "our own word"}
    assert "pin" not in before["results"][0]["candidates"][0]["explanation"]


def test_a_pinned_mention_is_not_logged(settings, activate, curations):
    activate()
    curations.pin("what the patient said", "C0004096", who="ann", why="the patient said so")

    with structlog.testing.capture_logs() as logs:
        builds = ActiveBuilds(settings)
        builds.refresh()
        curations.block_concept("HP:0000001", **BY)
        builds.refresh()

    assert [entry["event"] for entry in logs] == ["build_loaded", "curation_followed"]
    assert "patient" not in repr(logs)


def wait_ready(client: TestClient) -> dict:
    return wait(client, lambda response: response.status_code == 200)


def wait_refused(client: TestClient) -> dict:
    return wait(client, lambda response: "dense.faiss" in response.text)


def wait(client: TestClient, good: Callable, path: str = "/readyz") -> dict:
    for _ in range(200):
        response = client.get(path)
        if good(response):
            return response.json()
        time.sleep(0.05)
    raise AssertionError(response.text)
