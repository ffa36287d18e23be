"""What fine-tuning learns from: the names of a terminology, and mentions with the concepts that they mean."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from medlink.corpora.catalogue import corpora
from medlink.corpora.ids import candidate_ids
from medlink.corpora.records import LabeledDocument
from medlink.errors import SourceError
from medlink.kb.records import CodeRecord, NameRecord, Record
from medlink.ragged import Ragged
from medlink.text import encoder_text
from medlink.types import Code
from training.heldout import HeldOut, split_hash
from training.names import NameRule
from training.protocols import Question, questions

_SCORED = ("dev", "test")


class Names:
    """The distinct texts of a terminology, with the concepts that bear each and every id that it stands for.

    Concepts and ids go by number here. An id may belong to several concepts, and a text to several of them.

    Args:
        concepts_by_text: Concepts of each encoder text.
        ids_by_concept: Every id that a concept answers to, as `candidate_ids` returns them.
        rule: Which names serve, and in which form.
        held_out: Names that are left out; mentions that read like one must be, too.
    """

    def __init__(
        self,
        concepts_by_text: Mapping[str, Collection[str]],
        ids_by_concept: Mapping[str, Collection[str]],
        rule: NameRule,
        held_out: HeldOut,
    ) -> None:
        self.rule = rule
        self.held_out = held_out
        self.texts = list(concepts_by_text)
        self._row = {text: row for row, text in enumerate(self.texts)}
        number = {concept: at for at, concept in enumerate(ids_by_concept)}
        self._id_number = {id_: at for at, id_ in enumerate(sorted(frozenset().union(*ids_by_concept.values())))}
        self._ids_of_concept = [{self._id_number[id_] for id_ in ids} for ids in ids_by_concept.values()]
        self.concepts = _ragged([number[concept] for concept in bearers] for bearers in concepts_by_text.values())
        """Concepts of each text."""
        self.ids = _ragged(self._ids_of(row) for row in self._concept_rows())
        """Ids of each text: all those of all its concepts."""
        self.of_concept = _inverse(self.concepts, len(number))
        """Texts of each concept."""
        self.of_id = _inverse(self.ids, len(self._id_number))
        """Texts that stand for each id."""
        self._concepts_of_id = _inverse(_ragged(self._ids_of_concept), len(self._id_number))

    @classmethod
    def read(
        cls, records: Iterable[Record], rule: NameRule, *, held_out_percent: float = 0.0, seed: int = 0
    ) -> "Names":
        """Collect the names that serve.

        Args:
            records: Names and codes, in any order; others do not matter.
            rule: Which names serve, and in which form.
            held_out_percent: Names to leave out, those that pairs of this terminology with this percentage hide.
            seed: Which ones; the seed of the pairs.

        Raises:
            SourceError: There is no name that serves.
        """
        found: dict[str, dict[str, None]] = {}
        codes: dict[str, list[Code]] = {}
        for record in records:
            if isinstance(record, NameRecord):
                text, _ = rule.form(record.text, record.language, suppressed=record.suppress != "N")
                if text:
                    found.setdefault(text, {})[record.concept_id] = None
            elif isinstance(record, CodeRecord):
                codes.setdefault(record.concept_id, []).append(Code(record.sab, record.code))
        if not found:
            raise SourceError("there is no name that serves; see --cased and the languages", file="the terminology")
        held_out = _hold_out(found, held_out_percent, seed)
        shown = {text: bearers for text, bearers in found.items() if not held_out.is_held_out(text)}
        concepts = dict.fromkeys(concept for bearers in shown.values() for concept in bearers)
        return cls(shown, {c: candidate_ids(c, codes.get(c, ())) for c in concepts}, rule, held_out)

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.texts)

    def known(self, ids: Iterable[str]) -> list[int]:
        """Return the numbers of those ids that some concept answers to."""
        return sorted(self._id_number[id_] for id_ in ids if id_ in self._id_number)

    def meant(self, ids: Sequence[int]) -> list[int]:
        """Return the concepts that answer to any of some ids."""
        return sorted(set(self._concepts_of_id.take(np.array(ids, np.int64)).values.tolist()))

    def related(self, text: str, ids: Iterable[int], concepts: Iterable[int]) -> list[int]:
        """Return every id that a mention is related to: its own, those of its concepts, and of the name it reads as."""
        row = self._row.get(text)
        same = self.ids.row(row).tolist() if row is not None else []
        return sorted({*ids, *self._ids_of(concepts), *same})

    def _ids_of(self, concepts: Iterable[int]) -> set[int]:
        return set().union(*(self._ids_of_concept[concept] for concept in concepts))

    def _concept_rows(self) -> Iterable[list[int]]:
        return (self.concepts.row(row).tolist() for row in range(len(self.texts)))


@dataclass(slots=True)
class MentionReport:
    """Counts of the mentions that were read, those that were left out and why."""

    mentions: int = 0
    without_concept: int = 0
    """Labeled with no concept."""
    composite: int = 0
    """Labeled with several concepts, or split by the protocol."""
    unknown: int = 0
    """No concept of the terminology answers to any of their ids."""
    blank: int = 0
    held_out: int = 0
    """They read like a name that is kept for the held-out-synonym test."""
    unknown_ids: set[str] = field(default_factory=set)
    """The ids that the terminology lacks, of mentions that were used as well."""
    texts: int = 0
    """Distinct texts of what is left."""


@dataclass(frozen=True, slots=True)
class Mentions:
    """Distinct mention texts; one that means several concepts in different places has them all.

    A text may be pushed away only from names that share none of its `ids`: those of its gold, of the concepts that
    answer to them, and of the name that reads the same.
    """

    texts: list[str]
    concepts: Ragged
    """Numbers of the gold concepts of each text, at least one."""
    ids: Ragged
    """Numbers of the ids that each text is related to."""

    @classmethod
    def read(
        cls,
        documents: Iterable[LabeledDocument],
        names: Names,
        *,
        typos: Mapping[str, str] | None = None,
        report: MentionReport | None = None,
    ) -> "Mentions":
        """Take mentions as the protocol `dictionary` asks them: short forms written out, typos corrected.

        Args:
            documents: Those to learn from; drop those that will be scored first.
            names: What the mentions can mean.
            typos: Words to correct, lower case.
            report: Filled with counts.
        """
        counts = report if report is not None else MentionReport()
        gold: dict[str, set[int]] = {}
        for question in questions(documents, typos):
            text, ids = _labeled(question, names, counts)
            if ids:
                gold.setdefault(text, set()).update(ids)
        counts.texts = len(gold)
        meant = [names.meant(sorted(ids)) for ids in gold.values()]
        related = (names.related(text, gold[text], concepts) for text, concepts in zip(gold, meant, strict=True))
        return cls(list(gold), _ragged(meant), _ragged(related))

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.texts)


def scored_splits(data: Path) -> list[tuple[str, str]]:
    """Return every dev and test split of the catalogue whose file is there; of one collection, one corpus.

    Args:
        data: Folder of the corpora.
    """
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for member in corpora():
        for split in _SCORED:
            if split in member.files and member.file(split, data).exists():
                found.setdefault((member.collection or member.name, split), (member.name, split))
    return list(found.values())


def digest(names: Names, *mentions: Mentions) -> str:
    """Return the hash of everything that training reads of names and mentions."""
    content = blake2b(digest_size=16)
    for texts, *rows in (
        (names.texts, names.concepts, names.ids),
        *((part.texts, part.concepts, part.ids) for part in mentions),
    ):
        content.update("\n".join(texts).encode())
        for ragged in rows:
            content.update(ragged.offsets.tobytes() + ragged.values.tobytes())
    return content.hexdigest()


def _labeled(question: Question, names: Names, counts: MentionReport) -> tuple[str, list[int]]:
    """Return what the encoder reads of a mention and the numbers of its gold ids; no ids if it does not serve."""
    gold = question.mention.gold
    counts.mentions += 1
    if not question.mention.gold_ids:
        counts.without_concept += 1
        return "", []
    if len(gold) > 1 or len(question.texts) > 1:
        counts.composite += 1
        return "", []
    ids = names.known(gold[0])
    counts.unknown_ids.update(id_ for id_ in gold[0] if not names.known([id_]))
    text = encoder_text(question.texts[0], lowercase=names.rule.lowercase)
    if not ids:
        counts.unknown += 1
    elif not text:
        counts.blank += 1
    elif names.held_out.is_held_out(text):
        counts.held_out += 1
    else:
        return text, ids
    return "", []


def _hold_out(concepts_by_text: Mapping[str, Collection[str]], percent: float, seed: int) -> HeldOut:
    if not percent:
        return HeldOut(0, seed)
    largest: dict[str, int] = {}
    for text, bearers in concepts_by_text.items():
        number = split_hash(text, seed)
        for concept in bearers:
            largest[concept] = max(number, largest.get(concept, 0))
    return HeldOut.choose(largest.values(), percent=percent, seed=seed)


def _ragged(rows: Iterable[Iterable[int]]) -> Ragged:
    """Return rows of numbers, each in ascending order."""
    listed = [sorted(row) for row in rows]
    offsets = np.concatenate(([0], np.cumsum([len(row) for row in listed], dtype=np.int64))).astype(np.int64)
    return Ragged(offsets, np.array([number for row in listed for number in row], np.int32))


def _inverse(rows: Ragged, count: int) -> Ragged:
    """Return for each of `count` values the rows that hold it, in ascending order."""
    order = np.argsort(rows.values, kind="stable")
    holders: NDArray[np.int32] = np.repeat(np.arange(len(rows), dtype=np.int32), rows.lengths)
    return Ragged.of_sorted(rows.values[order], holders[order], count)
