import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from app.main import create_app
from app.serving import ActiveBuilds, load_active_build
from app.settings import Settings
from index.store import BuildStore
from medlink.errors import IndexMismatchError, NoIndexError, StoreError
from medlink.kb.builds import Builds
from medlink.kb.database import migrate, open_engine
from medlink.manifest import read_manifest, write_manifest


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


def wait_ready(client: TestClient) -> dict:
    return wait(client, lambda response: response.status_code == 200)


def wait_refused(client: TestClient) -> dict:
    return wait(client, lambda response: "dense.faiss" in response.text)


def wait(client: TestClient, good: Callable) -> dict:
    for _ in range(200):
        response = client.get("/readyz")
        if good(response):
            return response.json()
        time.sleep(0.05)
    raise AssertionError(response.text)
