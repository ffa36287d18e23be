"""A rebuild ends with a build that answers or with a reason, and leaves nothing else, however it ends."""

import resource
import signal
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from app.worker import recover, run_next
from medlink.errors import StoreError
from medlink.kb.database import check_schema
from medlink.kb.jobs import Jobs

STAGES = ("start", "read", "encode", "verify", "publish")


@pytest.fixture
def ask(jobs):
    """Asks for a rebuild and returns its id."""
    return lambda **parameters: jobs.request("rebuild", by="ann", parameters=parameters).id


def left(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob(".*"))


def test_a_worker_makes_the_build_and_lets_it_answer(start, ask, jobs, builds, disk):
    job_id = ask()

    assert start().wait(200) == 0

    job = jobs.job(job_id)
    assert (job.state, job.error, job.progress) == ("done", None, 1.0)
    assert job.counts["names"] == 3
    assert builds.active_build().build_id == job.build_id
    assert disk.open(job.build_id).id == job.build_id


def test_only_names_that_are_new_are_encoded_again(settings, engine, ask, jobs, load_names):
    ask()
    run_next(settings, engine)
    load_names("id,name,sab\nC0004096,asthma,OURS\nC0009443,common cold,OURS\nC0027051,heart attack,OURS\n")

    second = ask()
    run_next(settings, engine)

    counts = jobs.job(second).counts
    assert (counts["distinct_texts"], counts["reused_vectors"]) == (3, 2)


def test_without_a_request_a_worker_does_nothing(settings, engine, disk):
    assert not run_next(settings, engine)
    assert disk.ids() == []


@pytest.mark.parametrize("stage", [*STAGES, "complete"])
def test_a_worker_killed_at_any_stage_is_found_and_cleared_away_by_the_next(
    stage, start, ask, jobs, builds, disk, settings, engine
):
    job_id = ask()
    killed = start(hold=stage)
    assert left(settings.builds_dir)
    killed.send_signal(signal.SIGKILL)
    killed.wait()

    assert recover(engine, disk) == [job_id]

    job = jobs.job(job_id)
    assert job.state == "failed"
    assert "its worker was killed in stage" in job.error
    assert left(settings.builds_dir) == []
    assert builds.active_build() is None
    again = ask()
    run_next(settings, engine)
    assert jobs.job(again).state == "done"


def test_a_worker_at_work_is_not_taken_for_dead(start, ask, jobs, disk, engine):
    job_id = ask()
    start(hold="encode")

    assert recover(engine, disk) == []
    assert jobs.job(job_id).state == "running"


def test_a_lease_is_renewed_while_a_stage_takes_its_time(start, ask, jobs, wait):
    job_id = ask()
    start(hold="encode", lease=3)

    with pytest.raises(AssertionError):
        wait(jobs, job_id, seconds=6)

    assert jobs.fail_abandoned() == []


def test_a_worker_that_stood_still_for_too_long_publishes_nothing(start, ask, jobs, builds, disk):
    job_id = ask()
    stopped = start(hold="verify", lease=3)
    stopped.send_signal(signal.SIGSTOP)
    while not jobs.fail_abandoned():
        pass

    stopped.send_signal(signal.SIGCONT)
    stopped.wait(30)

    assert "nothing was heard of its worker" in jobs.job(job_id).error
    assert (disk.ids(), builds.builds()) == ([], [])


@pytest.mark.parametrize("stage", ["read", "encode", "verify"])
def test_a_job_that_is_cancelled_ends_soon_and_leaves_nothing(stage, start, ask, jobs, settings, wait):
    job_id = ask()
    worker = start(hold=stage)

    jobs.cancel(job_id)

    assert wait(jobs, job_id).state == "cancelled"
    assert worker.wait(10) == 0
    assert list(settings.builds_dir.iterdir()) == []


def test_a_worker_that_is_told_to_stop_says_so_and_stops(start, ask, jobs, settings):
    job_id = ask()
    worker = start(hold="encode")

    worker.terminate()

    assert worker.wait(30) == 128 + signal.SIGTERM
    assert (jobs.job(job_id).state, jobs.job(job_id).error) == ("failed", "its worker was told to stop")
    assert list(settings.builds_dir.iterdir()) == []


def test_of_two_workers_one_has_the_job(start, ask, jobs, settings, engine):
    job_id = ask()
    start(hold="encode")

    assert not run_next(settings, engine)
    assert jobs.job(job_id).state == "running"


def test_a_full_disk_fails_the_job_with_its_reason_and_the_build_before_stays(ask, jobs, builds, settings, engine):
    first = ask()
    run_next(settings, engine)
    job_id, limits = ask(), resource.getrlimit(resource.RLIMIT_FSIZE)

    # A file of 4 MiB, which every build has, does not fit; the store does.
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, limits[1]))
    run_next(settings, engine)
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    job = jobs.job(job_id)
    assert job.state == "failed"
    assert "is the disk full?" in job.error
    assert [path.name for path in settings.builds_dir.iterdir()] == [jobs.job(first).build_id]
    assert builds.active_build().build_id == jobs.job(first).build_id


def test_a_disk_that_is_too_small_for_another_build_is_noticed_first(settings, engine, ask, jobs, monkeypatch):
    ask()
    run_next(settings, engine)
    monkeypatch.setattr("index.store.shutil.disk_usage", lambda path: type("Usage", (), {"free": 1_000_000}))

    job_id = ask()
    run_next(settings, engine)

    assert "make room" in jobs.job(job_id).error


def test_a_build_whose_end_the_store_noted_and_could_not_tell_is_kept(
    ask, jobs, builds, disk, settings, engine, monkeypatch
):
    complete = Jobs.complete

    def broken_off(self, *arguments, **keywords):
        complete(self, *arguments, **keywords)
        raise OperationalError("COMMIT", {}, Exception("the connection was lost"))

    monkeypatch.setattr(Jobs, "complete", broken_off)
    job_id = ask()
    run_next(settings, engine)

    assert jobs.job(job_id).state == "done"
    assert disk.ids() == [jobs.job(job_id).build_id] == [builds.active_build().build_id]


def test_an_empty_store_fails_the_job_with_what_to_do(settings, empty_engine):
    job_id = Jobs(empty_engine).request("rebuild", by="ann", parameters={}).id
    run_next(settings, empty_engine)

    assert "medlink kb load" in Jobs(empty_engine).job(job_id).error


@pytest.mark.parametrize(
    ("revision", "message"), [("0001", "alembic upgrade head"), ("9999", "newer than this program")]
)
def test_a_worker_refuses_a_database_of_another_version(revision, message, start, engine, settings):
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :to"), {"to": revision})

    worker = start(stderr=subprocess.PIPE)
    said = worker.communicate(timeout=200)[1]

    assert worker.returncode == 1
    assert message in said
    with pytest.raises(StoreError, match=message):
        check_schema(engine)
