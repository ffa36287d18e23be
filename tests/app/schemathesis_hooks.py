"""What Schemathesis has to be told of the service; see schemathesis.toml."""

import json
from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, HookContext, Response
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.core.parameters import ParameterLocation
from schemathesis.openapi.checks import RejectedPositiveData

NDJSON = "application/x-ndjson"
# What no schema can say: values that only the build at hand knows, offsets that do not fit, what was asked before.
OF_LINKS = {"unknown_value", "not_calibrated", "mention"}
BEYOND_SCHEMA = {"/link": OF_LINKS, "/link/bulk": OF_LINKS, "/admin/index/rebuild": {"key_reused"}}


@schemathesis.serializer(NDJSON)
def as_lines(context: Any, value: Any) -> bytes:
    """Send what was made up for a stream as it is: the description calls it a string."""
    return value if isinstance(value, bytes) else (value if isinstance(value, str) else json.dumps(value)).encode()


@schemathesis.check
def errors_are_problems(context: CheckContext, response: Response, case: Case) -> None:
    """Find an error that is no problem+json, documented or not."""
    if response.status_code >= 400:
        assert response.headers["content-type"] == ["application/problem+json"]
        problem = response.json()
        assert (problem["type"], problem["status"]) == ("about:blank", response.status_code)
        assert problem["code"] != "http_error"
        assert problem["detail"]


@schemathesis.hook
def filter_failure(context: HookContext, failure: Failure, case: Case, response: Response) -> bool:
    """Keep a failure, unless the answer is as meant though no schema can say so."""
    if isinstance(failure, RejectedPositiveData):
        return response.json()["code"] not in BEYOND_SCHEMA.get(case.operation.path, ())
    # Of a stream nothing is refused but lines, each in its place.
    lines_are_odd = (
        case.media_type == NDJSON and case.meta is not None and case.meta.is_negative_at(ParameterLocation.BODY)
    )
    return not (isinstance(failure, AcceptedNegativeData) and lines_are_odd)
