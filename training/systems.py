"""Baselines and encoders over the names of a file, in the form that each protocol asks."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from medlink.types import Mention
from training.baselines import Dictionary, NameSearch, Trigrams
from training.dense import DenseNames, EncodedNames
from training.evaluate import Ranker, rank_all
from training.protocols import Question, plain_text
from training.strict import Answer, Link, rank_all_strictly

Ranks = Callable[[Sequence[Question], int], list[int]]
"""Returns the rank of the first right answer to each question among the k best, 0 if there is none."""

# A concept may own many of the nearest names.
_NAMES_A_CONCEPT = 10


@dataclass(frozen=True, slots=True)
class System:
    """A system under test as rows name it."""

    name: str
    encoder: str | None
    ranks: Ranks
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What rows say of it beside its name and encoder."""


class Source(Protocol):
    """Systems over one dictionary."""

    @property
    def label(self) -> str:
        """What rows call the dictionary."""

    def exact(self, texts: Sequence[str], k: int) -> Sequence[Sequence[frozenset[str]]]:
        """Answer a text that is a name of the dictionary, and no other."""

    def known(self, ids: Collection[str]) -> Collection[str]:
        """Return those of some ids that the dictionary has."""

    def systems(self, protocol: str, added: Mapping[str, frozenset[str]]) -> Iterator[System]:
        """Yield the systems, with names added to those of the dictionary."""


class DictionarySource:
    """Baselines and encoders over the names of one file.

    Args:
        dictionary: The names.
        label: What rows call it.
        baselines: Those of `BASELINES` to run.
        encoders: What rows call an encoder, and the names that it has read.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        label: str,
        baselines: Collection[str],
        encoders: Mapping[str, EncodedNames],
    ) -> None:
        self._dictionary = dictionary
        self._baselines = baselines
        self._encoders = encoders
        self.label = label

    def exact(self, texts: Sequence[str], k: int) -> list[list[frozenset[str]]]:
        """Answer a text that is a name of the file, as written or in plain form, and no other."""
        plain = [plain_text(text) for text in texts]
        return [self._dictionary.ids_of(names) for names in self._dictionary.exact(plain, k)]

    def known(self, ids: Collection[str]) -> Collection[str]:
        """Return those ids that the file has."""
        return self._dictionary.ids & set(ids)

    def systems(self, protocol: str, added: Mapping[str, frozenset[str]]) -> Iterator[System]:
        """Yield one system after another, so that only one is in memory.

        Args:
            protocol: How it is to be asked.
            added: Names that the dictionary has beside its own, with what they stand for.
        """
        dictionary = self._dictionary.extended(added) if added else self._dictionary
        for name, encoder, search in self._searches(dictionary):
            yield System(name, encoder, _ranks_of_names(dictionary, search, protocol))

    def _searches(self, dictionary: Dictionary) -> Iterator[tuple[str, str | None, NameSearch]]:
        if "baseline-exact" in self._baselines:
            yield "baseline-exact", None, dictionary.exact
        if "baseline-tfidf" in self._baselines:
            yield "baseline-tfidf", None, Trigrams(dictionary.names).search
        for label, encoded in self._encoders.items():
            yield "dense", label, DenseNames(dictionary.names, encoded).search


def asked_by(protocol: str, rank: Ranker, link: Link, longest_context: int) -> Ranks:
    """Return how a protocol asks a system.

    Args:
        protocol: `strict`, which asks by mention, or one that asks by text.
        rank: The system by text.
        link: The same by mention.
        longest_context: Most characters of a document that it takes with a mention.
    """
    if protocol == "strict":
        return lambda asked, k: rank_all_strictly(asked, link, k, longest_context)
    return lambda asked, k: rank_all(asked, rank, k)


def _ranks_of_names(dictionary: Dictionary, search: NameSearch, protocol: str) -> Ranks:
    def rank(texts: Sequence[str], k: int) -> list[list[frozenset[str]]]:
        return [dictionary.ids_of(names) for names in search(texts, k)]

    answers: dict[tuple[str, int], Answer] = {}

    def link(mentions: Sequence[Mention], k: int) -> list[Answer]:
        texts = [plain_text(mention.text) for mention in mentions]
        new = [text for text in dict.fromkeys(texts) if (text, k) not in answers]
        for text, names in zip(new, search(new, k * _NAMES_A_CONCEPT), strict=True):
            answers[text, k] = Answer(tuple(dictionary.concepts_of(names, k)))
        return [answers[text, k] for text in texts]

    return asked_by(protocol, rank, link, 0)
