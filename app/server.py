"""Runs the service so that it leaves in order: says that it is not ready, finishes what it has, and ends."""

import asyncio
import socket
import sys
from types import FrameType

import uvicorn
from fastapi import FastAPI

from app.settings import Settings

# Streams are told to end before the connections are cut.
_AFTER_STREAMS = 5


class DrainingServer(uvicorn.Server):
    """A uvicorn server that takes connections for a moment longer when it is told to stop, to refuse what they ask."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        # Its own logging would show paths and, after an error, values.
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            timeout_graceful_shutdown=round(settings.drain_seconds) + _AFTER_STREAMS,
            log_config=None,
            access_log=False,
        )
        super().__init__(config)
        self._linking = app.state.linking
        self._notice = settings.drain_notice_seconds
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, and stop without waiting at the second."""
        if self._loop is None or self._linking.draining:
            super().handle_exit(sig, frame)
            self.force_exit = self._linking.draining
            return
        self._loop.call_soon_threadsafe(self._leave, sig, frame)

    def _leave(self, sig: int, frame: FrameType | None) -> None:
        self._linking.drain()
        asyncio.get_running_loop().call_later(self._notice, super().handle_exit, sig, frame)


def run(app: FastAPI, settings: Settings) -> None:
    """Serve until a signal says to stop."""
    server = DrainingServer(app, settings)
    try:
        server.run()
    except KeyboardInterrupt:
        # The signal is raised again when all is finished, so that the exit status tells of it.
        sys.exit(130)
    if not server.started:
        sys.exit(3)
