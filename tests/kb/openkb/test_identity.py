"""Terms become one concept where sources agree one to one, and each guard leaves a doubtful link out."""

from collections import Counter

import pytest

from medlink.kb.openkb.crossrefs import outside_codes
from medlink.kb.openkb.identity import identify
from medlink.kb.openkb.terms import Term, TermName, Vocabulary, Xref
from medlink.kb.records import SourceRecord


def term(term_id, *names, **xrefs):
    """A term whose keyword arguments are cross-references, a code or several by source."""
    pairs = [(sab, c) for sab, v in xrefs.items() for c in ([v] if isinstance(v, str) else v)]
    texts = tuple(TermName(n, "PT" if i == 0 else "EXACT") for i, n in enumerate(names))
    code = term_id.removeprefix("MESH:")
    return Term(term_id, code, texts, ("T047",), xrefs=frozenset(Xref(*p) for p in pairs))


def vocabulary(sab, *terms):
    return Vocabulary(SourceRecord(sab, sab, "1"), {t.id: t for t in terms})


def test_a_term_takes_the_cui_that_it_alone_claims():
    mondo = vocabulary("MONDO", term("MONDO:1", "fever", UMLS="C0000001"), term("MONDO:2", "rash"))

    assert identify([mondo]).concept_of == {"MONDO:1": "C0000001", "MONDO:2": "MONDO:2"}


def test_a_cui_that_two_terms_of_a_source_claim_is_nobodys():
    mondo = vocabulary(
        "MONDO", term("MONDO:1", "fever", UMLS="C0000001"), term("MONDO:2", "hot fever", UMLS="C0000001")
    )

    assert identify([mondo]).concept_of == {"MONDO:1": "MONDO:1", "MONDO:2": "MONDO:2"}


def test_a_term_with_two_unplaced_cuis_keeps_its_own_id():
    hpo = vocabulary("HPO", term("HP:1", "fever", UMLS=["C0000001", "C0000002"]))

    assert identify([hpo]).concept_of == {"HP:1": "HP:1"}


def test_a_term_with_two_cuis_takes_the_one_that_is_left_when_the_other_is_placed():
    mondo = vocabulary("MONDO", term("MONDO:1", "epilepsy", UMLS="C0000001"))
    hpo = vocabulary("HPO", term("HP:1", "seizure", UMLS=["C0000001", "C0000002"]))

    identities = identify([mondo, hpo])

    assert identities.concept_of == {"MONDO:1": "C0000001", "HP:1": "C0000002"}
    assert identities.counts["CUI that no other concept claims: taken"] == 1


def test_a_term_with_several_cuis_is_the_claimant_of_one_that_has_its_name():
    mondo = vocabulary("MONDO", term("MONDO:1", "fever", UMLS="C0000001"), term("MONDO:2", "rash", UMLS="C0000002"))
    hpo = vocabulary("HPO", term("HP:1", "Fevers", UMLS=["C0000001", "C0000002", "C0000003"]))

    assert identify([mondo, hpo]).concept_of["HP:1"] == "C0000001"


def test_terms_of_two_sources_with_one_cui_and_a_common_name_are_one_concept():
    mondo = vocabulary("MONDO", term("MONDO:1", "fever of the foot", "hot foot", UMLS="C0000001"))
    hpo = vocabulary("HPO", term("HP:1", "Foot fevers", UMLS="C0000001"))

    assert set(identify([mondo, hpo]).concept_of.values()) == {"C0000001"}


def test_a_kind_of_the_other_by_its_name_does_not_share_its_cui():
    mondo = vocabulary("MONDO", term("MONDO:1", "spondylosis", UMLS="C0000001"))
    hpo = vocabulary("HPO", term("HP:1", "cervical spondylosis", UMLS="C0000001"))

    identities = identify([mondo, hpo])

    assert identities.concept_of == {"MONDO:1": "C0000001", "HP:1": "HP:1"}
    assert identities.counts["same CUI: left out, names differ"] == 1


