"""Who does the work of linking, and what is asked of them."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from medlink.types import Concept, ConceptFacts, Embeddings, LinkOptions, Name, Pin, Retirement, Retrieval


class Encoder(Protocol):
    """Turns texts into unit vectors; a vector never depends on the batch that it was computed in."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    @property
    def lowercase(self) -> bool:
        """Whether `encoder_text` lower-cases for this encoder."""

    @property
    def fingerprint(self) -> str:
        """Hash of everything that decides a vector: weights, tokenizer, pooling, length."""

    def encode(self, texts: Sequence[str]) -> Embeddings:
        """Encode texts that went through `encoder_text`; n = 0 gives (0, dim)."""


class Retriever(Protocol):
    """One channel of an index build: finds concepts for mentions."""

    def search(self, mentions: Sequence[str], options: LinkOptions) -> list[Retrieval]:
        """Return, for each mention, at least `top_k` distinct concepts if they exist, best first."""


class PinSource(Protocol):
    """Where the linker learns which concept a mention is pinned to."""

    def pinned(self, text: str, options: LinkOptions) -> Pin | None:
        """Return the pin of a mention; None if there is none, or a filter leaves its concept out."""


class ConceptSource(Protocol):
    """Where the linker gets the facts about a concept from."""

    def concepts(self, ids: Sequence[str]) -> dict[str, Concept]:
        """Return concepts by id, without their names; ids that are not there are left out."""

    def spellings(self, identifier: str) -> Sequence[str]:
        """Return how an id or CURIE may be spelt here, as it was sent first: the case of a prefix says nothing."""

    def answering(self, ids: Sequence[str], options: LinkOptions) -> dict[str, Name]:
        """Return, by concept, the first name that the options let answer; concepts without one are left out."""

    def facts(self, ids: Sequence[str]) -> dict[str, ConceptFacts]:
        """Return what is known of concepts by id; ids that are not there are left out."""

    def rarity(self, words: Sequence[str]) -> NDArray[np.float64]:
        """Return, for words as the loose key has them, how rare each is among the names; higher is rarer."""

    def retirement(self, concept_id: str) -> Retirement | None:
        """Return what became of a retired id, or None if it was never retired."""
