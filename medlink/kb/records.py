"""The records that every terminology reader yields and the loader stores, one frozen dataclass a table."""

from dataclasses import dataclass
from typing import Literal

Suppress = Literal["N", "O", "Y", "E"]


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A vocabulary, the release it was read from and the terms it comes under.

    `licence_level` is the UMLS source restriction level (MRSAB.SRL): 0 is free to show to anyone.
    """

    sab: str
    name: str
    version: str
    licence: str = ""
    licence_level: int = 0
    attribution: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class NameRecord:
    """One string of one concept in one source.

    `rank` orders the names of a concept: the lowest that is not suppressed is the preferred name.
    """

    concept_id: str
    text: str
    sab: str
    tty: str = ""
    language: str = "ENG"
    code: str = ""
    suppress: Suppress = "N"
    rank: int = 0


@dataclass(frozen=True, slots=True)
class SemanticTypeRecord:
    """A semantic type of a concept."""

    concept_id: str
    tui: str
    name: str


@dataclass(frozen=True, slots=True)
class DefinitionRecord:
    """A definition of a concept as a source words it."""

    concept_id: str
    sab: str
    text: str


@dataclass(frozen=True, slots=True)
class CodeRecord:
    """An identifier of a concept in a source vocabulary; one code may belong to several concepts."""

    concept_id: str
    sab: str
    code: str


@dataclass(frozen=True, slots=True)
class BroaderRecord:
    """A directly broader concept."""

    concept_id: str
    broader_id: str
    sab: str


@dataclass(frozen=True, slots=True)
class TradeNameRecord:
    """A generic drug and one of its trade-name concepts; serves training pairs, never the index."""

    generic_id: str
    trade_id: str


@dataclass(frozen=True, slots=True)
class RetiredRecord:
    """A concept id that is no longer in use; no successor means that it is gone.

    `relation` says how the successor relates: SY (same, merged), RB (broader), RN (narrower), RO (other), DEL (none).
    """

    concept_id: str
    successor_id: str | None
    relation: str
    release: str = ""


Record = (
    SourceRecord
    | NameRecord
    | SemanticTypeRecord
    | DefinitionRecord
    | CodeRecord
    | BroaderRecord
    | TradeNameRecord
    | RetiredRecord
)