def test_a_mesh_heading_joins_through_a_one_to_one_cross_reference():
    mondo = vocabulary("MONDO", term("MONDO:1", "fever", UMLS="C0000001", MESH="D000001"))
    mesh = vocabulary("MESH", term("MESH:D000001", "Fevers"))

    assert identify([mondo, mesh]).concept_of == {"MONDO:1": "C0000001", "MESH:D000001": "C0000001"}


def test_without_a_cui_the_id_is_that_of_the_first_source():
    doid = vocabulary("DOID", term("DOID:1", "fever", MESH="D000001"))
    mesh = vocabulary("MESH", term("MESH:D000001", "Fever"))

    assert set(identify([doid, mesh]).concept_of.values()) == {"DOID:1"}


def test_a_heading_that_two_terms_claim_goes_to_the_one_of_the_same_name():
    mondo = vocabulary(
        "MONDO",
        term("MONDO:1", "mental disorder", MESH="D000001"),
        term("MONDO:2", "psychiatric disorder", MESH="D000001"),
    )
    mesh = vocabulary("MESH", term("MESH:D000001", "Mental Disorders"))

    assert identify([mondo, mesh]).concept_of["MESH:D000001"] == "MONDO:1"


def test_a_heading_that_two_terms_claim_stays_alone_when_no_name_settles_it():
    mondo = vocabulary(
        "MONDO", term("MONDO:1", "odd rash", MESH="D000001"), term("MONDO:2", "blue rash", MESH="D000001")
    )
    mesh = vocabulary("MESH", term("MESH:D000001", "Rash"))

    assert identify([mondo, mesh]).concept_of["MESH:D000001"] == "MESH:D000001"


def test_two_cuis_never_become_one_concept():
    mondo = vocabulary("MONDO", term("MONDO:1", "fever", UMLS="C0000001", DOID="DOID:1"))
    doid = vocabulary("DOID", term("DOID:1", "fever", UMLS="C0000002"))

    identities = identify([mondo, doid])

    assert identities.concept_of == {"MONDO:1": "C0000001", "DOID:1": "C0000002"}
    assert identities.counts["MONDO-DOID: left out, would mix two terms or two CUIs"] == 1


def test_a_chain_never_glues_two_terms_of_one_source():
    mondo = vocabulary("MONDO", term("MONDO:1", "fever", MESH="D000001"), term("MONDO:2", "heat", DOID="DOID:1"))
    doid = vocabulary("DOID", term("DOID:1", "fever", "heat", MESH="D000001"))
    mesh = vocabulary("MESH", term("MESH:D000001", "Fever"))

    concept_of = identify([mondo, doid, mesh]).concept_of

    assert concept_of["MONDO:1"] != concept_of["MONDO:2"]
    assert concept_of == {"MONDO:1": "MONDO:1", "MESH:D000001": "MONDO:1", "MONDO:2": "MONDO:2", "DOID:1": "MONDO:2"}


@pytest.mark.parametrize(
    ("left", "right", "names", "joined"),
    [
        ("MONDO", "DOID", ("deafness 5", "loss of hearing 5, mild"), True),
        ("MONDO", "MESH", ("deafness 5", "loss of hearing 5"), True),
        ("MONDO", "MESH", ("rash", "blue rash"), False),
        ("MONDO", "MESH", ("rash disorder", "rash"), True),
        ("DOID", "MESH", ("deafness 5", "loss of hearing 5"), False),
        ("HPO", "MESH", ("weak voice", "voice change"), False),
        ("MONDO", "HPO", ("hiccup", "singultus"), False),
    ],
)
def test_terms_without_a_common_name_join_only_where_the_source_curates_it(left, right, names, joined):
    codes = {"DOID": "DOID:1", "MESH": "D000001", "HPO": "HP:1"}
    ids = {"MONDO": "MONDO:1", **codes, "MESH": "MESH:D000001"}
    one = vocabulary(left, term(ids[left], names[0], **{right: codes[right]}))
    other = vocabulary(right, term(ids[right], names[1]))

    concepts = set(identify([one, other]).concept_of.values())

    assert (len(concepts) == 1) is joined


