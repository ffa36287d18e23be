"""Where spans go: over OTLP to a collector, as the standard OTEL_* variables say; needs the `tracing` extra."""

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def otlp_provider() -> TracerProvider:
    """Return a provider of our own; none is set for the whole process, so no library's spans get out."""
    provider = TracerProvider(resource=Resource.create({"service.name": "medlink"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
