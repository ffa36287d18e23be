"""One row says which build answers, and a log keeps what it said before."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError, StatementError

from medlink.errors import UnknownIdError, UnknownValueError
from medlink.kb import orm
from medlink.kb.builds import ActiveBuild, Builds
from medlink.kb.database import writing


@pytest.fixture
def builds(store):
    return Builds(store)


def test_activating_moves_the_one_row_and_keeps_the_log(builds):
    builds.register_build("b1", {"names": 1})
    builds.register_build("b2", {"names": 2})
    assert builds.active_build() is None

    generations = [builds.activate_build(build_id) for build_id in ("b1", "b2", "b1")]

    assert generations == [1, 2, 3]
    assert builds.active_build() == ActiveBuild("b1", 3)
    assert [(entry.generation, entry.build_id) for entry in builds.activations()] == [(3, "b1"), (2, "b2"), (1, "b1")]
    assert [(build.id, build.state, build.manifest["names"]) for build in builds.builds()] == [
        ("b1", "ready", 1),
        ("b2", "ready", 2),
    ]


def test_rolling_back_twice_goes_back_twice(builds):
    for build_id in ("b1", "b2", "b3"):
        builds.register_build(build_id, {})
        builds.activate_build(build_id)

    assert [builds.roll_back(), builds.roll_back()] == ["b2", "b1"]

    assert builds.active_build() == ActiveBuild("b1", 5)
    with pytest.raises(UnknownIdError):
        builds.roll_back()


def test_rolling_back_passes_over_what_is_not_ready(builds):
    for build_id in ("b1", "b2", "b3"):
        builds.register_build(build_id, {})
        builds.activate_build(build_id)
    builds.set_state("b2", "quarantined")

    assert builds.roll_back() == "b1"


def test_what_was_rolled_back_and_activated_again_can_be_rolled_back_again(builds):
    for build_id in ("b1", "b2"):
        builds.register_build(build_id, {})
        builds.activate_build(build_id)
    builds.roll_back()
    builds.activate_build("b2")

    assert builds.roll_back() == "b1"


def test_a_build_that_is_unknown_or_not_ready_is_not_activated(builds):
    builds.register_build("b1", {})
    builds.register_build("b2", {})
    builds.activate_build("b1")
    builds.set_state("b2", "quarantined")

    for build_id in ("b2", "b3"):
        with pytest.raises(UnknownValueError, match="valid: b1"):
            builds.activate_build(build_id)
    with pytest.raises(UnknownValueError, match="valid: b1, b2"):
        builds.set_state("b3", "ready")

    assert builds.active_build() == ActiveBuild("b1", 1)


def test_there_is_never_a_second_active_build(store, builds):
    builds.register_build("b1", {})

    with pytest.raises(IntegrityError), writing(store) as connection:
        connection.execute(insert(orm.ActiveBuild).values(id=2, build_id="b1", generation=7))


def test_registering_again_replaces_the_manifest(builds):
    builds.register_build("b1", {"names": 1})
    builds.register_build("b1", {"names": 2})

    (build,) = builds.builds()
    assert build.manifest == {"names": 2}


def test_one_kind_of_job_runs_once_at_a_time(store):
    def job(job_id: str, state: str) -> None:
        with writing(store) as connection:
            values = {"id": job_id, "kind": "rebuild", "state": state, "parameters": {}, "counts": {}}
            connection.execute(insert(orm.Job).values(created_at=datetime.now(UTC), **values))

    job("j1", "done")
    job("j2", "running")

    with pytest.raises(IntegrityError):
        job("j3", "queued")
    job("j4", "failed")


def test_a_moment_keeps_its_zone_and_needs_one(store):
    summer = datetime(2026, 7, 1, 14, 0, tzinfo=UTC)
    with writing(store) as connection:
        connection.execute(insert(orm.IndexBuild).values(id="b", created_at=summer, state="ready", manifest={}))
        assert connection.scalar(select(orm.IndexBuild.created_at)) == summer

    values = {"created_at": summer.replace(tzinfo=None), "state": "ready", "manifest": {}}
    with store.connect() as connection, pytest.raises(StatementError, match="time zone"):
        connection.execute(insert(orm.IndexBuild).values(id="c", **values))
