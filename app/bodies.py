"""Request bodies on their way in: never more of them than the limit, compressed or not, and no waiting for ever."""

import asyncio

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.compression import BrokenGzipError, Gunzip

STREAMED_PATH = "/link/bulk"
NDJSON = "application/x-ndjson"
_NDJSON_TYPES = frozenset({NDJSON, "application/ndjson", "application/jsonl", "application/x-jsonlines"})


def media_type(headers: Headers) -> str:
    """Return the content type of a request without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def is_ndjson(headers: Headers) -> bool:
    """Say whether a body is one JSON value a line."""
    return media_type(headers) in _NDJSON_TYPES


def content_encoding(headers: Headers) -> str:
    """Return how a body is compressed: `identity`, `gzip` or what is not read.

    Raises:
        HTTPException: 415, it is in another way.
    """
    encoding = headers.get("content-encoding", "identity").strip().lower() or "identity"
    if encoding not in ("identity", "gzip"):
        raise HTTPException(415, "send the body plain or with content encoding gzip")
    return encoding


class BoundedBody:
    """Stops reading a request body that grows over the limit, announced or not, and decompresses it up to there.

    A stream of lines passes: what reads it holds a line at a time.
    """

    def __init__(self, app: ASGIApp, max_body_bytes: int, idle_seconds: float) -> None:
        self._app = app
        self._limit = max_body_bytes
        self._idle_seconds = idle_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with a `receive` that refuses."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if is_ndjson(headers) and scope["path"] == scope.get("root_path", "") + STREAMED_PATH:
            await self._app(scope, receive, send)
            return
        await self._app(scope, _Bounded(headers, receive, self._limit, self._idle_seconds).receive, send)


class _Bounded:
    """A `receive` that counts and decompresses."""

    def __init__(self, headers: Headers, receive: Receive, limit: int, idle_seconds: float) -> None:
        self._headers = headers
        self._receive = receive
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._complete = False
        self._arrived = 0
        self._passed = 0
        self._gunzip: Gunzip | None = None

    async def receive(self) -> Message:
        """Return the next message.

        Raises:
            HTTPException: The body is too large, stays out, is not gzip though called so, or compressed in another way.
        """
        if self._complete:
            # What is still to come is that the client goes.
            return await self._receive()
        if content_encoding(self._headers) == "gzip" and self._gunzip is None:
            self._gunzip = Gunzip()
        announced = self._headers.get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > self._limit:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._idle_seconds):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, f"nothing came for body_idle_seconds = {self._idle_seconds:g}") from None
        if message["type"] != "http.request":
            return message
        self._complete = not message.get("more_body", False)
        body = message.get("body", b"")
        self._arrived += len(body)
        if self._arrived > self._limit:
            raise self._too_large()
        if self._gunzip is None:
            return message
        return {**message, "body": self._decompressed(self._gunzip, body, last=self._complete)}

    def _decompressed(self, gunzip: Gunzip, body: bytes, *, last: bool) -> bytes:
        gunzip.feed(body)
        pieces = []
        try:
            while piece := gunzip.take(self._limit + 1 - self._passed):
                self._passed += len(piece)
                if self._passed > self._limit:
                    raise self._too_large()
                pieces.append(piece)
            if last:
                gunzip.finish()
        except BrokenGzipError as error:
            raise HTTPException(400, str(error)) from None
        return b"".join(pieces)

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the body is larger than max_body_bytes = {self._limit}")
