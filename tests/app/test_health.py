import re
from pathlib import Path

import pytest

from app import examples
from app.administration import BuildOut, JobOut
from app.answers import BulkResponse, LinkResponse
from app.errors import STATUS
from app.facts import ConceptOut
from app.openapi import openapi_json
from medlink.errors import MedlinkError


def test_it_is_live_and_ready_and_says_with_what(client, build):
    assert client.get("/livez").json() == {"status": "live"}
    assert client.get("/readyz").json() == {"status": "ready", "index": build.id, "refused": {}, "store": "reachable"}

    info = client.get("/info").json()

    assert info["index"]["id"] == build.id
    assert info["index"]["sources"][0]["version"] == "2026-05-05"
    assert info["index"]["sabs"] == ["MESH", "MONDO", "ICD10CM", "HPO"]
    assert info["limits"]["max_mentions"] == 10


def test_the_openapi_description_is_the_committed_one():
    committed = Path(__file__).parents[2] / "docs/api/openapi.json"

    assert openapi_json() == committed.read_text(encoding="utf-8"), "run `make openapi`"


def test_the_description_says_how_a_body_may_be_refused(client):
    operations = [o for path in client.get("/openapi.json").json()["paths"].values() for o in path.values()]
    reading = [operation for operation in operations if "requestBody" in operation]

    assert len(reading) == 4
    for operation in reading:
        assert {"400", "408", "413", "415", "422"} <= set(operation["responses"])


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        (LinkResponse, examples.LINK),
        (BulkResponse, examples.BULK),
        (ConceptOut, examples.CONCEPT),
        (JobOut, examples.JOB),
        (BuildOut, examples.BUILD),
    ],
)
def test_an_example_is_what_could_be_sent(model, shown):
    assert model.model_validate(shown).model_dump(mode="json", exclude_unset=True) == shown


def test_every_error_has_a_status():
    assert set(STATUS) == set(MedlinkError.__subclasses__())


def test_the_docs_page_needs_no_other_host(client):
    page = client.get("/docs").text

    addresses = re.findall(r"""(?:src|href)=["']([^"']+)""", page)
    assert addresses
    assert all(client.get(address).status_code == 200 for address in addresses if address.startswith("/"))
    assert [a for a in addresses if not a.startswith("/")] == []
    assert client.get("/redoc").status_code == 404
