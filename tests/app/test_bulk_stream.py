"""NDJSON through `POST /link/bulk`: what comes out for what goes in."""

import gzip
import json

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings

NDJSON = {"content-type": "application/x-ndjson"}
MARK = "Zyxwv Qponm"


@pytest.fixture(scope="module")
def client(build, tmp_path_factory):
    limits = {"max_mention_chars": 100, "max_line_bytes": 2000, "max_body_bytes": 20_000, "max_together": 7}
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), **limits)
    with TestClient(create_app(settings, build=build)) as client:
        yield client


def stream(client, lines, query="", **headers):
    """Return the header, the lines that follow and the response."""
    if not isinstance(lines, bytes):
        lines = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    response = client.post(f"/link/bulk{query}", content=lines, headers=NDJSON | headers)
    assert response.status_code == 200, response.text
    head, *answers = map(json.loads, response.text.splitlines())
    return head, answers, response


def computed(client):
    return client.app.state.linking.queue.counts.mentions


def test_a_header_comes_first_and_then_a_line_an_item_in_order_as_json_bulk_answers(client, build):
    items = ["cold", {"text": "asthma", "id": "7"}, "", "heart attack", {"text": "\0"}, "cold", 5, {"text": "Croé 🫀"}]
    items = items * 5

    head, answers, response = stream(client, items)

    assert head == {"index": {"id": build.id, "curation_revision": 0, "channels": ["exact", "dense", "lexical"]}}
    assert response.headers["content-type"] == "application/x-ndjson"
    body = json.dumps({"mentions": items})
    asked = client.post("/link/bulk", content=body, headers={"content-type": "application/json"})
    assert answers == asked.json()["results"]
    assert [answer["item"] for answer in answers if "item" in answer] == [i for i in range(40) if i % 8 in (4, 6)]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (MARK.encode(), "invalid_json"),
        (b'{"text": "' + MARK.encode(), "invalid_json"),
        (b'"' + MARK.encode() + b'\xff"', "invalid_json"),
        (b"[" * 1500, "invalid_json"),
        (b"01", "invalid_json"),
        (b'"' + MARK.encode() * 1000 + b'"', "limit"),
        (json.dumps(MARK * 20).encode(), "mention"),
        (b'"\\u0000' + MARK.encode() + b'"', "mention"),
        (b'"\\ud800' + MARK.encode() + b'"', "mention"),
        (b'{"text":"' + MARK.encode() + b'","start":9,"end":3}', "mention"),
        (b'{"txt":"' + MARK.encode() + b'"}', "invalid_mention"),
        (b"7", "invalid_mention"),
        (b"null", "invalid_mention"),
    ],
)
def test_a_bad_line_costs_only_itself(client, line, code):
    _, answers, response = stream(client, b'"cold"\n' + line + b'\n"asthma"\n')

    first, second, third = answers
    assert (first["status"], third["status"]) == ("ambiguous", "linked")
    assert (second["item"], second["error"]["code"]) == (1, code)
    assert MARK not in response.text


@pytest.mark.parametrize(
    "body",
    [b'"cold"\n"asthma"', b'\n"cold"\n\n  \n"asthma"\n\n', b'"cold"\r\n"asthma"\r\n', b'\xef\xbb\xbf"cold"\n"asthma"'],
    ids=["no last line feed", "blank lines", "CRLF", "byte order mark"],
)
def test_lines_may_end_as_they_do(client, body):
    _, answers, _ = stream(client, body)

    assert [answer["text"] for answer in answers] == ["cold", "asthma"]


def test_no_lines_are_a_header_alone(client, build):
    head, answers, _ = stream(client, b"")

    assert (head["index"]["id"], answers) == (build.id, [])


def test_options_are_in_the_query_string(client):
    _, (one,), _ = stream(client, ["cold"], "?top_k=1&include=codes&explain=true")
    _, (comma,), _ = stream(client, ["cold"], "?sabs=MESH,MONDO&semantic_types=T047")
    _, (repeated,), _ = stream(client, ["cold"], "?sabs=MESH&sabs=MONDO&semantic_types=T047")

    assert len(one["candidates"]) == 1
    assert {"codes", "explanation"} <= set(one["candidates"][0])
    assert "semantic_types" not in one["candidates"][0]
    assert comma == repeated
    assert comma["candidates"][0]["cui"] == "MESH:D003139"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("?top_k=0", "invalid_request"),
        ("?topk=3", "invalid_request"),
        ("?channels=fuzzy", "invalid_request"),
        ("?sabs=MSHH", "unknown_value"),
        ("?semantic_types=T999", "unknown_value"),
        ("?threshold=0.3", "not_calibrated"),
    ],
)
def test_a_wrong_option_refuses_the_stream_before_it_begins(client, query, code):
    response = client.post(f"/link/bulk{query}", content=b'"cold"\n', headers=NDJSON)

    assert (response.status_code, response.json()["code"]) == (422, code)


