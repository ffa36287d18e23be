"""What the service reads and sends, as types of plain JSON values."""

from typing import Any, NotRequired, TypedDict


class MentionJson(TypedDict):
    """A mention as the service reads it."""

    text: str
    id: NotRequired[str]
    context: NotRequired[str]
    start: NotRequired[int]
    end: NotRequired[int]


class CodeJson(TypedDict):
    """A concept's identifier in a source vocabulary."""

    sab: str
    code: str


class SemanticTypeJson(TypedDict):
    """A semantic type of the UMLS Semantic Network."""

    tui: str
    name: str


class CandidateJson(TypedDict):
    """A concept offered as the answer; `codes` are there when they were asked for."""

    rank: int
    cui: str
    curie: str
    preferred_name: str
    matched_name: str | None
    score: float
    probability: NotRequired[float | None]
    case_mismatch: NotRequired[bool]
    relation: NotRequired[str]
    semantic_types: NotRequired[list[SemanticTypeJson]]
    codes: NotRequired[list[CodeJson]]
    definition: NotRequired[dict[str, Any]]
    explanation: NotRequired[dict[str, Any]]


class ResultJson(TypedDict):
    """The answer to one mention; `error` stands instead of an answer for a bulk item that could not be linked."""

    id: NotRequired[str | None]
    text: NotRequired[str]
    status: NotRequired[str]
    reason: NotRequired[str | None]
    candidates: NotRequired[list[CandidateJson]]
    nearest: NotRequired[CandidateJson]
    ties: NotRequired[list[str]]
    truncated: NotRequired[bool]
    parts: NotRequired[list[dict[str, Any]]]
    conjunction: NotRequired[str]
    expansion: NotRequired[dict[str, Any]]
    retired_from: NotRequired[str]
    item: NotRequired[int]
    error: NotRequired[dict[str, Any]]


class ReplyJson(TypedDict):
    """Results in the order of the mentions, and the index build that gave them."""

    index: dict[str, Any]
    results: list[ResultJson]
