"""`GET /concepts/{id}`: everything the index build knows about a concept."""

from fastapi import APIRouter

from app.answers import ConceptOut, ConceptRef, RetirementOut, describe_concept
from app.deps import BuildDep, describe_index
from app.errors import problems
from index.snapshot import Snapshot
from medlink.errors import UnknownConceptError
from medlink.types import concept_id, curie

router = APIRouter(tags=["concepts"], responses=problems(404, 422, 503))


@router.get("/concepts/{identifier:path}")
def concept(identifier: str, build: BuildDep) -> ConceptOut:
    """Describe a concept by CUI, source id, CURIE or a code such as `mesh:D009203`; a retired id says so."""
    snapshot, index = build.snapshot, describe_index(build)
    owners = _owners(snapshot, identifier)
    if owners:
        whole = snapshot.concept(owners[0])
        described = describe_concept(whole, _references(snapshot, whole.broader), index)
        return described.model_copy(update={"same_code": owners[1:] or None})
    retirement = snapshot.retirement(identifier) or snapshot.retirement(concept_id(identifier))
    if retirement is None:
        raise UnknownConceptError("no concept of the active index build has this id or code")
    successors = _references(snapshot, retirement.successors)
    retired = RetirementOut(reason=retirement.reason, release=retirement.release, successors=successors)
    return ConceptOut(index=index, cui=retirement.id, curie=curie(retirement.id), retired=retired)


def _owners(snapshot: Snapshot, identifier: str) -> list[str]:
    """Return the concept of this id or CURIE, or else all concepts that carry it as a code."""
    # Some sources spell the prefix of their ids in mixed case.
    for known in (identifier, concept_id(identifier)):
        if snapshot.concepts([known]):
            return [known]
    sab, colon, code = concept_id(identifier).partition(":")
    return snapshot.coded(sab, code) if colon else []


def _references(snapshot: Snapshot, ids: tuple[str, ...]) -> list[ConceptRef]:
    known = snapshot.concepts(ids)
    return [
        ConceptRef(cui=i, curie=curie(i), preferred_name=known[i].preferred_name if i in known else None) for i in ids
    ]
