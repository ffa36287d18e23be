"""From what the channels found to ranked candidates: evidence, features, and what the models say of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from medlink.linking.calibration import Calibration
from medlink.linking.evidence import Evidence, gather, words
from medlink.linking.features import Asked, Floats, Weights, best_name, measure
from medlink.linking.fusion import Fused, FusionModel, concept_features, ranked
from medlink.linking.letter_case import mismatches_case, settle_case
from medlink.protocols import ConceptSource
from medlink.types import Channel, ConceptFacts, LinkOptions, Retrieval, Retrieved

DEPTH = 30
"""How many concepts of each channel are weighed, however few are asked for."""
KEEP = 10
"""So many more than are asked for come back: for ties, for what is demoted, and for calibration to look at."""
# Concepts above so many of the first of a channel are weighed too.
_LOOK_ABOVE = 5


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched: a text, and the text around the mention where that was sent."""

    text: str
    context: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What the channels found for a query, and the parts of it that are names."""

    query: Query
    retrievals: Mapping[Channel, Retrieval]
    parts: Sequence[tuple[str, Retrieval]] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """The candidates of one query with their features, (n, len(FEATURES))."""

    asked: Asked
    found: Sequence[Evidence]
    names: Sequence[Retrieved]
    features: Floats


class Ranking:
    """Ranks candidates by a fusion model, and says how probable they are if there is a calibration."""

    def __init__(self, concepts: ConceptSource, model: FusionModel, calibration: Calibration | None = None) -> None:
        self._concepts = concepts
        self._model = model
        self._calibration = calibration

    @property
    def calibration(self) -> Calibration | None:
        """What turns scores into probabilities."""
        return self._calibration

    def rank(self, found: Sequence[Found], options: LinkOptions) -> list[list[Fused]]:
        """Return the candidates of each query, best first."""
        measured = measure_all(found, self._concepts, options, self._model)
        if not measured:
            return []
        orders = self._model.orders(np.concatenate([m.features for m in measured]))
        lists, start = [], 0
        for m in measured:
            end = start + len(m.found)
            fused = ranked(
                m.found, m.names, orders[start:end], m.features, keep=options.top_k + KEEP, beside=_settled(m)
            )
            lists.append(settle_case(m.asked.text, fused) if options.case else fused)
            start = end
        if not self._calibration:
            return lists
        return self._calibration.judge([m.asked for m in measured], lists, self._model)


def _settled(measured: Measured) -> set[int]:
    """Return the places of candidates that ties or capitals may move: they must not depend on `top_k`."""
    return {
        at
        for at, (evidence, name) in enumerate(zip(measured.found, measured.names, strict=True))
        if "exact" in evidence.channels or mismatches_case(measured.asked.text, name.name.text)
    }


def measure_all(
    found: Sequence[Found],
    concepts: ConceptSource,
    options: LinkOptions,
    model: FusionModel | None = None,
    annotated: Mapping[str, int] | None = None,
) -> list[Measured]:
    """Return the candidates of each query with their features.

    Args:
        found: What the channels found, `DEPTH` concepts deep.
        concepts: The facts about concepts.
        options: The filters, which the concepts above others must pass too.
        model: Knows how often annotators chose a concept.
        annotated: The same, where there is no model yet.
    """
    evidence = [gather(f.query.text, _cut(f.retrievals), f.parts) for f in found]
    facts = dict(concepts.facts(sorted({id_ for e in evidence for id_ in e})))
    _look_above(evidence, facts, concepts, options)
    facts |= concepts.facts(sorted({id_ for e in evidence for id_ in e if id_ not in facts}))
    around = {f.query.context: words(f.query.context) for f in found if f.query.context is not None}
    asked = [
        Asked.of(f.query.text, None if f.query.context is None else frozenset(around[f.query.context])) for f in found
    ]
    weights = Weights(_rarity(asked, evidence, facts, concepts))

    def known(concept: ConceptFacts) -> tuple[float, ...]:
        return model.known(concept) if model else concept_features(concept, annotated or {})

    measured = []
    for mention, by_concept in zip(asked, evidence, strict=True):
        candidates = [by_concept[id_] for id_ in sorted(by_concept) if id_ in facts]
        names = [best_name(mention, candidate, weights) for candidate in candidates]
        features = measure(mention, candidates, names, facts, weights, known)
        measured.append(Measured(mention, candidates, [name.retrieved for name in names], features))
    return measured


def _cut(retrievals: Mapping[Channel, Retrieval]) -> dict[Channel, Retrieval]:
    # All that own the exact name stay: they are never many.
    return {c: r if c == "exact" else replace(r, found=r.found[:DEPTH]) for c, r in retrievals.items()}


def _look_above(
    evidence: Sequence[dict[str, Evidence]],
    facts: Mapping[str, ConceptFacts],
    concepts: ConceptSource,
    options: LinkOptions,
) -> None:
    """Add the concepts directly above the first of dense and lexical, as far as the filters let them answer."""
    above: list[set[str]] = []
    for found in evidence:
        first = [id_ for id_, e in found.items() if _place(e) < _LOOK_ABOVE and id_ in facts]
        above.append({id_ for one in first for id_ in facts[one].concept.broader} - found.keys())
    names = concepts.answering(sorted(set().union(*above)), options)
    for found, new in zip(evidence, above, strict=True):
        for id_ in sorted(new & names.keys()):
            name = names[id_]
            found[id_] = Evidence(id_, above=Retrieved(id_, name, 0.0, words=words(name.text)))


def _place(evidence: Evidence) -> int:
    return min((rank for channel, (rank, _) in evidence.channels.items() if channel != "exact"), default=DEPTH)


def _rarity(
    asked: Iterable[Asked],
    evidence: Iterable[dict[str, Evidence]],
    facts: Mapping[str, ConceptFacts],
    concepts: ConceptSource,
) -> dict[str, float]:
    distinct = {word for mention in asked for word in mention.words}
    for found in evidence:
        for candidate in found.values():
            for name in candidate.names:
                distinct.update(name.words)
            if candidate.part:
                distinct.update(candidate.part.words)
    for concept in facts.values():
        distinct.update(concept.words)
    ordered = sorted(distinct)
    return dict(zip(ordered, concepts.rarity(ordered).tolist(), strict=True))
