import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from medlink.loose_key import STEP_NAMES, differing_steps, loose_key, steps
from medlink.text import MATCH_KEY_STEPS, match_key

TEXT = st.text(st.characters(), max_size=60)
# Words on which the steps act, put beside one another in ways that nobody would write.
WORDS = st.sampled_from(
    "type types stage factor II iv IIa v X x linked one of the and versus anti antis non neuro tumour tumours oedema"
    " faeces alcohols glutamates glutamate metastases viiis viruses 2 2a IL6 IFN-γ α αβ ß ß-catenin ø Сancer CD4+ 5%"
    " (R) leucovorin(R) Prozac(TM) ala gly Crohn's , ; - chromosome vitamin infusion leucocytes sulphates"
    " & 5 % 10% A.L.S. i.v. asth\u00adma Prozac®\ufe0f Ⓡ (TM)".split()
)
NAMES = st.lists(WORDS, max_size=9).map(" ".join)
# One character of Unicode becomes eighteen in NFKC.
LONGEST_EXPANSION = 18


@given(TEXT | NAMES)
@example("AAAAS0%")
@example("type 5% ii")
def test_the_loose_key_is_idempotent(text):
    assert loose_key(loose_key(text)) == loose_key(text)


@given(TEXT | NAMES)
def test_the_loose_key_is_empty_only_where_the_match_key_is(text):
    assert bool(loose_key(text)) == bool(match_key(text))


@given(TEXT | NAMES)
def test_the_loose_key_is_bounded_in_length(text):
    assert len(loose_key(text)) <= LONGEST_EXPANSION * len(text)


@given(NAMES)
def test_the_loose_key_without_its_own_steps_is_the_match_key(text):
    own = [name for name in STEP_NAMES if name not in MATCH_KEY_STEPS]

    assert loose_key(text, without=own) == match_key(text)


@given(TEXT | NAMES)
def test_the_steps_of_a_text_lead_to_its_loose_key(text):
    changes = steps(text)

    assert (changes[-1].text if changes else text) == loose_key(text)
    assert all(change.name in STEP_NAMES for change in changes)


@given(NAMES, NAMES)
@example("type ß", "ß type")
def test_differing_steps_can_be_neither_fewer_nor_others(one, other):
    needed = differing_steps(one, other)

    if needed is None:
        assert loose_key(one) != loose_key(other)
        return
    spared = {name for name in STEP_NAMES if name not in needed}
    assert loose_key(one, without=spared) == loose_key(other, without=spared)
    for name in needed:
        fewer = spared | {name}
        assert loose_key(one, without=fewer) != loose_key(other, without=fewer)


@given(st.permutations("chronic lymphocytic leukaemia bilateral".split()))
def test_plain_words_match_in_any_order(words):
    assert loose_key(", ".join(words)) == loose_key("chronic lymphocytic leukaemia bilateral")


