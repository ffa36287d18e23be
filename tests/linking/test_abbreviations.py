import re
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medlink.linking.abbreviations import expand, find_definitions, origin
from medlink.types import AbbreviationDefinition


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
        ("a low beta-2-microglobulin (β2M)", "β2M", "beta-2-microglobulin"),
        ("interferon-γ (IFNG) rose", "IFNG", "interferon-γ"),
        ("chronic kidney disease (hereafter CKD)", "CKD", "chronic kidney disease"),
        ("chronic kidney disease (also called the CKD)", "CKD", "chronic kidney disease"),
        ("chronic kidney disease（CKD）", "CKD", "chronic kidney disease"),
        ("transient ischaemic attacks (TIAs)", "TIAs", "transient ischaemic attacks"),
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
        "one or more of them (or the)",
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


@pytest.mark.parametrize(
    ("mention", "context", "expanded"),
    [
        ("TIA", "transient ischaemic attacks (TIAs)", "transient ischaemic attacks"),
        ("TIAs", "transient ischaemic attack (TIA)", "transient ischaemic attacks"),
        ("MDs", "muscular dystrophy (MD)", "muscular dystrophies"),
        ("TIAs", "transient ischaemic attack (TIA). Two inner arteries (TIAs)", "Two inner arteries"),
        ("As", "apple (A) b", "As"),
        ("MSS", "multiple sclerosis (MS)", "MSS"),
    ],
)
def test_a_short_form_may_come_in_the_other_number(mention, context, expanded):
    assert expand(mention, find_definitions(context)).text == expanded


def test_a_long_form_that_holds_another_short_form_is_not_expanded_again():
    definitions = find_definitions("the DM protein kinase (DMPK) in dystrophia myotonica (DM)")

    expansion = expand("DMPK", definitions)

    assert expansion.text == "DM protein kinase"
    assert [d.short for d in expansion.used] == ["DMPK"]


def test_the_first_of_two_definitions_of_a_short_form_is_used():
    definitions = find_definitions("diabetes mellitus (DM), later dystrophia myotonica (DM)")

    assert expand("DM", definitions).text == "diabetes mellitus"


@pytest.mark.parametrize(
    ("at", "long"), [(0, "diabetes mellitus"), (30, "diabetes mellitus"), (60, "dystrophia myotonica")]
)
def test_where_the_mention_is_known_the_last_definition_before_it_is_used(at, long):
    definitions = find_definitions("diabetes mellitus (DM), later dystrophia myotonica (DM)")

    assert expand("DM", definitions, at=at).text == long


@pytest.mark.parametrize(
    ("mention", "expanded", "sources"),
    [
        ("AF", "atrial fibrillation", [(0, 2)] * 19),
        ("a AF", "a atrial fibrillation", [(0, 1), (1, 2), *[(2, 4)] * 19]),
        (
            "atrial fibrillation (AF) b",
            "atrial fibrillation b",
            [*((at, at + 1) for at in range(19)), (24, 25), (25, 26)],
        ),
    ],
)
def test_each_character_of_an_expansion_has_its_source_in_the_mention(mention, expanded, sources):
    expansion = expand(mention, find_definitions("atrial fibrillation (AF)"))

    assert expansion.text == expanded
    assert [origin(expansion, at, at + 1) for at in range(len(expanded))] == sources


@settings(deadline=None)
@given(st.lists(st.sampled_from(["AF", "DM", "(AF)", "atrial fibrillation", "x", "😀", "DM-AF"])).map(" ".join))
def test_the_source_of_what_was_not_replaced_is_itself(mention):
    expansion = expand(mention, find_definitions("atrial fibrillation (AF) and diabetes mellitus (DM)"))

    sources = [origin(expansion, at, at + 1) for at in range(len(expansion.text))]

    assert sources == sorted(sources)
    replaced = {(change.start, change.end) for change in expansion.replaced}
    for character, (start, end) in zip(expansion.text, sources, strict=True):
        assert (start, end) in replaced or mention[start:end] == character


def slow_initials(units: list[str], places: list[tuple[str, bool]]) -> int | None:
    """How many units stand at word starts at best, by trying every place for every unit."""
    if not units:
        return 0
    found = [
        rest + is_start
        for at, (sign, is_start) in enumerate(places)
        if sign == units[0] and (rest := slow_initials(units[1:], places[at + 1 :])) is not None
    ]
    return max(found, default=None)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["ab", "ba", "a", "b", "1", "b-a", "ab1"]), min_size=1, max_size=6).map(" ".join),
    st.sampled_from(["AB", "BA", "AAB", "A1", "ABA1"]),
)
def test_the_long_form_is_the_one_that_trying_all_would_choose(before, short):
    units = re.findall(r"\d+|[a-z]", short.lower())
    places = [(m.start(), m[0], m.start() == 0 or not before[m.start() - 1].isalnum())
              for m in re.finditer(r"\d+|[a-z]", before)]  # fmt: skip
    words = [m.start() for m in re.finditer(r"\S+", before)][-min(len(short) + 5, 2 * len(short)) :]
    possible = []
    for at, (start, sign, is_start) in enumerate(places):
        if is_start and start >= words[0] and sign == units[0] and len(before) - start > len(short):
            rest = slow_initials(units[1:], [(s, b) for _, s, b in places[at + 1 :]])
            possible += [] if rest is None else [(1 + rest, start)]

    found = pairs(f"{before} ({short})")

    assert found == ([(short, before[max(possible)[1] :])] if possible else [])


@pytest.mark.parametrize("text", ["x(AB)" * 4000, "a-b-c-d-" * 100 + "(AB) " * 2000, "(" * 20_000, "AB(a b)" * 2800])
def test_a_text_of_nothing_but_brackets_takes_no_quadratic_time(text):
    begun = process_time()
    find_definitions(text[:1000])
    tenth = process_time() - begun
    find_definitions(text[:10_000])

    assert process_time() - begun < 40 * tenth + 1
