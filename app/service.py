"""The service as a server starts it: from the environment, with logs and, if wanted, spans."""

from importlib import import_module

from fastapi import FastAPI

from app import logs
from app.main import create_app
from app.settings import Settings


def service() -> FastAPI:
    """Return the service; each worker process of `uvicorn app.service:service --factory` calls it."""
    settings = Settings()
    logs.configure(settings.log_format, settings.log_level)
    # What it imports is not installed everywhere.
    spans = import_module("app.otlp").otlp_provider() if settings.tracing else None
    return create_app(settings, spans=spans)
