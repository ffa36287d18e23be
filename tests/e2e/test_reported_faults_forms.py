"""What reports about other linkers complain of, where a mention is no plain name: short forms, lists, nonsense."""

import csv
from pathlib import Path

import pytest

from app.explanations import Asked, explain
from app.settings import Settings
from medlink.types import LinkOptions, Mention

SOURCE = Path(__file__).parents[2] / "tests/data/faults.tsv"


def best(result):
    return result.candidates[0].concept.id if result.candidates else None


# Nothing in common with a knowledge base


@pytest.fixture(scope="module")
def tiny(index_file, tmp_path_factory):
    source = tmp_path_factory.mktemp("tiny") / "tiny.tsv"
    source.write_text("id\tname\tsab\nF:1\tKuru\tOURS\nF:2\tGout\tOURS\n", encoding="utf-8")
    return index_file(source)


@pytest.mark.parametrize("channels", [("exact",), ("lexical",), ("exact", "lexical"), ("exact", "dense", "lexical")])
@pytest.mark.parametrize("mention", ["#", "§§", "—", "∅", "\u200b", "🫀", "°", "", " \u00a0\t"])
def test_signs_alone_are_nil(tiny, mention, channels):
    (result,) = tiny.linker.link([Mention(mention)], LinkOptions(channels=channels))

    assert (result.status, result.reason, result.candidates) == ("nil", "empty_after_normalisation", ())


WITHOUT_A_TRIGRAM = ['"hydroxytryptophan"', "zzzz", "123", "β", "喘息", "%", "x"]


@pytest.mark.parametrize("channels", [("exact",), ("lexical",), ("exact", "lexical")])
@pytest.mark.parametrize("mention", WITHOUT_A_TRIGRAM)
def test_a_text_that_shares_nothing_with_any_name_is_nil(tiny, mention, channels):
    (result,) = tiny.linker.link([Mention(mention)], LinkOptions(channels=channels))

    assert (result.status, result.reason, result.candidates) == ("nil", "no_candidate", ())


@pytest.mark.parametrize("mention", WITHOUT_A_TRIGRAM)
def test_what_is_merely_nearest_is_nil_too(tiny, mention):
    (result,) = tiny.with_models(Settings().models).linker.link([Mention(mention)], LinkOptions())

    assert (result.status, result.candidates) == ("nil", ())


# Short forms that a text defines

DEFINED = [
    ("Mindful memoization (MM)", "MM", "Mindful memoization", None),
    ("human iPSC (hiPSC)", "hiPSC", "human iPSC", "F:IPSC"),
    ("a dose of 5-fluorouracil (5-FU)", "5-FU", "5-fluorouracil", "F:FU"),
    ("CKD (chronic kidney disease)", "CKD", "chronic kidney disease", "F:CKD"),
    ("chronic kidney disease\u00a0[CKD; stage 5]", "CKD", "chronic kidney disease", "F:CKD"),
    ("chronic kidney disease (hereafter CKD)", "CKD", "chronic kidney disease", "F:CKD"),
    ("transient ischemic attacks (TIAs)", "TIA", "transient ischemic attacks", "F:TIA"),
    ("Crohn’s disease (CD)", "CD", "Crohn’s disease", "F:CROHN"),
    ("type 2 diabetes (T2D)", "T2D", "type 2 diabetes", "F:T2D"),
    ("interferon-γ (IFN-γ)", "IFN-γ", "interferon-γ", "F:IFNG"),
    ("beta-2-microglobulin (β2M)", "β2M", "beta-2-microglobulin", "F:B2M"),
    ("Guillain–Barré syndrome (GBS)", "GBS", "Guillain–Barré syndrome", "F:GBS"),
    ("non-small-cell lung cancer (NSCLC)", "NSCLC", "non-small-cell lung cancer", "F:NSCLC"),
    ("mitral stenosis (MS)", "MS", "mitral stenosis", "F:MITRAL"),
]


@pytest.mark.parametrize(("context", "mention", "long", "concept"), DEFINED)
def test_a_short_form_is_its_whole_long_form_and_says_where_that_stands(ask, context, mention, long, concept):
    result = ask(Mention(mention, context=context))

    assert result.expansion.text == long
    (used,) = result.expansion.used
    assert context[used.long_start : used.long_end] == used.long == long
    assert context[used.short_start : used.short_end] == used.short
    assert concept is None or (best(result), result.status) == (concept, "linked")


