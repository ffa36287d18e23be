import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink.english import american, singular

WORD = st.text("abcdefghilmnoprstuvxyz", max_size=8)
ENDING = st.sampled_from(
    "s es ies ses oses iases theses crises uses ches aches xes omata ae oe aemia aemias our ours ise ised re res ised"
    " lled ling alfa fibre aluminium".split()
)


@given(WORD, ENDING)
def test_a_word_in_the_singular_stays(stem, ending):
    once = singular(stem + ending)

    assert singular(once) == once


@given(WORD, ENDING)
def test_spelling_and_number_settle_at_once(stem, ending):
    once = singular(american(stem + ending))

    assert singular(american(once)) == once


@pytest.mark.parametrize(
    "word",
    "diabetes rabies herpes caries lens pancreas pelvis lupus abscess sepsis aids ribs species series ascites biceps"
    " chaos virus glass psoriasis".split(),
)
def test_a_word_that_only_looks_like_a_plural_stays(word):
    assert singular(word) == word


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("tumors", "tumor"),
        ("biopsies", "biopsy"),
        ("diagnoses", "diagnosis"),
        ("candidiases", "candidiasis"),
        ("paralyses", "paralysis"),
        ("diseases", "disease"),
        ("doses", "dose"),
        ("kinases", "kinase"),
        ("headaches", "headache"),
        ("branches", "branch"),
        ("reflexes", "reflex"),
        ("viruses", "virus"),
        ("causes", "cause"),
        ("carcinomata", "carcinoma"),
        ("thrombi", "thrombus"),
        ("edemas", "edema"),
    ],
)
def test_a_plural_becomes_singular(plural, one):
    assert singular(plural) == one


@pytest.mark.parametrize(
    ("british", "expected"),
    [
        ("leukaemia", "leukemia"),
        ("leucocyte", "leukocyte"),
        ("oesophagus", "esophagus"),
        ("haematoma", "hematoma"),
        ("tumour", "tumor"),
        ("diarrhoea", "diarrhea"),
        ("apnoea", "apnea"),
        ("foetal", "fetal"),
        ("coeliac", "celiac"),
        ("lymphoedema", "lymphedema"),
        ("paediatric", "pediatric"),
        ("sulphate", "sulfate"),
        ("goitre", "goiter"),
        ("paralysed", "paralyzed"),
        ("generalised", "generalized"),
        ("behavioural", "behavioral"),
        ("aluminium", "aluminum"),
        ("tachypnoeic", "tachypneic"),
        ("haem", "heme"),
        ("grey", "gray"),
        ("disks", "discs"),
        ("manoeuvre", "maneuver"),
        ("metastasised", "metastasized"),
        ("neutralising", "neutralizing"),
        ("signalling", "signaling"),
        ("interferon", "interferon"),
    ],
)
def test_a_british_word_becomes_american(british, expected):
    assert american(british) == expected


@pytest.mark.parametrize(
    "word", "aerobic michael coenzyme toes vertebrae hexaenoic gastroesophageal angioedema raised hour source".split()
)
def test_an_american_word_stays(word):
    assert american(word) == word
