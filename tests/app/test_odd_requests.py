"""What a service is fed sooner or later: both ways of asking answer it, or refuse it by the same rule."""

import gzip
import json
import zlib

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from medlink.kb.database import migrate, open_engine
from medlink.kb.keys import Keys

BOTH = pytest.mark.parametrize("path", ["/link", "/link/bulk"])
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def roomy(build, tmp_path_factory):
    """The service, with room for long texts."""
    limits = {"max_mention_chars": 10_000, "max_context_chars": 20_000}
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), **limits)
    with TestClient(create_app(settings, build=build)) as client:
        yield client


def post(client, path, mentions, **options):
    # Not the client's own `json`, which refuses what JSON can spell.
    return client.post(path, content=json.dumps({"mentions": mentions, **options}), headers=JSON)


@BOTH
@pytest.mark.parametrize(
    "text", ["", " ", "\t\n\r\u00a0\u3000", "\u200b\ufeff", "#", "\x07\x1b\x7f", "🫀", "\u202e\u2066"]
)
def test_a_text_of_nothing_is_nil(roomy, path, text):
    (result,) = post(roomy, path, [text]).json()["results"]

    assert (result["text"], result["status"], result["reason"]) == (text, "nil", "empty_after_normalisation")


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        "x",
        "7",
        "1234567890",
        "a" * 10_000,
        "asthma " * 1_400,
        "e\u0301" * 5_000,
        "ﷺ" * 1_000,
        "\x1b[31masth\x01ma",
        "<b>asthma</b>",
        "<script>alert(1)</script>",
        "&lt;asthma&gt;",
        "'; DROP TABLE name; --",
        '" OR "1"="1',
        "name:* AND NOT (a NEAR/2 b)",
        "%_[a-z]*?{}^$\\",
        "{{7*7}} ${7*7}",
        "../../etc/passwd",
        "Croé",
        "m²",
        "ضيق التنفس",
        "\u202eamhtsa\u202c",
        "👩‍⚕️ asthma",
        "and and and or or , , /",
        "((((((((((asthma))))))))))",
    ],
)
def test_odd_text_is_answered_and_comes_back_as_it_was_sent(roomy, path, text):
    response = post(roomy, path, [text, {"text": text, "context": f"{text} ({text[:5]})"}], explain=True)

    assert response.status_code == 200
    assert [result["text"] for result in response.json()["results"]] == [text, text]
    assert all(result["status"] in {"linked", "ambiguous", "nil"} for result in response.json()["results"])


@BOTH
def test_a_text_over_the_limit_is_refused(roomy, path):
    response = post(roomy, path, ["asthma", "a" * 1_000_000])

    if path == "/link":
        assert (response.status_code, response.json()["item"]) == (422, 1)
    else:
        first, second = response.json()["results"]
        assert (first["status"], second["error"]["code"]) == ("linked", "mention")


@BOTH
@pytest.mark.parametrize("top_k", [0, -1, 10**6, 101, 1.5, "five", "5", True, None, []])
def test_a_top_k_that_is_none_is_refused(roomy, path, top_k):
    response = post(roomy, path, ["asthma"], top_k=top_k)

    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")


@BOTH
@pytest.mark.parametrize("option", [{"explain": 0}, {"explain": "yes"}, {"composites": 1.0}, {"threshold": "0.5"}])
def test_an_option_of_another_type_is_refused(roomy, path, option):
    response = post(roomy, path, ["asthma"], **option)

    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")


@BOTH
def test_a_number_that_is_whole_may_be_written_with_a_point(roomy, path):
    mention = {"text": "asthma", "context": "asthma", "start": 0.0, "end": 6.0}

    (result,) = post(roomy, path, [mention], top_k=1.0).json()["results"]

    assert len(result["candidates"]) == 1


@pytest.mark.parametrize("offset", [True, "1", 0.5])
def test_an_offset_of_another_type_is_refused(roomy, offset):
    mention = {"text": "asthma", "end": offset}

    assert post(roomy, "/link", [mention]).status_code == 422
    (result,) = post(roomy, "/link/bulk", [mention]).json()["results"]
    assert result["error"]["code"] == "invalid_mention"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("include=", 200),
        ("include=codes,,types&include=", 200),
        ("include=nothing", 422),
        ("channels=exact,dense", 200),
        ("channels=", 422),
        ("channels=exact,", 422),
        ("top_k=3&explain=true", 200),
    ],
)
def test_options_of_a_query_are_what_the_description_says(roomy, query, status):
    assert roomy.post(f"/link/bulk?{query}", json={"mentions": ["asthma"]}).status_code == status


@BOTH
@pytest.mark.parametrize("field", [{"semantic_types": ["T999"]}, {"sabs": ["MSHH"]}, {"semantic_types": ["t047"]}])
def test_an_unknown_filter_value_is_422_with_the_valid_ones(roomy, path, field):
    response = post(roomy, path, ["asthma"], **field)

    assert (response.status_code, response.json()["code"]) == (422, "unknown_value")
    assert "valid: " in response.json()["detail"]


@BOTH
@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "multipart/form-data; boundary=x"},
        {"content-type": ""},
        JSON | {"content-encoding": "deflate"},
        JSON | {"content-encoding": "gzip, gzip"},
    ],
)
def test_another_content_type_or_encoding_is_415(roomy, path, headers):
    pack = {"deflate": zlib.compress}.get(headers.get("content-encoding", ""), bytes)

    response = roomy.post(path, content=pack(b'{"mentions":["asthma"]}'), headers=headers)

    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "APPLICATION/JSON"])
def test_json_by_another_spelling_of_its_type_is_taken(roomy, content_type):
    assert roomy.post("/link", content=b'{"mentions":["asthma"]}', headers={"content-type": content_type}).is_success


def test_compressed_bytes_called_json_are_no_json(roomy):
    response = roomy.post("/link/bulk", content=gzip.compress(b'{"mentions":["asthma"]}'), headers=JSON)

    assert response.status_code in {400, 422}
    assert response.headers["content-type"] == "application/problem+json"


def test_five_thousand_mentions_and_duplicates_keep_their_places(roomy):
    texts = [("asthma", "cold", "", "itching")[i % 4] for i in range(5_000)]

    results = post(roomy, "/link/bulk", texts).json()["results"]

    assert [result["text"] for result in results] == texts
    assert results[:4] * 1_250 == results


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/link", "POST"),
        ("/concepts/C0004096", "GET"),
        ("/admin/curation", "GET, POST"),
        ("/admin/jobs/abc", "DELETE, GET"),
        ("/openapi.json", "GET, HEAD"),
    ],
)
def test_a_method_that_is_none_of_a_path_is_405_with_all_that_are(path, methods, build, tmp_path):
    settings = Settings(data_dir=tmp_path)
    engine = open_engine(settings.database_url)
    migrate(engine)
    key = {"X-API-Key": Keys(engine).create("boss", ["admin"])[1]}
    with TestClient(create_app(settings, build=build)) as client:
        refused = client.request("PATCH", path, headers=key)

    assert (refused.status_code, refused.json()["code"]) == (405, "method_not_allowed")
    assert refused.headers["allow"] == methods
