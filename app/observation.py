"""Follows each request: gives it an id, counts and times it, and logs one line without its path, body or query."""

import re
from time import perf_counter
from uuid import uuid4

import structlog
from opentelemetry.trace import TracerProvider
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.metrics import Metrics
from app.tracing import Trace
from medlink.stages import heard_by

_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# Asked every few seconds by whoever watches.
_QUIET = frozenset({"/livez", "/readyz", "/metrics"})
_LEFT = 499
_log = structlog.get_logger()


class Observation:
    """The outermost layer of the service: it sees what every other layer answers.

    Args:
        app: What is inside.
        metrics: Where requests and stages are counted.
        spans: Where spans of them go; None if nobody collects any.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, spans: TracerProvider | None = None) -> None:
        self._app = app
        self._metrics = metrics
        self._spans = spans

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and take down what became of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id, status = request_id_of(headers), 0

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        trace = Trace(self._spans, headers, request_id) if self._spans else None
        told = {"request_id": request_id, **({"trace_id": trace.trace_id} if trace else {})}
        listener = trace.heard_before(self._metrics.hear) if trace else self._metrics.hear
        begin = perf_counter()
        with structlog.contextvars.bound_contextvars(**told), self._metrics.in_progress.track_inprogress():
            try:
                with heard_by(listener):
                    await self._app(scope, receive, seen)
            finally:
                # Where nothing was sent, the client had left.
                method, route, status = method_of(scope), route_of(scope), status or _LEFT
                self._record(method, route, status, perf_counter() - begin)
                if trace:
                    trace.end(method, route, status)

    def _record(self, method: str, route: str, status: int, seconds: float) -> None:
        self._metrics.requests.labels(method, route, str(status)).inc()
        self._metrics.request_seconds.labels(route).observe(seconds)
        say = _log.debug if route in _QUIET and status == 200 else _log.info
        say("request", method=method, route=route, status=status, seconds=round(seconds, 4))


def request_id_of(headers: Headers) -> str:
    """Return the id that the client gave, if it looks like one, else a new one.

    >>> request_id_of(Headers({"x-request-id": "ward-7:42"}))
    'ward-7:42'
    >>> len(request_id_of(Headers({"x-request-id": "heart attack of Mr. X"})))
    32
    """
    sent = headers.get("x-request-id", "")
    return sent if _ID.fullmatch(sent) else uuid4().hex


def route_of(scope: Scope) -> str:
    """Return the template of the route that answered: a path may hold anything."""
    path = getattr(scope.get("route"), "path", None)
    if path is None and "endpoint" in scope:  # a folder of files
        return f"{scope['root_path']}/*"
    return path or "unmatched"


def method_of(scope: Scope) -> str:
    """Return the method, if it is one of HTTP's."""
    method = scope["method"]
    return method if method in _METHODS else "OTHER"
