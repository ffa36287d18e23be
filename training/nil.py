"""How well a linker knows what it does not know: NIL against what is hidden or absent, and its stated probability.

A mention is to be refused iff nothing that is left in the dictionary answers its gold: none of the ids of any part. Of
a composite that has lost some parts only nothing can be said, and it is left out. An answer is right as its protocol
has it, with one concept for each text. A broader concept counts as refused, though its probability is judged like that
of any answer.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medlink import metrics
from medlink.corpora.ids import candidate_ids
from medlink.corpora.records import LabeledDocument
from medlink.errors import NotCalibratedError, UnknownValueError
from medlink.linking.letter_case import mismatches_case
from medlink.types import CHANNELS, LinkOptions, LinkResult, Mention
from training.hidden import concepts_of, with_successors
from training.protocols import Question, first_right, questions
from training.strict import Answer, mention_in_context, questions_as_written, rank_strictly

if TYPE_CHECKING:
    from index.store import IndexBuild

PROTOCOLS = ("dictionary", "strict")
SWEEP = tuple(round(float(threshold), 2) for threshold in np.arange(0.05, 0.951, 0.05))
Standing = Literal["absent", "present", "partly", "unclear"]
"""Whether the dictionary has the concepts of a mention; `unclear` where it may have them without their ids."""

_BATCH = 1000
_CUI_PREFIX = "UMLS:"


@dataclass(frozen=True, slots=True)
class Top:
    """The best concept for one text, whether or not the verdict let it answer; no ids if there is none."""

    ids: frozenset[str] = frozenset()
    probability: float | None = None
    refused: bool = True
    """Whether the linker by itself does not answer with it."""
    barred: bool = True
    """Whether no threshold, however low, would let it answer."""

    @classmethod
    def of(cls, result: LinkResult) -> "Top":
        """Return the best concept of an answer: the first candidate, or the nearest of what was refused."""
        best = result.nearest or next(iter(result.candidates), None)
        if best is None:
            return cls()
        broader = best.relation == "broader"
        nil = result.status == "nil"
        return cls(
            ids=candidate_ids(best.concept.id, best.concept.codes),
            probability=best.probability,
            refused=nil or broader,
            barred=broader or (nil and result.reason != "below_threshold"),
        )


Refuses = Callable[[Top], bool]
"""Says whether a text is refused."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a linker says of a mention: of each text asked for it, and of the parts that it makes of the text itself."""

    texts: tuple[Top, ...]
    parts: tuple[Top, ...] = ()

    @property
    def answers(self) -> tuple[Top, ...]:
        """What the mention is answered by."""
        return self.parts or self.texts


def nothing(top: Top) -> bool:
    """Refuse nothing."""
    return False


def by_default(top: Top) -> bool:
    """Refuse what the linker refuses by itself."""
    return top.refused


def below(threshold: float) -> Refuses:
    """Refuse what is less probable; what has no probability, because a person or an id decided, is answered."""
    return lambda top: top.barred or (top.probability is not None and top.probability < threshold)


@dataclass(frozen=True, slots=True)
class NilTest:
    """Mentions, whether a build has their concepts, and what its linker says of them."""

    protocol: str
    asked: Sequence[Question]
    standing: Sequence[Standing]
    named: Sequence[bool]
    """Whether each text of a mention is a name in the build."""
    outcomes: Sequence[Outcome]

    def places(self, *standing: Standing) -> list[int]:
        """Return the places of the mentions that stand so."""
        return [place for place, found in enumerate(self.standing) if found in standing]


def questions_of(documents: Iterable[LabeledDocument], protocol: str, build: "IndexBuild") -> list[Question]:
    """Return what is asked for each mention; gold that the build has retired goes by its successors too.

    Raises:
        UnknownValueError: Nothing is refused under that protocol.
    """
    if protocol not in PROTOCOLS:
        raise UnknownValueError("protocol of this test", protocol, list(PROTOCOLS))
    asked = questions_as_written(documents) if protocol == "strict" else questions(documents)
    return [replace(q, mention=replace(q.mention, gold=with_successors(build, q.mention.gold))) for q in asked]


