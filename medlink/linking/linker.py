"""The main path: a mention goes in, ranked concepts come out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from medlink.errors import NotCalibratedError, UnknownValueError
from medlink.linking.fusion import Fused, fuse, lead
from medlink.linking.verdict import tied
from medlink.text import match_key
from medlink.types import (
    CHANNELS,
    Candidate,
    Channel,
    Concept,
    ConceptSource,
    LinkOptions,
    LinkResult,
    Mention,
    NilReason,
    PinSource,
    Retriever,
    Status,
)

_NO_FILTER: dict[str, Any] = {"semantic_types": frozenset(), "sabs": frozenset(), "top_k": 1}


@dataclass(frozen=True, slots=True)
class _Found:
    fused: list[Fused] = field(default_factory=list)
    ties: tuple[str, ...] = ()
    truncated: bool = False


class Linker:
    """Links mentions over one index build and its curation: channels, fusion, verdict."""

    def __init__(
        self, retrievers: Mapping[Channel, Retriever], concepts: ConceptSource, pins: PinSource | None = None
    ) -> None:
        # The order of CHANNELS is the order of trust that `fuse` relies on.
        self._retrievers = {channel: retrievers[channel] for channel in CHANNELS if channel in retrievers}
        self._concepts = concepts
        self._pins = pins

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels that this build has."""
        return tuple(self._retrievers)

    def link(self, mentions: Sequence[Mention], options: LinkOptions) -> list[LinkResult]:
        """Return one result a mention, in order; equal mentions get equal answers whatever else is asked.

        Channels that the build does not have are left out.

        Raises:
            UnknownValueError: None of the channels, or a semantic type or source that the build does not have.
            NotCalibratedError: A threshold is given and the build has no calibration.
        """
        if options.threshold is not None:
            raise NotCalibratedError("this index build has no calibrated probabilities; leave threshold out")
        texts = list(dict.fromkeys(m.text for m in mentions))
        worded = [text for text in texts if match_key(text)]
        answers = dict(zip(worded, self._answer(worded, options), strict=True))
        return [
            replace(answers[m.text], mention=m)
            if m.text in answers
            else LinkResult(m, "nil", reason="empty_after_normalisation")
            for m in mentions
        ]

    def _answer(self, texts: Sequence[str], options: LinkOptions) -> list[LinkResult]:
        found = self._search(texts, options)
        lost = [text for text, f in zip(texts, found, strict=True) if not f.fused] if options.filtered else []
        beyond = dict(zip(lost, self._search(lost, replace(options, **_NO_FILTER)), strict=True))
        shown = [f.concept_id for part in (*found, *beyond.values()) for f in part.fused]
        concepts = self._concepts.concepts(sorted(set(shown)))
        return [
            _result(Mention(text), f, beyond.get(text, _Found()), concepts)
            for text, f in zip(texts, found, strict=True)
        ]

    def _search(self, texts: Sequence[str], options: LinkOptions) -> list[_Found]:
        chosen = {c: r for c, r in self._retrievers.items() if c in options.channels}
        if not chosen:
            raise UnknownValueError("channel", ", ".join(options.channels), list(self._retrievers))
        # A tie shows in the concepts beyond top_k, so that the status is the same for every top_k.
        wider = replace(options, top_k=options.top_k + 1)
        by_channel = {channel: retriever.search(texts, wider) for channel, retriever in chosen.items()}
        found = []
        for i, text in enumerate(texts):
            retrievals = {channel: retrieved[i] for channel, retrieved in by_channel.items()}
            fused = fuse(retrievals)
            ties = tied(fused)
            if pin := self._pins and self._pins.pinned(text, options):
                # A person has decided between them.
                fused, ties = lead(fused, pin), ()
            cut = any(retrieval.truncated for retrieval in retrievals.values())
            found.append(_Found(fused[: options.top_k], ties, cut))
        return found


def _result(mention: Mention, found: _Found, beyond: _Found, concepts: Mapping[str, Concept]) -> LinkResult:
    candidates = _candidates(found.fused, concepts)
    if not candidates:
        nearest = _candidates(beyond.fused[:1], concepts)
        reason: NilReason = "filtered_out" if nearest else "no_candidate"
        return LinkResult(mention, "nil", reason=reason, nearest=nearest[0] if nearest else None)
    status: Status = "ambiguous" if found.ties else "linked"
    return LinkResult(mention, status, candidates, ties=found.ties, truncated=found.truncated)


def _candidates(fused: Sequence[Fused], concepts: Mapping[str, Concept]) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(rank, concepts[f.concept_id], f.name, f.score, f.channels, pin=f.pin)
        for rank, f in enumerate(fused, start=1)
    )
