import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink.linking.abbreviations import AbbreviationDefinition, expand, find_definitions


def pairs(text: str) -> list[tuple[str, str]]:
    return [(d.short, d.long) for d in find_definitions(text)]


@pytest.mark.parametrize(
    ("text", "short", "long"),
    [
        ("The Mindful memoization (MM) method", "MM", "Mindful memoization"),
        ("grown from human iPSC (hiPSC) lines", "hiPSC", "human iPSC"),
        ("patients with chronic obstructive pulmonary disease (COPD)", "COPD", "chronic obstructive pulmonary disease"),
        ("a glucose-6-phosphate dehydrogenase [G6PD; EC 1.1.1.49] assay", "G6PD", "glucose-6-phosphate dehydrogenase"),
        ("tumour necrosis factor α (TNF-α)", "TNF-α", "tumour necrosis factor α"),
        ("It began. Atrial fibrillation ( AF ) followed", "AF", "Atrial fibrillation"),
        ("MI (myocardial infarction) was seen", "MI", "myocardial infarction"),
        ("ataxia-telangiectasia (A-T)", "A-T", "ataxia-telangiectasia"),
        ('so-called "fish-eye disease" ("FED")', "FED", "fish-eye disease"),
    ],
)
def test_the_full_long_form_is_found(text, short, long):
    assert pairs(text) == [(short, long)]


@pytest.mark.parametrize(
    "text",
    [
        "in all patients (n = 12)",
        "as shown above (see Table)",
        "the tumours were large (P < 0.05)",
        "an open bracket (COPD",
        "no letters in common (XYZ)",
        "markers on chromosome 17q and others (MCO1)",
        "Ends here. Fast (AF)",
        "MI (mild)",
        "(MI)",
        "MI (a myocardial infarction of the left heart)",
    ],
)
def test_what_is_not_a_definition_is_left_alone(text):
    assert pairs(text) == []


def test_the_shortest_of_equally_good_long_forms_is_taken():
    assert pairs("polyps with Prader-Willi syndrome (PWS)") == [("PWS", "Prader-Willi syndrome")]


@given(st.text(alphabet="aAbB1 ()[];,.-\n😀", max_size=60))
def test_spans_are_right_and_no_text_is_too_odd(text):
    for d in find_definitions(text):
        assert text[d.short_start : d.short_end] == d.short
        assert text[d.long_start : d.long_end] == d.long
        assert len(d.long) > len(d.short)
        assert d.short not in d.long.split()


@given(st.text(max_size=40), st.text(min_size=1, max_size=5), st.text(max_size=20))
def test_expanding_never_fails_and_says_what_it_used(mention, short, long):
    definition = AbbreviationDefinition(short, long, 0, 0, 0, 0)

    expansion = expand(mention, [definition])

    assert expansion.used == (() if expansion.text == mention and short != long else expansion.used)
    assert expansion.used in ((), (definition,))


@pytest.mark.parametrize(
    ("mention", "expanded"),
    [
        ("AF", "atrial fibrillation"),
        ("AF and DM", "atrial fibrillation and diabetes mellitus"),
        ("af", "af"),
        ("AFP", "AFP"),
        ("non-AF", "non-atrial fibrillation"),
        ("atrial fibrillation (AF)", "atrial fibrillation"),
        ("Atrial fibrillation (AF) with DM", "Atrial fibrillation with diabetes mellitus"),
    ],
)
def test_short_forms_are_written_out_as_whole_words_in_their_own_case(mention, expanded):
    definitions = find_definitions("atrial fibrillation (AF) and diabetes mellitus (DM)")

    assert expand(mention, definitions).text == expanded


def test_a_long_form_that_holds_another_short_form_is_not_expanded_again():
    definitions = find_definitions("the DM protein kinase (DMPK) in dystrophia myotonica (DM)")

    expansion = expand("DMPK", definitions)

    assert expansion.text == "DM protein kinase"
    assert [d.short for d in expansion.used] == ["DMPK"]


def test_the_first_of_two_definitions_of_a_short_form_is_used():
    definitions = find_definitions("diabetes mellitus (DM), later dystrophia myotonica (DM)")

    assert expand("DM", definitions).text == "diabetes mellitus"
