"""The words of medlink as frozen records: what the linker takes and gives."""

import re
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Channel = Literal["exact", "dense", "lexical"]
CHANNELS: tuple[Channel, ...] = ("exact", "dense", "lexical")
"""In the order of trust."""
DEFAULT_CHANNELS = CHANNELS
"""Used unless others are asked for."""
Status = Literal["linked", "ambiguous", "nil"]
NilReason = Literal["below_threshold", "filtered_out", "empty_after_normalisation", "no_candidate"]
Relation = Literal["exact", "broader"]
Conjunction = Literal["and", "or"]

_CUI = re.compile(r"C\d{7}")


def curie(concept_id: str) -> str:
    """Return the Bioregistry form of a concept id.

    An id that names no vocabulary (no prefix and not a CUI) has no such form and comes back unchanged.

    >>> curie("C0027051"), curie("MONDO:0005068"), curie("D009203")
    ('umls:C0027051', 'mondo:0005068', 'D009203')
    """
    if _CUI.fullmatch(concept_id):
        return f"umls:{concept_id}"
    prefix, colon, local = concept_id.partition(":")
    return f"{prefix.lower()}:{local}" if colon else concept_id


def concept_id(identifier: str) -> str:
    """Return the id under which the store knows a concept, given that id or its CURIE.

    >>> concept_id("umls:C0027051"), concept_id("mondo:0005068"), concept_id("MONDO:0005068")
    ('C0027051', 'MONDO:0005068', 'MONDO:0005068')
    """
    prefix, colon, local = identifier.partition(":")
    if not colon:
        return identifier
    return local if prefix.lower() == "umls" else f"{prefix.upper()}:{local}"


@dataclass(frozen=True, slots=True)
class Mention:
    """A surface form to link, with the place it was found in when that is known.

    `start` and `end` are 0-based, end-exclusive code-point offsets into `context`.
    """

    text: str
    id: str | None = None
    context: str | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """One string of one concept in one source."""

    text: str
    sab: str
    tty: str = ""
    language: str = "ENG"
    code: str = ""
    suppressed: bool = False
    withheld: bool = False
    """Whether the licence of the source keeps the text, which is empty then, from being shown."""


@dataclass(frozen=True, slots=True)
class SemanticType:
    """A semantic type of the UMLS Semantic Network, e.g. T047 Disease or Syndrome."""

    tui: str
    name: str


@dataclass(frozen=True, slots=True)
class Code:
    """A concept's identifier in a source vocabulary."""

    sab: str
    code: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A concept's definition as a source words it."""

    sab: str
    text: str


@dataclass(frozen=True, slots=True)
class Concept:
    """A unit of meaning of the knowledge base, whole; its preferred name is the first of `names`."""

    id: str
    preferred_name: str
    names: tuple[Name, ...]
    semantic_types: tuple[SemanticType, ...] = ()
    codes: tuple[Code, ...] = ()
    definitions: tuple[Definition, ...] = ()
    broader: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConceptFacts:
    """What the linker weighs of a concept: the concept itself, without its names, and how common and broad it is.

    `words` are those of the preferred name's loose key, `name_sources` the sources of the names, `names` counts those
    of different match keys, `descendants` the concepts below it and `children` those directly below.
    """

    concept: Concept
    words: tuple[str, ...]
    name_sources: frozenset[str]
    names: int
    descendants: int
    children: int


@dataclass(frozen=True, slots=True)
class Retirement:
    """What became of a concept id: merged into or replaced by `successors`, or gone when there is none."""

    id: str
    successors: tuple[str, ...]
    reason: str
    release: str = ""


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """What a caller may choose about an answer; the same for every mention of a request."""

    top_k: int = 5
    semantic_types: frozenset[str] = frozenset()
    sabs: frozenset[str] = frozenset()
    threshold: float | None = None
    channels: tuple[Channel, ...] = DEFAULT_CHANNELS
    include_suppressed: bool = False
    composites: bool = True
    variants: bool = True
    """Whether the exact channel may answer with variants of the string where no name is the string itself."""
    case: bool = True
    """Whether capitals mean anything; not where mentions were put in lower case before they came."""

    @property
    def filtered(self) -> bool:
        """Whether a filter may keep concepts from answering."""
        return bool(self.semantic_types or self.sabs)

    def unfiltered(self) -> "LinkOptions":
        """Return the same options without filters."""
        return replace(self, semantic_types=frozenset(), sabs=frozenset())


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One concept that a channel found for a mention, with the name that it was found by.

    `score` is a similarity, higher is better; in the exact channel, 1.0 is the name itself and less a variant of it.
    """

    concept_id: str
    name: Name
    score: float
    is_preferred: bool = False
    words: tuple[str, ...] = ()
    """The words of the name's loose key."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What one channel found for one mention, best first; `truncated` if it did not read the whole of it."""

    found: tuple[Retrieved, ...] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Pin:
    """A person's word that a mention is this concept, known by its preferred name; `entry` is of the curation list."""

    concept_id: str
    name: Name
    entry: int
    why: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A concept offered as the answer, best first, `rank` from 1."""

    rank: int
    concept: Concept
    name: Name
    score: float
    channels: tuple[tuple[Channel, float], ...]
    probability: float | None = None
    relation: Relation = "exact"
    case_mismatch: bool = False
    """Whether the mention spells this short form ("ALL") as an ordinary word ("all")."""
    pin: Pin | None = None


@dataclass(frozen=True, slots=True)
class AbbreviationDefinition:
    """A short form with the long form that the text gives for it, both with their code-point offsets."""

    short: str
    long: str
    short_start: int
    short_end: int
    long_start: int
    long_end: int


@dataclass(frozen=True, slots=True)
class Replacement:
    """What an expansion has in place of a stretch of the mention; `start` and `end` are offsets into the mention."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Expansion:
    """A mention with its short forms written out, the definitions that were used, and where they were put."""

    text: str
    used: tuple[AbbreviationDefinition, ...] = ()
    replaced: tuple[Replacement, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkResult:
    """The answer to one mention.

    `candidates` answer the mention as a whole, also where `parts` answer what it is made of. `retired_from` is the
    concept id no longer in use that the candidates succeed.
    """

    mention: Mention
    status: Status
    candidates: tuple[Candidate, ...] = ()
    reason: NilReason | None = None
    nearest: Candidate | None = None
    ties: tuple[str, ...] = ()
    truncated: bool = False
    expansion: Expansion | None = None
    parts: tuple["LinkedPart", ...] = ()
    conjunction: Conjunction | None = None
    retired_from: str | None = None


@dataclass(frozen=True, slots=True)
class LinkedPart:
    """The answer to one part of a composite mention, with the spans of the mention that it is put together from.

    Spans are code-point offsets into the mention as sent, 0-based and end-exclusive.
    """

    spans: tuple[tuple[int, int], ...]
    result: LinkResult


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Unit vectors, float32 (n, dim), and whether each text was cut to the encoder's length, bool (n,)."""

    vectors: NDArray[np.float32]
    truncated: NDArray[np.bool_]
