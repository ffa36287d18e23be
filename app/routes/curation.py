"""`/admin/curation`: corrections of the knowledge base that need no rebuild."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path

from app.administration import (
    AddSynonymIn,
    BlockConceptIn,
    BlockNameIn,
    CorrectedOut,
    CorrectionIn,
    CurationOut,
    EntryOut,
    UndoneOut,
)
from app.auth import AdminDep, Caller, get_admin
from app.deps import StoreDep, require_json
from app.errors import problems
from medlink.errors import UnknownIdError, UnknownValueError
from medlink.kb.curation import Curations, Entry

router = APIRouter(
    prefix="/admin/curation", tags=["admin"], dependencies=[Depends(get_admin)], responses=problems(401, 403, 422, 503)
)
_EXAMPLES = [{"action": "add_synonym", "concept": "C0027051", "text": "the big one", "why": "said on our wards"}]


@router.get("")
def list_corrections(store: StoreDep, undone: bool = False) -> CurationOut:
    """List the corrections, oldest first; with `undone` also those that were undone."""
    curations = Curations(store)
    revision, dangling, entries = curations.revision(), curations.dangling(), curations.entries()
    shown = [entry for entry in entries if undone or entry.revoked_at is None]
    return CurationOut(revision=revision, entries=[EntryOut.of(entry, dangling.get(entry.id)) for entry in shown])


@router.post(
    "", status_code=201, dependencies=[Depends(require_json)], responses=problems(400, 404, 408, 409, 413, 415)
)
def correct(
    wanted: Annotated[CorrectionIn, Body(examples=_EXAMPLES)], caller: AdminDep, store: StoreDep
) -> CorrectedOut:
    """Add a name, block a name or a concept, or pin a mention; it holds until it is undone, in every build."""
    curations = Curations(store)
    entry = _make(curations, wanted, _decider(caller, wanted.who))
    return CorrectedOut(revision=curations.revision(), entry=EntryOut.of(entry))


@router.delete("/{entry}", responses=problems(404))
def undo(entry: Annotated[int, Path(ge=1, lt=1 << 31)], caller: AdminDep, store: StoreDep) -> UndoneOut:
    """Put a correction out of force; the list keeps it."""
    try:
        return UndoneOut(revision=Curations(store).undo(entry, who=_decider(caller, None)))
    except UnknownValueError:
        raise UnknownIdError("correction in force") from None


def _decider(caller: Caller, who: str | None) -> str:
    # Whatever a request says, the list tells which key it came with.
    return f"{who} (key {caller.name})" if who else caller.name


def _make(curations: Curations, wanted: CorrectionIn, who: str) -> Entry:
    by = {"who": who, "why": wanted.why}
    if isinstance(wanted, AddSynonymIn):
        return curations.add_synonym(wanted.concept, wanted.text, **by)
    if isinstance(wanted, BlockNameIn):
        return curations.block_name(wanted.text, concept=wanted.concept, **by)
    if isinstance(wanted, BlockConceptIn):
        return curations.block_concept(wanted.concept, **by)
    return curations.pin(wanted.text, wanted.concept, **by)
