"""Log lines as JSON, made of known fields only: what is not on the list is not written."""

import logging
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any, Literal

import structlog

FIELDS = frozenset(
    "event level timestamp logger request_id trace_id method route status seconds kind file line reason build"
    " generation revision entries job stage progress rate counts eta_seconds worker token process signal attempt"
    " host port workers version mentions queued wait_seconds limit path_in_build deadline_seconds".split()
)
"""The fields that a log line may have; none of them ever holds what a client sent."""
_OURS = ("uvicorn", "app", "medlink", "index")

_Event = MutableMapping[str, Any]


def configure(form: Literal["json", "text"] = "json", level: str = "INFO") -> None:
    """Send our log lines, and those of the libraries, to stderr.

    Args:
        form: JSON lines, or lines for a person to read.
        level: The least level that is written.
    """
    chosen = logging.getLevelNamesMapping()[level]
    renderer: Any = structlog.processors.JSONRenderer()
    if form == "text":
        renderer = structlog.dev.ConsoleRenderer(colors=False)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            *_FINISH,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(chosen),
        # A line in one write: several processes share where it goes.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LibraryLines(renderer))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
        logger.setLevel(max(chosen, logging.INFO))
    # It names whole paths, in which a client may have put anything; we log the route.
    logging.getLogger("uvicorn.access").disabled = True


def keep_known(_logger: object, _method: str, event: _Event) -> _Event:
    """Replace the value of any field that is not known by "withheld"; a structlog processor.

    >>> keep_known(None, "info", {"event": "linked", "text": "heart attack"})
    {'event': 'linked', 'text': 'withheld'}
    """
    return {key: value if key in FIELDS else "withheld" for key, value in event.items()}


def where(error: BaseException) -> dict[str, Any]:
    """Return what of an error may be logged: its kind and its place, never its message."""
    frames = traceback.extract_tb(error.__traceback__)
    place = {"file": frames[-1].filename, "line": frames[-1].lineno} if frames else {}
    return {"kind": type(error).__name__, **place}


_FINISH = (keep_known, structlog.processors.TimeStamper(fmt="iso", utc=True))


class _LibraryLines(logging.Formatter):
    """Turns a library's log record into a line like ours; of a library that we do not know, without its values."""

    def __init__(self, renderer: Any) -> None:  # noqa: ANN401  # a structlog processor
        super().__init__()
        self._renderer = renderer

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        known = record.name.partition(".")[0] in _OURS
        error = record.exc_info[1] if record.exc_info else None
        event: _Event = {
            **structlog.contextvars.get_contextvars(),
            "event": record.getMessage() if known and not error else str(record.msg).partition("\n")[0],
            "level": record.levelname.lower(),
            "logger": record.name,
            **(where(error) if error else {}),
        }
        for processor in _FINISH:
            event = processor(None, "", event)
        return str(self._renderer(None, "", event))
