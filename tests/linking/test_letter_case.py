import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medlink.linking.fusion import Fused
from medlink.linking.letter_case import is_short_form, mismatches_case, settle_case
from medlink.linking.verdict import tied
from medlink.types import Name


def named(*scored: tuple[str, float]) -> list[Fused]:
    return [Fused(f"T:{i}", Name(text, "T"), score, ()) for i, (text, score) in enumerate(scored)]


def order(mention: str, *scored: tuple[str, float]) -> list[tuple[str, float, bool]]:
    return [(f.name.text, f.score, f.case_mismatch) for f in settle_case(mention, named(*scored))]


@pytest.mark.parametrize(
    ("mention", "name"),
    [
        ("als", "ALS"),
        ("Als", "ALS"),
        ("all", "ALL"),
        ("ms", "MS"),
        ("aids", "AIDS"),
        ("hearing aids", "AIDS"),
        ("gap", "GAP"),
        ("gaps", "GAP"),
        ("c", "C"),
        ("iga", "IgA"),
        ("il6", "IL-6"),
        ("co 2", "CO2"),
        ("Bodies", "BODY"),
        ("ａｌｓ", "ALS"),
        ("a.l.s.", "ALS"),
        ("a\u00adls", "ALS"),
    ],
)
def test_a_short_name_in_capitals_is_not_the_word_it_looks_like(mention, name):
    assert mismatches_case(mention, name)


@pytest.mark.parametrize(
    ("mention", "name"),
    [
        ("ALS", "ALS"),
        ("ALS-like", "ALS"),
        ("ＡＬＳ", "ALS"),
        ("A.L.S.", "ALS"),
        ("IGA", "IgA"),
        ("AIDS and hearing aids", "AIDS"),
        ("cold", "Cold"),
        ("COLD", "cold"),
        ("FEVER", "fever"),
        ("alsike", "ALS"),
        ("Il6", "il-6"),
        ("IL6", "IL-6"),
        ("BODIES", "BODY"),
        ("hypertension", "HYPERTENSION"),
        ("motor neuron disease", "ALS"),
        ("", "ALS"),
        ("all", "++"),
    ],
)
def test_all_else_agrees(mention, name):
    assert not mismatches_case(mention, name)


def test_a_demoted_name_goes_behind_what_scores_more_and_is_flagged():
    found = order("hearing aids", ("AIDS", 0.9), ("Hearing aid", 0.8), ("Hearing", 0.7))

    assert found == [("Hearing aid", 0.8, False), ("AIDS", 0.72, True), ("Hearing", 0.7, False)]


def test_a_demoted_name_still_answers_when_nothing_is_nearer():
    assert order("als", ("ALS", 1.0), ("Alstrom", 0.6)) == [("ALS", 0.8, True), ("Alstrom", 0.6, False)]


def test_the_mentions_own_case_leads_and_is_no_tie():
    names = (("aids", 1.0), ("AIDS", 1.0), ("Aids", 1.0), ("hearing aid", 0.9))

    assert [name for name, _, _ in order("AIDS", *names)] == ["AIDS", "aids", "Aids", "hearing aid"]
    assert tied(settle_case("AIDS", named(*names))) == ()
    assert [name for name, _, _ in order("aids", *names)] == ["aids", "Aids", "hearing aid", "AIDS"]
    assert tied(settle_case("aids", named(*names))) == ("T:0", "T:2")


def test_a_shouted_word_is_that_word():
    assert order("FEVER", ("fever", 1.0), ("Fever blister", 0.7)) == [
        ("fever", 1.0, False),
        ("Fever blister", 0.7, False),
    ]


@settings(deadline=None)
@given(
    st.sampled_from(["all", "ALL", "All", "hearing aids", "MS", "ms"]),
    st.lists(
        st.tuples(st.sampled_from(["ALL", "all", "AIDS", "MS", "Ms", "allergy", "mastocytosis"]), st.floats(0, 1))
    ),
)
def test_nothing_is_lost_and_what_agrees_keeps_its_score(mention, scored):
    ranked = sorted(scored, key=lambda s: -s[1])

    settled = settle_case(mention, named(*ranked))

    assert sorted(f.concept_id for f in settled) == sorted(f"T:{i}" for i in range(len(ranked)))
    for f in settled:
        before = ranked[int(f.concept_id[2:])][1]
        flagged = is_short_form(f.name.text) and mismatches_case(mention, f.name.text)
        assert f.case_mismatch == flagged
        assert f.score == (round(before * 0.8, 4) if flagged else before)
