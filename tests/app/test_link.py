import gzip
import json
import logging
import tracemalloc

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from medlink.types import Concept, Name

MARK = "Zyxwv Qponm"


def post(client, body, path="/link", **headers):
    content = body if isinstance(body, bytes | str) else json.dumps(body)
    return client.post(path, content=content, headers={"content-type": "application/json", **headers})


def problem(response, status, code):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] == code
    return response.json()


def test_a_mention_goes_in_and_ranked_concepts_come_out(client, build):
    answer = post(client, {"mentions": ["heart attack"], "top_k": 2}).json()

    assert answer["index"] == {"id": build.id, "curation_revision": 0, "channels": ["exact", "dense", "lexical"]}
    (result,) = answer["results"]
    assert (result["text"], result["status"], len(result["candidates"])) == ("heart attack", "linked", 2)
    assert result["candidates"][0] == {
        "rank": 1,
        "cui": "C0027051",
        "curie": "umls:C0027051",
        "preferred_name": "Myocardial infarction",
        "matched_name": "heart attack",
        "score": 1.0,
        "probability": None,
        "relation": "exact",
        "semantic_types": [{"tui": "T047", "name": "Disease or Syndrome"}],
        "codes": [{"sab": "MESH", "code": "D009203"}, {"sab": "ICD10CM", "code": "I21"}],
    }


def test_options_choose_what_is_sent(client):
    body = {"mentions": ["heart attack"], "include": ["definition"], "explain": True}

    best = post(client, body).json()["results"][0]["candidates"][0]

    assert "codes" not in best
    assert "semantic_types" not in best
    assert best["definition"]["sab"] == "MONDO"
    assert best["explanation"]["matched_sab"] == "MONDO"
    assert best["explanation"]["channels"]["exact"] == 1.0


def test_a_source_id_has_its_curie(client):
    best = post(client, {"mentions": ["lung disease"]}).json()["results"][0]["candidates"][0]

    assert (best["cui"], best["curie"]) == ("MONDO:0005087", "mondo:0005087")


def test_mentions_may_be_objects_and_ids_come_back(client):
    sent = {"text": "cold", "id": "note-7", "context": "a cold", "start": 2, "end": 6}

    (result,) = post(client, {"mentions": [sent]}).json()["results"]

    assert (result["id"], result["status"]) == ("note-7", "ambiguous")
    assert result["ties"] == ["HP:0000001", "MESH:D003139"]


def test_a_short_form_is_written_out_as_its_context_says(client):
    context = "Myocardial infarction (MI) 🫀: the MI was old."
    sent = {"text": "MI", "context": context, "start": 34, "end": 36}

    with_context, without = post(client, {"mentions": [sent, "MI"]}).json()["results"]

    assert (with_context["text"], with_context["candidates"][0]["cui"]) == ("MI", "C0027051")
    assert with_context["expansion"] == {
        "text": "Myocardial infarction",
        "definitions": [
            {"short": "MI", "long": "Myocardial infarction", "short_start": 23, "short_end": 25}
            | {"long_start": 0, "long_end": 21}
        ],
    }
    assert "expansion" not in without


@pytest.mark.parametrize("path", ["/link", "/link/bulk"])
def test_a_composite_is_answered_whole_and_in_parts(client, path):
    context = "🫀 asthma or lung disease"
    sent = {"text": context[2:], "context": context, "start": 2, "end": len(context), "id": "x"}

    whole, placed = post(client, {"mentions": ["asthma and lung disease", sent]}, path).json()["results"]
    (kept,) = post(client, {"mentions": ["asthma and lung disease"], "composites": False}, path).json()["results"]

    assert {key: whole[key] for key in kept} == kept
    assert (whole["conjunction"], placed["conjunction"]) == ("and", "or")
    assert [part["text"] for part in whole["parts"]] == ["asthma", "lung disease"]
    assert [part["status"] for part in whole["parts"]] == ["linked", "linked"]
    assert whole["parts"][0]["candidates"] == post(client, {"mentions": ["asthma"]}).json()["results"][0]["candidates"]
    assert not any("context_spans" in part for part in whole["parts"])
    for part in placed["parts"]:
        (here,), (there,) = part["spans"], part["context_spans"]
        assert sent["text"][here["start"] : here["end"]] == part["text"]
        assert context[there["start"] : there["end"]] == part["text"]