def test_a_heading_placed_by_its_name_takes_no_doubtful_link():
    mondo = vocabulary("MONDO", term("MONDO:1", "visual epilepsy", UMLS="C0000001", MESH="D000001"))
    hpo = vocabulary("HPO", term("HP:1", "Seizure", MESH="D000001"))
    mesh = vocabulary("MESH", term("MESH:D000001", "Seizures"))

    concept_of = identify([mondo, hpo, mesh]).concept_of

    assert concept_of == {"MONDO:1": "C0000001", "HP:1": "HP:1", "MESH:D000001": "HP:1"}


def test_wider_and_narrower_synonyms_do_not_speak_for_sameness():
    seizure = Term(
        "HP:1",
        "HP:1",
        (TermName("seizure", "PT"), TermName("epilepsy", "RELATED")),
        ("T033",),
        xrefs=frozenset({Xref("MESH", "D000001")}),
    )
    mesh = vocabulary("MESH", term("MESH:D000001", "Epilepsy"))

    assert len(set(identify([vocabulary("HPO", seizure), mesh]).concept_of.values())) == 2


def test_a_term_is_indexed_under_a_wider_heading_that_shares_a_name_with_it():
    mondo = vocabulary("MONDO", term("MONDO:1", "breast neoplasm", UMLS="C0000001", MESH="D000001"))
    doid = vocabulary(
        "DOID",
        term("DOID:1", "breast cancer", "breast tumor", UMLS="C0000002", MESH="D000001"),
        term("DOID:2", "breast carcinoma", UMLS="C0000003", MESH="D000001"),
    )
    mesh = vocabulary("MESH", term("MESH:D000001", "Breast Neoplasms", "Breast Tumor"))

    identities = identify([mondo, doid, mesh])

    assert identities.concept_of["MESH:D000001"] == "C0000001"
    assert identities.headings == {"DOID:1": [Xref("MESH", "D000001")]}


def test_terms_that_nothing_was_joined_to_are_alone():
    mondo = vocabulary("MONDO", term("MONDO:1", "fever", DOID="DOID:1"), term("MONDO:2", "hoof rot"))
    doid = vocabulary("DOID", term("DOID:1", "fever"))

    assert identify([mondo, doid]).alone({"MONDO:1", "MONDO:2"}) == {"MONDO:2"}


def codes(*vocabularies, in_mesh=frozenset(), concept_of=None):
    skipped = Counter()
    own = concept_of or {t: t for v in vocabularies for t in v.terms}
    found = outside_codes(vocabularies, own, in_mesh=in_mesh, skipped=skipped)
    return {t: [tuple(x) for x in xs] for t, xs in found.items()}, skipped


def test_an_outside_code_stays_where_it_is_one_to_one_in_its_source():
    mondo = vocabulary(
        "MONDO",
        term("MONDO:1", "a", OMIM="100001", DOID="DOID:1", UMLS="C0000001"),
        term("MONDO:2", "b", OMIM=["100002", "100003"]),
        term("MONDO:3", "c", OMIM="100004"),
        term("MONDO:4", "d", OMIM="100004"),
    )

    found, skipped = codes(mondo)

    assert found == {"MONDO:1": [("OMIM", "100001")]}
    assert skipped["code not one to one"] == 4


def test_two_sources_may_not_give_one_code_to_two_concepts():
    mondo = vocabulary("MONDO", term("MONDO:1", "a", OMIM="100001"))
    doid = vocabulary("DOID", term("DOID:1", "b", OMIM="100001"))

    found, skipped = codes(mondo, doid)
    joined, _ = codes(mondo, doid, concept_of={"MONDO:1": "X", "DOID:1": "X"})

    assert found == {"MONDO:1": [("OMIM", "100001")]}
    assert skipped["code that another source gives to another concept"] == 1
    assert joined == {"MONDO:1": [("OMIM", "100001")], "DOID:1": [("OMIM", "100001")]}


def test_mesh_codes_come_from_cross_references_only_if_the_release_lacks_them():
    mondo = vocabulary("MONDO", term("MONDO:1", "a", MESH="C500001"), term("MONDO:2", "b", MESH="D000001"))

    found, _ = codes(mondo, in_mesh=frozenset({"D000001"}))

    assert found == {"MONDO:1": [("MESH", "C500001")]}
