"""Long tasks in the store: asked for by anyone, run one at a time by whoever takes the lease."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import uuid4

from sqlalchemy import Connection, Engine, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from medlink.errors import JobError, KeyReusedError, LeaseLostError, UnknownIdError
from medlink.kb import orm
from medlink.kb.builds import activate, register
from medlink.kb.database import reading, writing

Kind = Literal["rebuild"]
State = Literal["queued", "running", "done", "failed", "cancelled"]

_ACTIVE = ("queued", "running")


@dataclass(frozen=True, slots=True)
class Job:
    """A long task as the store has it; `done` of `total` counts within the stage, 0 where it is not known."""

    id: str
    kind: str
    state: State
    stage: str
    progress: float
    done: int
    total: int
    rate: float | None
    eta_seconds: float | None
    counts: Mapping[str, Any]
    parameters: Mapping[str, Any]
    requested_by: str
    cancel_requested: bool
    build_id: str | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    heartbeat_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run a job until it is not renewed in time; the token is greater than that of any holder before."""

    job_id: str
    token: int
    seconds: float
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is: in all (0 to 1), and within its stage."""

    stage: str
    progress: float = 0.0
    done: int = 0
    total: int = 0
    rate: float | None = None
    eta_seconds: float | None = None


_FIELDS = [f.name for f in fields(Job)]


class Jobs:
    """The jobs of the store. Of a kind at most one is queued or running, which the store itself makes sure of."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def request(self, kind: Kind, *, by: str, parameters: Mapping[str, Any], key: str | None = None) -> Job:
        """Ask for a job and return it, queued; or, as it is by now, the one that this request made before.

        Args:
            kind: What is to be done.
            by: Who asks.
            parameters: How it is to be done.
            key: Names the request among those of who asks, so that it may be sent again.

        Raises:
            JobError: One of the kind is queued or running; the error names it.
            KeyReusedError: The key named a request with other parameters.
        """
        self.fail_abandoned()
        if made := self._made_by(kind, by, key, parameters):
            return made
        job_id = uuid4().hex
        new = {"id": job_id, "kind": kind, "state": "queued", "requested_by": by, "idempotency_key": key}
        try:
            with writing(self._engine) as connection:
                values = {**new, "parameters": dict(parameters), "counts": {}, "created_at": _now(connection)}
                connection.execute(insert(orm.Job).values(values))
        except IntegrityError:
            # The same request may have come twice at once.
            if made := self._made_by(kind, by, key, parameters):
                return made
            running = self._active(kind)
            raise JobError(
                f"a {kind} is queued or running; wait for it or cancel it", job=running.id if running else None
            ) from None
        return self.job(job_id)

    def take(self, kind: Kind, *, owner: str, seconds: float) -> Lease | None:
        """Take the lease of the job that waits; None if there is none.

        Args:
            kind: What is to be done.
            owner: Who does it, for people.
            seconds: How long the lease holds unless it is renewed.
        """
        job = orm.Job
        with writing(self._engine) as connection:
            now = _now(connection)
            values = {
                "state": "running",
                "stage": "start",
                "started_at": now,
                "heartbeat_at": now,
                "lease_owner": owner,
                "lease_until": now + timedelta(seconds=seconds),
                "fencing_token": job.fencing_token + 1,
            }
            waiting = update(job).where(job.kind == kind, job.state == "queued").values(values)
            taken = connection.execute(waiting.returning(job.id, job.fencing_token, job.parameters)).first()
        return Lease(taken.id, taken.fencing_token, seconds, taken.parameters) if taken else None

    def beat(self, lease: Lease, progress: Progress) -> bool:
        """Renew a lease, note how far the job is, and return whether it is to be cancelled.

        Raises:
            LeaseLostError: The lease ran out and the job was given up: nothing that was made may be published.
        """
        with writing(self._engine) as connection:
            now = _now(connection)
            until = {"heartbeat_at": now, "lease_until": now + timedelta(seconds=lease.seconds)}
            how_far = {name: getattr(progress, name) for name in (f.name for f in fields(Progress))}
            row = _update_held(connection, lease, {**until, **how_far})
        return bool(row.cancel_requested)

    def complete(
        self, lease: Lease, build_id: str, manifest: Mapping[str, Any], *, active: bool, counts: Mapping[str, Any]
    ) -> None:
        """Register the build that a job made, let it answer if it is to, and end the job, all or nothing.

        Raises:
            LeaseLostError: The lease ran out and the job was given up.
        """
        with writing(self._engine) as connection:
            values = {"stage": "", "progress": 1.0, "eta_seconds": None, "build_id": build_id, "counts": dict(counts)}
            # First of all: the row's lock makes whoever would give the job up wait.
            _update_held(connection, lease, {**_end(connection, "done"), **values})
            register(connection, build_id, manifest)
            if active:
                activate(connection, build_id)

    def fail(self, lease: Lease, reason: str, *, state: Literal["failed", "cancelled"] = "failed") -> None:
        """End a job without result; the reason must not hold the text of a mention.

        Raises:
            LeaseLostError: The lease ran out and the job was given up.
        """
        with writing(self._engine) as connection:
            _update_held(connection, lease, {**_end(connection, state), "error": reason})

    def fail_abandoned(self) -> list[str]:
        """Give up jobs whose lease ran out, because their holder is gone or cannot be reached; return their ids."""
        job = orm.Job
        with reading(self._engine) as connection:
            late = select(job.id).where(job.state == "running", job.lease_until < _now(connection))
            if connection.scalars(late).first() is None:
                # Every service looks every few seconds: it must not wait for a lock, or need the right to write.
                return []
        with writing(self._engine) as connection:
            now = _now(connection)
            values = {**_end(connection, "failed"), "error": "nothing was heard of its worker in stage " + job.stage}
            lost = update(job).where(job.state == "running", job.lease_until < now).values(values)
            return list(connection.scalars(lost.returning(job.id)))

    def give_up(self, job_ids: Sequence[str], reason: str) -> list[str]:
        """Give up running jobs whose worker is known to be gone, before their leases run out; return which were."""
        job = orm.Job
        if not job_ids:
            return []
        with writing(self._engine) as connection:
            values = {**_end(connection, "failed"), "error": f"{reason} in stage " + job.stage}
            lost = update(job).where(job.state == "running", job.id.in_(job_ids)).values(values)
            return list(connection.scalars(lost.returning(job.id)))

    def cancel(self, job_id: str) -> Job:
        """Cancel a job: at once if it waits, otherwise its worker is told to stop.

        Raises:
            UnknownIdError: No such job.
            JobError: It is over.
        """
        job = orm.Job
        self.fail_abandoned()
        with writing(self._engine) as connection:
            waiting = update(job).where(job.id == job_id, job.state == "queued")
            ended = connection.execute(
                waiting.values({**_end(connection, "cancelled"), "error": "cancelled before it began"})
            )
            running = update(job).where(job.id == job_id, job.state == "running").values(cancel_requested=True)
            changed = ended.rowcount or connection.execute(running).rowcount
        found = self.job(job_id)
        if not changed:
            raise JobError(f"the job is over: {found.state}", job=job_id)
        return found

    def job(self, job_id: str) -> Job:
        """Return one job.

        Raises:
            UnknownIdError: No such job.
        """
        with reading(self._engine) as connection:
            row = connection.execute(_select().where(orm.Job.id == job_id)).first()
        if row is None:
            raise UnknownIdError("job")
        return Job(*row)

    def jobs(self, limit: int = 100) -> list[Job]:
        """Return the latest jobs, the newest first."""
        with reading(self._engine) as connection:
            newest = _select().order_by(orm.Job.created_at.desc(), orm.Job.id).limit(limit)
            return [Job(*row) for row in connection.execute(newest)]

    def waiting_since(self, kind: Kind) -> float | None:
        """Return for how many seconds a job has been waiting to be taken; None if none is."""
        job = orm.Job
        with reading(self._engine) as connection:
            since = connection.scalar(select(job.created_at).where(job.kind == kind, job.state == "queued"))
            return None if since is None else max(0.0, (_now(connection) - since).total_seconds())

    def _made_by(self, kind: Kind, by: str, key: str | None, parameters: Mapping[str, Any]) -> Job | None:
        if key is None:
            return None
        job = orm.Job
        with reading(self._engine) as connection:
            same = _select().where(job.kind == kind, job.requested_by == by, job.idempotency_key == key)
            row = connection.execute(same).first()
        made = Job(*row) if row else None
        if made and made.parameters != parameters:
            raise KeyReusedError("this idempotency key came with other parameters before; take a new one")
        return made

    def _active(self, kind: Kind) -> Job | None:
        with reading(self._engine) as connection:
            row = connection.execute(_select().where(orm.Job.kind == kind, orm.Job.state.in_(_ACTIVE))).first()
        return Job(*row) if row else None


def _select() -> Any:  # noqa: ANN401  # SQLAlchemy's type names every column
    return select(*(getattr(orm.Job, name) for name in _FIELDS))


def _now(connection: Connection) -> datetime:
    """Return the time by one clock for all workers: the server's, or that of the one machine with a file."""
    if connection.dialect.name == "postgresql":
        now = connection.scalar(select(func.clock_timestamp()))
        if isinstance(now, datetime):
            return now.astimezone(UTC)
    return datetime.now(UTC)


def _end(connection: Connection, state: State) -> dict[str, Any]:
    return {"state": state, "finished_at": _now(connection), "lease_until": None, "lease_owner": None}


def _update_held(connection: Connection, lease: Lease, values: Mapping[str, Any]) -> Any:  # noqa: ANN401  # a row
    job = orm.Job
    held = update(job).where(job.id == lease.job_id, job.fencing_token == lease.token, job.state == "running")
    row = connection.execute(held.values(dict(values)).returning(job.cancel_requested)).first()
    if row is None:
        raise LeaseLostError("the lease ran out and the job was given up; nothing of it is kept")
    return row
