"""A stream of mentions as a row of small NDJSON requests: each can be sent again, and none fills a connection.

An HTTP/1.1 client of httpx reads an answer only after it has sent all of its request, and the service reads no more of
a request than it has answered. A request larger than what lies in the buffers between them would stop both for ever.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, cast

from medlink.client.answers import MentionJson, ResultJson
from medlink.client.calls import Ask, Call, Calls, ServiceError, changed

_PATH = "/link/bulk"
_HEADERS = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
_LINES = 1000
_BYTES = 48_000
# How much is written between two looks at how large it is when compressed.
_LOOK_BYTES = 16_000
_STOPPING = "not_serving"


class Windows:
    """Collects the mentions of one stream and says when to send them.

    Args:
        calls: The calls of the client.
        options: The options of the stream.
        same_index: Whether answers from two index builds are an error.
    """

    def __init__(self, calls: Calls, options: Mapping[str, object], *, same_index: bool) -> None:
        self._calls = calls
        self._params = list(_params(options))
        self._same_index = same_index
        self._index: object = None
        self._answered = 0
        self._lines: list[bytes] = []
        self._packed = _Packed()

    def add(self, mention: str | MentionJson) -> bool:
        """Take a mention; True if it is time to `send`."""
        line = json.dumps(mention).encode() + b"\n"
        self._lines.append(line)
        self._packed.add(line)
        return len(self._lines) >= _LINES or self._packed.bytes >= _BYTES

    def send(self) -> Call[list[ResultJson]]:
        """Return the results of what was collected, in order.

        Raises:
            ServiceError: The service refused, stayed busy, broke off or changed its index.
        """
        results: list[ResultJson] = []
        attempt = 0
        while self._lines:
            wait = self._calls.pause(attempt) if attempt else 0.0
            reply = yield from self._calls.send(Ask("POST", _PATH, self._packed.end(), _HEADERS, self._params, wait))
            head, *answers = map(json.loads, reply.content.splitlines())
            self._check(head)
            last = answers.pop() if answers and _is_end(answers[-1]) else None
            results += [self._numbered(answer, place) for place, answer in enumerate(answers, start=len(results))]
            self._keep(self._lines[len(answers) :])
            if self._lines:
                self._stopped(last, attempt)
                attempt += 1
        self._answered += len(results)
        return results

    def _check(self, head: Mapping[str, Any]) -> None:
        if self._same_index and self._index is not None and head["index"] != self._index:
            raise changed()
        self._index = head["index"]

    def _numbered(self, answer: dict[str, Any], place: int) -> ResultJson:
        numbered = {**answer, "item": self._answered + place} if "item" in answer else answer
        return cast(ResultJson, numbered)

    def _keep(self, lines: list[bytes]) -> None:
        self._lines = lines
        self._packed = _Packed()
        for line in lines:
            self._packed.add(line)

    def _stopped(self, last: Mapping[str, Any] | None, attempt: int) -> None:
        """Do nothing if the rest is to be sent to whoever serves next."""
        error = last["error"] if last else {"code": "", "detail": "the answer broke off"}
        if error["code"] != _STOPPING or attempt >= self._calls.retries:
            raise ServiceError(f"{error['code']} {error['detail']}".strip(), code=error["code"])


class _Packed:
    """Lines as gzip."""

    def __init__(self) -> None:
        self._stream = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
        self._parts: list[bytes] = []
        self._unseen = 0
        self.bytes = 0

    def add(self, line: bytes) -> None:
        self._append(self._stream.compress(line))
        self._unseen += len(line)
        if self._unseen >= _LOOK_BYTES:
            self._append(self._stream.flush(zlib.Z_SYNC_FLUSH))
            self._unseen = 0

    def end(self) -> bytes:
        self._append(self._stream.flush())
        return b"".join(self._parts)

    def _append(self, part: bytes) -> None:
        self._parts.append(part)
        self.bytes += len(part)


def _is_end(answer: Mapping[str, Any]) -> bool:
    return "error" in answer and "item" not in answer


def _params(options: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield options as a query string has them.

    >>> list(_params({"top_k": 3, "sabs": ["A", "B"], "explain": True, "threshold": None}))
    [('top_k', '3'), ('sabs', 'A'), ('sabs', 'B'), ('explain', 'true')]
    """
    for name, value in options.items():
        for one in value if isinstance(value, list | tuple | set | frozenset) else [value]:
            if one is not None:
                yield name, json.dumps(one) if isinstance(one, bool) else str(one)
