"""The protocols `dictionary` and `paper`: what is asked for a labeled mention, and when an answer counts as right.

As in the papers of BioSyn and SapBERT: a mention is lower-cased and bared of punctuation, the abbreviations that its
document defines are written out, and a composite is split by rule, never by looking at the gold. A name carries all
its ids, any overlap with the gold ids is right, every part that a composite was split into must be right, and the
first k are k names. Gold without a concept is always wrong and stays in the denominator. Under `paper` the mentions of
the earlier splits are names of the dictionary too; under `dictionary` nothing is added. The third protocol, `strict`,
has a module of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from medlink.corpora.records import LabeledDocument, LabeledMention
from medlink.errors import SourceError
from medlink.linking.abbreviations import expand, find_definitions
from medlink.linking.composites import split_composite
from medlink.text import match_key

PROTOCOLS = ("dictionary", "paper", "strict")

RankedNames = Sequence[frozenset[str]]
"""The answer to one text: the ids of each name found, best first."""

_PUNCTUATION = re.compile(r"[^\w\s]|_")


@dataclass(frozen=True, slots=True)
class Question:
    """A labeled mention with the texts that a system is asked for it: one, or one for each part of a composite."""

    mention: LabeledMention
    texts: tuple[str, ...]
    document: str = ""
    """The text that the mention is in, where the protocol lets a system see it."""


@dataclass(frozen=True, slots=True)
class CandidateIds:
    """One concept that a system answered with: the name it was found by, and every id that it goes by."""

    name: str
    ids: frozenset[str]


def plain_text(text: str) -> str:
    """Return a name or mention in lower case with blanks for punctuation.

    >>> plain_text("Wilms' Tumor, type_1")
    'wilms tumor type 1'
    """
    return " ".join(_PUNCTUATION.sub(" ", text.lower()).split())


def read_typos(path: Path) -> dict[str, str]:
    """Read a list of `typo||correction` lines.

    Raises:
        SourceError: The file is missing or a line is of another form.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise SourceError(error.strerror or "cannot be read", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise SourceError("not UTF-8", file=str(path)) from error
    typos = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            typo, bars, correction = line.strip().partition("||")
            if not bars or not typo or not correction:
                raise SourceError("expected typo||correction", file=str(path), line=number)
            typos[typo] = correction
    return typos


def questions(documents: Iterable[LabeledDocument], typos: Mapping[str, str] | None = None) -> Iterator[Question]:
    """Yield what the protocol asks for each mention, in order.

    Args:
        documents: Labeled documents; each one's own definitions of abbreviations apply to its mentions.
        typos: Words to correct, lower case.
    """
    for document in documents:
        definitions = find_definitions(document.text)
        for mention in document.mentions:
            written_out = expand(mention.text, definitions).text
            composite = split_composite(written_out)
            parts = [part.text for part in composite.parts] if composite else [written_out]
            yield Question(mention, tuple(_corrected(plain_text(part), typos or {}) for part in parts))


def names_of_mentions(asked: Iterable[Question]) -> dict[str, frozenset[str]]:
    """Return what mentions teach: each text with every id that it was labeled with.

    The texts of a composite stand for the parts of its gold in order. Where there are not as many of one as of the
    other, nothing says which belongs to which, and each text stands for all of them.

    >>> gold = (("MESH:D001943",), ("MESH:D010051",))
    >>> mention = LabeledMention("1", 0, 24, "breast and ovarian cancer", "Disease", gold)
    >>> learnt = names_of_mentions([Question(mention, ("breast cancer", "ovarian cancer"))])
    >>> [(name, sorted(ids)) for name, ids in learnt.items()]
    [('breast cancer', ['MESH:D001943']), ('ovarian cancer', ['MESH:D010051'])]
    """
    learnt: dict[str, frozenset[str]] = {}
    for question in asked:
        parts, whole = question.mention.gold, question.mention.gold_ids
        in_order = len(parts) == len(question.texts)
        for at, text in enumerate(question.texts):
            ids = frozenset(parts[at]) if in_order else whole
            if text and ids:
                learnt[text] = learnt.get(text, frozenset()) | ids
    return learnt


def as_names(candidates: Iterable[CandidateIds]) -> list[frozenset[str]]:
    """Put the concepts that were found by one name together, wherever they stand: a name carries all its ids.

    A name stands where the best of its concepts stands. Names are the same that the exact channel takes for the same.

    >>> found = [CandidateIds("DM", frozenset({"a"})), CandidateIds("DM1", frozenset({"b"}))]
    >>> [sorted(ids) for ids in as_names([*found, CandidateIds("dm", frozenset({"c"}))])]
    [['a', 'c'], ['b']]
    """
    names: dict[str, frozenset[str]] = {}
    for candidate in candidates:
        # Nothing but signs has no key, and is the same as itself only.
        name = match_key(candidate.name) or candidate.name
        names[name] = names.get(name, frozenset()) | candidate.ids
    return list(names.values())


def first_right(question: Question, answers: Sequence[RankedNames]) -> int:
    """Return how many names must be looked at until every text has a right one; 0 if one has none.

    >>> gold = (("MESH:D001943",), ("MESH:D010051",))
    >>> mention = LabeledMention("1", 0, 24, "breast and ovarian cancer", "Disease", gold)
    >>> question = Question(mention, ("breast cancer", "ovarian cancer"))
    >>> other, breast, ovarian = frozenset({"x"}), frozenset({"MESH:D001943"}), frozenset({"MESH:D010051"})
    >>> first_right(question, [[breast], [other, ovarian]]), first_right(question, [[breast], [other]])
    (2, 0)
    """
    ranks = [
        next((rank for rank, ids in enumerate(names, 1) if ids & question.mention.gold_ids), 0) for names in answers
    ]
    return max(ranks) if all(ranks) else 0


def _corrected(text: str, typos: Mapping[str, str]) -> str:
    return " ".join(typos.get(word, word) for word in text.split())