@pytest.mark.parametrize(
    ("context", "mention"),
    [
        ("human cells (hiPSC)", "hiPSC"),
        ("the COPD (not otherwise specified)", "COPD"),
        ("as we showed (Fig. 2)", "Fig"),
        ("in type 2 diabetes (T2DM)", "T2DM"),
        ("reflection (MM)", "MM"),
        ("chronic kidney disease. (CKD)", "MI"),
    ],
)
def test_what_has_no_whole_long_form_stays_as_it_is(ask, context, mention):
    assert ask(Mention(mention, context=context)).expansion is None


# Short names and the words they look like


@pytest.mark.parametrize(
    ("mention", "concept"),
    [("ALS", "F:ALS"), ("AIDS", "F:AIDS"), ("GAP", "F:GAP"), ("ALL", "F:ALL"), ("(COPD).", "F:COPD"),
     ("ＡＬＳ", "F:ALS"), ("GAPs", "F:GAP")],
)  # fmt: skip
def test_a_short_name_in_its_own_case_is_that_name(ask, mention, concept):
    result = ask(mention)

    assert (best(result), result.status, result.candidates[0].case_mismatch) == (concept, "linked", False)


@pytest.mark.parametrize(
    ("mention", "name"),
    [("als", "ALS"), ("Als", "ALS"), ("aids", "AIDS"), ("gaps", "GAP"), ("all", "ALL"), ("all patients", "ALL"),
     ("sad", "SAD"), ("feeling sad", "SAD"), ("cats", "CAT"), ("cat's", "CAT"), ("5-fu", "5-FU"), ("ａｌｓ", "ALS"),
     ("(ms)", "MS"), ("copd", "COPD")],
)  # fmt: skip
def test_a_word_that_looks_like_a_short_name_is_demoted_and_flagged(ask, mention, name):
    found = [c for c in ask(mention, top_k=100).candidates if c.name.text == name]

    assert found
    assert all(candidate.case_mismatch and candidate.score <= 0.8 for candidate in found)


@pytest.mark.parametrize("mention", ["hearing aids", "Hearing Aids", "HEARING AIDS", "hearing aid"])
def test_hearing_aids_are_not_aids(ask, mention):
    assert best(ask(mention)) == "F:AID-DEVICE"


# A name against somebody else's short form


@pytest.mark.parametrize(
    ("mention", "concept", "short", "owner"),
    [
        ("road traffic accident", "F:ROAD", "RTA", "F:RTA"),
        ("drug induced colitis", "F:DRUG-INTERACTION", "DIC", "F:DIC"),
        ("prolapsed intervertebral disc", "F:DISC", "PID", "F:PID"),
        ("Renal tubular acidosis", "F:RTA", "RTA", "F:RTA"),
    ],
)
def test_a_name_outranks_a_short_form_and_the_way_by_it_is_shown(ask, mention, concept, short, owner):
    by_name, by_short = ask(mention), ask(short)
    name_why, short_why = (explain(r.candidates[0], Asked.by(r)) for r in (by_name, by_short))

    assert (best(by_name), name_why.via_short_form) == (concept, False)
    assert (best(by_short), short_why.via_short_form, short_why.matched_name) == (owner, True, short)
    defined = ask(Mention(short, context=f"A {mention.lower()} ({short}) in May."))
    told = explain(defined.candidates[0], Asked.by(defined))
    assert (best(defined), told.via_short_form, [e.short for e in told.expanded]) == (concept, True, [short])


@pytest.mark.parametrize("mention", ["road traffic accidents", "rural teaching academy", "dense iron curtain"])
def test_initials_alone_make_no_equal_name(ask, mention):
    assert all(candidate.score < 1 for candidate in ask(mention).candidates)
    assert best(ask(mention, channels=("exact",))) in {None, "F:ROAD"}


# Several concepts in one mention

