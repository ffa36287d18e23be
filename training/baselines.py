"""What any encoder has to beat: exact names and character trigrams over a dictionary."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from medlink.corpora.ids import candidate_ids
from medlink.kb.records import CodeRecord, NameRecord, Record
from medlink.types import Code
from training.protocols import plain_text

BASELINES = ("baseline-exact", "baseline-tfidf")

NameSearch = Callable[[Sequence[str], int], Sequence[Sequence[str]]]
"""A way to search a dictionary: texts and k in, for each text the k best names out, best first."""

# Scores at a time, whatever the size of the dictionary.
_IN_MEMORY = 1 << 24


class Dictionary:
    """Names of a terminology, each with the ids of every concept that bears it; an order of names breaks ties."""

    def __init__(self, concepts_by_name: Mapping[str, Sequence[frozenset[str]]]) -> None:
        self._concepts = {name: tuple(concepts) for name, concepts in concepts_by_name.items()}
        self.ids_by_name = {name: frozenset().union(*concepts) for name, concepts in self._concepts.items()}
        """Every id that a name stands for."""
        self.ids = frozenset().union(*self.ids_by_name.values())

    @classmethod
    def read(cls, records: Iterable[Record]) -> "Dictionary":
        """Collect the names that are not suppressed, in the protocol's plain form and in the order of the records."""
        concepts_by_name: dict[str, dict[str, None]] = {}
        codes: dict[str, list[Code]] = {}
        for record in records:
            if isinstance(record, NameRecord) and record.suppress == "N":
                concepts_by_name.setdefault(plain_text(record.text), {})[record.concept_id] = None
            elif isinstance(record, CodeRecord):
                codes.setdefault(record.concept_id, []).append(Code(record.sab, record.code))
        bearers = dict.fromkeys(concept for concepts in concepts_by_name.values() for concept in concepts)
        ids = {concept: candidate_ids(concept, codes.get(concept, ())) for concept in bearers}
        return cls({name: [ids[c] for c in concepts] for name, concepts in concepts_by_name.items() if name})

    def extended(self, added: Mapping[str, frozenset[str]]) -> "Dictionary":
        """Return a dictionary in which names stand for some more ids; new names come after all others."""
        concepts = dict(self._concepts)
        for name, ids in added.items():
            concepts[name] = (*concepts.get(name, ()), ids)
        return Dictionary(concepts)

    @property
    def names(self) -> list[str]:
        """Every name once, in order."""
        return list(self._concepts)

    def exact(self, texts: Sequence[str], k: int) -> list[list[str]]:
        """Find the name that equals a text, if there is one; there is never a second name."""
        return [[text] if text in self._concepts and k else [] for text in texts]

    def ids_of(self, names: Iterable[str]) -> list[frozenset[str]]:
        """Return what names stand for."""
        return [self.ids_by_name[name] for name in names]

    def concepts_of(self, names: Iterable[str], k: int) -> list[frozenset[str]]:
        """Return the ids of the first k distinct concepts that bear the names, apart even where names are shared."""
        found = dict.fromkeys(concept for name in names for concept in self._concepts[name])
        return list(islice(found, k))


class Trigrams:
    """Names by cosine of their TF-IDF weighted character trigrams within words."""

    def __init__(self, names: Sequence[str]) -> None:
        # Not on the base install: only this baseline needs it.
        from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415

        self._names = list(names)
        self._vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3))
        self._vectors = self._vectorizer.fit_transform(names).T.tocsr()

    def search(self, texts: Sequence[str], k: int) -> list[list[str]]:
        """Find the k nearest names; equal scores stand in the order of the names.

        Names that share no trigram with a text are left out.
        """
        found: list[list[str]] = []
        for batch in batches(texts, len(self._names)):
            scores = (self._vectorizer.transform(batch) @ self._vectors).toarray()
            # Names that are permutations of one another differ in the last bits only.
            for row in np.round(scores, 9):
                found.append([self._names[at] for at in largest(row, k) if row[at] > 0])
        return found


def batches(texts: Sequence[str], names: int) -> Iterable[Sequence[str]]:
    """Cut texts so that the scores of one part with all names stay small in memory."""
    size = max(1, _IN_MEMORY // max(1, names))
    return (texts[start : start + size] for start in range(0, len(texts), size))


def largest(scores: NDArray[np.floating], k: int) -> list[int]:
    """Return the places of the k largest scores, ties in order of place.

    >>> largest(np.array([0.1, 0.7, 0.3, 0.7, 0.3]), 3)
    [1, 3, 2]
    """
    edge = np.partition(scores, -k)[-k] if k < len(scores) else -np.inf
    places = np.flatnonzero(scores >= edge)
    best: list[int] = places[np.argsort(-scores[places], kind="stable")][:k].tolist()
    return best
