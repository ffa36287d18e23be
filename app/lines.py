"""The lines of a request body, read no faster than they are asked for."""

import asyncio
import codecs
from collections import deque

from app.compression import BrokenGzipError, Gunzip
from app.incoming import Incoming
from medlink.errors import LimitError

_PIECE = 65_536
# A client that sends line by line is answered line by line, one that sends faster in larger batches.
_LINGER_SECONDS = 0.02
# What is given out at once, whatever the lines are like.
_TOGETHER_BYTES = 4_000_000


class BrokenBodyError(Exception):
    """The body cannot be read to its end; the text says why."""


class Lines:
    """Cuts a body into lines in bounded memory; blank ones are none.

    Args:
        incoming: The body.
        gzipped: Whether it is compressed.
        max_line: Longest line in bytes, decompressed.
        max_between: Most bytes that may come without a line that is given out, which stops a body that never ends one.
        idle_seconds: Longest time without anything of it.
    """

    def __init__(
        self, incoming: Incoming, *, gzipped: bool, max_line: int, max_between: int, idle_seconds: float
    ) -> None:
        self._incoming = incoming
        self._gunzip = Gunzip() if gzipped else None
        self._max_line = max_line
        self._max_between = max_between
        self._idle_seconds = idle_seconds
        self._lines: deque[bytes | None] = deque()
        self._mark = codecs.BOM_UTF8
        self._begun = bytearray()
        self._begun_bytes = 0
        self._between = 0
        self._ended = False
        self._failure: BrokenBodyError | LimitError | None = None

    async def begin(self) -> None:
        """Read the first piece, once something has arrived, so that a body that is no such thing is found out.

        Raises:
            BrokenBodyError, LimitError, ClientGoneError: As `read` says.
        """
        await self._more_or_fail(wait=True)
        if self._gunzip:
            await self._more_or_fail(wait=False)
        if self._failure and not self._lines:
            raise self._failure

    async def read(self, most: int, *, wait: bool = True) -> list[bytes | None]:
        """Return the next lines, None for one that is too long; none at the end, or if none is at hand.

        Args:
            most: How many.
            wait: Whether to wait for the first.

        Raises:
            BrokenBodyError: The body is not gzip though called so, ends inside it, or stays out.
            LimitError: Too much came without a line.
            ClientGoneError: The client has gone.
        """
        lines: list[bytes | None] = []
        size = 0
        while len(lines) < most and size < _TOGETHER_BYTES:
            if self._lines:
                line = self._lines.popleft()
                size += len(line or b"")
                lines.append(line)
            elif self._ended or not await self._more_or_fail(wait=wait and not lines):
                break
        if self._failure and wait and not lines:
            raise self._failure
        return lines

    async def _more_or_fail(self, *, wait: bool) -> bool:
        """Cut another piece; what is wrong with it is said only when the lines before it are given out."""
        if self._failure:
            return False
        try:
            return await self._more(wait=wait)
        except (BrokenBodyError, LimitError) as error:
            self._failure = error
            return False

    async def _more(self, *, wait: bool) -> bool:
        """Cut another piece of the body; False if there is none at hand."""
        piece = self._unpacked()
        if not piece and self._incoming.complete:
            self._end()
            return True
        if not piece:
            if not await self._incoming.arrives(self._idle_seconds if wait else _LINGER_SECONDS):
                if wait:
                    raise BrokenBodyError(f"nothing came for stream_idle_seconds = {self._idle_seconds:g}")
                return False
            piece = await self._incoming.read()
            if self._gunzip:
                self._gunzip.feed(piece)
                return True
        else:
            # Others get their turn while a large body is taken apart.
            await asyncio.sleep(0)
        self._cut(piece)
        return True

    def _unpacked(self) -> bytes:
        try:
            return self._gunzip.take(_PIECE) if self._gunzip else b""
        except BrokenGzipError as error:
            raise BrokenBodyError(str(error)) from None

    def _cut(self, piece: bytes) -> None:
        first, *others = piece.split(b"\n")
        self._grow(first)
        for other in others:
            self._finish()
            self._grow(other)
        if self._between > self._max_between:
            raise LimitError(f"no line for more than max_body_bytes = {self._max_between}; end lines with a line feed")

    def _grow(self, part: bytes) -> None:
        self._begun_bytes += len(part)
        self._between += len(part) + 1
        if self._begun_bytes <= self._max_line:
            self._begun += part
        else:
            self._begun.clear()

    def _finish(self) -> None:
        too_long = self._begun_bytes > self._max_line
        if self._mark and self._begun.startswith(self._mark):
            del self._begun[: len(self._mark)]
        self._mark = b""
        if too_long or self._begun.strip():
            self._lines.append(None if too_long else bytes(self._begun))
            self._between = 0
        self._begun.clear()
        self._begun_bytes = 0

    def _end(self) -> None:
        try:
            if self._gunzip:
                self._gunzip.finish()
        except BrokenGzipError as error:
            raise BrokenBodyError(str(error)) from None
        self._finish()
        self._ended = True
