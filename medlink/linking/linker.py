"""The main path: a mention goes in, ranked concepts come out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from medlink.errors import NotCalibratedError, UnknownValueError
from medlink.linking.composites import Composite, guess_composites, split_composite
from medlink.linking.forms import Asked, spans_as_sent, write_out
from medlink.linking.fusion import Fused, fuse, lead
from medlink.linking.identifiers import Identified, answer_by_id, identify
from medlink.linking.letter_case import mismatches_case, settle_case
from medlink.linking.verdict import tied
from medlink.text import match_key
from medlink.types import (
    CHANNELS,
    Candidate,
    Channel,
    Concept,
    ConceptSource,
    LinkedPart,
    LinkOptions,
    LinkResult,
    Mention,
    NilReason,
    PinSource,
    Retriever,
    Status,
)

_NO_FILTER: dict[str, Any] = {"semantic_types": frozenset(), "sabs": frozenset(), "top_k": 1}
# A tie shows in the concepts beyond top_k, and so does what a demoted short name makes room for: the answer is to
# begin the same for every top_k.
_BEYOND_TOP_K = 5


@dataclass(frozen=True, slots=True)
class _Found:
    fused: list[Fused] = field(default_factory=list)
    ties: tuple[str, ...] = ()
    truncated: bool = False


class Linker:
    """Links mentions over one index build and its curation: short forms and parts, channels, fusion, verdict."""

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

        Short forms that the context defines are written out first. A mention that coordinates several concepts, by
        rule or because each part is a name, and is no name itself, has parts with answers of their own; all texts of
        a request are searched together. A pin holds for what is searched: for the long form, not the short one, and
        for parts like for whole mentions. A mention that is a concept id is answered by that concept, a retired one by
        its successors. Channels that the build does not have are left out.

        Raises:
            UnknownValueError: None of the channels, or a semantic type or source that the build does not have.
            NotCalibratedError: A threshold is given and the build has no calibration.
        """
        if options.threshold is not None:
            raise NotCalibratedError("this index build has no calibrated probabilities; leave threshold out")
        known = self._identify(mentions)
        asked = self._read([m for m in mentions if m.text not in known], options)
        texts = list(dict.fromkeys(text for a in asked for text in a.texts))
        worded = [text for text in texts if match_key(text)]
        answers = dict(zip(worded, self._answer(worded, options), strict=True))
        blank = LinkResult(Mention(""), "nil", reason="empty_after_normalisation")
        results = iter([_assemble(a, {text: answers.get(text, blank) for text in a.texts}) for a in asked])
        return [
            answer_by_id(m, known[m.text], self._retrievers["exact"], options) if m.text in known else next(results)
            for m in mentions
        ]

    def _identify(self, mentions: Sequence[Mention]) -> dict[str, Identified]:
        if "exact" not in self._retrievers:
            return {}
        texts = {m.text for m in mentions}
        return identify(sorted(texts - self._pinned(texts)), self._concepts)

    def _read(self, mentions: Sequence[Mention], options: LinkOptions) -> list[Asked]:
        """Write short forms out, and split what coordinates several concepts and is no name itself."""
        asked = [Asked(m, expansion) for m, expansion in zip(mentions, write_out(mentions), strict=True)]
        if not options.composites:
            return asked
        split = self._split(list(dict.fromkeys(a.text for a in asked)), options)
        return [_split_as_sent(a, split.get(a.text)) for a in asked]

    def _split(self, texts: Sequence[str], options: LinkOptions) -> dict[str, Composite]:
        sure = {text: composite for text in texts if (composite := split_composite(text))}
        guesses = {text: guess_composites(text) for text in texts if text not in sure}
        parts = [part.text for ways in guesses.values() for guess in ways for part in guess.parts]
        wholes = [text for text in texts if text in sure or guesses[text]]
        named = self._named(list(dict.fromkeys([*wholes, *parts])), options)
        chosen = {}
        for text in wholes:
            ways = [sure[text]] if text in sure else [g for g in guesses[text] if {p.text for p in g.parts} <= named]
            if ways and text not in named:
                chosen[text] = ways[0]
        return chosen

    def _named(self, texts: Sequence[str], options: LinkOptions) -> set[str]:
        """Return those texts that are pinned or a name of the build, with or without the filters, in their own case."""
        pinned = self._pinned(texts)
        if not texts or "exact" not in self._retrievers:
            return pinned
        found = self._retrievers["exact"].search(texts, replace(options, **_NO_FILTER))
        return pinned | {
            text
            for text, retrieval in zip(texts, found, strict=True)
            if any(not (options.case and mismatches_case(text, r.name.text)) for r in retrieval.found)
        }

    def _pinned(self, texts: Iterable[str]) -> set[str]:
        return {text for text in texts if self._pins and self._pins.pinned(text, LinkOptions())}

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
        wider = replace(options, top_k=options.top_k + _BEYOND_TOP_K)
        by_channel = {channel: retriever.search(texts, wider) for channel, retriever in chosen.items()}
        found = []
        for i, text in enumerate(texts):
            retrievals = {channel: retrieved[i] for channel, retrieved in by_channel.items()}
            fused = fuse(retrievals)
            if options.case:
                fused = settle_case(text, fused)
            ties = tied(fused)
            if pin := self._pins and self._pins.pinned(text, options):
                # A person has decided between them.
                fused, ties = lead(fused, pin), ()
            cut = any(retrieval.truncated for retrieval in retrievals.values())
            found.append(_Found(fused[: options.top_k], ties, cut))
        return found


def _split_as_sent(asked: Asked, composite: Composite | None) -> Asked:
    """Return the mention to be split, unless its parts all lie in one short form, which is one concept."""
    split = replace(asked, composite=composite)
    stretches = {spans_as_sent(split, part) for part in composite.parts} if composite else set()
    return split if composite and len(stretches) == len(composite.parts) else asked


def _assemble(asked: Asked, answers: Mapping[str, LinkResult]) -> LinkResult:
    result = replace(
        answers[asked.text], mention=asked.mention, expansion=asked.expansion if asked.expansion.used else None
    )
    if not asked.composite:
        return result
    parts = tuple(
        LinkedPart(spans_as_sent(asked, part), replace(answers[part.text], mention=Mention(part.text)))
        for part in asked.composite.parts
    )
    return replace(result, parts=parts, conjunction=asked.composite.conjunction)


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
        Candidate(rank, concepts[f.concept_id], f.name, f.score, f.channels, case_mismatch=f.case_mismatch, pin=f.pin)
        for rank, f in enumerate(fused, start=1)
    )