@pytest.mark.parametrize(
    ("one", "other", "needed"),
    [
        ("Prozac(TM)", "Prozac", ("written signs",)),
        ("leucovorin(R)", "leucovorin", ("written signs",)),
        ("Prozac (TM)", "Prozac", ("written signs",)),
        ("ProzacⓇ", "Prozac", ("written signs",)),
        ("fever & cough", "fever and cough", ("written signs",)),
        ("asth\u00adma", "asthma", ("invisible",)),
        ("asth\u200bma", "asthma", ("invisible",)),
        ("Prozac®\ufe0f", "Prozac", ("signs", "invisible")),
        ("A.L.S.", "ALS", ("dots",)),
        ("i.v. infusion", "IV infusion", ("case", "dots")),
        ("5 % dextrose", "5% dextrose", ("digits",)),
        ("dextrose 5%", "5% dextrose", ("digits", "word order")),
        ("dextrose injection 10%", "dextrose 10% injection", ("digits", "word order")),
        ("leucovorin®", "leucovorin", ("signs",)),
        ("ﬁbrosis", "fibrosis", ("letter forms",)),
        ("als", "ALS", ("case",)),
        ("Sjögren syndrome", "Sjogren syndrome", ("accents",)),
        ("Crohn’s disease", "Crohn disease", ("signs", "possessive")),
        ("Graves' disease", "Graves disease", ("possessive",)),
        ("non-small-cell lung cancer", "non small cell lung cancer", ("punctuation",)),
        ("N/V/D", "N V D", ("punctuation",)),
        ("ß-catenin", "β-catenin", ("look-alikes",)),
        ("Løken syndrome", "Loken syndrome", ("look-alikes",)),
        ("саncer", "cancer", ("look-alikes",)),
        ("IFN γ", "IFN gamma", ("greek",)),
        ("IFN-γ", "IFN gamma", ("punctuation", "greek")),
        ("IFNγ", "IFN gamma", ("greek",)),
        ("ϐ-catenin", "β-catenin", ("letter forms",)),
        ("γδ T cell", "gamma delta T cell", ("greek",)),
        ("IL6", "IL-6", ("punctuation", "digits")),
        ("nonsmall cell lung cancer", "non-small cell lung cancer", ("punctuation", "prefixes")),
        ("Xlinked ataxia", "X linked ataxia", ("prefixes",)),
        ("leukaemia", "leukemia", ("spelling",)),
        ("oesophagus", "esophagus", ("spelling",)),
        ("anaemia", "anemia", ("spelling",)),
        ("haematoma", "hematoma", ("spelling",)),
        ("tumour", "tumor", ("spelling",)),
        ("gastro-oesophageal reflux", "gastroesophageal reflux", ("punctuation", "prefixes", "spelling")),
        ("angio-oedema", "angioedema", ("punctuation", "prefixes", "spelling")),
        ("gastrooesophageal reflux", "gastroesophageal reflux", ("spelling",)),
        ("colon carcinomas", "colon carcinoma", ("plural",)),
        ("liver metastases", "liver metastasis", ("plural",)),
        ("cancer of the breast", "cancer breast", ("small words",)),
        ("type 2 diabetes", "type II diabetes", ("numerals",)),
        ("type two diabetes", "type 2 diabetes", ("numerals",)),
        ("mucopolysaccharidosis IIIA", "mucopolysaccharidosis 3 A", ("numerals",)),
        ("factor V", "factor 5", ("numerals",)),
        ("pain, chest", "chest pain", ("punctuation", "word order")),
        ("cancer of the lung", "lung cancer", ("small words", "word order")),
        ("diabetes mellitus type 2", "type 2 diabetes mellitus", ("word order",)),
        ("pain and/or fever", "pain and or fever", ("punctuation",)),
        ("TUMOURS", "TUMOR", ("spelling", "plural")),
        ("Сancer", "Cancer", ("look-alikes",)),
        ("collagen type IV therapy", "collagen type 4 therapy", ("numerals",)),
        ("Type II diabetes", "type 2 diabetes", ("case", "numerals")),
        ("Cancer Of Lung", "Lung Cancer", ("small words", "word order")),
        ("asthma", "asthma", ()),
    ],
)
def test_what_makes_two_names_equal_is_named(one, other, needed):
    assert differing_steps(one, other) == differing_steps(other, one) == needed


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("type 2 diabetes", "type 1 diabetes"),
        ("type II diabetes", "type III diabetes"),
        ("type II diabetes", "type 3 diabetes"),
        ("IV infusion", "4 infusion"),
        ("infusion IV", "infusion 4"),
        ("IV infusion", "infusion 4"),
        ("spread via blood", "spread VI A blood"),
        ("chromosome X", "chromosome 10"),
        ("vitamin V", "vitamin 5"),
        ("46 XX", "46 20"),
        ("CD4+", "CD4"),
        ("5% dextrose", "5 dextrose"),
        ("5% dextrose", "10% dextrose"),
        ("5% dextrose", "0.5% dextrose"),
        ("2 dextrose 5%", "2.5% dextrose"),
        ("dextrose 5% in saline 0.9%", "dextrose 0.9% in saline 5%"),
        ("heart & lung", "heart lung"),
        ("AIDS", "aid"),
        ("gaps", "GAP"),
        ("MCOPS2", "MCOP2"),
        ("CHACS", "CHAC"),
        ("glutamates", "glutamate"),
        ("complex 4 deficiency, nuclear type 3", "complex 3 deficiency, nuclear type 4"),
        ("T cell negative B cell positive", "T cell positive B cell negative"),
        ("graft versus host", "host versus graft"),
        ("patient to doctor", "doctor to patient"),
        ("pain with fever", "pain without fever"),
        ("Ala-Gly-Ser", "Gly-Ala-Ser"),
        ("1,3-dimethylbenzene", "1,4-dimethylbenzene"),
        ("2-amino-4-chlorophenol", "4-amino-2-chlorophenol"),
        ("6alpha-hydroxy-20beta-dihydroprednisolone", "6beta-hydroxy-20alpha-dihydroprednisolone"),
        ("hepatitis A", "hepatitis"),
        ("carcinoma", "sarcoma"),
    ],
)
def test_what_tells_names_apart_stays_in_the_loose_key(one, other):
    assert loose_key(one) != loose_key(other)


def test_a_greek_word_is_not_spelled_letter_by_letter():
    assert loose_key("αντίδραση") == "αντιδραση"


@pytest.mark.timeout(20)
def test_a_text_of_many_words_is_done_in_seconds():
    words = random.Random(0).choices("type II tumours of the αβ non small (R) 5% oedema,".split(), k=50_000)

    key = loose_key(" ".join(words))

    assert loose_key(key) == key
