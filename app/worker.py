"""Runs rebuilds that the store asks for, in a process of its own: `medlink index worker`."""

import os
import signal
import socket
import sqlite3
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.old_builds import prune, tidy
from app.progress import Pace
from app.settings import Settings
from index.rebuild import build_from_store, content_of
from index.store import BuildStore
from medlink.errors import LeaseLostError, MedlinkError
from medlink.kb.builds import Builds
from medlink.kb.jobs import Jobs, Lease
from medlink.kb.postgresql import is_away
from medlink.kb.repository import Repository

_BEATS_A_LEASE = 12
_LONGEST_BEAT = 2.0  # seconds, which is also how long a cancelled job goes on
_LONGEST_WAIT = 5.0  # seconds, between two tries to reach the store
_STARTS = 3
_LOCK = "job-"
_OURS = signal.SIGUSR1
_log = structlog.get_logger()


class Stopped(Exception):  # no error: somebody wants it so
    """A job is to end before it is done."""

    def __init__(self, reason: str, *, cancelled: bool = False) -> None:
        super().__init__(reason)
        self.cancelled = cancelled


def recover(engine: Engine, store: BuildStore) -> list[str]:
    """Give up jobs whose worker is gone, remove what it left on disk, and return their ids.

    A worker holds a lock in the store of builds while it is at a job, which the kernel gives up with it. Where that
    cannot be seen, because the worker ran on another machine, its lease runs out.
    """
    jobs = Jobs(engine)
    swept = [name.split(_LOCK)[1].partition("-")[0] for name in store.sweep() if _LOCK in name]
    lost = [*jobs.give_up(swept, "its worker was killed"), *jobs.fail_abandoned()]
    for job_id in lost:
        _log.error("job_given_up", job=job_id)
    return lost


def run_next(settings: Settings, engine: Engine) -> bool:
    """Run the rebuild that waits, if there is one, and say whether there was; must be called from the main thread."""
    store, jobs = BuildStore(settings.builds_dir), Jobs(engine)
    recover(engine, store)
    owner = f"{socket.gethostname()}:{os.getpid()}"
    lease = jobs.take("rebuild", owner=owner, seconds=settings.job_lease_seconds)
    if lease is None:
        return False
    with store.writing(f"{_LOCK}{lease.job_id}"):
        _Run(settings, engine, store, lease).run()
    return True


def tidy_up(settings: Settings, engine: Engine) -> None:
    """Remove superfluous builds, if that is wanted, and find those that nobody told the store of."""
    store = BuildStore(settings.builds_dir)
    try:
        if settings.keep_builds:
            prune(engine, store, settings.keep_builds)
        tidy(engine, store)
    except OSError as error:  # a worker that may not remove what another user made can still build
        _log.error("tidying_up_failed", kind=type(error).__name__)


