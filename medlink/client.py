"""A typed client of the service: splits what is too much for one request and waits when the service is busy."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NotRequired, TypedDict, cast
from urllib.parse import quote

import httpx

_BUSY = 503
_NOT_FOUND = 404
_LONGEST_WAIT = 60.0


class MentionJson(TypedDict):
    """A mention as the service reads it."""

    text: str
    id: NotRequired[str]
    context: NotRequired[str]
    start: NotRequired[int]
    end: NotRequired[int]


class CodeJson(TypedDict):
    """A concept's identifier in a source vocabulary."""

    sab: str
    code: str


class CandidateJson(TypedDict):
    """A concept offered as the answer; `codes` are there when they were asked for."""

    rank: int
    cui: str
    curie: str
    preferred_name: str
    matched_name: str | None
    score: float
    probability: NotRequired[float | None]
    case_mismatch: NotRequired[bool]
    codes: NotRequired[list[CodeJson]]


class ResultJson(TypedDict):
    """The answer to one mention; `error` stands instead of an answer for a bulk item that could not be linked."""

    id: NotRequired[str | None]
    text: NotRequired[str]
    status: NotRequired[str]
    reason: NotRequired[str | None]
    candidates: NotRequired[list[CandidateJson]]
    parts: NotRequired[list[dict[str, Any]]]
    conjunction: NotRequired[str]
    expansion: NotRequired[dict[str, Any]]
    retired_from: NotRequired[str]
    error: NotRequired[dict[str, Any]]


class ReplyJson(TypedDict):
    """Results in the order of the mentions, and the index build that gave them."""

    index: dict[str, Any]
    results: list[ResultJson]


class ServiceError(Exception):
    """The service refused a request or could not be reached; `status` is 0 in the second case."""

    def __init__(self, message: str, *, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Client:
    """Talks to one service; use it as a context manager, or close it.

    Args:
        url: Address of the service, e.g. `http://127.0.0.1:8000`.
        timeout: Seconds to wait for one reply.
        retries: How often a request is sent again when the service answers 503.
        transport: Sends the requests; the network by default.
        sleep: Waits between tries.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 60.0,
        retries: int = 5,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = httpx.Client(base_url=url, timeout=timeout, transport=transport)
        self._retries = retries
        self._sleep = sleep
        self._info: dict[str, Any] | None = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def info(self) -> dict[str, Any]:
        """Return what the service says about itself: provenance and limits; asked once."""
        if self._info is None:
            self._info = self._send("GET", "/info")
        return self._info

    def link(self, mentions: Sequence[str | MentionJson], **options: object) -> ReplyJson:
        """Link mentions of any number; options are the fields of `POST /link`, such as `top_k`.

        Raises:
            ServiceError: The service refused, could not be reached, stayed busy, or changed its index meanwhile.
        """
        return self._in_parts("/link", mentions, self._limit("max_mentions"), options)

    def link_bulk(self, mentions: Sequence[str | MentionJson], **options: object) -> ReplyJson:
        """Link like `link`, except that a mention that cannot be linked carries an error in its place.

        Raises:
            ServiceError: As for `link`.
        """
        return self._in_parts("/link/bulk", mentions, self._limit("max_bulk_mentions"), options)

    def concept(self, id_: str) -> dict[str, Any] | None:
        """Return a concept by its id, CURIE or code, or None if the service knows no such concept.

        Raises:
            ServiceError: The service refused, could not be reached or stayed busy.
        """
        try:
            return self._send("GET", f"/concepts/{quote(id_, safe=':')}")
        except ServiceError as error:
            if error.status != _NOT_FOUND:
                raise
            return None

    def _limit(self, name: str) -> int:
        limits = self.info().get("limits", {})
        if name not in limits:
            raise ServiceError(f"GET /info states no limit {name}; is this a medlink service?")
        return int(limits[name])

    def _in_parts(
        self, path: str, mentions: Sequence[str | MentionJson], limit: int, options: Mapping[str, Any]
    ) -> ReplyJson:
        # A request without mentions still says which index would answer, and whether the options are valid.
        starts = range(0, max(len(mentions), 1), limit)
        bodies = ({"mentions": list(mentions[start : start + limit]), **options} for start in starts)
        first, *rest = [cast(ReplyJson, self._send("POST", path, body)) for body in bodies]
        for reply in rest:
            if reply["index"] != first["index"]:
                raise ServiceError("the service changed its index between two parts of this request; ask again")
            first["results"].extend(reply["results"])
        return first

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        for reply in self._tries(method, path, body):
            if reply.status_code != _BUSY:
                break
        if reply.is_error:
            raise _refusal(reply)
        content: dict[str, Any] = reply.json()
        return content

    def _tries(self, method: str, path: str, body: Mapping[str, Any] | None) -> Iterator[httpx.Response]:
        for attempt in range(self._retries + 1):
            try:
                reply = self._http.request(method, path, json=body)
            except httpx.TransportError as error:
                raise ServiceError(f"cannot reach {self._http.base_url}: {type(error).__name__}") from error
            yield reply
            if attempt < self._retries:
                self._sleep(_wait(reply, attempt))


def _wait(reply: httpx.Response, attempt: int) -> float:
    """Return seconds to wait: what the service asks for, else twice as long each time."""
    asked = reply.headers.get("Retry-After", "")
    return min(float(asked) if asked.isdecimal() else 0.5 * 2**attempt, _LONGEST_WAIT)


def _refusal(reply: httpx.Response) -> ServiceError:
    try:
        problem = reply.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    detail, code = problem.get("detail", ""), str(problem.get("code", ""))
    return ServiceError(f"{reply.status_code} {code} {detail}".strip(), status=reply.status_code, code=code)