def test_equal_items_are_computed_once_whatever_their_ids(client):
    sent = [{"text": f"rare cold {i % 9}", "id": str(i)} for i in range(300)]
    before = computed(client)

    _, answers, _ = stream(client, sent)
    once = computed(client) - before
    stream(client, sent)

    assert [answer["id"] for answer in answers] == [item["id"] for item in sent]
    assert answers[0] | {"id": "9"} == answers[9]
    assert once == computed(client) - before == 9


def test_the_same_text_is_computed_anew_for_another_context_or_option(client):
    text = "odd cold"
    before = computed(client)

    stream(
        client, [text, {"text": text, "context": "an odd cold"}, {"text": text, "context": "an odd cold", "start": 3}]
    )
    stream(client, [text], "?top_k=2")
    stream(client, [text], "?explain=true")

    assert computed(client) - before == 5


def test_gzip_goes_both_ways_and_files_may_follow_one_another(client):
    texts = ["cold", "asthma", "itching", "lung disease"]
    lines = [json.dumps(text).encode() + b"\n" for text in texts]
    packed = gzip.compress(lines[0] + lines[1][:3]) + gzip.compress(lines[1][3:] + b"".join(lines[2:]))

    _, plain, _ = stream(client, texts, **{"accept-encoding": "identity"})
    _, answers, response = stream(client, packed, **{"content-encoding": "gzip", "accept-encoding": "gzip"})

    assert response.headers["content-encoding"] == "gzip"
    assert answers == plain


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b'"cold"\n', {"content-encoding": "gzip"}, 400, "malformed_body"),
        (b'"cold"\n', {"content-encoding": "br"}, 415, "unsupported_media_type"),
        (b"x" * 30_000, {}, 413, "limit"),
        (b"\n" * 30_000, {}, 413, "limit"),
    ],
)
def test_a_body_that_is_no_stream_of_lines_is_refused(client, content, headers, status, code):
    response = client.post("/link/bulk", content=content, headers=NDJSON | headers)

    assert (response.status_code, response.json()["code"]) == (status, code)


def test_what_breaks_off_is_said_in_a_last_line_without_an_item(client):
    packed = gzip.compress(b'"cold"\n"asthma"\n' + json.dumps("x" * 90).encode())[:-12]

    _, answers, _ = stream(client, packed, **{"content-encoding": "gzip"})

    first, second, last = answers
    assert (first["text"], second["text"]) == ("cold", "asthma")
    assert last["error"]["code"] == "malformed_body"
    assert (last["answered"], "item" in last) == (2, False)


def test_a_stream_that_never_ends_a_line_is_ended(client):
    endless = gzip.compress(b'"cold"\n' + b"a" * 40_000_000)

    _, answers, _ = stream(client, endless, **{"content-encoding": "gzip"})

    assert [answers[0]["text"], answers[1]["error"]["code"], len(answers)] == ["cold", "limit", 2]


def test_a_mention_that_breaks_the_linker_costs_only_itself(build, tmp_path, monkeypatch, capfd):
    app = create_app(Settings(data_dir=tmp_path), build=build)
    link = type(build.linker).link

    def breaks(self, mentions, options):
        if any(mention.text == MARK for mention in mentions):
            raise RuntimeError(MARK)
        return link(self, mentions, options)

    monkeypatch.setattr(type(build.linker), "link", breaks)
    with TestClient(app, raise_server_exceptions=False) as client:
        _, answers, response = stream(client, ["cold", {"text": MARK, "id": "7"}, "asthma"])
        json_bulk = client.post("/link/bulk", json={"mentions": ["cold", {"text": MARK, "id": "7"}, "asthma"]})
        single = client.post("/link", json={"mentions": [MARK]})

    assert [answer.get("status") for answer in answers] == ["ambiguous", None, "linked"]
    assert (answers[1]["item"], answers[1]["id"], answers[1]["error"]["code"]) == (1, "7", "internal")
    assert json_bulk.json()["results"] == answers
    assert (single.status_code, single.json()["code"]) == (500, "internal")
    printed = capfd.readouterr()
    assert MARK not in response.text + single.text + printed.out + printed.err
    assert "RuntimeError" in printed.out + printed.err
