"""What reports about other linkers complain of, where names are matched: signs, spelling, numerals, word order."""

import pytest

from medlink.types import LinkResult

# Spelled otherwise, but the same string under the match key.
SAME_NAME = {
    # trade signs
    "leucovorin®": "F:LEUCOVORIN",
    "Fluorouracil®": "F:FU",
    "5-FU®": "F:FU",
    "Prozac ™": "F:FLUOXETINE",
    "Humira℠": "F:ADALIMUMAB",
    "©Humira": "F:ADALIMUMAB",
    "folinic® acid": "F:LEUCOVORIN",
    # punctuation around a name
    "Diabetes.": "F:DIABETES",
    "diabetes": "F:DIABETES",
    "(diabetes),": "F:DIABETES",
    "„diabetes“": "F:DIABETES",
    "¿diabetes?": "F:DIABETES",
    "• diabetes…": "F:DIABETES",
    "diabetes。": "F:DIABETES",
    "_diabetes_": "F:DIABETES",
    # hyphens, slashes, percent signs
    "dextrose, 5%": "F:DEXTROSE",
    "dextrose ５％": "F:DEXTROSE",
    "saline 0,9%": "F:SALINE",
    "non-small-cell lung cancer": "F:NSCLC",
    "non–small‑cell lung cancer": "F:NSCLC",
    "non−small−cell lung cancer": "F:NSCLC",
    "heart-attack": "F:MI",
    # quotes
    "Crohn’s disease": "F:CROHN",
    "Crohn‘s disease": "F:CROHN",
    "Crohn´s disease": "F:CROHN",
    "Crohn＇s disease": "F:CROHN",
    "Crohn′s disease": "F:CROHN",
    "Crohn disease": "F:CROHN",
    "Graves’ disease": "F:GRAVES",
    "Graves disease": "F:GRAVES",
    "Parkinson’s disease": "F:PARKINSON",
    # blanks and what cannot be seen
    '" asthma \u00a0"': "F:ASTHMA",
    "«\u2009asthma\u3000»": "F:ASTHMA",
    "\ufeffasthma\u200b": "F:ASTHMA",
    "\u200easthma\u200f": "F:ASTHMA",
    "heart\u00a0attack": "F:MI",
    "heart\nattack": "F:MI",
    "heart\u202f\tattack": "F:MI",
    "heart\u200battack": "F:MI",
    # forms of letters
    "ａｓｔｈｍａ": "F:ASTHMA",
    "𝐚𝐬𝐭𝐡𝐦𝐚": "F:ASTHMA",
    "ﬁbromyalgia": "F:FIBROMYALGIA",
    "Sjo\u0308gren’s syndrome": "F:SJOGREN",
    "Sjogren syndrome": "F:SJOGREN",
    "MÉNIÈRE'S DISEASE": "F:MENIERE",
    "Guillain–Barré syndrome": "F:GBS",
    "Guillain Barre syndrome": "F:GBS",
    # numerals that are names already
    "IV infusion": "F:IV",
    "infusion 4": "F:INFUSION4",
    "type ② diabetes": "F:T2D",
    "IFN gamma": "F:IFNG",
}
# The same string only under the loose key; the second list is beyond the encoder.
VARIANT = {
    # trade signs and hidden characters
    "leucovorin(R)": "F:LEUCOVORIN",
    "Prozac (TM)": "F:FLUOXETINE",
    "leucovorin®\ufe0f": "F:LEUCOVORIN",
    "asth\u00adma": "F:ASTHMA",
    "ast\u2060hma": "F:ASTHMA",
    "myo\u00adcardial infarction": "F:MI",
    # Greek letters
    "IFN-γ": "F:IFNG",
    "IFNγ": "F:IFNG",
    "ifn-Γ": "F:IFNG",
    "interferon-γ": "F:IFNG",
    "β-catenin": "F:CATENIN",
    "ϐ-catenin": "F:CATENIN",
    "ß-catenin": "F:CATENIN",
    "𝛽-catenin": "F:CATENIN",
    "TNFα": "F:TNF",
    "TNF-alfa": "F:TNF",
    "β₂-microglobulin": "F:B2M",
    "beta2-microglobulin": "F:B2M",
    "µ-opioid receptor": "F:MOR",
    "μ opioid receptors": "F:MOR",
    "ϰ-opioid receptor": "F:KOR",
    "Ω-3 fatty acids": "F:OMEGA3",
    "γδ-T cells": "F:GDT",
    "α-thalassaemia": "F:THAL-A",
    "β thalassaemia": "F:THAL-B",
    # numerals
    "type II diabetes": "F:T2D",
    "Type Ⅱ diabetes": "F:T2D",
    "type two diabetes": "F:T2D",
    "type2 diabetes": "F:T2D",
    "diabetes mellitus, type II": "F:T2D",
    "type I diabetes": "F:T1D",
    "neurofibromatosis type II": "F:NF2",
    "factor 8 deficiency": "F:F8",
    "factor 9 deficiency": "F:F9",
    "factor 5 deficiency": "F:F5",
    "mucopolysaccharidosis type 4": "F:MPS4",
    "i.v. infusion": "F:IV",
    # British and American
    "leukaemia": "F:LEUKEMIA",
    "oesophagus": "F:ESOPHAGUS",
    "anaemia": "F:ANEMIA",
    "haematoma": "F:HEMATOMA",
    "tumour": "F:TUMOR",
    "TUMOURS": "F:TUMOR",
    "diarrhoea": "F:DIARRHEA",
    "coeliac disease": "F:CELIAC",
    "haemorrhages": "F:HEMORRHAGE",
    "dyspnoea": "F:DYSPNEA",
    "goitre": "F:GOITER",
    "faeces": "F:FECES",
    "foetal distress": "F:FETAL",
    "gynaecomastia": "F:GYNECOMASTIA",
    "behaviour disorders": "F:BEHAVIOR",
    "gastro-oesophageal reflux": "F:GERD",
    "gastrooesophageal reflux": "F:GERD",
    "orthopaedic surgery": "F:ORTHOPEDIC",
    "transient ischaemic attacks": "F:TIA",
    # order of words
    "5% dextrose": "F:DEXTROSE",
    "dextrose 5 %": "F:DEXTROSE",
    "0.9% saline": "F:SALINE",
    "pain, chest": "F:CHEST-PAIN",
    "fracture of the hip": "F:HIP",
    "arthritis, rheumatoid, juvenile": "F:JRA",
    "lung cancer, non-small cell": "F:NSCLC",
    "nonsmall cell lung cancer": "F:NSCLC",
    "cancer of the lung": "F:LUNG",
    "nausea & vomiting": "F:NV",
    "Parkinsons disease": "F:PARKINSON",
    "ﬁbromyalgiа": "F:FIBROMYALGIA",  # the last letter is Cyrillic
}
VARIANT_WITHOUT_DENSE = {
    "œdema": "F:EDEMA",
    "leukæmia": "F:LEUKEMIA",
    "asthmа": "F:ASTHMA",  # the last letter is Cyrillic
    "A.L.S.": "F:ALS",
}


