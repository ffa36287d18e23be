"""The features of fusion: how well each candidate fits a mention, as numbers of one row."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log1p

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


Rarity = Mapping[str, float]
Known = Callable[[ConceptFacts], tuple[float, ...]]
"""The last features, those that a concept has whatever the mention is."""


def best_name(asked: Asked, evidence: Evidence, rarity: Rarity) -> Retrieved:
    """Return the name that a candidate shows: an exact one, or the one that shares most words with the mention."""
    if "exact" in evidence.channels:
        return evidence.channels["exact"][1]
    own = set(asked.words)
    return max(evidence.names, key=lambda r: sum(_shares(asked.words, own, r.words, rarity)))


def measure(
    asked: Asked,
    found: Sequence[Evidence],
    names: Sequence[Retrieved],
    facts: Mapping[str, ConceptFacts],
    rarity: Rarity,
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
        rarity: How rare each word of mention and names is.
        known: Returns the features of a concept alone.
    """
    own, numbers = set(asked.words), _numbers(asked.words)
    exact = sum("exact" in evidence.channels for evidence in found)
    top = {channel: _top(channel, found) for channel in ("dense", "lexical")}
    homonyms = Counter(name.words for name in names)
    above, below = _by_hierarchy(found, facts)
    length = max(1, len(asked.text))
    rows = []
    for evidence, name in zip(found, names, strict=True):
        concept = facts[evidence.concept_id]
        is_exact = evidence.channels["exact"][1].score if "exact" in evidence.channels else 0.0
        row = [is_exact]
        for channel in ("dense", "lexical"):
            score, rank = _score(channel, evidence)
            row += [score, rank, top[channel] - score]
        row += _shares(asked.words, own, name.words, rarity)
        row += _shares(asked.words, own, concept.words, rarity)
        others = set(name.words)
        row += [sum(rarity[w] for w in own - others), sum(rarity[w] for w in others - own)]
        row += [_compared(numbers, _numbers(name.words)), len(name.words) - len(asked.words)]
        row += [len(name.name.text) / length, len(concept.concept.preferred_name) / length]
        row += [any(r.is_preferred for r in evidence.names), homonyms[name.words], exact]
        row += [_part(asked, evidence, rarity), bool(evidence.part and evidence.part.ends)]
        row += [_in_context(asked, others - own, rarity)]
        row += [above.get(evidence.concept_id, 0.0), below.get(evidence.concept_id, 0.0), evidence.above is not None]
        rows.append([*row, *known(concept)])
    return np.array(rows, np.float64).reshape(len(rows), len(FEATURES))


def _score(channel: Channel, evidence: Evidence) -> tuple[float, float]:
    """Return the score of a channel and the logarithm of its place."""
    if "exact" in evidence.channels:
        return evidence.channels["exact"][1].score, 0.0
    if channel not in evidence.channels:
        return 0.0, _NOT_FOUND
    rank, retrieved = evidence.channels[channel]
    return retrieved.score, log1p(rank)


def _top(channel: Channel, found: Sequence[Evidence]) -> float:
    return max((_score(channel, evidence)[0] for evidence in found), default=0.0)


def _shares(mention: Sequence[str], own: set[str], name: Sequence[str], rarity: Rarity) -> list[float]:
    """Return how much of the mention's words the name has, and of the name's the mention, rare words counting more."""
    others = set(name)
    shared = sum(rarity[word] for word in own & others)
    of_mention, of_name = sum(rarity[word] for word in own), sum(rarity[word] for word in others)
    return [shared / of_mention if of_mention else 0.0, shared / of_name if of_name else 0.0]


def _numbers(text: Sequence[str]) -> frozenset[str]:
    return frozenset(word for word in text if word.isdigit())


def _compared(mention: frozenset[str], name: frozenset[str]) -> float:
    """Return 1 for the same numbers, 0 if only one side has any, -1 for others."""
    if mention == name:
        return 1.0
    return -1.0 if mention and name else 0.0


def _part(asked: Asked, evidence: Evidence, rarity: Rarity) -> float:
    """Return the share of the mention that a part of it is which is a name of the concept."""
    if not evidence.part:
        return 0.0
    whole = sum(rarity[word] for word in set(asked.words))
    return sum(rarity[word] for word in {*evidence.part.words} & {*asked.words}) / whole if whole else 0.0


def _in_context(asked: Asked, more: set[str], rarity: Rarity) -> float:
    """Return how much of what the name says beyond the mention stands in the text around it; -1 without one."""
    if asked.context is None:
        return -1.0
    whole = sum(rarity[word] for word in more)
    return sum(rarity[word] for word in more & asked.context) / whole if whole else 0.0


def _by_hierarchy(
    found: Sequence[Evidence], facts: Mapping[str, ConceptFacts]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the best dense score among the candidates above each candidate, and among those below."""
    scores = {evidence.concept_id: _score("dense", evidence)[0] for evidence in found}
    above: dict[str, float] = {}
    below: dict[str, float] = {}
    for id_, score in scores.items():
        for parent in facts[id_].concept.broader:
            if parent in scores:
                above[id_] = max(above.get(id_, 0.0), scores[parent])
                below[parent] = max(below.get(parent, 0.0), score)
    return above, below
