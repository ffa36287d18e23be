"""Runs the service so that it leaves in order: says that it is not ready, finishes what it has, and ends."""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from app.settings import Settings
from app.supervisor import BACKLOG

# Streams are told to end before the connections are cut.
_AFTER_STREAMS = 5
_BEAT = 0.5
# A supervisor that got the same signal has spoken by then.
_HEARSAY = 0.3


class DrainingServer(uvicorn.Server):
    """A uvicorn server that takes connections for a moment longer when it is told to stop, to refuse what they ask.

    Args:
        app: The service.
        settings: Its settings.
        beat: Is called from the event loop again and again as long as the service is sound, and told whether it serves;
            given where other processes serve on the same sockets.
    """

    def __init__(self, app: FastAPI, settings: Settings, *, beat: Callable[[bool], None] | None = None) -> None:
        # Its own logging would show paths and, after an error, values.
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            timeout_graceful_shutdown=round(settings.drain_seconds) + _AFTER_STREAMS,
            log_config=None,
            access_log=False,
            # Whoever wakes first must not take every connection that waits: asyncio takes so many, uvloop all.
            **({"loop": "asyncio", "backlog": 1} if beat else {"backlog": BACKLOG}),
        )
        super().__init__(config)
        self._linking = app.state.linking
        self._notice = settings.drain_notice_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._beat = beat
        self._beating: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        self._loop = asyncio.get_running_loop()
        if self._beat:
            self._beating = asyncio.create_task(self._keep_beating(self._beat))
        await super().startup(sockets)
        for one in sockets or ():
            # The kernel may well hold more than are taken at once.
            one.listen(BACKLOG)
        if self._beat:
            self._beat(self.started)

    async def _keep_beating(self, beat: Callable[[bool], None]) -> None:
        while True:
            # Before it serves, and at the end of draining, nothing links.
            if self._linking.queue.alive or self._linking.draining or not self.started:
                beat(self.started)
            await asyncio.sleep(_BEAT)

    def leave(self) -> None:
        """Drain as at a first signal, called from any thread; one that drains already goes on with it."""
        if self._loop is None:
            super().handle_exit(signal.SIGTERM, None)
        elif not self._linking.draining:
            self._loop.call_soon_threadsafe(self._leave, signal.SIGTERM, None)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, and stop without waiting at the second.

        Where others serve on, only finish: they take the connections that this process no longer takes.
        """
        if self._loop is not None and self._beat:
            self._loop.call_soon_threadsafe(self._loop.call_later, _HEARSAY, self._step_aside, sig, frame)
            return
        if self._loop is None or self._linking.draining:
            super().handle_exit(sig, frame)
            self.force_exit = self._linking.draining
            return
        self._loop.call_soon_threadsafe(self._leave, sig, frame)

    def _step_aside(self, sig: int, frame: FrameType | None) -> None:
        if not self._linking.draining:
            super().handle_exit(sig, frame)

    def _leave(self, sig: int, frame: FrameType | None) -> None:
        self._linking.drain()
        asyncio.get_running_loop().call_later(self._notice, super().handle_exit, sig, frame)


def run(app: FastAPI, settings: Settings) -> None:
    """Serve until a signal says to stop."""
    serve(DrainingServer(app, settings))


def serve(server: DrainingServer, sockets: list[socket.socket] | None = None) -> None:
    """Have a server run until it is told to stop, and end the process as it was told.

    Args:
        server: What runs.
        sockets: Listen already; the server opens its own if left out.
    """
    try:
        server.run(sockets)
    except KeyboardInterrupt:
        # The signal is raised again when all is finished, so that the exit status tells of it.
        sys.exit(130)
    if not server.started:
        sys.exit(3)
