"""What the clients say to the service, without sending it: generators that ask and are given the replies.

A call yields an `Ask` for each request to send and is sent the reply to it, or has the transport's error thrown in; it
returns the answer. So the two clients differ only in how they send and wait.
"""

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from urllib.parse import quote

import httpx

from medlink.client.answers import MentionJson, ReplyJson

T = TypeVar("T")
_BUSY = 503
_NOT_FOUND = 404
_LONGEST_WAIT = 60.0
# Clients that were refused together must not come back together.
_SPREAD = 0.5
_JSON = {"Content-Type": "application/json"}


class ServiceError(Exception):
    """The service refused a request or could not be reached; `status` is 0 in the second case."""

    def __init__(self, message: str, *, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to send after so many seconds."""

    method: str
    path: str
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    params: Sequence[tuple[str, str]] = ()
    wait: float = 0.0


Call = Generator[Ask, httpx.Response, T]


class Calls:
    """The calls of one client, and what it knows of the service.

    Args:
        url: Address of the service, for messages.
        retries: How often a request is sent again when the service is busy or has gone away. Every request may be sent
            twice, as none changes anything.
        spread: Draws a number from 0 to 1 that makes a wait longer.
    """

    def __init__(self, url: str, *, retries: int, spread: Callable[[], float]) -> None:
        self._url = url
        self.retries = retries
        self._spread = spread
        self._info: dict[str, Any] | None = None
        self._answered = False

    def info(self) -> Call[dict[str, Any]]:
        """Return what the service says about itself; asked once."""
        if self._info is None:
            self._info = _content((yield from self.send(Ask("GET", "/info"))))
        return self._info

    def link(
        self, path: str, limit: str, mentions: Sequence[str | MentionJson], options: Mapping[str, object]
    ) -> Call[ReplyJson]:
        """Link mentions in as many requests as the limits of the service make necessary."""
        info = yield from self.info()
        whole: ReplyJson | None = None
        for body in _bodies(mentions, options, _limit(info, limit), _limit(info, "max_body_bytes")):
            reply = yield from self.send(Ask("POST", path, body, _JSON))
            part = cast(ReplyJson, _content(reply))
            if whole is None:
                whole = part
            elif part["index"] != whole["index"]:
                raise changed()
            else:
                whole["results"].extend(_renumbered(part, len(whole["results"])))
        return cast(ReplyJson, whole)

    def concept(self, id_: str) -> Call[dict[str, Any] | None]:
        """Return a concept, or None if the service knows no such concept."""
        try:
            return _content((yield from self.send(Ask("GET", f"/concepts/{quote(id_, safe=':')}"))))
        except ServiceError as error:
            if error.status != _NOT_FOUND:
                raise
            return None

    def send(self, ask: Ask) -> Call[httpx.Response]:
        """Return the reply to a request, sent again as long as the service is busy.

        Raises:
            ServiceError: It refuses, stays busy or cannot be reached.
        """
        wait = ask.wait
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            try:
                reply = yield Ask(ask.method, ask.path, ask.content, ask.headers, ask.params, wait)
            except httpx.TransportError as error:
                # An address that never took a connection is more likely misspelt than restarting.
                misspelt = not self._answered and isinstance(error, httpx.ConnectError)
                if last or misspelt or isinstance(error, httpx.TimeoutException):
                    raise ServiceError(f"cannot reach {self._url}: {type(error).__name__}") from error
                wait = self.pause(attempt)
                continue
            self._answered = True
            if reply.status_code != _BUSY or last:
                break
            wait = self.pause(attempt, reply)
        if reply.is_error:
            raise _refusal(reply)
        return reply

    def pause(self, attempt: int, reply: httpx.Response | None = None) -> float:
        """Return seconds to wait: what the service asks for, else twice as long each time; and some by chance."""
        asked = reply.headers.get("Retry-After", "") if reply is not None else ""
        seconds = min(float(asked) if asked.isdecimal() else 0.5 * 2**attempt, _LONGEST_WAIT)
        return seconds * (1 + _SPREAD * self._spread())


def changed() -> ServiceError:
    """Return the error of answers that come from two indexes."""
    return ServiceError("the service changed its index between two parts of this request; ask again")


def _limit(info: Mapping[str, Any], name: str) -> int:
    limits = info.get("limits", {})
    if name not in limits:
        raise ServiceError(f"GET /info states no limit {name}; is this a medlink service?")
    return int(limits[name])


def _bodies(
    mentions: Sequence[str | MentionJson], options: Mapping[str, object], most: int, most_bytes: int
) -> Iterator[bytes]:
    """Yield JSON bodies that hold the mentions in order, each within the limits as far as one mention is."""
    head = json.dumps(dict(options))[1:-1]
    head = "{" + (f"{head}, " if head else "") + '"mentions": ['
    held: list[str] = []
    size = len(head) + 2
    for mention in mentions:
        # ASCII: half of a character, which UTF-8 cannot hold, is the service's to refuse.
        written = json.dumps(mention)
        if held and (len(held) == most or size + len(written) + 1 > most_bytes):
            yield (head + ",".join(held) + "]}").encode()
            held, size = [], len(head) + 2
        held.append(written)
        size += len(written) + 1
    # A request without mentions still says which index would answer, and whether the options are valid.
    yield (head + ",".join(held) + "]}").encode()


def _renumbered(reply: ReplyJson, first: int) -> Iterator[Any]:
    """Yield results with the items of errors counted over all parts of a request."""
    for result in reply["results"]:
        yield {**result, "item": result["item"] + first} if "item" in result else result


def _content(reply: httpx.Response) -> dict[str, Any]:
    content: dict[str, Any] = reply.json()
    return content


def _refusal(reply: httpx.Response) -> ServiceError:
    try:
        problem = reply.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    detail, code = problem.get("detail", ""), str(problem.get("code", ""))
    return ServiceError(f"{reply.status_code} {code} {detail}".strip(), status=reply.status_code, code=code)
