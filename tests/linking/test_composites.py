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
        "squamous- and small-cell lung cancers",
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


def test_parts_say_which_words_they_were_put_together_from():
    mention = "breast and ovarian cancers"

    composite = split_composite(mention)

    assert composite is not None
    assert [[mention[start:end] for start, end in part.spans] for part in composite.parts] == [
        ["breast", "cancers"],
        ["ovarian", "cancers"],
    ]


_WORDS = [
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
            assert " ".join(words).startswith(part.text[:-1])
