import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink.linking.composites import split_composite


@pytest.mark.parametrize(
    ("mention", "parts", "conjunction"),
    [
        ("breast and ovarian cancer", ["breast cancer", "ovarian cancer"], "and"),
        ("breast or ovarian cancer", ["breast cancer", "ovarian cancer"], "or"),
        ("breast/ovarian cancer", ["breast cancer", "ovarian cancer"], "or"),
        ("breast and/or ovarian cancer", ["breast cancer", "ovarian cancer"], "or"),
        (
            "colorectal, endometrial and ovarian cancers",
            ["colorectal cancer", "endometrial cancer", "ovarian cancer"],
            "and",
        ),
        ("breast, ovarian, or other cancers", ["breast cancer", "ovarian cancer", "cancer"], "or"),
        ("basal and squamous cell cancers", ["basal cell cancer", "squamous cell cancer"], "and"),
        ("C6 and C7 deficiencies", ["C6 deficiency", "C7 deficiency"], "and"),
        ("type 1 and 2 diabetes", ["type 1 diabetes", "type 2 diabetes"], "and"),
        ("type 1 and type 2 diabetes", ["type 1 diabetes", "type 2 diabetes"], "and"),
        (
            "neurofibromatosis type 1 or 2",
            ["neurofibromatosis type 1", "neurofibromatosis type 2"],
            "or",
        ),
        ("cancer of the breast and ovary", ["cancer of the breast", "cancer of the ovary"], "and"),
        ("deficiency of C6 and C7", ["deficiency of C6", "deficiency of C7"], "and"),
        ("cleft lip and palate", ["cleft lip", "cleft palate"], "and"),
        ("cardiac dilation and dysfunction", ["cardiac dilation", "cardiac dysfunction"], "and"),
        ("nausea and vomiting", ["nausea", "vomiting"], "and"),
        ("fever, acute cough and severe headache", ["fever", "acute cough", "severe headache"], "and"),
        (
            "hereditary and non hereditary retinoblastoma".replace("hereditary", "sporadic"),
            ["sporadic retinoblastoma", "non sporadic retinoblastoma"],
            "and",
        ),
        ("N/V/D", ["N", "V", "D"], "and"),
        ("n/v", ["n", "v"], "and"),
        ("N & V.", ["N", "V"], "and"),
        ("neither breast nor ovarian cancer", ["breast cancer", "ovarian cancer"], "or"),
        ("breast as well as ovarian cancer", ["breast cancer", "ovarian cancer"], "and"),
        ("asthma and / or fever", ["asthma", "fever"], "or"),
        ("diabetes type 1 and type 2", ["diabetes type 1", "diabetes type 2"], "and"),
        ("diabetes types 1 or 2", ["diabetes type 1", "diabetes type 2"], "or"),
        ("factors VIII and IX deficiency", ["factor VIII deficiency", "factor IX deficiency"], "and"),
        (
            "deficiencies of vitamins A, D and K",
            ["deficiencies of vitamin A", "deficiencies of vitamin D", "deficiencies of vitamin K"],
            "and",
        ),
        ("vitamin B6 and B12 deficiency", ["vitamin B6 deficiency", "vitamin B12 deficiency"], "and"),
        ("BRCA1/2 mutations", ["BRCA1 mutation", "BRCA2 mutation"], "or"),
        ("HSV-1 and -2 infection", ["HSV-1 infection", "HSV-2 infection"], "and"),
        ("infected IL-1, -6 and -8", ["infected IL-1", "infected IL-6", "infected IL-8"], "and"),
        ("deficiency of vitamin C and D", ["deficiency of vitamin C", "deficiency of vitamin D"], "and"),
        ("cancer of the breast and of the ovary", ["cancer of the breast", "cancer of the ovary"], "and"),
        ("breast- and ovarian cancer", ["breast cancer", "ovarian cancer"], "and"),
        ("liver-, lung- or breast cancer", ["liver cancer", "lung cancer", "breast cancer"], "or"),
        ("T- and B-cell lymphomas", ["T-cell lymphoma", "B-cell lymphoma"], "and"),
        ("squamous- and small-cell lung cancers", ["squamous-cell lung cancer", "small-cell lung cancer"], "and"),
        ("X- and heart disease-associated tumors", ["X-associated tumor", "heart disease-associated tumor"], "and"),
        ("stage II and stage III carcinomas", ["stage II carcinoma", "stage III carcinoma"], "and"),
        ("α- and β-thalassemia", ["α-thalassemia", "β-thalassemia"], "and"),
        ("T‑ and B‑cell lymphomas", ["T-cell lymphoma", "B-cell lymphoma"], "and"),
        ("breast／ovarian cancer", ["breast cancer", "ovarian cancer"], "or"),
        ("N／V／D", ["N", "V", "D"], "and"),
        ("hypo- or hyperthyroidism", ["hypothyroidism", "hyperthyroidism"], "or"),
        ("pre- and postoperative pain", ["preoperative pain", "postoperative pain"], "and"),
    ],
)
def test_coordinated_mentions_are_split(mention, parts, conjunction):
    composite = split_composite(mention)

    assert composite is not None
    assert [part.text for part in composite.parts] == parts
    assert composite.conjunction == conjunction


