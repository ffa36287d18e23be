"""What curation lays over a build: added names, blocked names and concepts, pinned mentions. A value, never changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from index.arrays import Bools, NameArrays
from index.snapshot import NameRow, Snapshot
from medlink.errors import UnknownConceptError
from medlink.kb.curation import Action, CurationState, Entry, curated_key
from medlink.text import encoder_text, match_key
from medlink.types import Concept, Encoder, LinkOptions, Name, Pin, Retirement, Retrieved, Retriever

SAB = "CURATION"
"""Source of the names that curation added; their code is the number of the entry."""

_Vectors = NDArray[np.float32]
_Names = Mapping[str, Sequence[NameRow]]


class AddedNames:
    """The names that curation adds to a build, numbered on from the build's own.

    Args:
        rows: The names.
        concept_ids: Whose name each is.
        texts: What the encoder reads of each.
        vectors: Unit vectors, float32 (n, dim).
        arrays: The filters.
    """

    def __init__(
        self,
        rows: Sequence[NameRow],
        concept_ids: Sequence[str],
        texts: Sequence[str],
        vectors: _Vectors,
        arrays: NameArrays,
    ) -> None:
        self.rows = tuple(rows)
        self.concept_ids = tuple(concept_ids)
        self.vectors = vectors
        self.vector_of_text = dict(zip(texts, vectors, strict=True))
        self._arrays = arrays
        self._concepts = np.array([row.concept for row in rows], np.int64)
        self._by_key: dict[str, list[int]] = {}
        for i, row in enumerate(rows):
            self._by_key.setdefault(match_key(row.name.text), []).append(i)

    def __len__(self) -> int:
        return len(self.rows)

    def by_key(self, key: str, options: LinkOptions) -> list[NameRow]:
        """Return the names under a match key that may answer."""
        places = self._by_key.get(key)
        if not places:
            return []
        may = self.allowed(options)
        return [self.rows[i] for i in places if may is None or may[i]]

    def allowed(self, options: LinkOptions) -> Bools | None:
        """Return whether each name may answer, which depends on its concept alone; None when all may."""
        passing = self._arrays.allowed_concepts(options)
        return None if passing is None else passing[self._concepts]

    def join(
        self,
        found: Sequence[Retrieved],
        places: NDArray[np.int64],
        scores: NDArray[np.float64],
        options: LinkOptions,
    ) -> list[Retrieved]:
        """Return what a channel found for a mention with those added names that may answer where they belong.

        Args:
            found: Concepts of the build, best first.
            places: Which of the added names the channel has scored, ascending, (m,).
            scores: Their scores, rounded like those of the build's names, (m,).
            options: The filters, and how many concepts to keep.
        """
        allowed = self.allowed(options)
        best = {retrieved.concept_id: retrieved for retrieved in found}
        for place, score in zip(places, scores, strict=True):
            if allowed is not None and not allowed[place]:
                continue
            concept_id = self.concept_ids[place]
            known = best.get(concept_id)
            if known is None or score > known.score:
                best[concept_id] = Retrieved(concept_id, self.rows[place].name, float(score))
        return sorted(best.values(), key=lambda r: (-r.score, r.concept_id))[: options.top_k]


class Pins:
    """Which concept a mention is pinned to; `pins` are by curated key, each with the number of its concept."""

    def __init__(self, pins: Mapping[tuple[str, str], tuple[int, Pin]], arrays: NameArrays) -> None:
        self._pins = pins
        self._arrays = arrays

    def pinned(self, text: str, options: LinkOptions) -> Pin | None:
        """Return the pin of a mention; None if there is none, or a filter leaves its concept out."""
        found = self._pins.get(curated_key(text)) if self._pins else None
        if found is None:
            return None
        number, pin = found
        passing = self._arrays.allowed_concepts(options)
        return pin if passing is None or passing[number] else None


@dataclass(frozen=True, slots=True)
class Overlay:
    """One revision of curation as it applies to one build."""

    revision: int
    arrays: NameArrays
    """The build's filters, which blocked names do not pass either."""
    added: AddedNames
    pins: Pins
    blocked_names: frozenset[int]
    blocked_concepts: frozenset[str]


class CurableRetriever(Retriever, Protocol):
    """A channel that curation can change."""

    def under(self, overlay: Overlay) -> Retriever:
        """Return the same channel with the names that are added and without those that are blocked."""


