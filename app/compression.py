"""Gzip in both directions, a piece at a time, so that a small body cannot become a large one in memory."""

import zlib
from collections.abc import Mapping

_GZIP = zlib.MAX_WBITS | 16
# Answers repeat themselves so much that more effort gains little.
_LEVEL = 3


class BrokenGzipError(ValueError):
    """What came is not gzip, or ends too early."""


class Gunzip:
    """Decompresses what is fed to it, as much at a time as is asked for; gzip files may follow one another."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._compressed = b""
        self._begun = False

    def feed(self, compressed: bytes) -> None:
        """Take more of the compressed stream; call `take` until it returns nothing before the next."""
        self._compressed += compressed

    def take(self, most: int) -> bytes:
        """Return up to `most` decompressed bytes; nothing if more of the stream is needed first.

        Raises:
            BrokenGzipError: The stream is not gzip.
        """
        while self._compressed:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)
            try:
                piece = self._member.decompress(self._compressed, most)
            except zlib.error as error:
                raise BrokenGzipError("the body is not gzip") from error
            self._begun = True
            self._compressed = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if piece:
                return piece
        return self._rest(most)

    def _rest(self, most: int) -> bytes:
        # A full output may leave some behind although all input is consumed.
        return self._member.decompress(b"", most) if self._begun and not self._member.eof else b""

    def finish(self) -> None:
        """Say that the stream has ended.

        Raises:
            BrokenGzipError: It ended inside a file.
        """
        if self._begun and not self._member.eof:
            raise BrokenGzipError("the body ends before its gzip does")


class Gzip:
    """Compresses a stream so that a reader can see everything up to each piece."""

    def __init__(self) -> None:
        self._stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)

    def piece(self, content: bytes) -> bytes:
        """Return the compressed form of the next piece, whole."""
        return self._stream.compress(content) + self._stream.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        """Return what ends the stream."""
        return self._stream.flush()


def gzipped(content: bytes) -> bytes:
    """Return content compressed whole; the same bytes every time.

    >>> Gunzip().take(9), len(gzipped(b"asthma " * 1000)) < 100
    (b'', True)
    """
    stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return stream.compress(content) + stream.flush()


def accepts_gzip(headers: Mapping[str, str]) -> bool:
    """Say whether a client reads gzip.

    >>> [accepts_gzip({"accept-encoding": v}) for v in ("br, GZIP;q=0.5", "gzip;q=0", "*", "identity", "")]
    [True, False, True, False, False]
    """
    weights: dict[str, float] = {}
    for part in headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = part.replace(" ", "").partition(";q=")
        try:
            weights[name] = float(weight) if weight else 1.0
        except ValueError:
            weights[name] = 0.0
    return weights.get("gzip", weights.get("*", 0.0)) > 0
