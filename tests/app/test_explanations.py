"""`"explain": true` says why each candidate is there."""

import json
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

import app.explanations
from app.answers import ResultOut
from app.explanations import Asked, explain
from app.main import create_app
from app.schemas import Options
from app.settings import Settings
from medlink.types import Candidate, Concept, LinkResult, Mention, Name, Pin

NAMES = {
    "T:CROSS": ("Road traffic accident",),
    "T:DM": ("Diabetes mellitus", "DM"),
    "T:FEVER": ("Fever",),
    "T:LEUK": ("Acute lymphoblastic leukaemia", "ALL"),
    "T:RENAL": ("Renal tubular acidosis", "RTA"),
    "T:TUMOUR": ("Lung tumour",),
}


@pytest.fixture(scope="module")
def client(make_build, tmp_path_factory):
    concepts = [
        Concept(id_, names[0], tuple(Name(name, "OURS", "PT" if i == 0 else "SY") for i, name in enumerate(names)))
        for id_, names in NAMES.items()
    ]
    home = tmp_path_factory.mktemp("explanations")
    with TestClient(create_app(Settings(data_dir=home), build=make_build(home / "builds", concepts))) as client:
        yield client


def ask(client, mention, **options):
    body = json.dumps({"mentions": [mention], "explain": True, **options})
    response = client.post("/link", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 200, response.text
    return response.json()["results"][0]


def why(client, mention, **options):
    return ask(client, mention, **options)["candidates"][0]["explanation"]


def test_an_explanation_is_whole(client):
    assert why(client, "Lung tumour") == {
        "channels": {"exact": 1.0, "dense": 1.0, "lexical": 1.0},
        "searched": "Lung tumour",
        "matched_name": "Lung tumour",
        "matched_sab": "OURS",
        "matched_tty": "PT",
        "by_id": False,
        "steps": [],
        "case_mismatch": False,
        "via_short_form": False,
        "expanded": [],
        "truncated": False,
        "broader_because": None,
    }


@pytest.mark.parametrize(
    ("mention", "steps"),
    [
        ("lung tumour", ["case"]),
        ("LUNG-TUMOUR", ["case", "punctuation"]),
        ("tumors of lung", ["case", "small words", "spelling", "plural", "word order"]),
        ("lungs", None),
    ],
)
def test_the_steps_that_make_mention_and_name_equal_are_named(client, mention, steps):
    found = why(client, mention, channels=["dense"])

    assert (found["matched_name"], found["steps"]) == ("Lung tumour", steps)


def test_the_acronym_path_is_shown(client):
    name, acronym = why(client, "road traffic accident"), why(client, "RTA")

    assert (name["via_short_form"], name["matched_name"]) == (False, "Road traffic accident")
    assert (acronym["via_short_form"], acronym["matched_name"], acronym["expanded"]) == (True, "RTA", [])


def test_short_forms_that_were_written_out_are_told(client):
    context = "A road traffic accident (RTA) in May. The RTA was fatal."

    defined = why(client, {"text": "RTA", "context": context})
    itself = why(client, "road traffic accident (RTA)")

    assert (defined["searched"], defined["steps"]) == ("road traffic accident", ["case"])
    assert defined["expanded"] == [{"short": "RTA", "long": "road traffic accident"}]
    assert defined["via_short_form"] is True
    # The short form was dropped, not written out.
    assert (itself["searched"], itself["via_short_form"]) == ("road traffic accident", False)


def test_a_part_tells_of_its_own_short_form_only(client):
    mention = {"text": "fever and DM", "context": "Diabetes mellitus (DM) was common."}

    fever, diabetes = [part["candidates"][0]["explanation"] for part in ask(client, mention)["parts"]]

    assert (fever["searched"], fever["expanded"]) == ("fever", [])
    assert diabetes["expanded"] == [{"short": "DM", "long": "Diabetes mellitus"}]


def test_a_short_name_in_the_wrong_case_is_explained(client):
    found = why(client, "all")

    assert (found["case_mismatch"], found["via_short_form"], found["steps"]) == (True, True, ["case"])


def test_what_the_encoder_cut_is_explained():
    candidate = Candidate(1, Concept("T:1", "n", ()), Name("n", "T"), 1.0, ())
    result = LinkResult(Mention("n"), "linked", (candidate,), truncated=True)

    assert explain(candidate, Asked.by(result)).truncated


def test_an_id_is_no_match_of_texts(client):
    found = why(client, "T:DM")

    assert (found["by_id"], found["steps"], found["matched_name"]) == (True, None, "Diabetes mellitus")


def test_the_concept_of_a_pin_is_explained_by_the_pin():
    concept, name = Concept("T:1", "Itching", ()), Name("Itching", "T", "PT")
    candidate = Candidate(1, concept, name, 1.0, (), pin=Pin("T:1", name, 7, "agreed"))

    found = explain(candidate, Asked("scratch"))

    assert (found.pin.entry, found.pin.why, found.channels) == (7, "agreed", {})


@pytest.mark.parametrize(("retired_from", "because"), [(None, "nothing_fits"), ("C0155626", "successor_is_broader")])
def test_a_broader_concept_says_why_it_is_offered(retired_from, because):
    concept, name = Concept("T:1", "Leukaemia", ()), Name("Leukaemia", "T")
    candidate = Candidate(1, concept, name, 0.5, (), relation="broader")

    assert explain(candidate, Asked("odd leukaemia", retired_from=retired_from)).broader_because == because
    assert explain(replace(candidate, relation="exact"), Asked("odd leukaemia")).broader_because is None


def test_the_nearest_of_a_nil_is_explained_too():
    nearest = Candidate(1, Concept("T:1", "Fever", ()), Name("Fever", "T"), 0.4, (("dense", 0.4),))
    nil = LinkResult(Mention("fevr"), "nil", reason="below_threshold", nearest=nearest)

    assert ResultOut.of(nil, Options(explain=True)).nearest.explanation.matched_name == "Fever"


def test_nothing_is_worked_out_unless_asked_for(client, monkeypatch):
    monkeypatch.setattr(app.explanations, "differing_steps", lambda one, other: pytest.fail("worked out"))

    assert "explanation" not in ask(client, "fever", explain=False)["candidates"][0]
