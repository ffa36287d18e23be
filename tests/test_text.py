import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink.text import encoder_text, match_key

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(TEXT, st.booleans())
def test_encoder_text_is_idempotent(text, lowercase):
    once = encoder_text(text, lowercase=lowercase)

    assert encoder_text(once, lowercase=lowercase) == once


@given(TEXT)
def test_match_key_is_idempotent(text):
    assert match_key(match_key(text)) == match_key(text)


@given(TEXT)
def test_match_key_does_not_see_case_or_surrounding_blanks(text):
    assert match_key(f" {text}\u00a0") == match_key(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Crohn’s disease", "Crohn's disease"),
        ("Crohn's disease", "crohn disease"),
        ("Diabetes.", "diabetes"),
        ("leucovorin®", "leucovorin"),
        ("Prozac™", "prozac"),
        (' " asthma \u00a0"', "asthma"),
        ("Sjögren syndrome", "Sjogren syndrome"),
        ("non-small-cell lung cancer", "non small cell lung cancer"),
        ("ﬁbrosis", "fibrosis"),
    ],
)
def test_variants_of_one_name_share_a_key(one, other):
    assert match_key(one) == match_key(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [("type 1", "type 2"), ("CD4+", "CD4"), ("5% dextrose", "5 dextrose"), ("ガン", "カン"), ("हिम", "हम")],
)
def test_what_tells_names_apart_stays_in_the_key(one, other):
    assert match_key(one) != match_key(other)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("  Crohn’s  DISEASE® ", "crohn s disease"),
        ("Pain, chest (acute)", "pain chest acute"),
        ("β-thalassaemia", "beta thalassaemia"),
        ("TNFα", "tnf alpha"),
        ("αντίδραση", "αντίδραση"),
        ("CD4+", "cd4+"),
        ("Sjögren’s", "sjögren s"),
        ("हिम", "हिम"),
        ("…", "..."),
    ],
)
def test_the_encoder_reads_words_without_punctuation(text, form):
    assert encoder_text(text, lowercase=True) == form


def test_a_cased_encoder_reads_case_and_accents():
    assert encoder_text("AIDS in Sjögren’s", lowercase=False) == "AIDS in Sjögren s"
