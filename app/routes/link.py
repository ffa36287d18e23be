"""`POST /link` and `POST /link/bulk`: mentions in, ranked concepts out."""

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from app.answering import Answering, Batch
from app.answers import BulkResponse, LinkResponse
from app.bodies import STREAMED_PATH, is_ndjson
from app.compression import accepts_gzip, gzipped
from app.deps import BuildDep, LinkingDep, SettingsDep, describe_index, require_json, require_json_or_lines
from app.errors import problems
from app.facts import IndexOut
from app.incoming import ClientGoneError, Incoming
from app.linking import Linking
from app.mentions import check_count, check_each, check_mention
from app.openapi_bulk import BULK_OPENAPI, STREAM_CONTENT
from app.schemas import BulkRequest, LinkRequest, QueryOptions
from app.streams import BulkStream

router = APIRouter(tags=["link"], responses=problems(400, 408, 413, 415, 422, 503, 504))
# Nobody reads it; the log of requests shows it.
_GONE = 499
_WORTH_COMPRESSING = 1000


@router.post("/link", dependencies=[Depends(require_json)], response_model=LinkResponse)
async def link(
    body: LinkRequest, request: Request, build: BuildDep, settings: SettingsDep, linking: LinkingDep
) -> Response:
    """Link mentions; results come in order, and a mention without an answer is `nil`, never missing."""
    check_count(len(body.mentions), settings.max_mentions, "max_mentions")
    mentions = [check_mention(sent, item, settings) for item, sent in enumerate(body.mentions)]
    answering = await linking.answering(build, body)
    batch = answering.batch(mentions)
    if not await _answered(request, linking, answering, batch):
        return Response(status_code=_GONE)
    batch.fail()
    return await _reply(request, describe_index(build), batch)


@router.post(
    STREAMED_PATH,
    dependencies=[Depends(require_json_or_lines)],
    response_model=BulkResponse,
    responses={200: {"content": STREAM_CONTENT}},
    openapi_extra=BULK_OPENAPI,
)
async def link_bulk(
    request: Request,
    query: Annotated[QueryOptions, Query()],
    build: BuildDep,
    settings: SettingsDep,
    linking: LinkingDep,
) -> Response:
    """Link many mentions, as JSON or as a stream of lines; one that cannot be linked gets an error in its place.

    A stream is NDJSON both ways: a mention a line in, and out a first line with `index`, then a line an item, in order,
    while the stream is still being sent. It may be of any size; read while you send, because no more is read than is
    answered. Options of a stream are in the query string; those in a JSON body come before those.
    """
    if is_ndjson(request.headers):
        return await _stream(request, query, build, settings, linking)
    body = await _bulk_request(request, query)
    check_count(len(body.mentions), settings.max_bulk_mentions, "max_bulk_mentions")
    answering = await linking.answering(build, body)
    batch = answering.batch(await asyncio.to_thread(check_each, body.mentions, settings))
    if not await _answered(request, linking, answering, batch):
        return Response(status_code=_GONE)
    return await _reply(request, describe_index(build), batch)


async def _stream(
    request: Request, query: QueryOptions, build: BuildDep, settings: SettingsDep, linking: LinkingDep
) -> Response:
    answering = await linking.answering(build, query)
    linking.check_room()
    stream = BulkStream(request, answering=answering, index=describe_index(build), linking=linking, settings=settings)
    try:
        await stream.begin()
    except ClientGoneError:
        return Response(status_code=_GONE)
    return stream


async def _bulk_request(request: Request, query: QueryOptions) -> BulkRequest:
    """Return the JSON body of a request, with what it leaves out taken from the query string.

    Raises:
        RequestValidationError: It is not as documented.
        HTTPException: 400, it is not even text, or nested without end.
    """
    try:
        sent = await asyncio.to_thread(json.loads, await request.body())
        asked = query.model_dump(exclude_unset=True)
        return BulkRequest.model_validate({**asked, **sent} if isinstance(sent, dict) else sent)
    except json.JSONDecodeError as error:
        at = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error"}
        raise RequestValidationError([at]) from None
    except ValidationError as error:
        wrong: list[dict[str, Any]] = [{**e, "loc": ("body", *e["loc"])} for e in error.errors(include_input=False)]
        raise RequestValidationError(wrong) from None
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON that can be read") from None


async def _answered(request: Request, linking: Linking, answering: Answering, batch: Batch) -> bool:
    """Answer a batch; False if the client has gone meanwhile."""
    incoming = Incoming(request.receive, complete=True)
    try:
        await incoming.unless_gone(linking.answer(answering, batch))
    except ClientGoneError:
        return False
    finally:
        await incoming.close()
    return True


async def _reply(request: Request, index: IndexOut, batch: Batch) -> Response:
    head = b'{"index":' + index.model_dump_json(exclude_unset=True).encode() + b',"results":['
    content = await asyncio.to_thread(lambda: head + b",".join(batch.lines()) + b"]}")
    headers = {"Vary": "Accept-Encoding"}
    if len(content) > _WORTH_COMPRESSING and accepts_gzip(request.headers):
        content = await asyncio.to_thread(gzipped, content)
        headers["Content-Encoding"] = "gzip"
    return Response(content, headers=headers, media_type="application/json")