COMPOSITES = [
    ("breast and ovarian cancer", "and", ["F:BREAST", "F:OVARY"]),
    ("colorectal, endometrial and ovarian cancers", "and", ["F:COLORECTAL", "F:ENDOMETRIAL", "F:OVARY"]),
    ("breast, lung, and ovarian cancer", "and", ["F:BREAST", "F:LUNG", "F:OVARY"]),
    ("breast or ovarian cancer", "or", ["F:BREAST", "F:OVARY"]),
    ("either breast or ovarian cancer", "or", ["F:BREAST", "F:OVARY"]),
    ("neither breast nor ovarian cancer", "or", ["F:BREAST", "F:OVARY"]),
    ("breast/ovarian cancer", "or", ["F:BREAST", "F:OVARY"]),
    ("breast & ovarian cancer", "and", ["F:BREAST", "F:OVARY"]),
    ("breast as well as ovarian cancer", "and", ["F:BREAST", "F:OVARY"]),
    ("breast- and ovarian cancer", "and", ["F:BREAST", "F:OVARY"]),
    ("breast\u00a0and/or ovarian cancer", "or", ["F:BREAST", "F:OVARY"]),
    ("cancers of the lung, liver or stomach", "or", ["F:LUNG", "F:LIVER", "F:STOMACH"]),
    ("cancer of the breast and of the ovary", "and", ["F:BREAST", "F:OVARY"]),
    ("acute and chronic renal failure", "and", ["F:ARF", "F:CRF"]),
    ("renal or hepatic failure", "or", ["F:RENAL-FAILURE", "F:HEPATIC-FAILURE"]),
    ("hepatitis A, B, and C", "and", ["F:HEPA", "F:HEPB", "F:HEPC"]),
    ("hepatitis B/C", "or", ["F:HEPB", "F:HEPC"]),
    ("type I and II diabetes", "and", ["F:T1D", "F:T2D"]),
    ("diabetes type 1 and type 2", "and", ["F:T1D", "F:T2D"]),
    ("neurofibromatosis types 1 and 2", "and", ["F:NF1", "F:NF2"]),
    ("deficiencies of factors VIII and IX", "and", ["F:F8", "F:F9"]),
    ("vitamin C and D deficiency", "and", ["F:VITC", "F:VITD"]),
    ("vitamins C or D deficiency", "or", ["F:VITC", "F:VITD"]),
    ("cleft lip and/or palate", "or", ["F:CLEFT-LIP", "F:CLEFT-PALATE"]),
    ("Duchenne and Becker muscular dystrophies", "and", ["F:DMD", "F:BMD"]),
    ("Crohn's disease and ulcerative colitis", "and", ["F:CROHN", "F:UC"]),
    ("α- and β-thalassemia", "and", ["F:THAL-A", "F:THAL-B"]),
    ("mu- or kappa-opioid receptors", "or", ["F:MOR", "F:KOR"]),
    ("fever, cough and nausea", "and", ["F:FEVER", "F:COUGH", "F:NAUSEA"]),
]


@pytest.mark.parametrize(("mention", "conjunction", "concepts"), COMPOSITES)
def test_a_list_is_linked_part_by_part(ask, mention, conjunction, concepts):
    result = ask(mention)

    assert [(best(part.result), part.result.status) for part in result.parts] == [(c, "linked") for c in concepts]
    assert result.conjunction == conjunction
    assert all(0 <= start < end <= len(mention) for part in result.parts for start, end in part.spans)
    assert ask(mention, composites=False).parts == ()


@pytest.mark.parametrize("mention", ["hereditary breast and ovarian cancer", "nausea and vomiting", "dextrose, 5%"])
def test_one_name_is_no_list(ask, mention):
    assert ask(mention).parts == ()


LETTERS = ["N/V/D", "n/v/d", "N / V / D", "N, V, D", "N/V/D.", "N&V", "n/v", "F/C/S"]


@pytest.mark.parametrize("mention", LETTERS)
def test_initials_with_slashes_are_split_and_never_one_wrong_concept(ask, mention):
    result = ask(mention)

    assert len(result.parts) == sum(map(str.isalpha, mention))
    assert all(best(part.result) != "F:NVD" for part in result.parts)


@pytest.mark.parametrize("mention", [*LETTERS, "N-V-D"])
def test_initials_with_slashes_and_each_of_them_are_nil(judged, mention):
    (result,) = judged.linker.link([Mention(mention)], LinkOptions())

    assert [result.status, *(part.result.status for part in result.parts)] == ["nil"] * (1 + len(result.parts))


# Names that the encoder reads alike


@pytest.mark.parametrize("end", ["valine", "leucine", "tyrosine"])
def test_names_that_differ_behind_what_the_encoder_reads_are_told_apart(ask, end):
    with SOURCE.open(encoding="utf-8", newline="") as source:
        rows = csv.DictReader(source, delimiter="\t", quoting=csv.QUOTE_NONE)
        (name,) = (row["name"] for row in rows if row["name"].endswith(f"-{end}"))
    concept = f"F:PEPTIDE-{end[:3].upper()}"

    dense, whole = ask(name, channels=("dense",)), ask(name)
    misspelt = ask(name.replace("glycyl", "glicyl", 1), channels=("lexical",))

    assert (dense.truncated, [candidate.score for candidate in dense.candidates[:3]]) == (True, [1.0] * 3)
    assert (best(whole), whole.status, whole.truncated) == (concept, "linked", True)
    assert (best(misspelt), misspelt.status) == (concept, "linked")
    assert not ask("glycyl-alanine").truncated
