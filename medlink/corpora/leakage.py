"""Finds documents that corpora share, and keeps those that are scored out of what is trained on."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from medlink.corpora.catalogue import corpora, corpus
from medlink.corpora.records import LabeledDocument


@dataclass(slots=True)
class LeakageReport:
    """Counts of documents that were kept out of training; complete once they are all read."""

    documents: int = 0
    """Documents looked at; a PMID counts as often as it comes."""
    dropped: int = 0
    by_split: dict[str, int] = field(default_factory=dict)
    """How many of the dropped were in each scored split; one may be in several."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two splits that share documents."""

    first: str
    second: str
    ids: frozenset[str]


def drop_documents(
    documents: Iterable[LabeledDocument],
    scored: Mapping[str, Collection[str]],
    *,
    report: LeakageReport | None = None,
) -> Iterator[LabeledDocument]:
    """Yield the documents that no scored split holds, compared by id (PMID).

    Args:
        documents: What is to be trained on.
        scored: The document ids of each dev or test split that is scored, as `split_ids` returns them.
        report: Filled while the documents are read.
    """
    counts = report if report is not None else LeakageReport()
    counts.by_split.update({name: counts.by_split.get(name, 0) for name in scored})
    for document in documents:
        counts.documents += 1
        holders = [name for name, ids in scored.items() if document.id in ids]
        for name in holders:
            counts.by_split[name] += 1
        if holders:
            counts.dropped += 1
        else:
            yield document


def split_ids(splits: Iterable[tuple[str, str]], data: Path) -> dict[str, frozenset[str]]:
    """Return the document ids of splits, each under `corpus split`.

    Args:
        splits: Names of corpora and splits, e.g. `("bc5cdr-disease", "test")`.
        data: Folder of the corpora.

    Raises:
        UnknownValueError: There is no such corpus or split.
        SourceError: A file is missing or damaged.
    """
    return {f"{name} {split}": _ids(name, split, data) for name, split in splits}


def overlaps(data: Path) -> list[Overlap]:
    """Return every pair of splits that share a document, of all corpora whose files are there.

    Corpora over the same documents are looked at once, under the name of their collection.

    Raises:
        SourceError: A file is damaged.
    """
    ids: dict[str, frozenset[str]] = {}
    for member in corpora():
        for split in member.files:
            label = f"{member.collection or member.name} {split}"
            if label not in ids and member.file(split, data).exists():
                ids[label] = _ids(member.name, split, data)
    pairs = combinations(ids.items(), 2)
    return [Overlap(one, other, here & there) for (one, here), (other, there) in pairs if here & there]


def _ids(name: str, split: str, data: Path) -> frozenset[str]:
    chosen = corpus(name)
    return frozenset(document.id for document in chosen.read(chosen, split, data, None))
