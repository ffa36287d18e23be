"""Mentions with their candidates as fusion sees them, and which of those are right."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log1p
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from medlink.corpora.ids import candidate_ids
from medlink.corpora.records import LabeledDocument
from medlink.linking.features import FEATURES
from medlink.linking.forms import write_out
from medlink.linking.ranking import DEPTH, Measured, Query, measure_all
from medlink.linking.search import Channels
from medlink.types import LinkOptions, Mention
from training.protocols import questions

if TYPE_CHECKING:
    from index.store import IndexBuild

_BATCH = 500
_ANNOTATED = FEATURES.index("annotated")


@dataclass(frozen=True, slots=True)
class Labeled:
    """A query with the ids that are right for it, the document that it comes from, and how often it came."""

    query: Query
    gold: frozenset[str]
    document: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Sample:
    """The candidates of a labeled query and which of them are right, (n,)."""

    labeled: Labeled
    measured: Measured
    right: NDArray[np.bool_]


class Measuring:
    """Measures queries over an index build, each once.

    Args:
        build: The build, as curation leaves it.
        annotated: How often annotators chose a concept, by its id.
    """

    def __init__(self, build: "IndexBuild", annotated: Mapping[str, int]) -> None:
        self._build = build
        self._annotated = annotated
        self._channels = Channels({c: r.under(build.overlay) for c, r in build.retrievers.items()})
        self._known: dict[Query, Measured] = {}
        self._ids: dict[str, frozenset[str]] = {}

    def recounted(self, annotated: Mapping[str, int]) -> "Measuring":
        """Return what knows the same mentions, but of annotators only what is given."""
        other = Measuring(self._build, annotated)
        other._ids = self._ids
        other._known = {query: other._counted(measured) for query, measured in self._known.items()}
        return other

    def measure(self, queries: Iterable[Query]) -> list[Measured]:
        """Return the candidates of each query with their features."""
        asked = list(queries)
        new = [query for query in dict.fromkeys(asked) if query not in self._known]
        options = LinkOptions()
        for start in range(0, len(new), _BATCH):
            batch = new[start : start + _BATCH]
            found = self._channels.with_parts(self._channels.search(batch, options, deep=DEPTH), options)
            measured = measure_all(found, self._build.concepts, options, annotated=self._annotated)
            self._known.update(zip(batch, measured, strict=True))
        return [self._known[query] for query in asked]

    def samples(self, labeled: Sequence[Labeled], *, own: Mapping[str, Counter[str]] | None = None) -> list[Sample]:
        """Return the queries with their candidates.

        Args:
            labeled: The queries.
            own: What the annotators chose in each document, to be left out of what is counted for its own mentions.
        """
        samples = []
        for one, measured in zip(labeled, self.measure(each.query for each in labeled), strict=True):
            ids = [self.ids(evidence.concept_id) for evidence in measured.found]
            right = np.array([bool(one.gold & of) for of in ids], np.bool_)
            if own is not None:
                measured = self._without(measured, ids, own.get(one.document, Counter()))
            samples.append(Sample(one, measured, right))
        return samples

    def ids(self, concept_id: str) -> frozenset[str]:
        """Return every id that a concept goes by."""
        if concept_id not in self._ids:
            concept = self._build.concepts.concepts([concept_id])[concept_id]
            self._ids[concept_id] = candidate_ids(concept_id, concept.codes)
        return self._ids[concept_id]

    def _without(self, measured: Measured, ids: Sequence[frozenset[str]], own: Counter[str]) -> Measured:
        chosen = {id_ for id_ in own if own[id_]}
        return self._counted(measured, own) if any(of & chosen for of in ids) else measured

    def _counted(self, measured: Measured, less: Mapping[str, int] | None = None) -> Measured:
        """Return a mention whose candidates are annotated as often as is known here, less what is not to be seen."""
        less = less or {}
        features = measured.features.copy()
        features[:, _ANNOTATED] = [
            log1p(max((self._annotated.get(id_, 0) - less.get(id_, 0) for id_ in self.ids(e.concept_id)), default=0))
            for e in measured.found
        ]
        return replace(measured, features=features)


def count_annotations(documents: Iterable[LabeledDocument]) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """Return how often each id was chosen, in all and by document."""
    whole: Counter[str] = Counter()
    own: dict[str, Counter[str]] = {}
    for document in documents:
        counts = Counter(id_ for mention in document.mentions for id_ in mention.gold_ids)
        own.setdefault(document.id, Counter()).update(counts)
        whole.update(counts)
    return whole, own


def labeled_texts(documents: Sequence[LabeledDocument], typos: Mapping[str, str] | None = None) -> list[Labeled]:
    """Return what the protocols that ask by text ask for, without context; parts of a composite by themselves."""
    found = (
        Labeled(Query(text), question.mention.gold_ids, question.mention.document_id)
        for question in questions(documents, typos)
        for text in question.texts
        if text
    )
    return _counted(found)


def labeled_mentions(documents: Sequence[LabeledDocument]) -> list[Labeled]:
    """Return mentions as written, short forms written out, with their document as context; no composites."""
    return _counted(_as_written(documents))


def _as_written(documents: Iterable[LabeledDocument]) -> Iterator[Labeled]:
    for document in documents:
        single = [mention for mention in document.mentions if len(mention.gold) < 2]
        asked = [Mention(mention.text, context=document.text, start=mention.start) for mention in single]
        for mention, expansion in zip(single, write_out(asked), strict=True):
            yield Labeled(Query(expansion.text, document.text), mention.gold_ids, document.id)


def _counted(labeled: Iterable[Labeled]) -> list[Labeled]:
    counts = Counter(labeled)
    return [replace(one, count=count) for one, count in counts.items()]
