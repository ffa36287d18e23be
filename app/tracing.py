"""Spans of requests and stages for OpenTelemetry, if it is installed and switched on; no word of a mention."""

from collections.abc import Mapping
from time import time_ns

from opentelemetry.trace import SpanKind, TracerProvider, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from medlink import __version__
from medlink.stages import Listener, Stage


class Trace:
    """The span of one request, with one below it for every stage.

    Args:
        provider: Where spans go.
        headers: Those of the request; `traceparent` names the caller's span.
        request_id: The id of the request.
    """

    def __init__(self, provider: TracerProvider, headers: Mapping[str, str], request_id: str) -> None:
        self._tracer = provider.get_tracer("medlink", __version__)
        caller = TraceContextTextMapPropagator().extract(headers)
        facts = {"request.id": request_id}
        self._span = self._tracer.start_span("request", caller, SpanKind.SERVER, facts)
        self.trace_id = f"{self._span.get_span_context().trace_id:032x}"

    def heard_before(self, listener: Listener) -> Listener:
        """Return a listener that also makes spans of what another one hears."""
        context = set_span_in_context(self._span)

        def hear(stage: Stage, seconds: float, items: int) -> None:
            now = time_ns()
            span = self._tracer.start_span(stage, context, start_time=now - int(seconds * 1e9))
            span.set_attribute("items", items)
            span.end(now)
            listener(stage, seconds, items)

        return hear

    def end(self, method: str, route: str, status: int) -> None:
        """End the span; the client's own path and query do not get into it."""
        self._span.update_name(f"{method} {route}")
        self._span.set_attributes(
            {"http.request.method": method, "http.route": route, "http.response.status_code": status}
        )
        self._span.end()
