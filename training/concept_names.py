"""Names of a terminology by concept, in memory: for pictures and reports that draw some of them."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from medlink.kb.records import NameRecord, Record
from training.dev import DevNames
from training.names import NameRule


def names_by_concept(records: Iterable[Record], rule: NameRule) -> dict[str, list[str]]:
    """Return the distinct names that serve, in the order of the records, by concept id in ascending order.

    Args:
        records: Of a terminology, in any order.
        rule: Which names serve, and in which form.
    """
    found: dict[str, dict[str, None]] = {}
    for record in records:
        if isinstance(record, NameRecord):
            form, _ = rule.form(record.text, record.language, suppressed=record.suppress != "N")
            if form:
                found.setdefault(record.concept_id, {})[form] = None
    return {concept_id: list(found[concept_id]) for concept_id in sorted(found)}


def draw_queries(concepts: Mapping[str, Sequence[str]], *, queries: int, among: int, seed: int = 0) -> DevNames:
    """Draw names to ask for, and names to find among which each of them has another one of its concept.

    A name of several concepts is not asked for, and none that is asked for is there to be found.

    Args:
        concepts: Their names, as `names_by_concept` gives them; another order draws others.
        queries: Most names to ask for, each of another concept.
        among: Names to find, if there are so many; more where the queries need more.
        seed: Which ones.

    Raises:
        ValueError: No concept has two names, one of them its own alone.
    """
    rng = np.random.default_rng(seed)
    owners: dict[str, set[str]] = {}
    for concept_id, names in concepts.items():
        for name in names:
            owners.setdefault(name, set()).add(concept_id)
    ids = list(concepts)
    asked: dict[str, str] = {}
    found: dict[str, None] = {}
    for concept_id in (ids[place] for place in rng.permutation(len(ids))):
        names = [concepts[concept_id][place] for place in rng.permutation(len(concepts[concept_id]))]
        query = next((name for name in names if len(owners[name]) == 1), None)
        if query is not None and len(names) > 1 and len(asked) < queries:
            asked[query] = concept_id
            found[next(name for name in names if name != query)] = None
    if not asked:
        raise ValueError("no concept has two names, one of them its own alone")
    everything = list(owners)
    for name in (everything[place] for place in rng.permutation(len(everything))):
        if len(found) < among and name not in asked:
            found[name] = None
    return DevNames(list(asked), list(asked.values()), list(found), [frozenset(owners[name]) for name in found])
