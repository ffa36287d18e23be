"""Which names an answer may show: those of sources whose licence level is not above the one that is set."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from index.overlay import SAB, Overlay
from index.snapshot import NameRow, Snapshot
from medlink.types import Candidate, Concept, LinkedPart, LinkOptions, LinkResult, Name

UNKNOWN = 9
"""Level of a source that says nothing of its terms, and the highest there is."""


@dataclass(frozen=True, slots=True)
class Licence:
    """The sources whose names and definitions may be shown; None means every one."""

    sources: frozenset[str] | None = None

    @classmethod
    def up_to(cls, level: int, sources: Iterable[Mapping[str, Any]]) -> "Licence":
        """Return what a level allows of the sources that a manifest lists.

        A source that the manifest does not list counts as of unknown terms, and one with several terms by the
        strictest. What curation adds is the user's own.
        """
        if level >= UNKNOWN:
            return cls()
        levels: dict[str, int] = {}
        for source in sources:
            levels[source["sab"]] = max(source["licence_level"], levels.get(source["sab"], 0))
        return cls(frozenset({SAB, *(sab for sab, strictest in levels.items() if strictest <= level)}))

    def shows(self, sab: str) -> bool:
        """Say whether the names of a source may be shown."""
        return self.sources is None or sab in self.sources


class Shown:
    """Concepts, names and results as they may be shown: what matched keeps its rank and loses its text.

    Args:
        licence: What may be shown.
        snapshot: The names of the build.
        overlay: What curation makes of them.
    """

    def __init__(self, licence: Licence, snapshot: Snapshot, overlay: Overlay) -> None:
        self._licence = licence
        self._snapshot = snapshot
        self._overlay = overlay

    def concepts(self, concepts: Mapping[str, Concept]) -> dict[str, Concept]:
        """Return concepts by names, and with definitions, that may be shown; the name is the id if none may."""
        if self._licence.sources is None or not concepts:
            return dict(concepts)
        names = self._names(list(concepts))
        return {id_: self._concept(concept, names[id_]) for id_, concept in concepts.items()}

    def results(self, results: Sequence[LinkResult]) -> list[LinkResult]:
        """Return results whose matched names may be shown, or are withheld."""
        if self._licence.sources is None:
            return list(results)
        names = self._names(sorted({c.concept.id for result in results for c in _candidates(result)}))
        return [self._result(result, names) for result in results]

    def _names(self, ids: Sequence[str]) -> dict[str, list[Name]]:
        """Return, by concept, the names that may be shown, preferred first."""
        rows: dict[str, list[NameRow]] = self._snapshot.names_of(ids)
        blocked, added = self._overlay.blocked_names, self._overlay.added
        own = {
            id_: [r.name for r in rows.get(id_, ()) if r.number not in blocked and self._licence.shows(r.name.sab)]
            for id_ in ids
        }
        return {id_: [*names, *(row.name for row in added.of(id_, LinkOptions()))] for id_, names in own.items()}

    def _concept(self, concept: Concept, names: Sequence[Name]) -> Concept:
        texts = [name.text for name in sorted(names, key=lambda name: name.suppressed)]
        preferred = concept.preferred_name if concept.preferred_name in texts else next(iter(texts), concept.id)
        return replace(
            concept,
            preferred_name=preferred,
            names=tuple(name for name in concept.names if self._licence.shows(name.sab)),
            definitions=tuple(d for d in concept.definitions if self._licence.shows(d.sab)),
        )

    def _result(self, result: LinkResult, names: Mapping[str, Sequence[Name]]) -> LinkResult:
        return replace(
            result,
            candidates=tuple(self._candidate(candidate, names) for candidate in result.candidates),
            nearest=self._candidate(result.nearest, names) if result.nearest else None,
            parts=tuple(LinkedPart(part.spans, self._result(part.result, names)) for part in result.parts),
        )

    def _candidate(self, candidate: Candidate, names: Mapping[str, Sequence[Name]]) -> Candidate:
        name = candidate.name
        if self._licence.shows(name.sab):
            return candidate
        same = [other for other in names[candidate.concept.id] if other.text == name.text]
        return replace(candidate, name=same[0] if same else replace(name, text="", code="", withheld=True))


def _candidates(result: LinkResult) -> list[Candidate]:
    nearest = [result.nearest] if result.nearest else []
    of_parts = [candidate for part in result.parts for candidate in _candidates(part.result)]
    return [*result.candidates, *nearest, *of_parts]
