"""`GET /concepts/{id}`: everything the index build knows about a concept."""

from fastapi import APIRouter

from app.deps import BuildDep, describe_index
from app.errors import problems
from app.facts import ConceptOut, ConceptRef, RetirementOut, describe_concept
from index.concepts import CuratedConcepts
from medlink.errors import UnknownConceptError
from medlink.types import curie

router = APIRouter(tags=["concepts"], responses=problems(404, 422, 503))


@router.get("/concepts/{identifier:path}")
def concept(identifier: str, build: BuildDep) -> ConceptOut:
    """Describe a concept by CUI, source id, CURIE or a code such as `mesh:D009203`; a retired id says so."""
    concepts, index = build.concepts, describe_index(build)
    owners = _owners(concepts, identifier)
    if owners:
        whole = concepts.concept(owners[0])
        described = describe_concept(whole, _references(concepts, whole.broader), index)
        return described.model_copy(update={"same_code": owners[1:] or None})
    retirement = next(filter(None, map(concepts.retirement, concepts.spellings(identifier))), None)
    if retirement is None:
        raise UnknownConceptError("no concept of the active index build has this id or code")
    successors = _references(concepts, retirement.successors)
    retired = RetirementOut(reason=retirement.reason, release=retirement.release, successors=successors)
    return ConceptOut(index=index, cui=retirement.id, curie=curie(retirement.id), retired=retired)


def _owners(concepts: CuratedConcepts, identifier: str) -> list[str]:
    """Return the concept of this id or CURIE, or else all concepts that carry it as a code."""
    for known in concepts.spellings(identifier):
        if concepts.is_blocked(known) or concepts.concepts([known]):
            return [known]
    return concepts.coded_as(identifier) if ":" in identifier else []


def _references(concepts: CuratedConcepts, ids: tuple[str, ...]) -> list[ConceptRef]:
    known = concepts.concepts(ids)
    return [
        ConceptRef(cui=i, curie=curie(i), preferred_name=known[i].preferred_name if i in known else None) for i in ids
    ]
