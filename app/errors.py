"""Errors as the client sees them: application/problem+json, one table, and no word of a mention."""

import re
import traceback
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.bodies import BoundedBody
from app.matching import allowed_at
from medlink.errors import (
    BuildInUseError,
    CurationError,
    DeadlineError,
    EncoderError,
    IndexMismatchError,
    JobError,
    KeyReusedError,
    LeaseLostError,
    LimitError,
    MedlinkError,
    MentionError,
    NoIndexError,
    NotCalibratedError,
    NotServingError,
    OverloadedError,
    SourceError,
    StoreError,
    UnknownConceptError,
    UnknownIdError,
    UnknownValueError,
)
from medlink.kb.database import is_read_only

STATUS: dict[type[MedlinkError], int] = {
    SourceError: 500,
    StoreError: 503,
    UnknownValueError: 422,
    UnknownConceptError: 404,
    UnknownIdError: 404,
    JobError: 409,
    BuildInUseError: 409,
    KeyReusedError: 422,
    LeaseLostError: 409,
    CurationError: 409,
    MentionError: 422,
    EncoderError: 503,
    IndexMismatchError: 503,
    NoIndexError: 503,
    NotCalibratedError: 422,
    LimitError: 413,
    OverloadedError: 503,
    NotServingError: 503,
    DeadlineError: 504,
}
_CODES = {
    400: "malformed_body",
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "slow_body",
    409: "conflict",
    413: "limit",
    415: "unsupported_media_type",
}
_RETRY_AFTER = 5
_log = structlog.get_logger()


class UnsupportedMediaTypeError(HTTPException):
    """A body of a kind that is not read."""

    def __init__(self, accepted: str = "application/json") -> None:
        super().__init__(415, f"send {accepted}, plain or with content encoding gzip")


def code_of(error: MedlinkError) -> str:
    """Return the `code` under which an error is known to clients.

    >>> code_of(NoIndexError())
    'no_index'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__.removesuffix("Error")).lower()


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    retry_after: int | None = None,
    **more: Any,  # noqa: ANN401  # any JSON
) -> JSONResponse:
    """Return a problem+json response (RFC 9457); a 503 says when to try again."""
    return JSONResponse(
        {"type": "about:blank", "status": status, "code": code, "detail": detail, **more},
        status_code=status,
        headers={"Retry-After": str(retry_after or _RETRY_AFTER)} if status == 503 else None,
        media_type="application/problem+json",
    )


PROBLEM_SCHEMA = {
    "type": "object",
    "required": ["type", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string"},
        "detail": {"type": "string"},
    },
}

_HEADERS: dict[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"required": True, "schema": {"type": "string"}}},
    503: {
        "Retry-After": {
            "required": True,
            "description": "Seconds after which to try again.",
            "schema": {"type": "integer", "minimum": 1},
        }
    },
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI `responses` of a route that may answer with these error statuses."""
    content = {"application/problem+json": {"schema": PROBLEM_SCHEMA}}
    described = {"description": "Problem", "content": content}
    return {status: described | ({"headers": _HEADERS[status]} if status in _HEADERS else {}) for status in statuses}


def install(app: FastAPI, *, max_body_bytes: int, body_idle_seconds: float) -> None:
    """Map every error to a problem response, and refuse bodies that are too large while they arrive."""

    @app.exception_handler(MedlinkError)
    async def on_medlink(request: Request, error: MedlinkError) -> JSONResponse:
        more: dict[str, Any] = {"item": error.item} if isinstance(error, MentionError) else {}
        if isinstance(error, JobError):
            more["job"] = error.job
        wait = error.retry_after if isinstance(error, OverloadedError) else None
        return problem(STATUS[type(error)], code_of(error), str(error), retry_after=wait, **more)

    @app.exception_handler(SQLAlchemyError)
    async def on_store(request: Request, error: SQLAlchemyError) -> JSONResponse:
        if is_read_only(error):
            return problem(503, "store_read_only", "this service may only read the store; ask one that may write it")
        # Its text may hold values.
        _log.error("store_unavailable", kind=type(error).__name__)
        return problem(503, "store", "the store cannot be read or written now; the log says why")

    @app.exception_handler(RequestValidationError)
    async def on_invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        # FastAPI's own handler sends the input back, and a lone surrogate in it makes that a 500.
        return problem(
            422, "invalid_request", "the request is not as documented", errors=validation_errors(error.errors())
        )

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> JSONResponse:
        response = problem(error.status_code, _CODES.get(error.status_code, "http_error"), error.detail)
        response.headers.update(error.headers or {})
        if error.status_code == 405:
            # The routers name those of one route only.
            response.headers["Allow"] = allowed_at(request.scope)
        return response

    app.add_middleware(BoundedBody, max_body_bytes=max_body_bytes, idle_seconds=body_idle_seconds)
    app.add_middleware(Shield)


def validation_errors(errors: Any) -> list[dict[str, Any]]:  # noqa: ANN401  # pydantic's list of error dicts
    """Return pydantic errors with place, kind and message, without anything that the client sent."""
    kept = []
    for error in errors:
        # The last step of an unexpected key's place is that key, which is input too.
        place = error["loc"][:-1] if error["type"] == "extra_forbidden" else error["loc"]
        # This kind of message names what was sent as well as what is expected.
        tags = f"expected one of: {error['ctx']['expected_tags']}" if error["type"] == "union_tag_invalid" else None
        kept.append({"loc": list(place), "type": error["type"], "msg": tags or error["msg"]})
    return kept


def log_unexpected(error: Exception) -> None:
    """Log where an error happened; its message may hold what somebody sent."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    _log.error("unexpected_error", kind=type(error).__name__, file=frame.filename, line=frame.lineno)


class Shield:
    """Answers what nobody foresaw with a bare 500 and logs where it happened, never what was in it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and catch what comes out of it."""
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:  # noqa: BLE001  # the last place that can keep its message out of the log
            log_unexpected(error)
            if scope["type"] != "http" or started:
                return
            await problem(500, "internal", "unexpected error; the log says where")(scope, receive, send)
