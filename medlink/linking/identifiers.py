"""Mentions that are a concept id: answered by that concept, or by what became of it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from medlink.protocols import ConceptSource
from medlink.types import Candidate, Concept, LinkOptions, LinkResult, Mention, Relation, Retirement

_ID = re.compile(r"C\d{7}|[A-Za-z][\w.-]*:[^\s:]+")

_SCORE = 1.0


@dataclass(frozen=True, slots=True)
class Identified:
    """What an id stands for: its concept, or the successors, if any, of one that is no longer in use."""

    concepts: tuple[Concept, ...]
    source: ConceptSource
    retirement: Retirement | None = None


def identify(texts: Iterable[str], source: ConceptSource) -> dict[str, Identified]:
    """Return what each text stands for that is an id or CURIE of a concept, now or once."""
    spelt = {text: source.spellings(text) for text in texts if _ID.fullmatch(text)}
    live = source.concepts(sorted({id_ for ids in spelt.values() for id_ in ids}))
    found: dict[str, Identified] = {}
    for text, ids in spelt.items():
        own = [live[id_] for id_ in ids if id_ in live]
        retirement = None if own else next(filter(None, map(source.retirement, ids)), None)
        if own:
            found[text] = Identified((own[0],), source)
        elif retirement:
            successors = source.concepts(retirement.successors)
            found[text] = Identified(tuple(successors[id_] for id_ in sorted(successors)), source, retirement)
    return found


def answer_by_id(mention: Mention, found: Identified, options: LinkOptions) -> LinkResult:
    """Return the concepts that an id stands for, each by its first name that the filters let answer."""
    retired = found.retirement
    whole = LinkOptions(top_k=options.top_k, include_suppressed=True)
    candidates = _candidates(found, options)
    if candidates:
        ties = tuple(c.concept.id for c in candidates) if len(candidates) > 1 else ()
        result = LinkResult(mention, "ambiguous" if ties else "linked", candidates[: options.top_k], ties=ties)
    elif beyond := _candidates(found, whole):
        result = LinkResult(mention, "nil", reason="filtered_out", nearest=beyond[0])
    else:
        result = LinkResult(mention, "nil", reason="no_candidate")
    return replace(result, retired_from=retired.id) if retired else result


def _candidates(found: Identified, options: LinkOptions) -> tuple[Candidate, ...]:
    names = found.source.answering([concept.id for concept in found.concepts], options)
    relation: Relation = "broader" if found.retirement and found.retirement.reason == "RB" else "exact"
    answering = [concept for concept in found.concepts if concept.id in names]
    return tuple(
        Candidate(rank, concept, names[concept.id], _SCORE, (("exact", _SCORE),), relation=relation)
        for rank, concept in enumerate(answering, start=1)
    )
