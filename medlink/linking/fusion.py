"""Joins what the channels found into one list of distinct concepts: by a learned model, or in the order of trust."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from math import log1p
from pathlib import Path
from typing import Any

import numpy as np

from medlink.corpora.ids import candidate_ids, normal_source
from medlink.linking.evidence import Evidence
from medlink.linking.features import FEATURES, Floats
from medlink.linking.trees import Trees, is_model, read_trees
from medlink.types import Channel, ConceptFacts, Name, Pin, Relation, Retrieval, Retrieved

FORMAT = 1
FILE = "fusion.json"
_PINNED = 1.0
DECIMALS = 4
"""Scores are rounded before they are sorted."""
_REMEMBER = 50_000
_LITERATURE = "MESH"
"""The vocabulary that the literature is indexed with, and annotated corpora use."""


@dataclass(frozen=True, slots=True)
class Fused:
    """A concept with the name that stands for it and the score of every channel that found it.

    `order` is what decides between candidates, `score` the same within 0 and 1; `features` are those of the model.
    """

    concept_id: str
    name: Name
    score: float
    channels: tuple[tuple[Channel, float], ...]
    pin: Pin | None = None
    case_mismatch: bool = False
    order: float = 0.0
    relation: Relation = "exact"
    probability: float | None = None
    features: tuple[float, ...] = ()
    words: tuple[str, ...] = ()


def fuse(retrievals: Mapping[Channel, Retrieval]) -> list[Fused]:
    """Return all concepts in channel order: exact names lead in their own order, then the rest by score.

    The mapping's order is the order of trust; a concept found twice keeps the first channel's name and score.
    """
    leading: dict[str, Retrieved] = {}
    scores: dict[str, list[tuple[Channel, float]]] = {}
    for channel, retrieval in retrievals.items():
        for retrieved in retrieval.found:
            leading.setdefault(retrieved.concept_id, retrieved)
            scores.setdefault(retrieved.concept_id, []).append((channel, retrieved.score))
    return [
        Fused(concept_id, retrieved.name, retrieved.score, tuple(scores[concept_id]), order=retrieved.score)
        for concept_id, retrieved in leading.items()
    ]


def lead(fused: Sequence[Fused], pin: Pin) -> list[Fused]:
    """Return the concepts with the pinned one first, scored as an exact name whatever channels and case say."""
    known = next((f for f in fused if f.concept_id == pin.concept_id), None)
    first = known or Fused(pin.concept_id, pin.name, _PINNED, ())
    sure = replace(first, score=_PINNED, order=np.inf, probability=None, case_mismatch=False, relation="exact", pin=pin)
    return [sure, *(f for f in fused if f is not known)]


class FusionModel:
    """Ranks candidates by boosted trees over their features.

    Args:
        stored: The JSON object of a model file: `format`, `features` by name, `trees`, `annotated` (how often
            annotators chose a concept, by its id in a vocabulary) and `trained_on`.

    Raises:
        ValueError: It is no such model, or one of other features than this code measures.
    """

    def __init__(self, stored: Mapping[str, Any]) -> None:
        if not is_model(stored, FORMAT, FEATURES, {"annotated": dict, "trained_on": dict}):
            raise ValueError("the fusion model is of another version; run `medlink train fusion`")
        self._stored = stored
        self._trees: Trees = read_trees(stored, len(FEATURES))
        self.annotated: Mapping[str, int] = stored["annotated"]
        """How often annotators chose a concept, by its ids."""
        self._known: dict[str, tuple[ConceptFacts, tuple[float, ...]]] = {}

    @classmethod
    def read(cls, path: Path) -> "FusionModel":
        """Read a model file.

        Raises:
            OSError: It cannot be read.
            ValueError: It is no fusion model of this version.
        """
        return cls(json.loads(path.read_text("utf-8")))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the model."""
        return sha256(json.dumps(self._stored, sort_keys=True).encode()).hexdigest()

    @property
    def trained_on(self) -> Mapping[str, Any]:
        """The dictionary and the corpora that the model was trained on."""
        trained_on: Mapping[str, Any] = self._stored["trained_on"]
        return trained_on

    def known(self, facts: ConceptFacts) -> tuple[float, ...]:
        """Return the features of a concept whatever the mention is."""
        # Facts come from a cache, so that the same object stands for the same concept as long as it is asked for.
        remembered = self._known.get(facts.concept.id)
        if remembered is None or remembered[0] is not facts:
            if len(self._known) > _REMEMBER:
                self._known = {}
            remembered = self._known[facts.concept.id] = facts, concept_features(facts, self.annotated)
        return remembered[1]

    def orders(self, features: Floats) -> Floats:
        """Return, for each candidate, what it is sorted by; higher is better.

        Args:
            features: Of shape (n, len(FEATURES)).
        """
        return np.round(self._trees.predict(features), DECIMALS)


def concept_features(facts: ConceptFacts, annotated: Mapping[str, int]) -> tuple[float, ...]:
    """Return the features that a concept has whatever the mention is.

    Args:
        facts: What is known of the concept.
        annotated: How often annotators chose a concept, by any of its ids.
    """
    concept = facts.concept
    ids = candidate_ids(concept.id, concept.codes)
    sources = {id_.partition(":")[0] for id_ in ids if ":" in id_} | {normal_source(sab) for sab in facts.name_sources}
    return (
        log1p(facts.names),
        len(facts.name_sources),
        len(concept.codes),
        len(sources),
        log1p(facts.descendants),
        log1p(facts.children),
        any(id_.startswith("UMLS:") for id_ in ids),
        _LITERATURE in sources,
        log1p(max((annotated.get(id_, 0) for id_ in ids), default=0)),
    )


def ranked(
    found: Sequence[Evidence],
    names: Sequence[Retrieved],
    orders: Floats,
    features: Floats,
    *,
    keep: int | None = None,
    beside: Collection[int] = (),
) -> list[Fused]:
    """Return the candidates best first; equal ones by concept id.

    Args:
        found: The candidates.
        names: The name that stands for each.
        orders: What they are sorted by.
        features: Of each, (n, len(FEATURES)).
        keep: How many to return; all when left out.
        beside: Places in `found` of those that are returned wherever they stand, and do not count.
    """
    order = sorted(range(len(found)), key=lambda at: (-orders[at], found[at].concept_id))
    if keep is not None:
        left_out = {*[at for at in order if at not in beside][keep:]}
        order = [at for at in order if at not in left_out]
    return [
        Fused(
            found[at].concept_id,
            names[at].name,
            score_of(orders[at]),
            tuple((channel, retrieved.score) for channel, (_, retrieved) in found[at].channels.items()),
            order=float(orders[at]),
            features=tuple(features[at].tolist()),
            words=names[at].words,
        )
        for at in order
    ]


def score_of(order: float) -> float:
    """Return the place of a candidate on a scale from 0 to 1, rounded.

    >>> score_of(0.0), score_of(4.0) > score_of(2.0)
    (0.5, True)
    """
    return round(float(1 / (1 + np.exp(-order))), DECIMALS)