def test_a_retired_id_is_resolved_and_said(client):
    result, gone = post(client, {"mentions": ["C0155626", "C0999999"]}).json()["results"]

    assert (result["retired_from"], result["candidates"][0]["cui"]) == ("C0155626", "C0027051")
    assert (gone["retired_from"], gone["status"], gone["candidates"]) == ("C0999999", "nil", [])


def test_a_short_name_that_the_mention_spells_as_a_word_is_flagged(make_build, tmp_path):
    concept = Concept("T:1", "Acute lymphoblastic leukaemia", (Name("ALL", "T"),))
    app = create_app(Settings(data_dir=tmp_path), build=make_build(tmp_path / "builds", [concept]))

    with TestClient(app) as client:
        upper, lower = post(client, {"mentions": ["ALL", "all"]}).json()["results"]

    assert "case_mismatch" not in upper["candidates"][0]
    assert (upper["candidates"][0]["score"], lower["candidates"][0]["score"]) == (1.0, 0.8)
    assert lower["candidates"][0]["case_mismatch"] is True


@pytest.mark.parametrize("path", ["/link", "/link/bulk"])
def test_results_keep_order_and_duplicates(client, path):
    texts = ["cold", "asthma", "", "cold", "Croé", "m²", "Müller", "🫀", "ضيق"]

    results = post(client, {"mentions": texts}, path).json()["results"]

    assert [r["text"] for r in results] == texts
    assert results[0] == results[3]
    assert (results[2]["status"], results[2]["reason"]) == ("nil", "empty_after_normalisation")


@pytest.mark.parametrize("path", ["/link", "/link/bulk"])
def test_no_mentions_is_an_empty_answer(client, path):
    assert post(client, {"mentions": []}, path).json()["results"] == []


@pytest.mark.parametrize(
    "field",
    [
        {"top_k": 0},
        {"top_k": -1},
        {"top_k": 10**6},
        {"top_k": "five"},
        {"channels": []},
        {"channels": ["fuzzy"]},
        {"include": ["everything"]},
        {"threshold": 2},
        {"topk": 5},
        {"mentions": "cold"},
        {"mentions": [7]},
        {"mentions": [{"txt": MARK}]},
        {"mentions": [{"text": MARK, MARK: 1}]},
        {"mentions": [{"text": MARK, "start": -1}]},
        {"mentions": None},
    ],
)
@pytest.mark.parametrize("path", ["/link", "/link/bulk"])
def test_a_field_that_is_not_as_documented_is_422_without_the_text(client, field, path):
    response = post(client, {"mentions": [MARK], **field}, path)

    if path == "/link/bulk" and isinstance(field.get("mentions"), list):
        assert response.status_code == 200  # an item of its own that is wrong
        assert response.json()["results"][0]["error"]["code"] == "invalid_mention"
    else:
        problem(response, 422, "invalid_request")
    assert MARK not in response.text


@pytest.mark.parametrize("field", [{"semantic_types": ["T999"]}, {"sabs": ["MSHH"]}])
def test_an_unknown_filter_value_names_the_valid_ones(client, field):
    answer = problem(post(client, {"mentions": ["cold"], **field}), 422, "unknown_value")

    assert "valid: " in answer["detail"]


def test_a_threshold_without_calibration_is_refused(client):
    problem(post(client, {"mentions": ["cold"], "threshold": 0.3}), 422, "not_calibrated")


