"""Names of sources above the licence level are found by and not shown; everything else of an answer stays."""

from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from index.build import Content, build_index
from index.store import BuildStore
from medlink.kb.curation import CurationState, Entry
from medlink.kb.records import SourceRecord
from medlink.types import Concept, Definition, Name

SOURCES = (
    SourceRecord("FREE", "Free", "1", licence_level=0),
    SourceRecord("PAID", "Paid", "1", licence_level=3),
    SourceRecord("TWICE", "Twice", "1", licence_level=0),
    SourceRecord("TWICE", "Twice", "2", licence_level=3),
)
CONCEPTS = (
    Concept(
        "C0000001",
        "zorblax disease",
        (
            Name("zorblax disease", "PAID", "PT", code="P1"),
            Name("blue fever", "FREE", "SY"),
            Name("morbus caeruleus", "UNLISTED"),
            Name("azure ailment", "TWICE"),
        ),
        definitions=(Definition("PAID", "A zorblax thing."), Definition("FREE", "A fever that is blue.")),
    ),
    Concept("C0000002", "quixotine", (Name("quixotine", "PAID"),), broader=("C0000001",)),
    Concept("C0000003", "shared name", (Name("shared name", "PAID"), Name("shared name", "FREE"))),
)
SECRET = ("zorblax", "quixotine", "caeruleus", "azure")


@pytest.fixture(scope="module")
def build(encoder_dir, tmp_path_factory):
    store = BuildStore(tmp_path_factory.mktemp("licences"))
    content = Content(CONCEPTS, (), SOURCES, {}, len(CONCEPTS))
    return store.open(build_index(content, encoder_dir, store, recipe="flat"))


@pytest.fixture
def ask(build, tmp_path):
    """Asks a service whose build is under a licence level."""

    def of(level: int, path: str, state: CurationState | None = None, **body):
        shown = build.within(level).curated(state or CurationState())
        with TestClient(create_app(Settings(data_dir=tmp_path, max_licence_level=level), build=shown)) as client:
            return client.post(path, json=body) if body else client.get(path)

    return of


def best(response) -> dict:
    return response.json()["results"][0]["candidates"][0]


def test_a_name_that_may_not_be_shown_still_finds_its_concept(ask):
    body = {"mentions": ["zorblax disease"], "include": ["definition"], "explain": True}
    whole, shown = best(ask(9, "/link", **body)), best(ask(0, "/link", **body))

    assert (whole["matched_name"], whole["preferred_name"]) == ("zorblax disease", "zorblax disease")
    assert (shown["cui"], shown["score"]) == (whole["cui"], whole["score"])
    assert (shown["matched_name"], shown["preferred_name"]) == (None, "blue fever")
    assert shown["definition"] == {"sab": "FREE", "text": "A fever that is blue."}
    assert (shown["explanation"]["matched_name"], shown["explanation"]["steps"]) == (None, None)
    assert shown["explanation"]["matched_sab"] == "PAID"


@pytest.mark.parametrize("mention", ["morbus caeruleus", "azure ailment"])
def test_a_source_that_is_not_listed_or_has_stricter_terms_too_is_withheld(mention, ask):
    assert best(ask(2, "/link", mentions=[mention]))["matched_name"] is None


def test_a_level_is_enough_for_sources_of_that_level(ask):
    assert best(ask(3, "/link", mentions=["zorblax disease"]))["matched_name"] == "zorblax disease"


def test_a_concept_without_a_name_to_show_goes_by_its_id(ask):
    shown = best(ask(0, "/link", mentions=["quixotine"]))

    assert (shown["cui"], shown["preferred_name"], shown["matched_name"]) == ("C0000002", "C0000002", None)


def test_a_string_that_a_free_source_has_too_is_shown(ask):
    shown = best(ask(0, "/link", mentions=["shared name"], explain=True))

    assert (shown["matched_name"], shown["preferred_name"]) == ("shared name", "shared name")
    assert shown["explanation"]["matched_sab"] == "FREE"


def test_what_curation_adds_is_shown_and_what_it_blocks_is_not(ask):
    by = {"who": "ann", "why": "ours", "created_at": datetime.now(UTC)}
    entries = (
        Entry(1, "block_name", "blue fever", "C0000001", **by),
        Entry(2, "add_synonym", "the blues", "C0000001", **by),
    )

    shown = best(ask(0, "/link", CurationState(2, entries), mentions=["the blues"]))

    assert (shown["matched_name"], shown["preferred_name"]) == ("the blues", "the blues")


@pytest.mark.parametrize("identifier", ["C0000001", "C0000002"])
def test_the_page_of_a_concept_has_no_name_or_definition_that_may_not_be_shown(identifier, ask):
    shown = ask(0, f"/concepts/{identifier}")

    assert shown.status_code == 200
    assert not [word for word in SECRET if word in shown.text]
    assert "zorblax" in ask(9, f"/concepts/{identifier}").text


def test_no_answer_has_a_name_that_may_not_be_shown(ask):
    # `text` is what the caller sent, so that nothing else may come back.
    body = {"mentions": ["zorblax", "blue", "quix and azure", "C0000001"], "top_k": 5, "explain": True}
    results = ask(0, "/link/bulk", **{**body, "include": ["codes", "types", "definition", "suppressed"]}).json()

    for secret in ("zorblax disease", "A zorblax thing", "quixotine", "caeruleus", "azure ailment"):
        assert secret not in str(results)


def test_the_service_says_which_level_it_keeps_to(ask):
    assert ask(0, "/info").json()["limits"]["max_licence_level"] == 0
