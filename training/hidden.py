"""Concepts hidden from an index build, so that mentions of them ought to be refused; nothing is rebuilt."""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from medlink.corpora.ids import normal_id, spellings
from medlink.corpora.records import Gold
from medlink.kb.curation import Action, CurationState, Entry, curated_key

if TYPE_CHECKING:
    from index.store import IndexBuild


def concepts_of(build: "IndexBuild", ids: Iterable[str]) -> set[str]:
    """Return the concepts of a build that go by any of some ids, as far as its curation lets them answer.

    Args:
        build: The build.
        ids: Ids in the form of `normal_id`: of concepts, or codes of theirs.
    """
    found: set[str] = set()
    for id_ in ids:
        spelt = spellings(id_)
        found.update(build.concepts.concepts(spelt))
        for sab, code in (spelling.split(":", 1) for spelling in spelt if ":" in spelling):
            found.update(build.concepts.coded(sab, code))
    return found


def with_successors(build: "IndexBuild", gold: Gold) -> Gold:
    """Return gold in which each part goes by the successors of its retired ids too."""
    return tuple(tuple(dict.fromkeys([*part, *_successors(build, part)])) for part in gold)


def _successors(build: "IndexBuild", ids: Iterable[str]) -> list[str]:
    retired = (build.concepts.retirement(spelling) for id_ in ids for spelling in spellings(id_))
    return [normal_id(successor) for retirement in retired if retirement for successor in retirement.successors]


def choose(concepts: Collection[str], share: float, seed: int) -> list[str]:
    """Return a share of concepts in the order of their ids; the same concepts and seed give the same ones.

    >>> choose({"C3", "C1", "C4", "C2"}, 0.5, seed=0)
    ['C1', 'C3']
    >>> choose({"C1"}, 0.0, seed=0)
    []
    """
    ordered = sorted(concepts)
    drawn = np.random.default_rng(seed).permutation(len(ordered))[: round(share * len(ordered))]
    return [ordered[place] for place in sorted(drawn)]


def without(
    build: "IndexBuild", corrections: CurationState, concepts: Sequence[str], *, homonyms: bool = False
) -> "IndexBuild":
    """Return a build of which some concepts are blocked, so that no channel finds them.

    Args:
        build: The build.
        corrections: Those in force, which stay so.
        concepts: The concepts to hide.
        homonyms: Whether their names go from all other concepts too, which a second record of the same thing has.
    """
    first = max((entry.id for entry in corrections.entries), default=0) + 1
    now = datetime.now(UTC)
    # One spelling stands for all that match alike.
    owned = build.snapshot.names_of(concepts).values() if homonyms else ()
    names = {curated_key(row.name.text): row.name.text for rows in owned for row in rows}
    hidden: list[tuple[Action, str | None, str | None]] = [("block_concept", None, concept) for concept in concepts]
    hidden += [("block_name", names[key], None) for key in sorted(names)]
    blocks = (Entry(number, *what, "medlink eval nil", "hidden", now) for number, what in enumerate(hidden, first))
    return build.curated(CurationState(corrections.revision, (*corrections.entries, *blocks)))