def run(
    build: "IndexBuild",
    asked: Sequence[Question],
    protocol: str,
    *,
    longest_context: int,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> NilTest:
    """Link all mentions by all channels of a build.

    Args:
        build: The build, with or without hidden concepts.
        asked: What is asked, as `questions_of` returns it.
        protocol: How: as written in its document, or by the texts that the protocol makes of the mention.
        longest_context: Most characters of a document that the linker takes with a mention.
        advance: Told how many mentions are done, and of how many.
    """
    strict = protocol == "strict"
    sent = [
        [mention_in_context(question, longest_context)] if strict else [Mention(text) for text in question.texts]
        for question in asked
    ]
    options = LinkOptions(channels=CHANNELS, composites=strict)
    distinct = list(dict.fromkeys(mention for mentions in sent for mention in mentions))
    found: dict[Mention, tuple[Top, tuple[Top, ...]]] = {}
    for start in range(0, len(distinct), _BATCH):
        batch = distinct[start : start + _BATCH]
        for mention, result in zip(batch, build.linker.link(batch, options), strict=True):
            found[mention] = Top.of(result), tuple(Top.of(part.result) for part in result.parts)
        advance(len(found), len(distinct))
    outcomes = [
        Outcome(tuple(found[m][0] for m in mentions), tuple(part for m in mentions for part in found[m][1]))
        for mentions in sent
    ]
    standing, named = _stand(build, asked)
    return NilTest(protocol, asked, standing, named, outcomes)


def _stand(build: "IndexBuild", asked: Sequence[Question]) -> tuple[list[Standing], list[bool]]:
    gold = {id_ for question in asked for id_ in question.mention.gold_ids}
    known = {id_ for id_ in gold if concepts_of(build, [id_])}
    owners = _owners(build, [text for question in asked for text in question.texts])
    by_cui = bool(gold) and all(id_.startswith(_CUI_PREFIX) for id_ in gold)
    standing: list[Standing] = []
    for question in asked:
        ids = [owner for text in question.texts for owner in owners[text]]
        without_cui = any(not any(id_.startswith(_CUI_PREFIX) for id_ in own) for own in ids)
        standing.append("unclear" if by_cui and without_cui else _standing(question, known))
    return standing, [all(owners[text] for text in question.texts) for question in asked]


def _standing(question: Question, known: Collection[str]) -> Standing:
    there = [not set(part).isdisjoint(known) for part in question.mention.gold]
    if not any(there):
        return "absent"
    return "present" if all(there) else "partly"


def _owners(build: "IndexBuild", texts: Iterable[str]) -> dict[str, list[frozenset[str]]]:
    """Return the ids of each concept that owns a text as its name, in the text's own case where it is short."""
    distinct = list(dict.fromkeys(texts))
    retrievals = build.retrievers["exact"].under(build.overlay).search(distinct, LinkOptions())
    found = {
        text: [retrieved.concept_id for retrieved in retrieval.found if not mismatches_case(text, retrieved.name.text)]
        for text, retrieval in zip(distinct, retrievals, strict=True)
    }
    concepts = build.concepts.concepts(sorted({id_ for ids in found.values() for id_ in ids}))
    return {text: [candidate_ids(id_, concepts[id_].codes) for id_ in ids] for text, ids in found.items()}


def rows(test: NilTest, thresholds: Sequence[float | None]) -> list[dict[str, Any]]:
    """Return the figures for each threshold, None being the linker's own: percent, but probabilities as fractions.

    `nil_recall` is the share refused of what is absent, `kept` what refusing leaves of the accuracy on those present.

    Raises:
        NotCalibratedError: A threshold is given and the build states no probability.
    """
    units = _stated(test)
    if not units and any(threshold is not None for threshold in thresholds):
        raise NotCalibratedError("this index build has no calibrated probabilities; leave --threshold out")
    stated, right = [probability for probability, _ in units], [correct for _, correct in units]
    calibration = {
        "ece": round(metrics.expected_calibration_error(stated, right), 4) if units else None,
        "n_ece": len(units),
        "bins": [asdict(part) for part in metrics.reliability(stated, right)],
        "sweep": [{"threshold": t, **_figures(test, below(t))} for t in SWEEP] if units else [],
    }
    counts = {
        "n": len(test.places("absent", "present")),
        "n_nil": len(test.places("absent")),
        "n_nil_named": sum(test.named[place] for place in test.places("absent")),
        "n_partly": len(test.places("partly")),
        "n_unclear": len(test.places("unclear")),
    }
    return [
        {
            **counts,
            "threshold": "default" if threshold is None else threshold,
            **_figures(test, by_default if threshold is None else below(threshold)),
            "accuracy_unrefused": _percent(_accuracy(test, nothing)),
            **calibration,
        }
        for threshold in thresholds
    ]


def _figures(test: NilTest, refuses: Refuses) -> dict[str, float | None]:
    judged = test.places("absent", "present")
    said_nil = [all(map(refuses, (*test.outcomes[at].texts, *test.outcomes[at].parts))) for at in judged]
    precision, recall = metrics.nil_precision_recall(said_nil, [test.standing[at] == "absent" for at in judged])
    accuracy, whole = _accuracy(test, refuses), _accuracy(test, nothing)
    return {
        "nil_precision": _percent(precision),
        "nil_recall": _percent(recall),
        "accuracy": _percent(accuracy),
        "kept": _percent(accuracy / whole if accuracy is not None and whole else None),
    }


def _accuracy(test: NilTest, refuses: Refuses) -> float | None:
    """Return the fraction right of the mentions whose concepts are there."""
    present = test.places("present")
    right = [_is_right(test.protocol, test.asked[at], test.outcomes[at], refuses) for at in present]
    return sum(right) / len(right) if right else None


def _is_right(protocol: str, question: Question, outcome: Outcome, refuses: Refuses) -> bool:
    if protocol == "dictionary":
        return first_right(question, [[] if refuses(top) else [top.ids] for top in outcome.texts]) == 1
    concepts = tuple(top.ids for top in outcome.texts if not refuses(top))
    parts = tuple(frozenset() if refuses(top) else top.ids for top in outcome.parts)
    return rank_strictly(question.mention.gold, Answer(concepts, parts)) == 1


def _stated(test: NilTest) -> list[tuple[float, bool]]:
    """Return the stated probability of each answer, and whether it is any of the gold concepts."""
    return [
        (top.probability, not top.ids.isdisjoint(question.mention.gold_ids))
        for question, standing, outcome in zip(test.asked, test.standing, test.outcomes, strict=True)
        if standing != "unclear"
        for top in outcome.answers
        if top.probability is not None
    ]


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else round(100 * fraction, 2)