@pytest.mark.parametrize(
    "mention",
    [
        "",
        "diabetes",
        "non-small-cell lung cancer",
        "pain, chest",
        "head and neck cancer",
        "foot and mouth disease",
        "hereditary breast and ovarian cancer",
        "breast and ovarian cancer syndrome",
        "dementia with falls and tremor",
        "pain- and fever",
        "RCC- and von Hippel-Lindau disease-associated tumors",
        "pre- and operative pain",
        "liver- and",
        "a- and b-",
        "breast and ovarian- cancer",
        "A",
        "obstructive (mild) and central apnoea",
        "and",
        "and or",
        "/",
        ", and cancer",
        "HIV/AIDS",
        "asthma and lung disease or gout, twice",
        "sand and orchid",
    ],
)
def test_what_is_one_concept_or_unclear_stays_whole(mention):
    assert split_composite(mention) is None


def test_a_part_that_borrows_half_a_word_says_so():
    mention = "T- and B-cell lymphoma"

    composite = split_composite(mention)

    assert composite is not None
    assert [[mention[start:end] for start, end in part.spans] for part in composite.parts] == [
        ["T-", "cell", "lymphoma"],
        ["B-cell", "lymphoma"],
    ]


def test_parts_say_which_words_they_were_put_together_from():
    mention = "breast and ovarian cancers"

    composite = split_composite(mention)

    assert composite is not None
    assert [[mention[start:end] for start, end in part.spans] for part in composite.parts] == [
        ["breast", "cancers"],
        ["ovarian", "cancers"],
    ]


_WORDS = [
    "nor",
    "T-",
    "B-cell",
    "hypo-",
    "hypertension",
    "types",
    "breast",
    "ovarian",
    "cancer",
    "cancers",
    "and",
    "or",
    ",",
    "/",
    "of",
    "the",
    "type",
    "1",
    "2",
    "gout",
    "N",
    "😀",
]


@given(st.lists(st.sampled_from(_WORDS), max_size=9).map(" ".join))
def test_any_mixture_of_words_is_split_in_two_or_more_or_stays_whole(mention):
    composite = split_composite(mention)

    if composite is not None:
        assert len(composite.parts) > 1
        for part in composite.parts:
            words = [mention[start:end] for start, end in part.spans]
            assert part.text
            assert _letters(words).startswith(_letters([part.text[:-1]]))


def _letters(texts):
    """Return the letters and digits of texts, for blanks and hyphens come and go, and so does the plural of a label."""
    return "".join(c for text in texts for c in text.replace("types", "type") if c.isalnum())
