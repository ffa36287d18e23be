"""What the service sends, as pydantic models made from domain records; pinned by docs/api/openapi.json."""

from pydantic import BaseModel, ConfigDict

from app.schemas import Options
from medlink.types import (
    Candidate,
    Channel,
    Concept,
    Conjunction,
    Expansion,
    LinkedPart,
    LinkResult,
    NilReason,
    Relation,
    Status,
    curie,
)


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
    case_mismatch: bool | None = None
    """True if the mention spells this short form ("ALL") as an ordinary word ("all"); such a candidate is demoted."""
    semantic_types: list[SemanticTypeOut] | None = None
    codes: list[CodeOut] | None = None
    definition: DefinitionOut | None = None
    explanation: ExplanationOut | None = None

    @classmethod
    def of(cls, candidate: Candidate, request: Options) -> "CandidateOut":
        """Return the parts of a candidate that the request asks for; the others stay unset and are not sent."""
        concept, name = candidate.concept, candidate.name
        parts: dict[str, object] = {}
        if candidate.case_mismatch:
            parts["case_mismatch"] = True
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


class SpanOut(_Out):
    """A stretch of text: 0-based, end-exclusive, in code points."""

    start: int
    end: int


class DefinitionUsedOut(_Out):
    """A short form with its long form; offsets are those of the context, or of the mention if it came without one."""

    short: str
    long: str
    short_start: int
    short_end: int
    long_start: int
    long_end: int


class ExpansionOut(_Out):
    """What was searched instead of the mention: its short forms are written out."""

    text: str
    definitions: list[DefinitionUsedOut]

    @classmethod
    def of(cls, expansion: Expansion) -> "ExpansionOut":
        """Return the expansion with the definitions that it rests on."""
        definitions = [DefinitionUsedOut.model_validate(d, from_attributes=True) for d in expansion.used]
        return cls(text=expansion.text, definitions=definitions)


class ResultOut(_Out):
    """The answer to one mention."""

    id: str | None = None
    text: str
    status: Status
    reason: NilReason | None = None
    candidates: list[CandidateOut]
    """Concepts for the mention as a whole, also where there are `parts`."""
    nearest: CandidateOut | None = None
    parts: list["PartOut"] | None = None
    """What a mention of several concepts is made of ("breast and ovarian cancer"), unless it is a name itself."""
    conjunction: Conjunction | None = None
    """Whether all `parts` are meant or any."""
    ties: list[str] | None = None
    """Concepts that own the same best name, when there are several."""
    expansion: ExpansionOut | None = None
    """Sent if short forms were written out."""
    truncated: bool | None = None
    """True if the encoder read only the beginning of the mention."""
    retired_from: str | None = None
    """The concept id no longer in use that the candidates succeed."""

    @classmethod
    def of(cls, result: LinkResult, request: Options) -> "ResultOut":
        """Return a result as the request wants it; what does not apply stays unset and is not sent."""
        facts = _facts(result, request)
        if result.mention.id is not None:
            facts["id"] = result.mention.id
        if result.parts:
            begin = result.mention.start
            facts["parts"] = [PartOut.of_part(part, begin, request) for part in result.parts]
            facts["conjunction"] = result.conjunction
        if result.expansion:
            facts["expansion"] = ExpansionOut.of(result.expansion)
        return cls.model_validate(facts)


class PartOut(ResultOut):
    """The answer to one part of a mention; `text` is what was searched for it."""

    spans: list[SpanOut]
    """Where its words stand in the mention as sent; several if they do not stand side by side."""
    context_spans: list[SpanOut] | None = None
    """The same in the context; sent if the mention came with its `start`."""

    @classmethod
    def of_part(cls, part: LinkedPart, begin: int | None, request: Options) -> "PartOut":
        """Return a part of a mention that begins at `begin` of its context, if that is known."""
        facts = _facts(part.result, request)
        facts["spans"] = _spans(part, 0)
        if begin is not None:
            facts["context_spans"] = _spans(part, begin)
        return cls.model_validate(facts)


def _facts(result: LinkResult, request: Options) -> dict[str, object]:
    """Return what a mention and a part of one have in common, without what does not apply."""
    facts: dict[str, object] = {
        "text": result.mention.text,
        "status": result.status,
        "candidates": [CandidateOut.of(c, request) for c in result.candidates],
    }
    if result.reason:
        facts["reason"] = result.reason
    if result.nearest:
        facts["nearest"] = CandidateOut.of(result.nearest, request)
    if result.ties:
        facts["ties"] = list(result.ties)
    if result.truncated:
        facts["truncated"] = True
    if result.retired_from:
        facts["retired_from"] = result.retired_from
    return facts


def _spans(part: LinkedPart, begin: int) -> list[SpanOut]:
    return [SpanOut(start=start + begin, end=end + begin) for start, end in part.spans]


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
