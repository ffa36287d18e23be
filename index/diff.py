"""What two index builds answer differently, and why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from index.store import IndexBuild
from medlink.text import match_key
from medlink.types import Candidate, LinkOptions, LinkResult, Mention, NilReason, Status

Why = Literal["concept_retired", "concept_gone", "concept_new", "name_gone", "name_new", "parts", "score"]
"""Why an answer changed, the first that holds:

concept_retired: the concept is out of use in the later build, which knows its successors or that it has none.
concept_gone: the later build does not have the concept and does not say why; or curation blocks it.
concept_new: the earlier build does not have the concept that answers now.
name_gone: the name that was found is no longer one of the concept.
name_new: the name that is found now was not one of the concept.
parts: one takes the mention for several concepts, and the other not for as many.
score: both have the same concepts and names; they were compared, ranked or judged otherwise.
"""

_TOGETHER = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """The first candidate of an answer; without one, why there is none."""

    status: Status
    concept_id: str | None = None
    score: float | None = None
    probability: float | None = None
    reason: NilReason | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A mention, or a part of one, that two builds answer differently; its text is not kept."""

    item: int
    part: int | None
    """Which part of a mention of several concepts; None for the whole."""
    before: Answer
    after: Answer
    why: Why
    successors: tuple[str, ...] = ()
    """Of the concept, where it was retired."""


def compare_builds(
    earlier: IndexBuild, later: IndexBuild, mentions: Sequence[Mention], options: LinkOptions
) -> Iterator[Change]:
    """Yield what two builds answer differently, in the order of the mentions: another status or first concept."""
    for start in range(0, len(mentions), _TOGETHER):
        some = mentions[start : start + _TOGETHER]
        pairs = zip(earlier.linker.link(some, options), later.linker.link(some, options), strict=True)
        for item, (old, new) in enumerate(pairs, start):
            yield from _changes(item, old, new, earlier, later)


def _changes(item: int, old: LinkResult, new: LinkResult, earlier: IndexBuild, later: IndexBuild) -> Iterator[Change]:
    whole = _change(item, None, old, new, earlier, later)
    if whole:
        yield whole
    elif len(old.parts) != len(new.parts):
        yield Change(item, None, _answer(old), _answer(new), "parts")
    if len(old.parts) == len(new.parts):
        for number, (was, now) in enumerate(zip(old.parts, new.parts, strict=True)):
            change = _change(item, number, was.result, now.result, earlier, later)
            if change:
                yield change


def _change(
    item: int, part: int | None, old: LinkResult, new: LinkResult, earlier: IndexBuild, later: IndexBuild
) -> Change | None:
    before, after = _answer(old), _answer(new)
    if (before.status, before.concept_id) == (after.status, after.concept_id):
        return None
    why, successors = _why(_first(old), _first(new), earlier, later)
    return Change(item, part, before, after, why, successors)


def _first(result: LinkResult) -> Candidate | None:
    return result.candidates[0] if result.candidates else None


def _answer(result: LinkResult) -> Answer:
    first = _first(result)
    if first is None:
        return Answer(result.status, reason=result.reason)
    return Answer(result.status, first.concept.id, first.score, first.probability, result.reason)


def _why(
    old: Candidate | None, new: Candidate | None, earlier: IndexBuild, later: IndexBuild
) -> tuple[Why, tuple[str, ...]]:
    if old and not later.concepts.concepts([old.concept.id]):
        retirement = later.concepts.retirement(old.concept.id)
        return ("concept_retired", retirement.successors) if retirement else ("concept_gone", ())
    if new and not earlier.concepts.concepts([new.concept.id]):
        return "concept_new", ()
    if old and not _has_name(later, old):
        return "name_gone", ()
    if new and not _has_name(earlier, new):
        return "name_new", ()
    return "score", ()


def _has_name(build: IndexBuild, candidate: Candidate) -> bool:
    names = build.concepts.concept(candidate.concept.id).names
    return match_key(candidate.name.text) in {match_key(name.text) for name in names}
