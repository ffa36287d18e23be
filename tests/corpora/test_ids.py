import pytest

from medlink.corpora.ids import candidate_ids, gold_parts, normal_id, spellings
from medlink.types import Code


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("C000657245", "MESH:C000657245"),
        ("D000074042", "MESH:D000074042"),
        ("C567755", "MESH:C567755"),
        ("C0027051", "UMLS:C0027051"),
        ("mesh: D003920", "MESH:D003920"),
        ("MIM:222100", "OMIM:222100"),
        ("hp:0001156", "HP:0001156"),
    ],
)
def test_ids_have_one_spelling(written, normal):
    assert normal_id(written) == normal
    assert normal_id(normal) == normal


@pytest.mark.parametrize("id_", ["MESH:D003920", "UMLS:C0027051", "HP:0001156", "OMIM:222100"])
def test_every_spelling_of_an_id_that_is_a_concept_id_reads_back(id_):
    first, *_ = spellings(id_)

    assert normal_id(first) == id_


@pytest.mark.parametrize("code", [Code("HPO", "HP:0001156"), Code("HP", "0001156")])
def test_codes_of_a_candidate_count_whether_or_not_they_carry_their_prefix(code):
    assert "HP:0001156" in candidate_ids("C0221357", [code])


def test_one_concept_may_have_several_ids_and_a_composite_several_parts():
    assert gold_parts("OMIM:612446|OMIM:610102+D007153") == (("OMIM:612446",), ("OMIM:610102", "MESH:D007153"))
