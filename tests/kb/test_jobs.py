"""A kind of job runs once at a time, whoever asks; a worker that is gone loses it, and one that was slow is told."""

import threading
import time

import pytest
from sqlalchemy import update

from medlink.errors import JobError, KeyReusedError, LeaseLostError, UnknownIdError
from medlink.kb import orm
from medlink.kb.builds import Builds
from medlink.kb.database import open_engine, writing
from medlink.kb.jobs import Jobs, Progress


@pytest.fixture
def jobs(store):
    return Jobs(store)


@pytest.fixture
def lease(jobs):
    """The lease of a rebuild that runs."""
    jobs.request("rebuild", by="ann", parameters={"recipe": "flat"})
    return jobs.take("rebuild", owner="worker", seconds=30)


@pytest.fixture
def expire(store):
    """Lets the lease of the running job run out."""

    def run_out() -> None:
        with writing(store) as connection:
            long_ago = orm.Job.created_at
            connection.execute(update(orm.Job).where(orm.Job.state == "running").values(lease_until=long_ago))

    return run_out


def test_a_job_goes_from_request_to_an_active_build(store, jobs):
    asked = jobs.request("rebuild", by="ann", parameters={"recipe": "flat"})
    lease = jobs.take("rebuild", owner="worker", seconds=30)
    must_stop = jobs.beat(lease, Progress("encode", 0.5, done=10, total=20, rate=5.0, eta_seconds=2.0))
    at_work = jobs.job(asked.id)
    jobs.complete(lease, "b1", {"counts": {}}, active=True, counts={"names": 20})
    over = jobs.job(asked.id)

    assert (asked.state, asked.requested_by, lease.parameters) == ("queued", "ann", {"recipe": "flat"})
    assert not must_stop
    assert (at_work.state, at_work.stage, at_work.progress) == ("running", "encode", 0.5)
    assert (at_work.done, at_work.total, at_work.rate, at_work.eta_seconds) == (10, 20, 5.0, 2.0)
    assert (over.state, over.build_id, over.counts, over.error) == ("done", "b1", {"names": 20}, None)
    assert at_work.started_at <= over.finished_at
    assert Builds(store).active_build().build_id == "b1"


def test_a_build_may_be_made_without_letting_it_answer(store, jobs, lease):
    jobs.complete(lease, "b1", {}, active=False, counts={})

    assert Builds(store).active_build() is None
    assert [build.id for build in Builds(store).builds()] == ["b1"]


def test_a_second_request_is_told_which_job_runs(jobs, lease):
    with pytest.raises(JobError) as caught:
        jobs.request("rebuild", by="bob", parameters={})

    assert caught.value.job == lease.job_id
    jobs.fail(lease, "for a reason")
    assert jobs.request("rebuild", by="bob", parameters={}).state == "queued"


def test_of_many_requests_and_workers_at_once_one_wins(store_url):
    won, lost, leases = [], [], []
    start = threading.Barrier(8)

    def ask(number: int) -> None:
        engine = open_engine(store_url)
        start.wait()
        try:
            won.append(Jobs(engine).request("rebuild", by=str(number), parameters={}).id)
        except JobError as error:
            lost.append(error.job)
        start.wait()
        leases.append(Jobs(engine).take("rebuild", owner=str(number), seconds=30))
        engine.dispose()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(won), lost) == (1, won * 7)
    assert [lease.job_id for lease in leases if lease] == won


def test_a_worker_that_is_not_heard_of_loses_the_job_and_may_not_publish(store, jobs, lease, expire):
    jobs.beat(lease, Progress("encode"))
    expire()

    assert jobs.fail_abandoned() == [lease.job_id]

    lost = jobs.job(lease.job_id)
    assert (lost.state, lost.error) == ("failed", "nothing was heard of its worker in stage encode")
    for late in (
        lambda: jobs.beat(lease, Progress("verify")),
        lambda: jobs.complete(lease, "b1", {}, active=True, counts={}),
        lambda: jobs.fail(lease, "too late"),
    ):
        with pytest.raises(LeaseLostError):
            late()
    assert Builds(store).builds() == []
    assert Builds(store).active_build() is None
    assert jobs.job(lease.job_id) == lost


def test_a_lease_that_is_renewed_is_not_lost(jobs, lease, expire):
    expire()
    jobs.beat(lease, Progress("encode"))

    assert jobs.fail_abandoned() == []


