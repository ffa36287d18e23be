"""Joins what the channels found into one list of distinct concepts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from medlink.types import Channel, Name, Pin, Retrieval, Retrieved

_PINNED = 1.0


@dataclass(frozen=True, slots=True)
class Fused:
    """A concept with the name that stands for it and the score of every channel that found it."""

    concept_id: str
    name: Name
    score: float
    channels: tuple[tuple[Channel, float], ...]
    pin: Pin | None = None
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


def lead(fused: Sequence[Fused], pin: Pin) -> list[Fused]:
    """Return the concepts with the pinned one first, scored as an exact name whatever channels and case say."""
    known = next((f for f in fused if f.concept_id == pin.concept_id), None)
    first = known or Fused(pin.concept_id, pin.name, _PINNED, ())
    return [replace(first, score=_PINNED, case_mismatch=False, pin=pin), *(f for f in fused if f is not known)]
