"""The main path: a mention goes in, ranked concepts come out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from medlink.errors import NotCalibratedError
from medlink.linking.composites import Composite, guess_composites, split_composite
from medlink.linking.forms import Asked, spans_as_sent, write_out
from medlink.linking.fusion import Fused, fuse, lead
from medlink.linking.identifiers import Identified, answer_by_id, identify
from medlink.linking.letter_case import settle_case
from medlink.linking.ranking import DEPTH, Found, Query, Ranking
from medlink.linking.search import Channels
from medlink.linking.verdict import Verdict, verdict
from medlink.protocols import ConceptSource, PinSource, Retriever
from medlink.stages import stage
from medlink.text import match_key
from medlink.types import Candidate, Channel, Concept, LinkedPart, LinkOptions, LinkResult, Mention

# A tie shows in the concepts beyond top_k, and so does what a demoted short name makes room for: the answer is to
# begin the same for every top_k.
_BEYOND_TOP_K = 5


@dataclass(frozen=True, slots=True)
class _Ranked:
    fused: list[Fused] = field(default_factory=list)
    truncated: bool = False


class Linker:
    """Links mentions over one index build and its curation: short forms and parts, channels, fusion, verdict.

    Args:
        retrievers: The channels of the build.
        concepts: The facts about its concepts.
        pins: What people have decided.
        ranking: The models of the build; without them, or where not all channels are used, candidates come in the
            order of trust in the channels and have no probability.
        show: Makes of results what may be shown of them.
    """

    def __init__(
        self,
        retrievers: Mapping[Channel, Retriever],
        concepts: ConceptSource,
        pins: PinSource | None = None,
        ranking: Ranking | None = None,
        show: Callable[[Sequence[LinkResult]], list[LinkResult]] = list,
    ) -> None:
        self._channels = Channels(retrievers)
        self._concepts = concepts
        self._pins = pins
        self._ranking = ranking
        self._show = show

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels that this build has."""
        return self._channels.names

    def link(self, mentions: Sequence[Mention], options: LinkOptions) -> list[LinkResult]:
        """Return one result a mention, in order; equal mentions get equal answers whatever else is asked.

        Short forms that the context defines are written out first. A mention that coordinates several concepts, by
        rule or because each part is a name, and is no name itself, has parts with answers of their own; all texts of
        a request are searched together. A pin holds for what is searched: for the long form, not the short one, and
        for parts like for whole mentions. A mention that is a concept id is answered by that concept, a retired one by
        its successors. Channels that the build does not have are left out.

        Raises:
            UnknownValueError: None of the channels, or a semantic type or source that the build does not have.
            NotCalibratedError: A threshold is given where there are no probabilities: the build has no calibration,
                or not all channels are used.
        """
        if options.threshold is not None and not (self._ranks(options) and self._calibrated):
            raise NotCalibratedError(
                "a threshold needs an index build with calibration and all channels; leave threshold out"
            )
        with stage("short_forms", len(mentions)):
            known = self._identify(mentions)
            asked = self._read([m for m in mentions if m.text not in known], options)
        queries = list(dict.fromkeys(self._query(a, text, options) for a in asked for text in a.texts))
        worded = [query for query in queries if match_key(query.text)]
        answers = dict(zip(worded, self._answer(worded, options), strict=True))
        blank = LinkResult(Mention(""), "nil", reason="empty_after_normalisation")
        results = iter(
            [_assemble(a, {t: answers.get(self._query(a, t, options), blank) for t in a.texts}) for a in asked]
        )
        linked = [answer_by_id(m, known[m.text], options) if m.text in known else next(results) for m in mentions]
        return self._show(linked)

    @property
    def _calibrated(self) -> bool:
        return self._ranking is not None and self._ranking.calibration is not None

    def _ranks(self, options: LinkOptions) -> bool:
        """Say whether the models apply: they know what all channels say, not what some would."""
        return self._ranking is not None and self._channels.all_used(options)

    def _query(self, asked: Asked, text: str, options: LinkOptions) -> Query:
        # Only the models look at the context, so that without them equal texts are searched once.
        return Query(text, asked.mention.context if self._ranks(options) else None)

    def _identify(self, mentions: Sequence[Mention]) -> dict[str, Identified]:
        if not self._channels.has_exact:
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
        named = self._named([*wholes, *parts], options)
        chosen = {}
        for text in wholes:
            ways = [sure[text]] if text in sure else [g for g in guesses[text] if {p.text for p in g.parts} <= named]
            if ways and text not in named:
                chosen[text] = ways[0]
        return chosen

    def _named(self, texts: Sequence[str], options: LinkOptions) -> set[str]:
        return self._pinned(texts) | self._channels.named(texts, options)

    def _pinned(self, texts: Iterable[str]) -> set[str]:
        return {text for text in texts if self._pins and self._pins.pinned(text, LinkOptions())}

    def _answer(self, queries: Sequence[Query], options: LinkOptions) -> list[LinkResult]:
        found = self._search(queries, options)
        lost = [query for query, f in zip(queries, found, strict=True) if not f.fused] if options.filtered else []
        beyond = dict(zip(lost, self._search(lost, replace(options.unfiltered(), top_k=1)), strict=True))
        threshold = self._threshold(options)
        verdicts = [
            verdict(f.fused, beyond[query].fused if query in beyond else (), threshold)
            for query, f in zip(queries, found, strict=True)
        ]
        shown = {f.concept_id for v in verdicts for f in v.shown(options.top_k)}
        concepts = self._concepts.concepts(sorted(shown))
        return [
            _result(query.text, v, f.truncated, concepts, options.top_k)
            for query, f, v in zip(queries, found, verdicts, strict=True)
        ]

    def _threshold(self, options: LinkOptions) -> float:
        if options.threshold is not None or self._ranking is None or self._ranking.calibration is None:
            return options.threshold or 0.0
        return self._ranking.calibration.threshold

    def _search(self, queries: Sequence[Query], options: LinkOptions) -> list[_Ranked]:
        deep = max(DEPTH if self._ranks(options) else 0, options.top_k + _BEYOND_TOP_K)
        found = self._channels.search(queries, options, deep=deep)
        ranked = []
        with stage("fusion", len(found)):
            by_query = self._fused(found, options, deep)
        for f, fused in zip(found, by_query, strict=True):
            if pin := self._pins and self._pins.pinned(f.query.text, options):
                # A person has decided between them.
                fused = lead(fused, pin)
            ranked.append(_Ranked(fused, any(retrieval.truncated for retrieval in f.retrievals.values())))
        return ranked

    def _fused(self, found: Sequence[Found], options: LinkOptions, deep: int) -> list[list[Fused]]:
        if not self._ranking or not self._ranks(options):
            by_trust = [fuse(f.retrievals) for f in found]
            if not options.case:
                return by_trust
            return [settle_case(f.query.text, fused) for f, fused in zip(found, by_trust, strict=True)]
        ranked = self._ranking.rank(self._channels.with_parts(found, options), options)
        if deep <= DEPTH:
            return ranked
        # What lies deeper than the models look follows behind.
        return [_followed(first, fuse(f.retrievals)) for first, f in zip(ranked, found, strict=True)]


