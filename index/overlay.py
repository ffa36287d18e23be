"""What curation lays over a build: added names, blocked names and concepts, pinned mentions. A value, never changed."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from index.arrays import Bools, NameArrays
from index.snapshot import NameRow, Snapshot
from medlink.kb.curation import Action, CurationState, Entry, curated_key
from medlink.loose_key import loose_key
from medlink.protocols import Encoder, Retriever
from medlink.text import encoder_text, match_key
from medlink.types import LinkOptions, Name, Pin, Retrieved

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
        self._by_key = _places(match_key(row.name.text) for row in rows)
        self._by_loose_key = _places(loose_key(row.name.text) for row in rows)
        self._by_concept = _places(concept_ids)

    def __len__(self) -> int:
        return len(self.rows)

    def by_key(self, key: str, options: LinkOptions) -> list[NameRow]:
        """Return the names under a match key that may answer."""
        return self._answering(self._by_key.get(key), options)

    def by_loose_key(self, key: str, options: LinkOptions) -> list[NameRow]:
        """Return the names under a loose key that may answer."""
        return self._answering(self._by_loose_key.get(key), options)

    def _answering(self, places: Sequence[int] | None, options: LinkOptions) -> list[NameRow]:
        if not places:
            return []
        may = self.allowed(options)
        return [self.rows[i] for i in places if may is None or may[i]]

    def of(self, concept_id: str, options: LinkOptions) -> list[NameRow]:
        """Return the names given to one concept that may answer."""
        return self._answering(self._by_concept.get(concept_id), options)

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
                row = self.rows[place]
                best[concept_id] = Retrieved(concept_id, row.name, float(score), words=row.words)
        return sorted(best.values(), key=lambda r: (-r.score, r.concept_id))[: options.top_k]


def _places(values: Iterable[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, value in enumerate(values):
        places.setdefault(value, []).append(place)
    return places


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
    renamed: Mapping[str, Name]
    """What concepts are called whose preferred name is blocked, by id: by the first name left, or else by the id."""


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
    banned = _blocked_names(of_action.get("block_name", []), snapshot, names)
    hidden = {row.number for rows in (banned, *blocked.values()) for row in rows}
    curated = arrays.without(hidden)
    added = _added_names(of_action.get("add_synonym", []), names, curated, encoder, before)
    renamed = _renamed([row.concept for row in banned if row.is_preferred], snapshot, hidden, added)
    pins = Pins(_pins(of_action.get("pin_mention", []), names, renamed), curated)
    return Overlay(state.revision, curated, added, pins, frozenset(hidden), frozenset(blocked), renamed)


def _concept_ids(entries: Sequence[Entry]) -> list[str]:
    return sorted({entry.concept_id for entry in entries if entry.concept_id is not None})


def _blocked_names(entries: Sequence[Entry], snapshot: Snapshot, names: _Names) -> list[NameRow]:
    keys = [(entry, curated_key(entry.text or "")) for entry in entries]
    everywhere = snapshot.names_by_key(sorted({key[0] for entry, key in keys if entry.concept_id is None}))
    return [
        row
        for entry, key in keys
        for row in (everywhere.get(key[0], ()) if entry.concept_id is None else names.get(entry.concept_id, ()))
        if curated_key(row.name.text) == key
    ]


def _renamed(
    concepts: Sequence[int], snapshot: Snapshot, hidden: Collection[int], added: AddedNames
) -> dict[str, Name]:
    ids = snapshot.concept_ids(sorted(set(concepts)))
    renamed = {}
    for concept_id, rows in snapshot.names_of(sorted(ids.values())).items():
        own = [row.name for row in rows if row.number not in hidden]
        new = [row.name for row in added.of(concept_id, LinkOptions())]
        left = sorted([*own, *new], key=lambda name: name.suppressed)
        renamed[concept_id] = left[0] if left else Name(concept_id, SAB, language="")
    return renamed


def _added_names(
    entries: Sequence[Entry], names: _Names, arrays: NameArrays, encoder: Encoder, before: Overlay | None
) -> AddedNames:
    held = list(_held(entries, names))
    first = len(arrays.concept_of_name)
    rows = [
        NameRow(
            first + i,
            preferred.concept,
            Name(text, SAB, language="", code=str(entry.id)),
            is_preferred=False,
            words=tuple(loose_key(text).split()),
        )
        for i, (entry, _, text, preferred) in enumerate(held)
    ]
    texts = [encoder_text(text, lowercase=encoder.lowercase) for _, _, text, _ in held]
    known = before.added.vector_of_text if before else {}
    new = sorted(set(texts) - set(known))
    known = known | dict(zip(new, encoder.encode(new).vectors, strict=True))
    vectors = np.array([known[text] for text in texts], np.float32).reshape(len(texts), encoder.dim)
    return AddedNames(rows, [concept_id for _, concept_id, _, _ in held], texts, vectors, arrays)


def _pins(
    entries: Sequence[Entry], names: _Names, renamed: Mapping[str, Name]
) -> dict[tuple[str, str], tuple[int, Pin]]:
    return {
        curated_key(text): (
            preferred.concept,
            Pin(concept_id, renamed.get(concept_id, preferred.name), entry.id, entry.why),
        )
        for entry, concept_id, text, preferred in _held(entries, names)
    }


def _held(entries: Sequence[Entry], names: _Names) -> Iterator[tuple[Entry, str, str, NameRow]]:
    """Yield the entries whose concept is there, with its id, their text and its preferred name."""
    for entry in entries:
        if entry.concept_id is not None and entry.text is not None and entry.concept_id in names:
            yield entry, entry.concept_id, entry.text, names[entry.concept_id][0]