class _Run:
    """One job from its lease to its end."""

    def __init__(self, settings: Settings, engine: Engine, store: BuildStore, lease: Lease) -> None:
        self._settings = settings
        self._engine = engine
        self._store = store
        self._lease = lease
        self._jobs = Jobs(engine)
        self._pace = Pace()
        self._stop: Stopped | None = None
        self._told_to_stop = 0
        self._may_stop = True
        self._over = threading.Event()
        self._held_until = time.monotonic() + lease.seconds

    def run(self) -> None:
        """Build and tell the store how it went."""
        _log.info("rebuild_started", job=self._lease.job_id)
        started = time.monotonic()
        try:
            with self._stoppable():
                build_id, facts = self._build_through_restarts()
            self._complete(build_id, facts, time.monotonic() - started)
            _log.info("rebuild_done", job=self._lease.job_id, build=build_id)
        except Stopped as stopped:
            self._fail(str(stopped), cancelled=stopped.cancelled)
        except LeaseLostError:
            _log.error("lease_lost", job=self._lease.job_id)
        except Exception as error:  # noqa: BLE001  # whatever it was, the job has to end with a reason
            self._fail(reason_of(error), cancelled=False)
        if self._told_to_stop:
            raise SystemExit(128 + self._told_to_stop)

    def _build_through_restarts(self) -> tuple[str, dict[str, Any]]:
        """Build, and begin anew if the database went away while it was read and is back before the lease ran out."""
        for _ in range(_STARTS - 1):
            try:
                return self._build()
            except SQLAlchemyError as error:
                if not is_away(error):
                    raise
                _log.warning("store_unavailable", kind=type(error).__name__)
            self._try_on(self._beat)
        return self._build()

    def _build(self) -> tuple[str, dict[str, Any]]:
        wanted = self._lease.parameters
        active = Builds(self._engine).active_build()
        return build_from_store(
            content_of(Repository(self._engine)),
            self._store,
            self._settings.encoder,
            reuse=([active.build_id] if active else []) if wanted.get("reuse", True) else None,
            recipe=str(wanted.get("recipe", "auto")),
            threads=self._settings.threads,
            models=self._settings.models,
            progress=self._advance,
        )

    def _advance(self, stage: str, done: int, total: int) -> None:
        self._pace.note(stage, done, total)
        if stage == "publish":
            # Past this point there is a build; a worker that is no longer meant to must not make one.
            self._try_on(self._beat)
            self._may_stop = False
        if self._stop:
            raise self._stop

    def _beat(self) -> None:
        asked = time.monotonic()
        is_cancelled = self._jobs.beat(self._lease, self._pace.progress())
        self._held_until = asked + self._lease.seconds
        if is_cancelled:
            self._stop = Stopped("cancelled", cancelled=True)

    def _beat_on(self) -> None:
        while not self._over.wait(min(self._lease.seconds / _BEATS_A_LEASE, _LONGEST_BEAT)):
            try:
                self._beat()
            except LeaseLostError:
                self._stop = Stopped("its lease ran out")
            except SQLAlchemyError as error:
                # A database that restarts, or SQLite under a long load; the lease outlasts that or is lost.
                _log.warning("heartbeat_failed", kind=type(error).__name__)
            if self._stop:
                signal.pthread_kill(threading.main_thread().ident or 0, _OURS)
                return

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        """Let a cancelled job, a lost lease and SIGTERM end what the main thread is at, as long as nothing is made."""

        def on_signal(number: int, frame: FrameType | None) -> None:
            if number != _OURS:
                self._told_to_stop = number
            self._stop = self._stop or Stopped("its worker was told to stop")
            if self._may_stop:
                self._may_stop = False
                raise self._stop

        before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT, _OURS)}
        beating = threading.Thread(target=self._beat_on, name="heartbeat", daemon=True)
        beating.start()
        try:
            yield
        finally:
            self._may_stop = False
            self._over.set()
            beating.join()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _complete(self, build_id: str, facts: Mapping[str, Any], seconds: float) -> None:
        counts = {**facts["counts"], "reused_vectors": facts["reused_vectors"], "seconds": round(seconds, 1)}
        active = bool(self._lease.parameters.get("activate", True))
        try:
            self._try_on(lambda: self._jobs.complete(self._lease, build_id, facts, active=active, counts=counts))
        except LeaseLostError:
            # The store may have done it and gone away before it could say so.
            job = self._jobs.job(self._lease.job_id)
            if (job.state, job.build_id) != ("done", build_id):
                self._store.discard(build_id)
                raise

    def _fail(self, reason: str, *, cancelled: bool) -> None:
        _log.error("rebuild_ended", job=self._lease.job_id, reason=reason)
        with suppress(LeaseLostError, SQLAlchemyError):  # then the lease runs out
            self._try_on(lambda: self._jobs.fail(self._lease, reason, state="cancelled" if cancelled else "failed"))

    def _try_on(self, act: Callable[[], None]) -> None:
        """Do what needs the store, also if it restarts just now; give up when the lease has run out."""
        pause = 0.1
        while True:
            try:
                return act()
            except (OperationalError, InterfaceError, PoolTimeoutError) as error:
                if time.monotonic() > self._held_until:
                    raise
                _log.warning("store_unavailable", kind=type(error).__name__)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_WAIT)


def reason_of(error: Exception) -> str:
    """Return why a job failed, without the text of a name or a path.

    >>> reason_of(OSError(28, "No space left on device", "/var/secret"))
    'OSError: No space left on device'
    >>> reason_of(ValueError("heart attack"))
    'ValueError'
    """
    kind = type(error).__name__
    if isinstance(error, MedlinkError):
        return str(error)
    if isinstance(error, OSError):
        # NumPy gives no reason when a file ends up shorter than what was written.
        return f"{kind}: {error.strerror or 'a file could not be written whole; is the disk full?'}"
    if isinstance(error, sqlite3.Error):
        return f"{kind}: {error.sqlite_errorname}"
    frames = traceback.extract_tb(error.__traceback__)
    return f"{kind} at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else kind
