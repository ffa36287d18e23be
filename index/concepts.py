"""What a build knows of its concepts, as curation leaves them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from index.facts import Facts
from index.licences import Licence, Shown
from index.overlay import Overlay
from index.snapshot import Snapshot
from index.words import Words
from medlink.errors import UnknownConceptError
from medlink.loose_key import loose_key
from medlink.types import Concept, ConceptFacts, LinkOptions, LinkResult, Name, Retirement

# Some 2 KiB each.
_REMEMBER = 50_000


class CuratedConcepts:
    """The concepts of a build under one revision of curation; their facts stay as they were built."""

    def __init__(
        self, snapshot: Snapshot, facts: Facts, words: Words, overlay: Overlay, licence: Licence | None = None
    ) -> None:
        self._snapshot = snapshot
        self._facts = facts
        self._words = words
        self._overlay = overlay
        self._licence = licence or Licence()
        self._shown = Shown(self._licence, snapshot, overlay)
        self._remembered: dict[str, ConceptFacts] = {}

    def under(self, overlay: Overlay) -> "CuratedConcepts":
        """Return the same concepts as other corrections leave them."""
        return CuratedConcepts(self._snapshot, self._facts, self._words, overlay, self._licence)

    def within(self, licence: Licence) -> "CuratedConcepts":
        """Return the same concepts with only what may be shown of them."""
        return CuratedConcepts(self._snapshot, self._facts, self._words, self._overlay, licence)

    def show(self, results: Sequence[LinkResult]) -> list[LinkResult]:
        """Return results as they may be shown."""
        return self._shown.results(results)

    def concepts(self, ids: Sequence[str]) -> dict[str, Concept]:
        """Return concepts by id, without their names; ids that are not there or blocked are left out."""
        found = self._snapshot.concepts(self._unblocked(ids))
        return self._shown.concepts({id_: self._renamed(concept) for id_, concept in found.items()})

    def concept(self, concept_id: str) -> Concept:
        """Return one concept with all its names, the added ones last.

        Raises:
            UnknownConceptError: No concept has this id, or it is blocked.
        """
        if self.is_blocked(concept_id):
            raise UnknownConceptError("curation blocks the concept of this id")
        concept = self._renamed(self._snapshot.concept(concept_id))
        own = self._snapshot.names_of([concept_id])[concept_id] if self._overlay.blocked_names else []
        blocked = {row.name for row in own if row.number in self._overlay.blocked_names}
        kept = (name for name in concept.names if name not in blocked)
        new = (row.name for row in self._overlay.added.of(concept_id, LinkOptions()))
        whole = replace(concept, names=(*kept, *new))
        return self._shown.concepts({concept_id: whole})[concept_id]

    def answering(self, ids: Sequence[str], options: LinkOptions) -> dict[str, Name]:
        """Return, by concept, the first name that the options let answer; concepts without one are left out."""
        allowed = self._overlay.arrays.allowed(options)
        found: dict[str, Name] = {}
        for concept_id, rows in self._snapshot.names_of(ids).items():
            own = [row for row in rows if allowed is None or allowed[row.number]]
            for row in [*own, *self._overlay.added.of(concept_id, options)][:1]:
                found[concept_id] = row.name
        return found

    def facts(self, ids: Sequence[str]) -> dict[str, ConceptFacts]:
        """Return what the linker weighs of concepts; ids that are not there or blocked are left out."""
        remembered = self._remembered
        known = {id_: remembered[id_] for id_ in ids if id_ in remembered}
        described = self._snapshot.described(self._unblocked([id_ for id_ in ids if id_ not in known]))
        new = dict(zip(described, map(self._renamed_facts, self._facts.of(list(described.values()))), strict=True))
        if len(self._remembered) > _REMEMBER:
            # Others may be reading the old one.
            self._remembered = {}
        self._remembered.update(new)
        return known | new

    def rarity(self, words: Sequence[str]) -> NDArray[np.float64]:
        """Return, for words as the loose key has them, how rare each is among the names; higher is rarer."""
        return self._words.rarity(words)

    def coded(self, sab: str, code: str) -> list[str]:
        """Return the ids of all concepts that carry a code and are not blocked, in order."""
        return self._unblocked(self._snapshot.coded(sab, code))

    def coded_as(self, curie: str) -> list[str]:
        """Return the ids of all concepts that carry the code of a CURIE and are not blocked, in order."""
        return self._unblocked(self._snapshot.coded_as(curie))

    def spellings(self, identifier: str) -> list[str]:
        """Return how the build may spell an id or CURIE, as it was sent first."""
        return self._snapshot.spellings(identifier)

    def retirement(self, concept_id: str) -> Retirement | None:
        """Return what became of a retired id, or None if it was never retired."""
        return self._snapshot.retirement(concept_id)

    def is_blocked(self, concept_id: str) -> bool:
        """Say whether curation blocks a concept."""
        return concept_id in self._overlay.blocked_concepts

    def _unblocked(self, ids: Sequence[str]) -> list[str]:
        return [id_ for id_ in ids if id_ not in self._overlay.blocked_concepts]

    def _renamed(self, concept: Concept) -> Concept:
        name = self._overlay.renamed.get(concept.id)
        return replace(concept, preferred_name=name.text) if name else concept

    def _renamed_facts(self, facts: ConceptFacts) -> ConceptFacts:
        name = self._overlay.renamed.get(facts.concept.id)
        if not name:
            return facts
        return replace(facts, concept=self._renamed(facts.concept), words=tuple(loose_key(name.text).split()))