def _followed(first: list[Fused], others: Sequence[Fused]) -> list[Fused]:
    """Return a list with what lies deeper behind it, found by one channel as far as is known.

    Whether another channel found it too depends on how deep that one was asked.
    """
    ids = {f.concept_id for f in first}
    stated = None if not first or first[0].probability is None else 0.0
    behind = (f for f in others if f.concept_id not in ids)
    return first + [replace(f, score=0.0, order=-inf, probability=stated, channels=f.channels[:1]) for f in behind]


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


def _result(text: str, judged: Verdict, truncated: bool, concepts: Mapping[str, Concept], top_k: int) -> LinkResult:
    candidates = _candidates(judged.answers[:top_k], concepts)
    nearest = _candidates(judged.nearest, concepts)
    return LinkResult(
        Mention(text),
        judged.status,
        candidates,
        reason=judged.reason,
        nearest=nearest[0] if nearest else None,
        ties=judged.ties,
        truncated=truncated,
    )


def _candidates(fused: Sequence[Fused], concepts: Mapping[str, Concept]) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(
            rank,
            concepts[f.concept_id],
            f.name,
            f.score,
            f.channels,
            probability=f.probability,
            relation=f.relation,
            case_mismatch=f.case_mismatch,
            pin=f.pin,
        )
        for rank, f in enumerate(fused, start=1)
    )
