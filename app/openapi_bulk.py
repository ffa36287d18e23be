"""What OpenAPI says about `POST /link/bulk` that FastAPI cannot see: its two kinds of bodies."""

from typing import Any

from app.bodies import NDJSON
from app.schemas import BULK_EXAMPLES, BulkRequest, LinkRequest

_LINES_IN = '"heart attack"\n{"text":"MI","id":"note-7","context":"Myocardial infarction (MI)","start":23,"end":25}\n'
_LINES_OUT = (
    '{"index":{"id":"20261130T080846043Z","curation_revision":0,"channels":["exact","dense","lexical"]}}\n'
    '{"text":"heart attack","status":"linked","candidates":[]}\n'
    '{"item":1,"error":{"code":"invalid_json","detail":"not JSON in UTF-8"}}\n'
)


def _body_schema() -> dict[str, Any]:
    # Its items are checked one by one, so the model itself says nothing about them; they are those of `/link`.
    schema = LinkRequest.model_json_schema(ref_template="#/components/schemas/{model}")
    del schema["$defs"]
    return schema | {"title": BulkRequest.__name__, "description": BulkRequest.__doc__, **BULK_EXAMPLES}


BULK_OPENAPI: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": _body_schema()},
            NDJSON: {"schema": {"type": "string"}, "example": _LINES_IN},
        },
    }
}
STREAM_CONTENT: dict[str, Any] = {NDJSON: {"schema": {"type": "string"}, "example": _LINES_OUT}}
