"""The features of fusion: how well each candidate fits a mention, as numbers of one row."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from medlink.linking.evidence import Evidence, words
from medlink.types import Channel, ConceptFacts, Retrieved

Floats = NDArray[np.float64]

FEATURES = (
    "exact",
    "dense",
    "dense_rank",
    "dense_gap",
    "lexical",
    "lexical_rank",
    "lexical_gap",
    "mention_words_in_name",
    "name_words_in_mention",
    "mention_words_in_preferred",
    "preferred_words_in_mention",
    "rarity_only_in_mention",
    "rarity_only_in_name",
    "numbers",
    "words_more_in_name",
    "name_length",
    "preferred_length",
    "matched_preferred",
    "homonyms",
    "exact_concepts",
    "part",
    "part_ends",
    "context",
    "above_found",
    "below_found",
    "is_above",
    "names",
    "name_sources",
    "codes",
    "sources",
    "descendants",
    "children",
    "has_cui",
    "literature_source",
    "annotated",
)
"""In the order of the columns; docs/linking.md says what each is."""

_NOT_FOUND = log1p(150)


@dataclass(frozen=True, slots=True)
class Asked:
    """A mention as features see it."""

    text: str
    words: tuple[str, ...]
    context: frozenset[str] | None = None
    """Words of the text around it, if that was sent."""

    @classmethod
    def of(cls, text: str, context: frozenset[str] | None = None) -> "Asked":
        """Return the mention of a text."""
        return cls(text, words(text), context)


Known = Callable[[ConceptFacts], tuple[float, ...]]
"""Returns the last features, those that a concept has whatever the mention is."""


class Weights:
    """How much the words of names weigh, by how rare they are; each name is weighed once.

    Args:
        rarity: How rare each word of mentions and names is.
    """

    def __init__(self, rarity: Mapping[str, float]) -> None:
        self._rarity = rarity
        self._weighed: dict[tuple[str, ...], tuple[frozenset[str], float]] = {}

    def of(self, name: tuple[str, ...]) -> tuple[frozenset[str], float]:
        """Return the distinct words of a name and what they weigh."""
        weighed = self._weighed.get(name)
        if weighed is None:
            distinct = frozenset(name)
            weighed = self._weighed[name] = distinct, self.sum(distinct)
        return weighed

    def sum(self, distinct: Collection[str]) -> float:
        """Return what some words weigh."""
        # Sums of more than two floats depend on their order, and that of a set on the process.
        ordered = sorted(distinct) if len(distinct) > 2 else distinct
        return sum([self._rarity[word] for word in ordered])


class Matched(NamedTuple):
    """The name that stands for a candidate, its distinct words, what they weigh, and those shared with the mention."""

    retrieved: Retrieved
    words: frozenset[str]
    weight: float
    shared: float

    def shares(self, whole: float) -> tuple[float, float]:
        """Return how much of a mention the name has, and of the name the mention, rare words counting more.

        Args:
            whole: What the mention's words weigh.
        """
        return self.shared / whole if whole else 0.0, self.shared / self.weight if self.weight else 0.0


def matched(asked: Asked, retrieved: Retrieved, weights: Weights) -> Matched:
    """Compare the words of a name with those of a mention."""
    words, weight = weights.of(retrieved.words)
    common = weights.of(asked.words)[0] & words
    return Matched(retrieved, words, weight, weights.sum(common) if common else 0.0)


def best_name(asked: Asked, evidence: Evidence, weights: Weights) -> Matched:
    """Return the name that a candidate shows: an exact one, or the one that shares most words with the mention."""
    names = evidence.names
    if len(names) == 1:
        return matched(asked, names[0], weights)
    whole = weights.of(asked.words)[1]
    # Names of the same words are the same here, and the first of equal ones counts.
    distinct = {retrieved.words: retrieved for retrieved in reversed(names)}
    compared = [matched(asked, retrieved, weights) for retrieved in reversed(distinct.values())]
    return max(compared, key=lambda name: sum(name.shares(whole)))


def measure(
    asked: Asked,
    found: Sequence[Evidence],
    names: Sequence[Matched],
    facts: Mapping[str, ConceptFacts],
    weights: Weights,
    known: Known,
) -> Floats:
    """Return the features of the candidates of one mention, (n, len(FEATURES)).

    What an exact name gets from the other channels is what they give a name's own string, so that it does not depend
    on their search.

    Args:
        asked: The mention.
        found: The candidates.
        names: The name that stands for each.
        facts: What is known about the candidates, and their broader concepts as far as those are candidates too.
        weights: How much each word of mention and names weighs.
        known: Returns the features of a concept alone.
    """
    exact = sum("exact" in evidence.channels for evidence in found)
    scores = [(_score("dense", evidence), _score("lexical", evidence)) for evidence in found]
    dense_top = max((dense for (dense, _), _ in scores), default=0.0)
    lexical_top = max((lexical for _, (lexical, _) in scores), default=0.0)
    homonyms = Counter(name.retrieved.words for name in names)
    above, below = _by_hierarchy(found, [dense for (dense, _), _ in scores], facts)
    (own, whole), numbers = weights.of(asked.words), _numbers(asked.words)
    rows = []
    for evidence, name, (dense, lexical) in zip(found, names, scores, strict=True):
        concept = facts[evidence.concept_id]
        rows.append(
            (
                evidence.channels["exact"][1].score if "exact" in evidence.channels else 0.0,
                *dense,
                dense_top - dense[0],
                *lexical,
                lexical_top - lexical[0],
                *_words_of(name, concept, own, whole, weights),
                _compared(numbers, _numbers(name.words)),
                *_lengths(asked, name.retrieved, concept),
                any([r.is_preferred for r in evidence.names]),
                homonyms[name.retrieved.words],
                exact,
                *_part(evidence, own, whole, weights),
                _in_context(asked, name.words - own, weights),
                above.get(evidence.concept_id, 0.0),
                below.get(evidence.concept_id, 0.0),
                evidence.above is not None,
                *known(concept),
            )
        )
    return np.array(rows, np.float64).reshape(len(rows), len(FEATURES))


def _words_of(
    name: Matched, concept: ConceptFacts, own: frozenset[str], whole: float, weights: Weights
) -> tuple[float, ...]:
    """Return what the mention shares with the name and with the preferred name, and what only one of them has."""
    preferred, weight = weights.of(concept.words)
    common = own & preferred
    of_preferred = name._replace(words=preferred, weight=weight, shared=weights.sum(common) if common else 0.0)
    left = (whole - name.shared, name.weight - name.shared)
    return *name.shares(whole), *of_preferred.shares(whole), *left


def _lengths(asked: Asked, name: Retrieved, concept: ConceptFacts) -> tuple[float, ...]:
    length = max(1, len(asked.text))
    return (
        len(name.words) - len(asked.words),
        len(name.name.text) / length,
        len(concept.concept.preferred_name) / length,
    )


def _score(channel: Channel, evidence: Evidence) -> tuple[float, float]:
    """Return the score of a channel and the logarithm of its place."""
    if "exact" in evidence.channels:
        return evidence.channels["exact"][1].score, 0.0
    if channel not in evidence.channels:
        return 0.0, _NOT_FOUND
    rank, retrieved = evidence.channels[channel]
    return retrieved.score, log1p(rank)


def _numbers(text: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in text if word.isdigit())


def _compared(mention: frozenset[str], name: frozenset[str]) -> float:
    """Return 1 for the same numbers, 0 if only one side has any, -1 for others."""
    if mention == name:
        return 1.0
    return -1.0 if mention and name else 0.0


def _part(evidence: Evidence, own: frozenset[str], whole: float, weights: Weights) -> tuple[float, ...]:
    """Return how much of the mention the part of it is that names the concept, and whether the mention ends with it."""
    part = evidence.part
    if part is None:
        return 0.0, False
    return weights.sum(own & weights.of(part.words)[0]) / whole if whole else 0.0, part.ends


def _in_context(asked: Asked, more: frozenset[str], weights: Weights) -> float:
    """Return how much of what the name says beyond the mention stands in the text around it; -1 without one."""
    if asked.context is None:
        return -1.0
    whole = weights.sum(more)
    return weights.sum(more & asked.context) / whole if whole else 0.0


def _by_hierarchy(
    found: Sequence[Evidence], scores: Sequence[float], facts: Mapping[str, ConceptFacts]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the best score among the candidates above each candidate, and among those below."""
    of_concept = {evidence.concept_id: score for evidence, score in zip(found, scores, strict=True)}
    above: dict[str, float] = {}
    below: dict[str, float] = {}
    for id_, score in of_concept.items():
        for parent in facts[id_].concept.broader:
            if parent in of_concept:
                above[id_] = max(above.get(id_, 0.0), of_concept[parent])
                below[parent] = max(below.get(parent, 0.0), score)
    return above, below
