"""Scores the systems of a source on a split of a corpus, as a protocol has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from medlink.corpora.catalogue import read_split
from medlink.corpora.records import LabeledDocument
from training.evaluate import Task, answerable, earlier_documents, score, subsets
from training.protocols import Question, names_of_mentions, questions
from training.strict import questions_as_written
from training.systems import Source


@dataclass(frozen=True, slots=True)
class CorpusTest:
    """What is asked for a split, and what one may know before."""

    task: Task
    asked: Sequence[Question]
    earlier: Sequence[LabeledDocument]
    added: Mapping[str, frozenset[str]]
    """Names that the protocol adds to the dictionary, with what they stand for."""


def corpus_test(task: Task, data: Path, typos: Mapping[str, str] | None = None) -> CorpusTest:
    """Read a split and those before it.

    Args:
        task: Which split, and how it is asked.
        data: Folder of the corpora.
        typos: Words to correct, lower case; not for the protocol `strict`, which asks as written.

    Raises:
        UnknownValueError: There is no such corpus or split.
        SourceError: A file is missing or damaged.
    """
    documents = read_split(task.corpus, task.split, data)
    earlier = earlier_documents(task, data)
    asked = questions_as_written(documents) if task.protocol == "strict" else questions(documents, typos)
    added = names_of_mentions(questions(earlier, typos)) if task.protocol == "paper" else {}
    return CorpusTest(task, list(asked), earlier, added)


def score_systems(test: CorpusTest, source: Source, top_k: int) -> list[dict[str, Any]]:
    """Return the rows of every system; what is `hard` does not depend on the names that are added.

    Args:
        test: What is asked.
        source: The systems.
        top_k: How far down an answer is read.
    """
    task = replace(test.task, dictionary=source.label)
    members = subsets(test.asked, test.earlier, source.exact)
    added = {id_ for ids in test.added.values() for id_ in ids}
    present = answerable(
        test.asked, lambda ids: {*source.known(ids), *added.intersection(ids)}, nil=task.protocol == "strict"
    )
    rows: list[dict[str, Any]] = []
    for system in source.systems(task.protocol, test.added):
        scored = score(task, system.name, system.encoder, system.ranks(test.asked, top_k), present, members)
        rows += [{**row, **system.facts} for row in scored]
    return rows