def test_a_request_does_not_wait_for_a_dead_worker(jobs, lease, expire):
    expire()

    assert jobs.request("rebuild", by="bob", parameters={}).state == "queued"
    assert jobs.job(lease.job_id).state == "failed"


def test_the_worker_of_a_job_before_cannot_touch_the_next(jobs, lease, expire):
    expire()
    jobs.request("rebuild", by="bob", parameters={})
    new = jobs.take("rebuild", owner="other", seconds=30)

    with pytest.raises(LeaseLostError):
        jobs.beat(lease, Progress("encode"))
    assert not jobs.beat(new, Progress("encode"))


def test_a_job_whose_worker_is_known_to_be_gone_is_given_up_at_once(jobs, lease):
    assert jobs.give_up(["other"], "its worker was killed") == []

    assert jobs.give_up([lease.job_id], "its worker was killed") == [lease.job_id]

    assert jobs.job(lease.job_id).error == "its worker was killed in stage start"
    assert jobs.give_up([lease.job_id], "again") == []


def test_a_waiting_job_is_cancelled_at_once(jobs):
    asked = jobs.request("rebuild", by="ann", parameters={})

    assert jobs.cancel(asked.id).state == "cancelled"
    assert jobs.take("rebuild", owner="worker", seconds=30) is None


def test_a_running_job_is_told_to_stop(jobs, lease):
    cancelled = jobs.cancel(lease.job_id)

    assert (cancelled.state, cancelled.cancel_requested) == ("running", True)
    assert jobs.beat(lease, Progress("encode"))
    jobs.fail(lease, "cancelled", state="cancelled")
    with pytest.raises(JobError, match="over: cancelled"):
        jobs.cancel(lease.job_id)


def test_an_unknown_job_is_not_repeated(jobs):
    for ask in (jobs.job, jobs.cancel):
        with pytest.raises(UnknownIdError, match="no such job"):
            ask("what was asked")


def test_jobs_are_listed_newest_first_and_say_how_long_they_wait(jobs):
    first = jobs.request("rebuild", by="ann", parameters={})
    jobs.cancel(first.id)
    assert jobs.waiting_since("rebuild") is None
    second = jobs.request("rebuild", by="ann", parameters={})
    time.sleep(0.05)

    assert [job.id for job in jobs.jobs()] == [second.id, first.id]
    assert 0.05 <= jobs.waiting_since("rebuild") < 30


def test_a_request_that_is_sent_again_finds_the_job_that_it_made(store_url, jobs):
    asked = jobs.request("rebuild", by="ann", parameters={"recipe": "flat"}, key="k1")
    restarted = open_engine(store_url)
    again = Jobs(restarted).request("rebuild", by="ann", parameters={"recipe": "flat"}, key="k1")
    restarted.dispose()
    jobs.fail(jobs.take("rebuild", owner="worker", seconds=30), "for a reason")
    later = jobs.request("rebuild", by="ann", parameters={"recipe": "flat"}, key="k1")

    assert (again, later.id, later.state) == (asked, asked.id, "failed")
    assert len(jobs.jobs()) == 1


def test_a_key_names_a_request_of_its_sender_only(jobs):
    asked = jobs.request("rebuild", by="ann", parameters={}, key="k1")
    for by, key in (("bob", "k1"), ("ann", "k2"), ("ann", None)):
        with pytest.raises(JobError) as caught:
            jobs.request("rebuild", by=by, parameters={}, key=key)
        assert caught.value.job == asked.id
    jobs.cancel(asked.id)

    others = []
    for by, key in (("bob", "k1"), ("ann", "k2"), ("ann", None), ("ann", None)):
        others.append(jobs.request("rebuild", by=by, parameters={}, key=key).id)
        jobs.cancel(others[-1])
    assert len({asked.id, *others}) == 5


@pytest.mark.parametrize("over", [False, True])
def test_a_key_with_other_parameters_is_refused_whatever_became_of_the_job(over, jobs):
    asked = jobs.request("rebuild", by="ann", parameters={"recipe": "flat"}, key="k1")
    if over:
        jobs.cancel(asked.id)

    with pytest.raises(KeyReusedError):
        jobs.request("rebuild", by="ann", parameters={"recipe": "hnsw"}, key="k1")


def test_the_same_request_many_times_at_once_makes_one_job(store_url):
    made = []
    start = threading.Barrier(8)

    def ask() -> None:
        engine = open_engine(store_url)
        start.wait()
        made.append(Jobs(engine).request("rebuild", by="ann", parameters={}, key="k1").id)
        engine.dispose()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(made), len(set(made))) == (8, 1)
