"""The client for asyncio: the same calls as the one for threads, sent and awaited."""

import asyncio
import random
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, TypeVar

import httpx

from medlink.client.answers import MentionJson, ReplyJson, ResultJson
from medlink.client.calls import Ask, Call, Calls
from medlink.client.windows import Windows

T = TypeVar("T")
Mentions = Iterable[str | MentionJson] | AsyncIterable[str | MentionJson]


class AsyncClient:
    """Talks to one service; use it as an async context manager, or close it.

    Args:
        url: Address of the service, e.g. `http://127.0.0.1:8000`.
        key: An API key, where the service asks for one.
        timeout: Seconds to wait for one reply.
        retries: How often a request is sent again when the service answers 503, restarts or breaks off.
        transport: Sends the requests; the network by default.
        sleep: Waits between tries.
        spread: Draws from 0 to 1 how much longer than need be a wait is, so that clients do not come back together.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 150.0,
        retries: int = 5,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        spread: Callable[[], float] = random.random,
    ) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.AsyncClient(base_url=url, timeout=timeout, transport=transport, headers=headers)
        self._calls = Calls(url, retries=retries, spread=spread)
        self._sleep = sleep

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def info(self) -> dict[str, Any]:
        """Return what the service says about itself: provenance and limits; asked once."""
        return await self._run(self._calls.info())

    async def link(self, mentions: Sequence[str | MentionJson], **options: object) -> ReplyJson:
        """Link mentions of any number; options are the fields of `POST /link`, such as `top_k`.

        Raises:
            ServiceError: The service refused, could not be reached, stayed busy, or changed its index meanwhile.
        """
        return await self._run(self._calls.link("/link", "max_mentions", mentions, options))

    async def link_bulk(self, mentions: Sequence[str | MentionJson], **options: object) -> ReplyJson:
        """Link like `link`, except that a mention that cannot be linked carries an error in its place.

        Raises:
            ServiceError: As for `link`.
        """
        return await self._run(self._calls.link("/link/bulk", "max_bulk_mentions", mentions, options))

    async def stream_bulk(
        self, mentions: Mentions, *, same_index: bool = True, **options: object
    ) -> AsyncIterator[ResultJson]:
        """Link mentions as they come and yield the results in order, in flat memory however many there are.

        They are sent some hundreds at a time, so a result may wait for mentions that come after its own.

        Args:
            mentions: Any iterable, async or not.
            same_index: Whether to stop when the service changes its index meanwhile; else the results that follow are
                from the new one.
            options: Fields of `POST /link`, such as `top_k`.

        Raises:
            ServiceError: As for `link`.
        """
        windows = Windows(self._calls, options, same_index=same_index)
        async for mention in _each(mentions):
            if windows.add(mention):
                for result in await self._run(windows.send()):
                    yield result
        for result in await self._run(windows.send()):
            yield result

    async def concept(self, id_: str) -> dict[str, Any] | None:
        """Return a concept by its id, CURIE or code, or None if the service knows no such concept.

        Raises:
            ServiceError: The service refused, could not be reached or stayed busy.
        """
        return await self._run(self._calls.concept(id_))

    async def _run(self, call: Call[T]) -> T:
        try:
            ask = next(call)
            while True:
                try:
                    reply = await self._send(ask)
                except httpx.TransportError as error:
                    ask = call.throw(error)
                else:
                    ask = call.send(reply)
        except StopIteration as end:
            answer: T = end.value
            return answer

    async def _send(self, ask: Ask) -> httpx.Response:
        if ask.wait:
            await self._sleep(ask.wait)
        return await self._http.request(
            ask.method, ask.path, content=ask.content, headers=ask.headers, params=list(ask.params)
        )


async def _each(mentions: Mentions) -> AsyncIterator[str | MentionJson]:
    if isinstance(mentions, AsyncIterable):
        async for mention in mentions:
            yield mention
    else:
        for mention in mentions:
            yield mention
