"""Scores systems on a labeled corpus and writes the rows that the README's tables are made from."""

import json
import os
import platform
import shlex
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from medlink import metrics
from medlink.corpora.catalogue import corpus, read_split
from medlink.corpora.records import LabeledDocument
from training.protocols import Question, RankedNames, first_right, plain_text

Ranker = Callable[[Sequence[str], int], Sequence[RankedNames]]
"""A system under test: texts and k in, for each text the ids of its k best names out."""

_BATCH = 200


@dataclass(frozen=True, slots=True)
class Task:
    """What a table row says about where its figures come from."""

    corpus: str
    split: str
    dictionary: str
    protocol: str = "dictionary"


def earlier_documents(task: Task, data: Path) -> list[LabeledDocument]:
    """Return the documents that one may learn from before a split is scored, in the order of the splits."""
    earlier = corpus(task.corpus).before(task.split)
    return [document for split in earlier for document in read_split(task.corpus, split, data)]


def subsets(asked: Sequence[Question], earlier: Sequence[LabeledDocument], exact: Ranker) -> dict[str, list[bool]]:
    """Return the subsets by name, each as one flag a question.

    `unseen` are mentions whose string is not in the documents that one may train on, `hard` those of them that are
    not a name of the dictionary either. Where there are no such documents, there is `all` only.

    Args:
        asked: The questions.
        earlier: The documents that one may train on.
        exact: Answers a text that is a name of the dictionary as it was read, and no other.
    """
    members = {"all": [True] * len(asked)}
    if earlier:
        seen = {plain_text(mention.text) for document in earlier for mention in document.mentions}
        unseen = [plain_text(question.mention.text) not in seen for question in asked]
        named = answer_all(asked, exact, 1)
        is_name = [all(named[text] for text in question.texts) for question in asked]
        members["unseen"] = unseen
        members["hard"] = [new and not known for new, known in zip(unseen, is_name, strict=True)]
    return members


def answerable(
    asked: Sequence[Question], known: Callable[[Collection[str]], Collection[str]], *, nil: bool = False
) -> list[bool]:
    """Say of each question whether the right answer can be given from the dictionary.

    Args:
        asked: The questions.
        known: Returns those of the given ids that the dictionary has.
        nil: Whether NIL is the right answer where the gold is no concept; else nothing is.
    """
    gold = {id_ for question in asked for id_ in question.mention.gold_ids}
    present = frozenset(known(sorted(gold)))

    def can(question: Question) -> bool:
        parts = question.mention.gold or ((),)
        return all(present.intersection(part) or (nil and not part) for part in parts)

    return [can(question) for question in asked]


def answer_all(asked: Sequence[Question], ranker: Ranker, k: int) -> dict[str, RankedNames]:
    """Return the answer to every text of the questions, each asked once."""
    texts = list(dict.fromkeys(text for question in asked for text in question.texts))
    answers: dict[str, RankedNames] = {}
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        answers.update(zip(batch, ranker(batch, k), strict=True))
    return answers


def rank_all(asked: Sequence[Question], ranker: Ranker, k: int) -> list[int]:
    """Return for each question the rank of its first right answer, 0 if there is none."""
    answers = answer_all(asked, ranker, k)
    return [first_right(question, [answers[text] for text in question.texts]) for question in asked]


def score(
    task: Task,
    system: str,
    encoder: str | None,
    ranks: Sequence[int],
    present: Sequence[bool],
    members: Mapping[str, Sequence[bool]],
) -> list[dict[str, Any]]:
    """Return one row for each subset that is not empty, all figures in percent."""
    rows = []
    for subset, flags in members.items():
        chosen = [rank for rank, member in zip(ranks, flags, strict=True) if member]
        covered = [there for there, member in zip(present, flags, strict=True) if member]
        if not chosen:
            continue
        low, high = metrics.bootstrap_interval([float(rank == 1) for rank in chosen])
        rows.append(
            {
                "corpus": task.corpus,
                "split": task.split,
                "dictionary": task.dictionary,
                "protocol": task.protocol,
                "subset": subset,
                "system": system,
                "encoder": encoder,
                "n": len(chosen),
                "coverage": _percent(metrics.coverage(covered)),
                "acc@1": _percent(metrics.accuracy_at(chosen, 1)),
                "acc@5": _percent(metrics.accuracy_at(chosen, 5)),
                "mrr": _percent(metrics.mean_reciprocal_rank(chosen)),
                "ci95": [_percent(low), _percent(high)],
            }
        )
    return rows


def write_results(path: Path, rows: Iterable[Mapping[str, Any]], *, command: Sequence[str], final: bool) -> None:
    """Write rows with what made them; `final` says that a test split was scored."""
    facts = {
        "command": shareable(command),
        "commit": _commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "final": final,
        "rows": list(rows),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", "utf-8")


def shareable(command: Sequence[str]) -> str:
    """Return a command line to print for others: places on this machine are cut down to their last name.

    >>> shareable(["medlink", "eval", "--data", "/home/me/corpora", "--output=../results/a.json"])
    'medlink eval --data corpora --output=a.json'
    """
    return shlex.join(_without_place(word) for word in command)


def _without_place(word: str) -> str:
    option, equals, value = word.rpartition("=") if word.startswith("-") else ("", "", word)
    path = Path(value)
    return f"{option}{equals}{path.name}" if path.is_absolute() or ".." in path.parts else word


def _percent(fraction: float) -> float:
    return round(100 * fraction, 2)


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--abbrev=12", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
