"""Dev names of a pretraining run: some hidden names to ask for, among some shown names to find."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from medlink.text import encoder_text
from medlink.types import Concept
from training.heldout import HeldOut, held_out_queries
from training.names import NameRule


@dataclass(frozen=True, slots=True)
class DevNames:
    """Names to ask for and names to find: a query is right iff its nearest name is one of its concept's."""

    queries: Sequence[str]
    query_concepts: Sequence[str]
    names: Sequence[str]
    name_concepts: Sequence[frozenset[str]]


def dev_names(
    concepts: Callable[[], Iterable[Concept]],
    held_out: HeldOut,
    rule: NameRule,
    *,
    queries: int = 1000,
    others: int = 4000,
    seed: int = 0,
) -> DevNames:
    """Choose dev names of a knowledge base.

    Args:
        concepts: Streams all of them; called three times.
        held_out: The split that the pairs were made with.
        rule: The rule that the pairs were made by.
        queries: Most hidden names to ask for.
        others: Concepts to find beside those of the queries.
        seed: Which ones.

    Raises:
        ValueError: Nothing is hidden.
    """
    rng = np.random.default_rng(seed)
    hidden = sorted(
        {
            (query.concept_id, encoder_text(query.text, lowercase=rule.lowercase))
            for query in held_out_queries(concepts(), held_out, rule)
        }
    )
    if not hidden:
        raise ValueError("no name is hidden; make pairs with --held-out-percent")
    asked = [hidden[i] for i in rng.permutation(len(hidden))[:queries]]
    ids = [concept.id for concept in concepts()]
    wanted = {concept_id for concept_id, _ in asked} | {ids[i] for i in rng.permutation(len(ids))[:others]}
    owners: dict[str, set[str]] = {}
    for concept in concepts():
        if concept.id in wanted:
            for form in rule.forms(concept):
                if not held_out.is_held_out(form):
                    owners.setdefault(form, set()).add(concept.id)
    return DevNames(
        queries=[form for _, form in asked],
        query_concepts=[concept_id for concept_id, _ in asked],
        names=list(owners),
        name_concepts=[frozenset(owned) for owned in owners.values()],
    )
