"""`POST /link` and `POST /link/bulk`: mentions in, ranked concepts out."""

from fastapi import APIRouter, Depends

from app.answers import BulkResponse, ErrorOut, LinkResponse, ResultOut
from app.deps import BuildDep, SettingsDep, describe_index, require_json
from app.errors import problems
from app.mentions import check_count, check_each, check_mention
from app.schemas import BulkRequest, LinkRequest
from medlink.types import Mention

router = APIRouter(tags=["link"], dependencies=[Depends(require_json)], responses=problems(400, 413, 415, 422, 503))


@router.post("/link", response_model_exclude_unset=True)
def link(request: LinkRequest, build: BuildDep, settings: SettingsDep) -> LinkResponse:
    """Link mentions; results come in order, and a mention without an answer is `nil`, never missing."""
    check_count(len(request.mentions), settings.max_mentions, "max_mentions")
    mentions = [check_mention(sent, item, settings) for item, sent in enumerate(request.mentions)]
    results = build.linker.link(mentions, request.options())
    return LinkResponse(index=describe_index(build), results=[ResultOut.of(r, request) for r in results])


@router.post("/link/bulk", response_model_exclude_unset=True)
def link_bulk(request: BulkRequest, build: BuildDep, settings: SettingsDep) -> BulkResponse:
    """Link many mentions; one that cannot be linked gets an error in its place."""
    check_count(len(request.mentions), settings.max_bulk_mentions, "max_bulk_mentions")
    checked = check_each(request.mentions, settings)
    results = iter(build.linker.link([m for m in checked if isinstance(m, Mention)], request.options()))
    return BulkResponse(
        index=describe_index(build),
        results=[m if isinstance(m, ErrorOut) else ResultOut.of(next(results), request) for m in checked],
    )
