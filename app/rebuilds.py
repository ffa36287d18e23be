"""Starts workers for rebuilds from the service, and finds those that died."""

import asyncio
import os
import random
import subprocess
import sys
import threading
import time

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.serving import ActiveBuilds
from app.settings import Settings
from app.threads import to_its_end
from app.worker import recover
from index.store import BuildStore
from medlink.errors import StoreError
from medlink.kb.database import may_write
from medlink.kb.jobs import Jobs

# Whoever took the request starts a worker at once; the others step in if that process died before it could.
_PATIENCE = 15.0
_WORKER = (sys.executable, "-m", "medlink.cli", "index", "worker", "--once")
_log = structlog.get_logger()


class Rebuilds:
    """The worker of this process, of which there is one at most; who gets the job is up to the store.

    The worker outlives this process: a service that restarts does not cost the rebuild.
    """

    def __init__(self, settings: Settings, builds: ActiveBuilds) -> None:
        self._settings = settings
        self._builds = builds
        self._worker: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()
        self._started_at = float("-inf")
        # Processes of one service must not all step in at once.
        self._patience = _PATIENCE * (1 + random.random())

    def start(self) -> None:
        """Start a worker, unless one runs or workers run elsewhere."""
        with self._starting:
            if not self._settings.rebuild_in_service or (self._worker and self._worker.poll() is None):
                return
            environment = {**os.environ, **self._settings.environment()}
            self._started_at = time.monotonic()
            self._worker = subprocess.Popen(_WORKER, env=environment, stdin=subprocess.DEVNULL)
            _log.info("worker_started", process=self._worker.pid)

    @property
    def is_idle(self) -> bool:
        """Whether no worker of this process runs."""
        with self._starting:
            return self._worker is None or self._worker.poll() is not None

    async def watch(self) -> None:
        """Find dead workers and waiting jobs again and again; runs until it is cancelled."""
        while True:
            try:
                await to_its_end(self.look)
            except Exception as error:  # noqa: BLE001  # a service that no longer looks would serve on and not say so
                _log.error("looking_after_jobs_failed", kind=type(error).__name__)
            await asyncio.sleep(self._settings.build_poll_seconds)

    def look(self) -> None:
        """Give up jobs whose workers died, and start a worker for one that waits for too long."""
        is_idle = self.is_idle  # asking also lets the system forget a worker that has ended
        try:
            engine = self._builds.store()
            if not may_write(engine):  # then workers do so that may
                return
            recover(engine, BuildStore(self._settings.builds_dir))
            waiting = Jobs(engine).waiting_since("rebuild")
        except (StoreError, SQLAlchemyError):  # following the active build has logged it
            return
        # A worker that cannot even begin is not to be started all the time.
        if is_idle and waiting is not None and min(waiting, time.monotonic() - self._started_at) > self._patience:
            self.start()
