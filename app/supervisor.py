"""Runs several processes of the service on one socket, and puts another in the place of any that is lost."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import structlog

from app import logs
from app.settings import Settings

_WORKER = (sys.executable, "-m", "app.serving_process")
BACKLOG = 2048
"""Connections that the kernel holds until they are accepted."""
_METRICS = "PROMETHEUS_MULTIPROC_DIR"
# Seconds: imports take their time on a busy machine.
_LONGEST_START = 120.0
# A worker that lived for so long had nothing against starting.
_SETTLED = 10.0
# From closing its channel to its end.
_LAST_BREATH = 5.0
_FIRST_WAIT = 1.0
_LONGEST_WAIT = 60.0
_DID_NOT_START = 3
STARTING, SERVING = b"-", b"+"
"""What a worker says again and again."""
_log = structlog.get_logger()


def supervise(settings: Settings) -> None:
    """Serve with several workers until a signal says to stop; the process ends as the signal wants it.

    Raises:
        OSError: The address cannot be listened on.
    """
    logs.configure(settings.log_format, settings.log_level)
    listening = listen(settings.host, settings.port)
    _log.info("listening", host=settings.host, port=settings.port, workers=settings.workers)
    with _shared_metrics() as metrics:
        environment = {**os.environ, **settings.environment(), **metrics}
        supervisor = Supervisor(settings, listening, environment)
        asyncio.run(supervisor.run())
    if supervisor.failed:
        sys.exit(_DID_NOT_START)
    if supervisor.told == signal.SIGINT:
        sys.exit(128 + signal.SIGINT)
    # The exit status tells of it, as that of a single process does.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.raise_signal(signal.SIGTERM)


def listen(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on every address of a host.

    Raises:
        OSError: One of them is taken, or there is none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = dict.fromkeys((family, address[:2]) for family, _, _, _, address in found)
    return [socket.create_server(address, family=family, backlog=BACKLOG) for family, address in addresses]


@contextmanager
def _shared_metrics() -> Iterator[Mapping[str, str]]:
    """Give the variable that has the workers count together; a directory of our own ends with the service."""
    if os.environ.get(_METRICS):
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="medlink-metrics-", ignore_cleanup_errors=True) as directory:
        yield {_METRICS: directory}


@dataclass(eq=False, slots=True)
class Worker:
    """A worker process and the channel to it: it beats as long as it is sound, and is told to leave."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    started: bool = False
    """Whether it has served."""
    begun: float = field(default_factory=time.monotonic)

    @classmethod
    def start(cls, listening: Sequence[socket.socket], environment: Mapping[str, str]) -> "Worker":
        """Start a fresh interpreter: FAISS hangs in a process that was forked from one that used it."""
        ours, its = socket.socketpair()
        ours.setblocking(False)
        passed = [its.fileno(), *(one.fileno() for one in listening)]
        command = [*_WORKER, *map(str, passed)]
        with its:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, pass_fds=passed)
        return cls(process, ours)

    async def lost(self, silence: float) -> str:
        """Return why it is lost once it is: it has ended, or its beat has stopped for so many seconds."""
        loop = asyncio.get_running_loop()
        patience = _LONGEST_START
        while True:
            try:
                async with asyncio.timeout(patience):
                    beat = await loop.sock_recv(self.channel, 64)
            except TimeoutError:
                return "silent"
            except OSError:
                return "ended"
            if not beat:
                return "ended"
            self.started |= SERVING in beat
            patience = silence

    def leave(self) -> None:
        """Tell it to drain; one that drains already goes on with it."""
        with suppress(OSError):
            self.channel.send(b".")

    async def end(self, grace: float) -> int:
        """Return its exit status once it has ended; it is killed after so many seconds."""
        try:
            return await asyncio.to_thread(self.process.wait, grace)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return await asyncio.to_thread(self.process.wait)
        finally:
            self.channel.close()


class Supervisor:
    """Keeps as many workers as the settings say.

    Args:
        settings: How many, and how long one may be silent.
        listening: Sockets that all of them accept connections from.
        environment: Of the workers.
    """

    def __init__(self, settings: Settings, listening: Sequence[socket.socket], environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._listening = listening
        self._environment = environment
        self._workers: set[Worker] = set()
        self._stopping = asyncio.Event()
        self._any_started = False
        self.failed = False
        """Whether a worker could not start although none had before."""
        self.told: int | None = None
        """The first signal that said to stop."""

    async def run(self) -> None:
        """Return when a signal has said to stop and all workers have ended."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._hear, number)
        async with asyncio.TaskGroup() as places:
            for _ in range(self._settings.workers):
                places.create_task(self._keep())

    def _hear(self, number: int) -> None:
        """Let all workers drain at the first signal, and end them without waiting at the second."""
        if self._stopping.is_set():
            for worker in self._workers:
                worker.process.kill()
            return
        self.told = number
        self._stop()

    def _stop(self) -> None:
        self._stopping.set()
        # Else what comes after the workers have stopped listening would wait for nobody.
        for one in self._listening:
            one.close()
        for worker in self._workers:
            worker.leave()

    async def _keep(self) -> None:
        """Have one worker run, and another one whenever it is lost, until the service stops."""
        wait = 0.0
        while not self._stopping.is_set():
            worker = Worker.start(self._listening, self._environment)
            self._workers.add(worker)
            _log.info("serving_worker_started", process=worker.process.pid)
            reason = await worker.lost(self._settings.worker_silence_seconds)
            status = await worker.end(_LAST_BREATH if reason == "ended" else 0.0)
            self._workers.discard(worker)
            self._any_started |= worker.started
            if self._stopping.is_set():
                return
            lived = time.monotonic() - worker.begun
            wait = 0.0 if lived > _SETTLED else min(max(2 * wait, _FIRST_WAIT), _LONGEST_WAIT)
            self._report(worker, reason, status, wait)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), wait)

    def _report(self, worker: Worker, reason: str, status: int, wait: float) -> None:
        """Log the loss of a worker; give up if one ended by itself before the service had ever come up."""
        end = {"status": status} if status >= 0 else {"signal": -status}
        lived = round(time.monotonic() - worker.begun, 1)
        told = {"process": worker.process.pid, "reason": reason, "seconds": lived, **end}
        if status < 0 or self._any_started or any(other.started for other in self._workers):
            _log.error("serving_worker_lost", wait_seconds=wait, **told)
            return
        _log.critical("serving_worker_did_not_start", **told)
        self.failed = True
        self._stop()
