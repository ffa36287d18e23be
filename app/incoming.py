"""What a client still sends while it is answered: the rest of its body, or that it has gone."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Message, Receive

T = TypeVar("T")


class ClientGoneError(Exception):
    """Nobody waits for the answer any more."""


class Incoming:
    """Reads the messages of a request, one ahead at most, which is how a client that has gone is noticed.

    Close it in the end.
    """

    def __init__(self, receive: Receive, *, complete: bool = False) -> None:
        """`complete` says that the body was read before."""
        self._receive = receive
        self._pending: asyncio.Task[Message] | None = None
        self._complete = complete

    async def close(self) -> None:
        """Ask for no more; nothing of it may outlive the request."""
        if self._pending is not None:
            self._pending.cancel()
            await asyncio.wait({self._pending})

    @property
    def complete(self) -> bool:
        """Whether all of the body was read."""
        return self._complete

    async def arrives(self, seconds: float) -> bool:
        """Wait until there is something to `read`, so long at most, and say whether there is."""
        done, _ = await asyncio.wait({self._ask()}, timeout=seconds)
        return bool(done)

    async def read(self) -> bytes:
        """Return the next part of the body, which may be empty.

        Raises:
            ClientGoneError: There is none, and nobody to send it.
        """
        message = await asyncio.shield(self._ask())
        self._pending = None
        if message["type"] != "http.request":
            raise ClientGoneError
        self._complete = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body

    async def unless_gone(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what the work gives; stop it when the client goes.

        Raises:
            ClientGoneError: The client has gone.
        """
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, self._ask()}, return_when=asyncio.FIRST_COMPLETED)
            # A part of the body may have come instead; it waits for `read`.
            if not task.done() and not self._gone():
                await asyncio.wait({task})
            if task.done():
                return task.result()
            raise ClientGoneError
        finally:
            task.cancel()

    def _gone(self) -> bool:
        pending = self._pending
        if pending is None or not pending.done() or pending.cancelled() or pending.exception():
            return False
        message_type: str = pending.result()["type"]
        return message_type == "http.disconnect"

    def _ask(self) -> asyncio.Task[Message]:
        if self._pending is None:
            self._pending = asyncio.ensure_future(self._next())
        return self._pending

    async def _next(self) -> Message:
        return await self._receive()
