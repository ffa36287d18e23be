"""Brings the ids of an annotated corpus up to date with the knowledge base that answers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from medlink.corpora.records import LabeledDocument, LabeledMention


def with_successors(documents: Iterable[LabeledDocument], successors: Mapping[str, str]) -> Iterator[LabeledDocument]:
    """Yield the documents with every retired or alternative id replaced by the id that is in use.

    Args:
        documents: Labeled documents.
        successors: The id in use for each that is not, both in the form of `normal_id`; other ids stay.
    """

    def renewed(mention: LabeledMention) -> LabeledMention:
        gold = tuple(tuple(successors.get(id_, id_) for id_ in part) for part in mention.gold)
        return replace(mention, gold=gold)

    for document in documents:
        yield replace(document, mentions=tuple(map(renewed, document.mentions)))
