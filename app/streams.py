"""`POST /link/bulk` with NDJSON: lines in, lines out, and never more of them in memory than are being linked."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.answering import Answering, Batch
from app.answers import ItemErrorOut, StreamErrorOut, StreamHeadOut
from app.bodies import NDJSON, content_encoding
from app.compression import Gzip, accepts_gzip
from app.errors import code_of
from app.facts import IndexOut
from app.incoming import ClientGoneError, Incoming
from app.lines import BrokenBodyError, Lines
from app.linking import Linking
from app.mentions import check_line
from app.settings import Settings
from medlink.errors import MedlinkError, NotServingError

# Lines that were answered before, or are wrong, cost no linking; so many more may go along.
_LINES_PER_LINKED = 5
_PIECE = 65_536
# What is wrong with the beginning of a body is said by the status, if it comes soon.
_FIRST_SECONDS = 0.5
_log = structlog.get_logger()


class BulkStream(Response):
    """A response that reads its request while it is sent: a header, then a line for each item, in order.

    If the stream cannot go on, its last line has an `error` and no `item`.
    """

    media_type = NDJSON

    def __init__(
        self, request: Request, *, answering: Answering, index: IndexOut, linking: Linking, settings: Settings
    ) -> None:
        super().__init__(headers={"Vary": "Accept-Encoding", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._incoming = Incoming(request.receive)
        self._answering = answering
        self._index = index
        self._linking = linking
        self._settings = settings
        self._gzip = Gzip() if accepts_gzip(request.headers) else None
        if self._gzip:
            self.headers["Content-Encoding"] = "gzip"
        self._lines = Lines(
            self._incoming,
            gzipped=content_encoding(request.headers) == "gzip",
            max_line=settings.max_line_bytes,
            max_between=settings.max_body_bytes,
            idle_seconds=settings.stream_idle_seconds,
        )
        self._answered = 0

    async def begin(self) -> None:
        """Look at the beginning of the body, if it comes soon: what is wrong with it is said by the status.

        Raises:
            HTTPException: 400, it is not gzip though called so.
            LimitError: It has no line as far as one may be.
            ClientGoneError: The client has gone.
        """
        try:
            # Asking for the body before the answer starts also makes the server say that the client may go on.
            if await self._incoming.arrives(_FIRST_SECONDS):
                await self._lines.begin()
        except BaseException as error:
            await self._incoming.close()
            if isinstance(error, BrokenBodyError):
                raise HTTPException(400, str(error)) from None
            raise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; what `receive` has is read by the stream itself."""
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async with aclosing(self._pieces()) as pieces:
                async for piece in pieces:
                    async with asyncio.timeout(self._settings.stream_idle_seconds):
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": self._gzip.end() if self._gzip else b""})
        except ClientGoneError:
            return
        except TimeoutError:
            # Without its end the client knows that lines are missing.
            _log.warning("stream_stalled", answered=self._answered)
        finally:
            await self._incoming.close()

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the lines of the answer in pieces, compressed if the client reads that."""
        yield await self._packed(_line(StreamHeadOut(index=self._index)))
        try:
            while batch := await self._next_batch():
                await self._incoming.unless_gone(self._linking.answer_in_turn(self._answering, batch))
                for piece in _joined(batch.lines(self._answered)):
                    yield await self._packed(piece)
                self._answered += len(batch)
        except (MedlinkError, BrokenBodyError) as error:
            yield await self._packed(self._last_line(error))

    async def _next_batch(self) -> Batch:
        """Return the items that are at hand, at least one unless the body is at its end."""
        if self._linking.drained:
            raise NotServingError("the service is stopping; send the lines that have no answer again")
        batch = self._answering.batch()
        while room := self._room(batch):
            lines = await self._lines.read(room, wait=not batch)
            if not lines:
                break
            await asyncio.to_thread(self._add, batch, lines)
        return batch

    def _room(self, batch: Batch) -> int:
        linked = self._linking.together - len(batch.unanswered)
        return max(0, min(linked, _LINES_PER_LINKED * self._linking.together - len(batch)))

    def _add(self, batch: Batch, lines: Sequence[bytes | None]) -> None:
        first = self._answered + len(batch)
        batch.add([check_line(line, item, self._settings) for item, line in enumerate(lines, start=first)])

    def _last_line(self, error: MedlinkError | BrokenBodyError) -> bytes:
        code = code_of(error) if isinstance(error, MedlinkError) else "malformed_body"
        return _line(StreamErrorOut(error=ItemErrorOut(code=code, detail=str(error)), answered=self._answered))

    async def _packed(self, content: bytes) -> bytes:
        return await asyncio.to_thread(self._gzip.piece, content) if self._gzip else content


def _joined(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines, each ended, some together."""
    held = bytearray()
    for line in lines:
        held += line
        held += b"\n"
        if len(held) >= _PIECE:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def _line(out: StreamHeadOut | StreamErrorOut) -> bytes:
    return out.model_dump_json(exclude_unset=True).encode() + b"\n"
