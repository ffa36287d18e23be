"""Joins what the channels found into one list of distinct concepts."""

from collections.abc import Mapping
from dataclasses import dataclass

from medlink.types import Channel, Name, Retrieval, Retrieved


@dataclass(frozen=True, slots=True)
class Fused:
    """A concept with the name that stands for it and the score of every channel that found it."""

    concept_id: str
    name: Name
    score: float
    channels: tuple[tuple[Channel, float], ...]
    case_mismatch: bool = False


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
        Fused(concept_id, retrieved.name, retrieved.score, tuple(scores[concept_id]))
        for concept_id, retrieved in leading.items()
    ]
