from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink.kb.records import NameRecord, SourceRecord
from training.concept_names import draw_queries, names_by_concept
from training.names import NameRule

CONCEPTS = st.dictionaries(
    st.integers(0, 30).map(lambda n: f"C{n:02}"),
    st.lists(st.integers(0, 40).map(lambda n: f"name {n}"), min_size=1, max_size=5, unique=True),
    max_size=20,
)


def test_names_are_those_that_serve_once_each_by_concept():
    records = [
        SourceRecord("A", "A source", "1"),
        NameRecord("C2", "Liver", "A"),
        NameRecord("C1", "Heart attack", "A"),
        NameRecord("C2", "liver", "A"),
        NameRecord("C2", "Hepar", "A"),
        NameRecord("C2", "Leber", "A", language="GER"),
        NameRecord("C3", "gone", "A", suppress="O"),
    ]

    found = names_by_concept(records, NameRule())

    assert found == {"C1": ["heart attack"], "C2": ["liver", "hepar"]}
    assert list(found) == ["C1", "C2"]


@given(concepts=CONCEPTS, queries=st.integers(1, 10), among=st.integers(0, 30), seed=st.integers(0, 5))
def test_every_query_has_another_name_of_its_concept_to_find_and_is_not_there_itself(concepts, queries, among, seed):
    bearers = Counter(name for names in concepts.values() for name in names)
    own = {c: [name for name in names if bearers[name] == 1] for c, names in concepts.items()}
    able = [c for c, names in concepts.items() if len(names) > 1 and own[c]]
    if not able:
        with pytest.raises(ValueError, match="no concept has two names"):
            draw_queries(concepts, queries=queries, among=among, seed=seed)
        return

    drawn = draw_queries(concepts, queries=queries, among=among, seed=seed)

    assert len(drawn.queries) == len(set(drawn.query_concepts)) == min(queries, len(able))
    assert all(query in own[c] for query, c in zip(drawn.queries, drawn.query_concepts, strict=True))
    owners = dict(zip(drawn.names, drawn.name_concepts, strict=True))
    assert owners == {name: frozenset(c for c in concepts if name in concepts[c]) for name in drawn.names}
    assert not owners.keys() & set(drawn.queries)
    assert all(owners.keys() & set(concepts[c]) for c in drawn.query_concepts)
    everything = {name for names in concepts.values() for name in names}
    wanted = min(among, len(everything) - len(drawn.queries))
    assert wanted <= len(drawn.names) <= max(wanted, len(drawn.queries))
    assert draw_queries(concepts, queries=queries, among=among, seed=seed) == drawn


def test_another_seed_draws_other_names():
    concepts = {f"C{n}": [f"{n} {word}" for word in ("a", "b", "c")] for n in range(50)}

    first, other = (draw_queries(concepts, queries=10, among=40, seed=seed) for seed in (0, 1))

    assert set(first.queries) != set(other.queries)
