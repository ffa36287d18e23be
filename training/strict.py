"""The `strict` protocol: a mention as written, in its document, against distinct concepts of the dictionary alone.

The first concept is right iff one of its own ids or codes is gold; concepts that share a name stay apart. A composite
is right iff the first concepts of its parts are the gold concepts, no more and no fewer, so that one concept never
answers two. Gold without a concept is answered right by NIL. How many gold ids there are is never shown to a system.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from medlink.corpora.records import Gold, LabeledDocument
from medlink.types import Mention
from training.protocols import Question

_BATCH = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What a system says of a mention; no concepts say NIL."""

    concepts: tuple[frozenset[str], ...] = ()
    """The ids and codes of each distinct concept, best first."""
    parts: tuple[frozenset[str], ...] = ()
    """If the system split the mention, the ids of each part's first concept; none for a part that is NIL."""


Link = Callable[[Sequence[Mention], int], Sequence[Answer]]
"""A system under test: mentions and k in, for each an answer of at most k concepts out."""


def questions_as_written(documents: Iterable[LabeledDocument]) -> Iterator[Question]:
    """Yield each mention as written with the text that it is in."""
    for document in documents:
        for mention in document.mentions:
            yield Question(mention, (mention.text,), document.text)


def mention_in_context(question: Question, longest: int) -> Mention:
    """Return the mention to send, with as much of its document around it as a system takes.

    Offsets that do not point at the mention are left out, and the context is the document's beginning then.

    Args:
        question: The mention and its document.
        longest: Most characters of context.
    """
    labeled, document = question.mention, question.document
    if document[labeled.start : labeled.end] != labeled.text:
        return Mention(labeled.text, context=document[:longest])
    room = max(0, longest - len(labeled.text))
    begin = max(0, min(labeled.start - room // 2, len(document) - longest))
    return Mention(
        labeled.text,
        context=document[begin : begin + longest],
        start=labeled.start - begin,
        end=labeled.end - begin,
    )


def rank_strictly(gold: Gold, answer: Answer) -> int:
    """Return the rank of the first right concept, 0 if there is none; a composite and NIL have rank 1 or none.

    >>> gold = (("MESH:D001943",), ("MESH:D010051", "OMIM:167000"))
    >>> breast, ovary = frozenset({"MONDO:1", "MESH:D001943"}), frozenset({"MESH:D010051"})
    >>> rank_strictly(gold, Answer(parts=(ovary, breast))), rank_strictly(gold, Answer((breast, ovary)))
    (1, 0)
    >>> rank_strictly(gold[:1], Answer((ovary, breast))), rank_strictly((), Answer())
    (2, 1)
    """
    wanted = list(dict.fromkeys(map(frozenset, gold)))
    if not wanted:
        return int(not answer.concepts and not any(answer.parts))
    if answer.parts:
        return int(_pair_off(list(dict.fromkeys(answer.parts)), wanted))
    if len(wanted) > 1:
        return 0
    return next((rank for rank, ids in enumerate(answer.concepts, 1) if ids & wanted[0]), 0)


def rank_all_strictly(asked: Sequence[Question], link: Link, k: int, longest: int) -> list[int]:
    """Return for each question the rank of its first right concept, 0 if there is none.

    Args:
        asked: The questions, as written.
        link: The system.
        k: How far down an answer is read.
        longest: Most characters of context.
    """
    ranks: list[int] = []
    for start in range(0, len(asked), _BATCH):
        batch = asked[start : start + _BATCH]
        answers = link([mention_in_context(question, longest) for question in batch], k)
        ranks += [rank_strictly(q.mention.gold, answer) for q, answer in zip(batch, answers, strict=True)]
    return ranks


def _pair_off(found: list[frozenset[str]], wanted: list[frozenset[str]]) -> bool:
    """Say whether each one found answers one of those wanted, and none is left over."""
    if not found or not wanted:
        return not found and not wanted
    first, *others = found
    return any(
        bool(first & ids or not first | ids) and _pair_off(others, wanted[:at] + wanted[at + 1 :])
        for at, ids in enumerate(wanted)
    )
