"""What any encoder has to beat: exact names and character trigrams over a dictionary."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from medlink.corpora.ids import candidate_ids
from medlink.kb.records import CodeRecord, NameRecord, Record
from medlink.types import Code
from training.protocols import plain_text

_BATCH = 256


class Dictionary:
    """Names of a terminology in the protocol's plain form, each with every id of every concept that bears it."""

    def __init__(self, ids_by_name: Mapping[str, frozenset[str]]) -> None:
        self.ids_by_name = dict(ids_by_name)
        self.ids = frozenset().union(*self.ids_by_name.values())

    @classmethod
    def read(cls, records: Iterable[Record]) -> "Dictionary":
        """Collect the names that are not suppressed, in the order of the records."""
        concepts_by_name: dict[str, set[str]] = {}
        codes: dict[str, list[Code]] = {}
        for record in records:
            if isinstance(record, NameRecord) and record.suppress == "N":
                concepts_by_name.setdefault(plain_text(record.text), set()).add(record.concept_id)
            elif isinstance(record, CodeRecord):
                codes.setdefault(record.concept_id, []).append(Code(record.sab, record.code))
        return cls(
            {
                name: frozenset().union(*(candidate_ids(c, codes.get(c, ())) for c in concepts))
                for name, concepts in concepts_by_name.items()
                if name
            }
        )

    def exact(self, texts: Sequence[str], k: int) -> list[list[frozenset[str]]]:
        """Answer each text with the name that equals it, if there is one; there is never a second name."""
        found = (self.ids_by_name.get(text) for text in texts)
        return [[ids] if ids and k else [] for ids in found]


class Trigrams:
    """Names by cosine of their TF-IDF weighted character trigrams within words."""

    def __init__(self, dictionary: Dictionary) -> None:
        # Not on the base install: only this baseline needs it.
        from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415

        self._ids = list(dictionary.ids_by_name.values())
        self._vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3))
        self._names = self._vectorizer.fit_transform(dictionary.ids_by_name).T.tocsr()

    def answer(self, texts: Sequence[str], k: int) -> list[list[frozenset[str]]]:
        """Answer each text with the k nearest names; equal scores stand in the order of the dictionary.

        Names that share no trigram with a text are left out.
        """
        distinct = list(dict.fromkeys(texts))
        answers: dict[str, list[frozenset[str]]] = {}
        for start in range(0, len(distinct), _BATCH):
            batch = distinct[start : start + _BATCH]
            scores = (self._vectorizer.transform(batch) @ self._names).toarray()
            # Names that are permutations of one another differ in the last bits only.
            for text, row in zip(batch, np.round(scores, 9), strict=True):
                answers[text] = [self._ids[at] for at in _largest(row, k)]
        return [answers[text] for text in texts]


def _largest(scores: np.ndarray[tuple[int], np.dtype[np.float64]], k: int) -> list[int]:
    """Return the places of the k largest positive scores, ties in order of place."""
    edge = np.partition(scores, -k)[-k] if k < len(scores) else 0.0
    places = np.flatnonzero((scores >= edge) & (scores > 0))
    best: list[int] = places[np.argsort(-scores[places], kind="stable")][:k].tolist()
    return best
