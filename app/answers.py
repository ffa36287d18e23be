"""What the service sends, as pydantic models made from domain records; pinned by docs/api/openapi.json."""

from app import examples
from app.explanations import Asked, ExplanationOut, explain
from app.facts import (
    CodeOut,
    DefinitionOut,
    IndexOut,
    Out,
    SemanticTypeOut,
    codes_of,
    definitions_of,
    example,
    types_of,
)
from app.schemas import Options
from medlink.stages import stage
from medlink.types import (
    Candidate,
    Conjunction,
    Expansion,
    LinkedPart,
    LinkResult,
    NilReason,
    Relation,
    Status,
    curie,
)


class CandidateOut(Out):
    """A concept offered as the answer."""

    rank: int
    cui: str
    curie: str
    preferred_name: str
    matched_name: str | None
    """The name that was found; null where its source's licence is above `max_licence_level` of `/info`."""
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
    def of(cls, candidate: Candidate, request: Options, asked: Asked) -> "CandidateOut":
        """Return the parts of a candidate that the request asks for; the others stay unset and are not sent."""
        concept, name = candidate.concept, candidate.name
        parts: dict[str, object] = {}
        if candidate.case_mismatch:
            parts["case_mismatch"] = True
        if "types" in request.include:
            parts["semantic_types"] = types_of(concept)
        if "codes" in request.include:
            parts["codes"] = codes_of(concept)
        if "definition" in request.include and concept.definitions:
            parts["definition"] = definitions_of(concept)[0]
        if request.explain:
            parts["explanation"] = explain(candidate, asked)
        return cls(
            rank=candidate.rank,
            cui=concept.id,
            curie=curie(concept.id),
            preferred_name=concept.preferred_name,
            matched_name=None if name.withheld else name.text,
            score=candidate.score,
            probability=candidate.probability,
            relation=candidate.relation,
            **parts,
        )


class SpanOut(Out):
    """A stretch of text: 0-based, end-exclusive, in code points."""

    start: int
    end: int


class DefinitionUsedOut(Out):
    """A short form with its long form; offsets are those of the context, or of the mention if it came without one."""

    short: str
    long: str
    short_start: int
    short_end: int
    long_start: int
    long_end: int


class ExpansionOut(Out):
    """What was searched instead of the mention: its short forms are written out."""

    text: str
    definitions: list[DefinitionUsedOut]

    @classmethod
    def of(cls, expansion: Expansion) -> "ExpansionOut":
        """Return the expansion with the definitions that it rests on."""
        definitions = [DefinitionUsedOut.model_validate(d, from_attributes=True) for d in expansion.used]
        return cls(text=expansion.text, definitions=definitions)


class ResultOut(Out):
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
        with stage("serialise", 1):
            facts = _facts(result, request, Asked.by(result))
            if result.mention.id is not None:
                facts["id"] = result.mention.id
            if result.parts:
                facts["parts"] = [PartOut.of_part(part, result, request) for part in result.parts]
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
    def of_part(cls, part: LinkedPart, whole: LinkResult, request: Options) -> "PartOut":
        """Return a part of a mention, with its place in the context if that of the mention is known."""
        facts = _facts(part.result, request, Asked.by_part(part, whole))
        begin = whole.mention.start
        facts["spans"] = _spans(part, 0)
        if begin is not None:
            facts["context_spans"] = _spans(part, begin)
        return cls.model_validate(facts)


def _facts(result: LinkResult, request: Options, asked: Asked) -> dict[str, object]:
    """Return what a mention and a part of one have in common, without what does not apply."""
    facts: dict[str, object] = {
        "text": result.mention.text,
        "status": result.status,
        "candidates": [CandidateOut.of(c, request, asked) for c in result.candidates],
    }
    if result.reason:
        facts["reason"] = result.reason
    if result.nearest:
        facts["nearest"] = CandidateOut.of(result.nearest, request, asked)
    if result.ties:
        facts["ties"] = list(result.ties)
    if result.truncated:
        facts["truncated"] = True
    if result.retired_from:
        facts["retired_from"] = result.retired_from
    return facts


def _spans(part: LinkedPart, begin: int) -> list[SpanOut]:
    return [SpanOut(start=start + begin, end=end + begin) for start, end in part.spans]


class ItemErrorOut(Out):
    """Why one mention of a bulk request was not linked."""

    code: str
    detail: str


class ErrorOut(Out):
    """Stands in the place of a mention that could not be linked; `item` counts from 0."""

    item: int
    id: str | None = None
    error: ItemErrorOut


class LinkResponse(Out):
    """Results in the order of the mentions."""

    model_config = example(examples.LINK)

    index: IndexOut
    results: list[ResultOut]


class BulkResponse(Out):
    """Results or errors in the order of the mentions."""

    model_config = example(examples.BULK)

    index: IndexOut
    results: list[ResultOut | ErrorOut]


class StreamHeadOut(Out):
    """The first line of a stream: what answers all of it."""

    index: IndexOut


class StreamErrorOut(Out):
    """The last line of a stream that could not go on; it has no `item`."""

    error: ItemErrorOut
    answered: int
    """How many items have their line; the others are to be sent again."""
