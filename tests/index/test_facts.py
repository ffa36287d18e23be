"""How many names a concept has and how much lies below it, against a slow walk of the hierarchy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index import facts as module
from index.facts import count_descendants
from medlink.ragged import Ragged
from medlink.types import Concept, ConceptFacts, Name


def concept(number: int, *broader: int | str, names: tuple[str, ...] = ()) -> Concept:
    all_names = tuple(Name(text, "T") for text in names or (f"concept {number}",))
    return Concept(f"X:{number}", all_names[0].text, all_names, broader=tuple(f"X:{b}" for b in broader))


def test_names_that_the_match_key_takes_for_one_count_once(make_build, tmp_path):
    build = make_build(tmp_path, [concept(1, names=("Crohn's disease", "Crohn disease", "Crohn diseases", "ileitis"))])

    assert build.concepts.facts(["X:1"])["X:1"].names == 3


def test_a_concept_below_by_two_ways_counts_once(make_build, tmp_path):
    build = make_build(tmp_path, [concept(1), concept(2, 1), concept(3, 1), concept(4, 2, 3), concept(5, 4, 1)])

    found = build.concepts.facts(["X:1", "X:2", "X:4", "X:5"])

    assert {id_: (f.descendants, f.children) for id_, f in found.items()} == {
        "X:1": (4, 3),
        "X:2": (2, 1),
        "X:4": (1, 1),
        "X:5": (0, 0),
    }


def test_a_cycle_or_a_broader_concept_that_is_not_there_does_no_harm(make_build, tmp_path):
    build = make_build(tmp_path, [concept(1, 3), concept(2, 1, 2, "gone"), concept(3, 2), concept(4, 3)])

    found = build.concepts.facts(["X:1", "X:2", "X:3", "X:4"])

    assert [(f.descendants, f.children) for f in found.values()] == [(3, 1), (3, 1), (3, 2), (0, 0)]


def test_facts_are_of_the_concepts_asked_for_that_are_there(build):
    found = build.concepts.facts(["MONDO:0005087", "C9999999", "C0004096"])

    whole = build.concepts.concepts(["MONDO:0005087", "C0004096"])
    assert found == {
        "MONDO:0005087": ConceptFacts(whole["MONDO:0005087"], ("disease", "lung"), frozenset({"MONDO"}), 1, 1, 1),
        "C0004096": ConceptFacts(whole["C0004096"], ("asthma",), frozenset({"MESH", "MONDO"}), 2, 0, 0),
    }
    assert build.concepts.facts([]) == {}


@st.composite
def hierarchies(draw):
    count = draw(st.integers(1, 12))
    edges = draw(st.sets(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=25))
    return count, sorted((child, parent) for child, parent in edges if child != parent)


@given(hierarchies(), st.integers(1, 60))
@settings(deadline=None)
def test_descendants_agree_with_a_walk_from_each_concept(hierarchy, cells):
    count, edges = hierarchy
    children = {number: {child for child, parent in edges if parent == number} for number in range(count)}

    def below(number: int) -> set[int]:
        found, open_ = set(), [number]
        while open_:
            new = children[open_.pop()] - found
            found |= new
            open_ += new
        return found - {number}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CELLS", cells)
        found = count_descendants(
            Ragged.of_sorted(
                np.array([child for child, _ in edges], np.int32), np.array([p for _, p in edges], np.int32), count
            )
        )

    assert found.tolist() == [len(below(number)) for number in range(count)]