BAD = {
    "a NUL": f"{MARK}\0",
    "too long": MARK * 100,
    "a lone surrogate": MARK + "\ud800",
    "offsets": {"text": MARK, "context": MARK, "start": 3, "end": 99},
    "a start beyond the context": {"text": MARK, "context": MARK, "start": 99},
    "not a mention": 7,
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_mention_refuses_the_request_and_is_named_by_place(client, bad):
    response = post(client, {"mentions": ["cold", bad, "asthma"]})

    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    answer = response.json()
    assert answer.get("item") == 1 or answer["errors"][0]["loc"][:3] == ["body", "mentions", 1]
    assert MARK not in response.text


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_item_in_bulk_costs_only_itself(client, bad):
    response = post(client, {"mentions": ["cold", bad, "asthma"]}, "/link/bulk")

    first, second, third = response.json()["results"]
    assert (first["status"], third["status"]) == ("ambiguous", "linked")
    assert (second["item"], set(second["error"])) == (1, {"code", "detail"})
    assert MARK not in response.text


def test_a_bad_item_in_bulk_keeps_its_id_when_that_can_be_sent(client):
    items = [{"id": "a", "text": "\0"}, {"id": "b\ud800", "text": "\0"}, {"id": 3, "text": "\0"}]

    results = post(client, {"mentions": items}, "/link/bulk").json()["results"]

    assert [r.get("id") for r in results] == ["a", None, None]


def test_more_mentions_than_the_limit_is_413_with_the_limit(client):
    answer = problem(post(client, {"mentions": ["cold"] * 11}), 413, "limit")
    assert "max_mentions = 10" in answer["detail"]

    problem(post(client, {"mentions": ["cold"] * 51}, "/link/bulk"), 413, "limit")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_413(client, chunked):
    body = json.dumps({"mentions": ["cold"], "pad": "x" * 30_000}).encode()
    content = (body[i : i + 1000] for i in range(0, len(body), 1000)) if chunked else body

    response = client.post("/link", content=content, headers={"content-type": "application/json"})

    assert "max_body_bytes = 20000" in problem(response, 413, "limit")["detail"]


@pytest.mark.parametrize("body", ["", "{", "[]", "null", '{"mentions":["' + MARK, b"\xff\xfe", "[" * 15_000])
def test_a_body_that_is_not_such_json_is_a_clear_error(client, body):
    response = post(client, body)

    assert response.status_code in {400, 422}
    assert response.headers["content-type"] == "application/problem+json"
    assert MARK not in response.text


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": ""},
        {"content-type": "application/json", "content-encoding": "br"},
        {"content-type": "application/x-ndjson"},
    ],
)
def test_another_content_type_or_encoding_is_415(client, headers):
    body = json.dumps({"mentions": ["cold"]}).encode()

    problem(client.post("/link", content=body, headers=headers), 415, "unsupported_media_type")


@pytest.mark.parametrize("path", ["/link", "/link/bulk"])
def test_a_body_may_be_gzipped_and_so_may_the_answer(client, path):
    body = json.dumps({"mentions": ["cold", "asthma"]}).encode()
    plain = post(client, body, path, **{"accept-encoding": "identity"})

    packed = post(client, gzip.compress(body), path, **{"content-encoding": "gzip", "accept-encoding": "gzip"})

    assert packed.json() == plain.json()
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert "content-encoding" not in plain.headers


@pytest.mark.parametrize("path", ["/link", "/link/bulk"])
def test_a_small_body_that_unpacks_to_a_large_one_is_413(client, path):
    bomb = gzip.compress(b'{"mentions":["' + b"a" * 15_000_000)
    tracemalloc.start()

    response = post(client, bomb, path, **{"content-encoding": "gzip"})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(bomb) < 20_000
    assert "max_body_bytes = 20000" in problem(response, 413, "limit")["detail"]
    assert peak < 5_000_000


@pytest.mark.parametrize("body", [b"not gzip", gzip.compress(b'{"mentions":["cold"]}')[:-9]])
@pytest.mark.parametrize("path", ["/link", "/link/bulk"])
def test_what_is_called_gzip_and_is_not_is_400(client, path, body):
    problem(post(client, body, path, **{"content-encoding": "gzip"}), 400, "malformed_body")


def test_options_of_a_json_bulk_may_be_in_the_query_string_and_those_of_the_body_come_first(client):
    sent = {"mentions": ["cold"]}

    (one,) = post(client, sent, "/link/bulk?top_k=1").json()["results"]
    (two,) = post(client, sent | {"top_k": 2}, "/link/bulk?top_k=1").json()["results"]

    assert (len(one["candidates"]), len(two["candidates"])) == (1, 2)


def test_unknown_paths_and_methods_are_problems_too(client):
    problem(client.get("/nowhere"), 404, "not_found")
    answer = client.get("/link")
    problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"


def test_mention_text_reaches_no_log(client, caplog, capfd):
    caplog.set_level(logging.DEBUG)

    for mentions in ([MARK], [{"text": MARK, "context": MARK}], [MARK + "\0"], [MARK + "\ud800"], [{"txt": MARK}]):
        for path in ("/link", "/link/bulk"):
            post(client, {"mentions": mentions}, path)
    post(client, '{"mentions":["' + MARK)

    printed = capfd.readouterr()
    assert MARK not in caplog.text + printed.out + printed.err


def test_what_nobody_foresaw_is_a_bare_500_and_logged_without_its_message(build, tmp_path, capfd):
    app = create_app(Settings(data_dir=tmp_path), build=build)

    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError(MARK)

    with TestClient(app) as client:
        response = client.get("/broken")

    problem(response, 500, "internal")
    printed = capfd.readouterr()
    assert "RuntimeError" in printed.out + printed.err
    assert MARK not in response.text + printed.out + printed.err
