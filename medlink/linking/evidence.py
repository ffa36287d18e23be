"""What speaks for each concept that a mention may be: what every channel found it by, and parts of the mention."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from medlink.loose_key import loose_key
from medlink.types import Channel, Retrieval, Retrieved

_MOST_WORDS = 12


@dataclass(frozen=True, slots=True)
class Part:
    """A name of a concept that is part of the mention: "breast cancer" in "hereditary breast cancer"."""

    retrieved: Retrieved
    words: tuple[str, ...]
    ends: bool
    """Whether the mention ends with it, as with the head of a noun phrase."""


@dataclass(slots=True)
class Evidence:
    """What was found for one concept: by channel its place, from 0, and name; and the longest part that names it."""

    concept_id: str
    channels: dict[Channel, tuple[int, Retrieved]] = field(default_factory=dict)
    part: Part | None = None
    above: Retrieved | None = None
    """Its name, if it is there because narrower concepts were found."""

    @property
    def names(self) -> list[Retrieved]:
        """The names that the concept was found by, those of the channels in their order; an exact one stands alone.

        What an exact name is taken for does not depend on what the other channels found.
        """
        if "exact" in self.channels:
            return [self.channels["exact"][1]]
        others = (self.part.retrieved if self.part else None, self.above)
        return [*(retrieved for _, retrieved in self.channels.values()), *(r for r in others if r)]


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text in the forms that names are compared in.

    >>> words("Type II tumours of the oesophagus")
    ('esophagus', 'tumor', 'type', '2')
    """
    return tuple(loose_key(text).split())


def parts_of(text: str) -> Iterator[str]:
    """Yield the runs of words within a text, itself left out; of a long text those within its last words.

    >>> list(parts_of("acute liver failure"))
    ['acute', 'acute liver', 'liver', 'liver failure', 'failure']
    """
    split = text.split()[-_MOST_WORDS:]
    for start in range(len(split)):
        for end in range(start + 1, len(split) + 1):
            part = " ".join(split[start:end])
            if part != text:
                yield part


def gather(
    text: str, retrievals: Mapping[Channel, Retrieval], parts: Sequence[tuple[str, Retrieval]]
) -> dict[str, Evidence]:
    """Return the evidence for every concept that was found, by id.

    Args:
        text: The mention as it was searched.
        retrievals: What each channel found for it.
        parts: Parts of the mention that are names, with the concepts that own them.
    """
    found: dict[str, Evidence] = {}
    for channel, retrieval in retrievals.items():
        for rank, retrieved in enumerate(retrieval.found):
            concept_id = retrieved.concept_id
            found.setdefault(concept_id, Evidence(concept_id)).channels.setdefault(channel, (rank, retrieved))
    for part, retrieval in parts:
        ends = text.endswith(part)
        for retrieved in retrieval.found:
            evidence = found.setdefault(retrieved.concept_id, Evidence(retrieved.concept_id))
            known = evidence.part
            if known is None or (len(retrieved.words), ends) > (len(known.words), known.ends):
                evidence.part = Part(retrieved, retrieved.words, ends)
    return found
