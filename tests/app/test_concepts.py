from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from medlink.kb.curation import CurationState, Entry
from medlink.types import Code, Concept, Name


@pytest.mark.parametrize(
    "identifier", ["C0027051", "umls:C0027051", "UMLS:C0027051", "Umls:C0027051", "icd10cm:I21", "Icd10cm:I21"]
)
def test_a_concept_is_found_by_id_curie_or_code(client, identifier):
    answer = client.get(f"/concepts/{identifier}").json()

    assert (answer["cui"], answer["curie"]) == ("C0027051", "umls:C0027051")
    assert [n["text"] for n in answer["names"]] == ["Myocardial infarction", "heart attack", "Hartinfarct"]
    assert answer["definitions"][0]["sab"] == "MONDO"
    assert answer["retired"] is None


@pytest.fixture(scope="module")
def orphanet(make_build, tmp_path_factory) -> Iterator[TestClient]:
    """A service whose ids and codes have prefixes in mixed case, or another one than their source."""
    directory = tmp_path_factory.mktemp("orphanet")
    marfan = Concept("Orphanet:558", "Marfan syndrome", (Name("Marfan syndrome", "ORPHANET"),))
    codes = (Code("ORPHANET", "Orphanet:1"), Code("HPO", "HP:0000006"))
    coded = Concept("C0000001", "Something", (Name("Something", "ORPHANET"),), codes=codes)
    app = create_app(Settings(data_dir=directory), build=make_build(directory / "builds", [marfan, coded]))
    with TestClient(app) as client:
        yield client


@pytest.mark.parametrize("identifier", ["Orphanet:558", "orphanet:558", "ORPHANET:558", "oRPHAnet:558"])
def test_the_prefix_of_an_id_may_be_in_any_case(orphanet, identifier):
    answer = orphanet.get(f"/concepts/{identifier}").json()
    linked = orphanet.post("/link", json={"mentions": [identifier], "explain": True}).json()["results"][0]

    assert (answer["cui"], answer["curie"]) == ("Orphanet:558", "orphanet:558")
    assert linked["candidates"][0]["cui"] == "Orphanet:558"
    assert linked["candidates"][0]["explanation"]["by_id"]


@pytest.mark.parametrize(
    "identifier", ["orphanet:1", "Orphanet:1", "ORPHANET:1", "hp:0000006", "HP:0000006", "hpo:HP:0000006"]
)
def test_the_prefix_of_a_code_may_be_in_any_case_and_not_the_name_of_its_source(orphanet, identifier):
    assert orphanet.get(f"/concepts/{identifier}").json()["cui"] == "C0000001"


@pytest.mark.parametrize("identifier", ["orphanet:000558", "orphanet", "orphanet:", ":558", "558", "Orphanet:558:"])
def test_only_the_prefix_may_be_spelt_otherwise(orphanet, identifier):
    assert orphanet.get(f"/concepts/{identifier}").status_code == 404


def test_broader_concepts_come_with_their_names(client):
    (broader,) = client.get("/concepts/C0004096").json()["broader"]

    assert broader == {"cui": "MONDO:0005087", "curie": "mondo:0005087", "preferred_name": "Lung disease"}


@pytest.mark.parametrize("identifier", ["mondo:0005087", "MONDO:0005087", "Mondo:0005087"])
def test_a_source_id_may_be_written_as_its_curie(client, identifier):
    assert client.get(f"/concepts/{identifier}").json()["preferred_name"] == "Lung disease"


def test_a_code_of_several_concepts_names_the_others(client):
    answer = client.get("/concepts/mesh:D009203").json()

    assert (answer["cui"], answer["same_code"]) == ("C0027051", ["MONDO:0099999"])


def test_a_code_that_carries_its_own_prefix_is_found(client):
    assert client.get("/concepts/mondo:0004979").json()["cui"] == "C0004096"


def test_a_retired_cui_says_so_and_points_to_its_successor(client):
    answer = client.get("/concepts/C0155626").json()

    assert answer["cui"] == "C0155626"
    assert answer["names"] == []
    assert answer["retired"] == {
        "reason": "SY",
        "release": "2024AA",
        "successors": [{"cui": "C0027051", "curie": "umls:C0027051", "preferred_name": "Myocardial infarction"}],
    }


def test_a_cui_that_is_gone_says_so(client):
    assert client.get("/concepts/C0999999").json()["retired"]["successors"] == []


def test_concepts_are_shown_as_curated(build, tmp_path):
    rows = [
        ("block_concept", None, "C0027051"),
        ("add_synonym", "wheezing", "C0004096"),
        ("block_name", "asthmatic disorder", "C0004096"),
        ("block_name", "Lung disease", "MONDO:0005087"),
        ("add_synonym", "Disease of the lung", "MONDO:0005087"),
    ]
    by = {"who": "ann", "why": "says so", "created_at": datetime.now(UTC)}
    state = CurationState(3, tuple(Entry(i, *row, **by) for i, row in enumerate(rows)))
    app = create_app(Settings(data_dir=tmp_path), build=build.curated(state))

    with TestClient(app) as client:
        asthma = client.get("/concepts/C0004096").json()
        blocked = client.get("/concepts/umls:C0027051")
        by_code = client.get("/concepts/mesh:D009203").json()
        retired = client.get("/concepts/C0155626").json()["retired"]

    assert asthma["index"]["curation_revision"] == 3
    assert [broader["preferred_name"] for broader in asthma["broader"]] == ["Disease of the lung"]
    assert [name["text"] for name in asthma["names"]] == ["Asthma", "wheezing"]
    assert (blocked.status_code, blocked.json()["code"]) == (404, "unknown_concept")
    assert (by_code["cui"], by_code["same_code"]) == ("MONDO:0099999", None)
    assert retired["successors"] == [{"cui": "C0027051", "curie": "umls:C0027051", "preferred_name": None}]


@pytest.mark.parametrize(
    "identifier", ["C9999999", "mesh:D999999", "x", "a/b", "%00", "' OR 1=1", "mesh:", "%ED%A0%80", "%FF"]
)
def test_an_unknown_concept_is_a_404(client, identifier):
    response = client.get(f"/concepts/{identifier}")

    assert response.status_code == 404
    assert response.json()["code"] == "unknown_concept"
