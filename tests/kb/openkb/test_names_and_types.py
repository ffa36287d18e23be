"""Names are cleaned by rule and counted; semantic types come from the hierarchies."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink.kb.openkb.names import clean_names, is_formulaic, variant_key, word_key
from medlink.kb.openkb.semantics import TYPES, by_ancestry, in_order, of_trees
from medlink.kb.openkb.terms import Obsolete, Term, TermName, Vocabulary, retirements, without
from medlink.kb.openkb.xref_namespaces import is_cui, xrefs
from medlink.kb.records import RetiredRecord, SourceRecord


def test_blank_names_bare_ids_and_repetitions_are_left_out_and_counted():
    skipped = Counter()
    given_names = [
        ("Fever", "PT"),
        (" fever ", "SY"),
        ("", "SY"),
        ("\t", "SY"),
        ("MONDO:0000001", "SY"),
        ("heat\n x", "SY"),
    ]

    kept = clean_names(given_names, skipped)

    assert kept == (TermName("Fever", "PT"), TermName("heat x", "SY"))
    assert skipped == {"name repeated in its term": 1, "blank name": 2, "name is only an id": 1}


@pytest.mark.parametrize("name", ["FA:12", "type:2", "D600", "C3 deficiency", "omim 100001"])
def test_a_name_that_looks_a_little_like_an_id_is_kept(name):
    assert clean_names([(name, "PT")], Counter()) == (TermName(name, "PT"),)


@given(st.lists(st.text(max_size=8), max_size=8))
def test_cleaning_twice_changes_nothing(texts):
    once = clean_names([(t, "SY") for t in texts], Counter())

    assert clean_names(once, Counter()) == once


@given(st.lists(st.sampled_from(["blue", "fever", "type", "2", "foot", "of"]), min_size=1, max_size=5), st.randoms())
def test_word_order_and_small_words_do_not_change_the_key(words, random):
    shuffled = random.sample(words, len(words))

    assert word_key(" ".join(words)) == word_key(", ".join(shuffled))
    assert variant_key(" ".join(words)) == variant_key(", ".join(shuffled))


@pytest.mark.parametrize(
    ("one", "other"),
    [("type 1 fever", "type 2 fever"), ("of the", "of"), ("virus", "viru"), ("stress", "stres"), ("iris", "iri")],
)
def test_names_that_differ_in_more_have_different_keys(one, other):
    assert variant_key(one) != variant_key(other)


def test_the_plural_separates_words_but_not_variants():
    assert word_key("fevers") != word_key("fever")
    assert variant_key("fevers") == variant_key("fever")


def test_formulaic_names_are_told_by_their_pattern():
    assert is_formulaic("fever caused by mutation in ODD1")
    assert not is_formulaic("disease of the foot")


def test_types_come_down_the_hierarchy_and_survive_a_cycle():
    parents = {"root": (), "a": ("root",), "b": ("a", "x"), "c": ("d",), "d": ("c",), "x": ("gone",)}

    types = by_ancestry(parents, {"root": "T191", "d": "T048"}, default="T047")

    assert types == {
        "root": ("T191",),
        "a": ("T191",),
        "b": ("T191",),
        "c": ("T048",),
        "d": ("T048",),
        "x": ("T047",),
    }


@pytest.mark.parametrize(
    ("trees", "tuis"),
    [
        (("C04.1", "C17.2"), ("T191",)),
        (("C23.888.1",), ("T184",)),
        (("C23.888.1", "C10.1"), ("T184", "T047")),
        (("C14.1", "C23.550.2"), ("T047", "T046")),
        (("C16.131",), ("T019",)),
        (("C16.1311",), ("T047",)),
        (("F03.1",), ("T048",)),
        (("D01",), ("T103",)),
        ((), ("T169",)),
    ],
)
def test_mesh_types_come_from_tree_numbers(trees, tuis):
    assert of_trees(trees) == tuis


@given(st.sets(st.sampled_from(sorted(TYPES))))
def test_a_disease_is_not_said_to_be_only_some_disease(tuis):
    ordered = in_order(tuis)

    assert set(ordered) | {"T033", "T047"} == tuis | {"T033", "T047"}
    assert "T047" not in ordered or not tuis & {"T191", "T048", "T019", "T037"}
    assert "T033" not in ordered or not tuis & {"T191", "T048", "T019", "T037", "T190", "T184", "T046", "T047"}


def test_cross_references_of_unknown_kind_or_shape_are_dropped():
    found = xrefs(
        [
            ("UMLS", "CN000001"),
            ("OMIMPS", "100001"),
            ("ICD9", "140-239.99"),
            ("ICD9", "174.8"),
            ("Wikipedia", "Fever"),
            ("SCTID", "1"),
        ]
    )

    assert sorted(map(tuple, found)) == [("ICD9CM", "174.8"), ("OMIMPS", "PS100001"), ("SNOMEDCT_US", "1")]
    assert [is_cui(c) for c in ("C0000001", "C000001", "MONDO:1")] == [True, False, False]


def vocabulary(*obsolete, live=("MONDO:1",)):
    terms = {t: Term(t, t, (TermName("fever", "PT"),), ("T047",)) for t in live}
    return Vocabulary(SourceRecord("MONDO", "Mondo", "7"), terms, obsolete)


def test_retired_ids_lead_through_chains_to_the_concept_of_a_live_term():
    kb = vocabulary(
        Obsolete("MONDO:2", "MONDO:3"),
        Obsolete("MONDO:3", "MONDO:1"),
        Obsolete("MONDO:4", "", ("MONDO:1", "MONDO:9")),
        Obsolete("MONDO:5"),
        Obsolete("MONDO:6", "MONDO:7"),
        Obsolete("MONDO:7", "MONDO:6"),
        Obsolete("MONDO:1", "MONDO:8"),
    )

    assert retirements([kb], {"MONDO:1": "C0000001"}) == (
        RetiredRecord("MONDO:2", "C0000001", "SY", "7"),
        RetiredRecord("MONDO:3", "C0000001", "SY", "7"),
        RetiredRecord("MONDO:4", "C0000001", "RO", "7"),
        RetiredRecord("MONDO:5", None, "DEL", "7"),
        RetiredRecord("MONDO:6", None, "DEL", "7"),
        RetiredRecord("MONDO:7", None, "DEL", "7"),
    )


def test_ids_replaced_by_a_term_that_is_left_out_are_left_out_too():
    kb = vocabulary(Obsolete("MONDO:2", "MONDO:1"), Obsolete("MONDO:3"), live=("MONDO:1", "MONDO:4"))

    smaller = without(kb, {"MONDO:1"}, "not wanted")

    assert set(smaller.terms) == {"MONDO:4"}
    assert smaller.obsolete == (Obsolete("MONDO:3"),)
    assert smaller.skipped == {"not wanted": 1}


def test_names_that_lost_their_accents_are_left_out_and_escaped_quotes_are_freed():
    skipped = Counter()

    names = clean_names(
        [
            ("ChC)diak disease", "SY"),
            ("Ch\ufffddiak disease", "SY"),
            ("scurvy (lack of vitamin C)", "SY"),
            (r"\"X\" disease", "SY"),
        ],
        skipped,
    )

    assert [n.text for n in names] == ["scurvy (lack of vitamin C)", '"X" disease']
    assert skipped == {"name with damaged letters": 2}
    assert [n.text for n in clean_names([("ChC)diak", "SY")], skipped, verbatim=True)] == ["ChC)diak"]