def best(result: LinkResult) -> str | None:
    return result.candidates[0].concept.id if result.candidates else None


@pytest.mark.parametrize(("mention", "concept"), SAME_NAME.items())
def test_the_same_name_in_other_signs_is_found_by_the_string_alone(ask, mention, concept):
    for channels in (("exact",), ("exact", "dense"), ("exact", "dense", "lexical")):
        result = ask(mention, channels=channels)

        assert (best(result), result.status) == (concept, "linked")
        assert dict(result.candidates[0].channels)["exact"] == 1.0


@pytest.mark.parametrize(("mention", "concept"), VARIANT.items())
def test_a_variant_of_a_name_is_the_same_concept(ask, mention, concept):
    result = ask(mention)

    assert (best(result), result.status) == (concept, "linked")


@pytest.mark.parametrize(("mention", "concept"), (VARIANT | VARIANT_WITHOUT_DENSE).items())
def test_a_variant_is_found_without_vectors(ask, mention, concept):
    result = ask(mention, channels=("exact",))

    assert (best(result), result.status) == (concept, "linked")


@pytest.mark.parametrize(("mention", "concept"), VARIANT_WITHOUT_DENSE.items())
def test_a_variant_that_the_encoder_cannot_read_is_the_same_concept(ask, mention, concept):
    assert best(ask(mention)) == concept


@pytest.mark.parametrize(
    ("mention", "others"),
    [
        ("type 2 diabetes", {"F:T1D", "F:T3"}),
        ("type II diabetes", {"F:T1D", "F:T3"}),
        ("type 1 diabetes", {"F:T2D", "F:T3"}),
        ("type III diabetes", {"F:T1D", "F:T2D"}),
        ("IV infusion", {"F:INFUSION4"}),
        ("infusion IV", {"F:INFUSION4"}),
        ("infusion 4", {"F:IV"}),
        ("factor VIII deficiency", {"F:F5", "F:F9"}),
        ("factor 9 deficiency", {"F:F5", "F:F8"}),
        ("mucopolysaccharidosis III", {"F:MPS4"}),
        ("hepatitis C", {"F:HEPA", "F:HEPB"}),
        ("vitamin D deficiency", {"F:VITC"}),
        ("α-thalassemia", {"F:THAL-B"}),
        ("κ-opioid receptor", {"F:MOR"}),
        ("small cell lung cancer", {"F:NSCLC"}),
    ],
)
def test_numerals_and_letters_that_tell_concepts_apart_do(ask, mention, others):
    for channels in (("exact",), ("exact", "dense"), ("exact", "dense", "lexical")):
        assert best(ask(mention, channels=channels)) not in others


@pytest.mark.parametrize("mention", ["factor 10 deficiency", "hepatitis 100", "vitamin 500 deficiency", "dextrose 10%"])
def test_a_number_that_no_name_has_is_no_equal_name(ask, mention):
    assert best(ask(mention, channels=("exact",))) is None
    assert all(candidate.score < 1 for candidate in ask(mention).candidates)
