"""What the service sends, as pydantic models made from domain records; pinned by docs/api/openapi.json."""

from pydantic import BaseModel, ConfigDict

from app.schemas import Options
from medlink.types import Candidate, Channel, Concept, LinkResult, NilReason, Relation, Status, curie


class _Out(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True, serialize_by_alias=True)


class SemanticTypeOut(_Out):
    """A semantic type."""

    tui: str
    name: str


class CodeOut(_Out):
    """An identifier of the concept in a source vocabulary."""

    sab: str
    code: str


class DefinitionOut(_Out):
    """A definition as a source words it."""

    sab: str
    text: str


class PinOut(_Out):
    """The correction by which a person said that the mention is this concept."""

    entry: int
    why: str


class ExplanationOut(_Out):
    """Why a candidate is there."""

    channels: dict[Channel, float]
    matched_sab: str
    matched_tty: str
    pin: PinOut | None = None
    """Set if the mention is pinned to the concept, which is first then whatever the channels found."""

    @classmethod
    def of(cls, candidate: Candidate) -> "ExplanationOut":
        """Return what speaks for a candidate."""
        pin = {"pin": PinOut(entry=candidate.pin.entry, why=candidate.pin.why)} if candidate.pin else {}
        name = candidate.name
        return cls(channels=dict(candidate.channels), matched_sab=name.sab, matched_tty=name.tty, **pin)


class CandidateOut(_Out):
    """A concept offered as the answer."""

    rank: int
    cui: str
    curie: str
    preferred_name: str
    matched_name: str
    score: float
    probability: float | None
    relation: Relation
    semantic_types: list[SemanticTypeOut] | None = None
    codes: list[CodeOut] | None = None
    definition: DefinitionOut | None = None
    explanation: ExplanationOut | None = None

    @classmethod
    def of(cls, candidate: Candidate, request: Options) -> "CandidateOut":
        """Return the parts of a candidate that the request asks for; the others stay unset and are not sent."""
        concept, name = candidate.concept, candidate.name
        parts: dict[str, object] = {}
        if "types" in request.include:
            parts["semantic_types"] = _types(concept)
        if "codes" in request.include:
            parts["codes"] = _codes(concept)
        if "definition" in request.include and concept.definitions:
            parts["definition"] = _definitions(concept)[0]
        if request.explain:
            parts["explanation"] = ExplanationOut.of(candidate)
        return cls(
            rank=candidate.rank,
            cui=concept.id,
            curie=curie(concept.id),
            preferred_name=concept.preferred_name,
            matched_name=name.text,
            score=candidate.score,
            probability=candidate.probability,
            relation=candidate.relation,
            **parts,
        )


class ResultOut(_Out):
    """The answer to one mention."""

    id: str | None = None
    text: str
    status: Status
    reason: NilReason | None = None
    candidates: list[CandidateOut]
    nearest: CandidateOut | None = None
    ties: list[str] | None = None
    """Concepts that own the same best name, when there are several."""
    truncated: bool | None = None
    """True if the encoder read only the beginning of the mention."""

    @classmethod
    def of(cls, result: LinkResult, request: Options) -> "ResultOut":
        """Return a result as the request wants it; what does not apply stays unset and is not sent."""
        parts: dict[str, object] = {}
        if result.mention.id is not None:
            parts["id"] = result.mention.id
        if result.reason:
            parts["reason"] = result.reason
        if result.nearest:
            parts["nearest"] = CandidateOut.of(result.nearest, request)
        if result.ties:
            parts["ties"] = list(result.ties)
        if result.truncated:
            parts["truncated"] = True
        return cls(
            text=result.mention.text,
            status=result.status,
            candidates=[CandidateOut.of(c, request) for c in result.candidates],
            **parts,
        )


class ItemErrorOut(_Out):
    """Why one mention of a bulk request was not linked."""

    code: str
    detail: str


class ErrorOut(_Out):
    """Stands in the place of a mention that could not be linked; `item` counts from 0."""

    item: int
    id: str | None = None
    error: ItemErrorOut


class IndexOut(_Out):
    """The index build that all results of the answer come from, and the curation that lay over it."""

    id: str
    curation_revision: int
    channels: list[Channel]


class LinkResponse(_Out):
    """Results in the order of the mentions."""

    index: IndexOut
    results: list[ResultOut]


class BulkResponse(_Out):
    """Results or errors in the order of the mentions."""

    index: IndexOut
    results: list[ResultOut | ErrorOut]


class NameOut(_Out):
    """One string of the concept in one source."""

    text: str
    sab: str
    tty: str
    language: str
    code: str
    suppressed: bool


class ConceptRef(_Out):
    """A concept by id and name; no name if it is not in the index build."""

    cui: str
    curie: str
    preferred_name: str | None


class RetirementOut(_Out):
    """What became of a retired id; no successor means that it is gone."""

    reason: str
    release: str
    successors: list[ConceptRef]


class ConceptOut(_Out):
    """A concept, whole. Of a retired one there is only `retired`."""

    index: IndexOut
    cui: str
    curie: str
    preferred_name: str | None = None
    names: list[NameOut] = []
    semantic_types: list[SemanticTypeOut] = []
    codes: list[CodeOut] = []
    definitions: list[DefinitionOut] = []
    broader: list[ConceptRef] = []
    retired: RetirementOut | None = None
    same_code: list[str] | None = None
    """Other concepts that carry the code which was asked for."""


def describe_concept(concept: Concept, broader: list[ConceptRef], index: IndexOut) -> ConceptOut:
    """Return a concept with everything the build knows about it."""
    return ConceptOut(
        index=index,
        cui=concept.id,
        curie=curie(concept.id),
        preferred_name=concept.preferred_name,
        names=[NameOut.model_validate(n, from_attributes=True) for n in concept.names],
        semantic_types=_types(concept),
        codes=_codes(concept),
        definitions=_definitions(concept),
        broader=broader,
    )


def _types(concept: Concept) -> list[SemanticTypeOut]:
    return [SemanticTypeOut(tui=t.tui, name=t.name) for t in concept.semantic_types]


def _codes(concept: Concept) -> list[CodeOut]:
    return [CodeOut(sab=c.sab, code=c.code) for c in concept.codes]


def _definitions(concept: Concept) -> list[DefinitionOut]:
    return [DefinitionOut(sab=d.sab, text=d.text) for d in concept.definitions]