def lay_over(
    state: CurationState, snapshot: Snapshot, arrays: NameArrays, encoder: Encoder, before: Overlay | None = None
) -> Overlay:
    """Return what the corrections in force mean for a build.

    One whose concept or name the build does not have means nothing there. Blocks take away names of the build, so
    that a name may be blocked everywhere and added where it belongs; a blocked concept loses what was added too.

    Args:
        state: The corrections.
        snapshot: The build's concepts.
        arrays: The build's filters.
        encoder: The build's encoder; it encodes each added name once.
        before: An overlay of the same build, whose vectors are used again.
    """
    of_action: dict[Action, list[Entry]] = {}
    for entry in state.entries:
        of_action.setdefault(entry.action, []).append(entry)
    blocked = snapshot.names_of(_concept_ids(of_action.get("block_concept", [])))
    names = snapshot.names_of(sorted(set(_concept_ids(state.entries)) - set(blocked)))
    hidden = _blocked_names(of_action.get("block_name", []), snapshot, names)
    hidden |= {row.number for rows in blocked.values() for row in rows}
    curated = arrays.without(hidden)
    added = _added_names(of_action.get("add_synonym", []), names, curated, encoder, before)
    pins = Pins(_pins(of_action.get("pin_mention", []), names), curated)
    return Overlay(state.revision, curated, added, pins, frozenset(hidden), frozenset(blocked))


def _concept_ids(entries: Sequence[Entry]) -> list[str]:
    return sorted({entry.concept_id for entry in entries if entry.concept_id is not None})


def _blocked_names(entries: Sequence[Entry], snapshot: Snapshot, names: _Names) -> set[int]:
    keys = [(entry, curated_key(entry.text or "")) for entry in entries]
    everywhere = snapshot.names_by_key(sorted({key[0] for entry, key in keys if entry.concept_id is None}))
    return {
        row.number
        for entry, key in keys
        for row in (everywhere.get(key[0], ()) if entry.concept_id is None else names.get(entry.concept_id, ()))
        if curated_key(row.name.text) == key
    }


def _added_names(
    entries: Sequence[Entry], names: _Names, arrays: NameArrays, encoder: Encoder, before: Overlay | None
) -> AddedNames:
    held = list(_held(entries, names))
    first = len(arrays.concept_of_name)
    rows = [
        NameRow(first + i, preferred.concept, Name(text, SAB, language="", code=str(entry.id)), is_preferred=False)
        for i, (entry, _, text, preferred) in enumerate(held)
    ]
    texts = [encoder_text(text, lowercase=encoder.lowercase) for _, _, text, _ in held]
    known = before.added.vector_of_text if before else {}
    new = sorted(set(texts) - set(known))
    known = known | dict(zip(new, encoder.encode(new).vectors, strict=True))
    vectors = np.array([known[text] for text in texts], np.float32).reshape(len(texts), encoder.dim)
    return AddedNames(rows, [concept_id for _, concept_id, _, _ in held], texts, vectors, arrays)


def _pins(entries: Sequence[Entry], names: _Names) -> dict[tuple[str, str], tuple[int, Pin]]:
    return {
        curated_key(text): (preferred.concept, Pin(concept_id, preferred.name, entry.id, entry.why))
        for entry, concept_id, text, preferred in _held(entries, names)
    }


def _held(entries: Sequence[Entry], names: _Names) -> Iterator[tuple[Entry, str, str, NameRow]]:
    """Yield the entries whose concept is there, with its id, their text and its preferred name."""
    for entry in entries:
        if entry.concept_id is not None and entry.text is not None and entry.concept_id in names:
            yield entry, entry.concept_id, entry.text, names[entry.concept_id][0]


class CuratedConcepts:
    """The concepts of a build as curation leaves them."""

    def __init__(self, snapshot: Snapshot, overlay: Overlay) -> None:
        self._snapshot = snapshot
        self._overlay = overlay

    def concepts(self, ids: Sequence[str]) -> dict[str, Concept]:
        """Return concepts by id, without their names; ids that are not there or blocked are left out."""
        return self._snapshot.concepts([i for i in ids if i not in self._overlay.blocked_concepts])

    def concept(self, concept_id: str) -> Concept:
        """Return one concept with all its names, the added ones last.

        Raises:
            UnknownConceptError: No concept has this id, or it is blocked.
        """
        if concept_id in self._overlay.blocked_concepts:
            raise UnknownConceptError("curation blocks the concept of this id")
        concept = self._snapshot.concept(concept_id)
        own = self._snapshot.names_of([concept_id])[concept_id] if self._overlay.blocked_names else []
        blocked = {row.name for row in own if row.number in self._overlay.blocked_names}
        added = self._overlay.added
        new = (row.name for row, owner in zip(added.rows, added.concept_ids, strict=True) if owner == concept_id)
        return replace(concept, names=(*(name for name in concept.names if name not in blocked), *new))

    def coded(self, sab: str, code: str) -> list[str]:
        """Return the ids of all concepts that carry a code and are not blocked, in order."""
        return [i for i in self._snapshot.coded(sab, code) if i not in self._overlay.blocked_concepts]

    def retirement(self, concept_id: str) -> Retirement | None:
        """Return what became of a retired id, or None if it was never retired."""
        return self._snapshot.retirement(concept_id)

    def is_blocked(self, concept_id: str) -> bool:
        """Say whether curation blocks a concept."""
        return concept_id in self._overlay.blocked_concepts
