"""From a terminology file to an answer over HTTP, with the real commands in real processes."""

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import httpx
import pytest

from medlink.client import Client

RELEASE = [
    {"source": {"sab": "OURS", "name": "Our own words", "version": "1"}},
    {
        "id": "C0027051",
        "names": [{"text": "Myocardial infarction", "sab": "OURS"}, {"text": "heart attack", "sab": "OURS"}],
        "semantic_types": [{"tui": "T047", "name": "Disease or Syndrome"}],
        "codes": [{"sab": "MESH", "code": "D009203"}],
    },
    {"id": "OURS:1", "names": [{"text": "Itching", "sab": "OURS"}]},
    {"retired": "C0155626", "successor": "C0027051", "relation": "SY", "release": "2024"},
]


def run(*command: str, environment: dict[str, str], fails: bool = False) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "medlink.cli", *command], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def environment(request, tmp_path_factory, encoder_dir) -> Iterator[dict[str, str]]:
    """A loaded store and an active index build, made by the commands."""
    home = tmp_path_factory.mktemp("home")
    (home / "ours.jsonl").write_text("".join(json.dumps(line) + "\n" for line in RELEASE), encoding="utf-8")
    environment = {**os.environ, "MEDLINK_DATA_DIR": str(home / "var"), "MEDLINK_ENCODER_DIR": str(encoder_dir)}
    database = request.getfixturevalue("fresh_database")() if request.param == "postgresql" else nullcontext("")
    with database as url:
        environment["MEDLINK_DATABASE_URL"] = url
        run("kb", "load", str(home / "ours.jsonl"), environment=environment)
        run("index", "build", environment=environment)
        yield environment


@pytest.fixture(scope="module")
def url(environment) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "medlink.cli", "serve"], env={**environment, "MEDLINK_PORT": str(port)}
    )
    address = f"http://127.0.0.1:{port}"
    for _ in range(300):
        time.sleep(0.1)
        try:
            if httpx.get(f"{address}/readyz").status_code == 200:
                break
        except httpx.ConnectError:
            assert server.poll() is None, "the server ended"
    yield address
    server.send_signal(signal.SIGTERM)
    assert server.wait(20) in {0, -signal.SIGTERM, 128 + signal.SIGTERM}


def test_a_mention_is_linked_over_http(url):
    answer = httpx.post(f"{url}/link", json={"mentions": ["heart attack"]}).json()

    best = answer["results"][0]["candidates"][0]
    assert (best["cui"], best["matched_name"], best["codes"]) == (
        "C0027051",
        "heart attack",
        [{"sab": "MESH", "code": "D009203"}],
    )
    assert httpx.get(f"{url}/concepts/C0155626").json()["retired"]["successors"][0]["cui"] == "C0027051"
    assert httpx.get(f"{url}/docs").status_code == 200


def test_five_thousand_mentions_go_through_bulk_in_order(url):
    texts = [f"itching {i % 100}" for i in range(5000)]

    with Client(url) as client:
        results = client.link_bulk(texts)["results"]

    assert [r["text"] for r in results] == texts


def test_the_shell_gives_the_answers_of_the_service(url, environment):
    over_http = httpx.post(f"{url}/link", json={"mentions": ["hart attack", "#"]}).json()["results"]

    in_shell = run("link", "hart attack", "#", "--json", environment=environment)

    assert json.loads("[" + in_shell.replace("}\n{", "},{") + "]") == over_http


def test_the_shell_says_why_on_request(environment):
    table = " ".join(run("link", "heart atacks", "--explain", environment={**environment, "COLUMNS": "400"}).split())
    answer = json.loads(run("link", "Heart attack", "--explain", "--json", environment=environment))

    assert "not the same words" in table
    assert answer["candidates"][0]["explanation"]["steps"] == ["case"]


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_table_keeps_its_columns_and_gains_ours(environment, tmp_path, ending):
    source, target = tmp_path / f"mentions.{ending}", tmp_path / f"linked.{ending}"
    delimiter = {"csv": ",", "tsv": "\t"}[ending]
    with source.open("w", newline="", encoding="utf-8") as handle:
        rows = [["id", "term", "status"], ["1", "heart attack, acute", "mine"], ["2", "", "mine"], ["3", "Müller", ""]]
        csv.writer(handle, delimiter=delimiter).writerows(rows)

    run("link", "--input", str(source), "--column", "term", "--output", str(target), environment=environment)

    with target.open(newline="", encoding="utf-8") as handle:
        first, second, third = csv.DictReader(handle, delimiter=delimiter)
    assert (first["id"], first["term"], first["status"]) == ("1", "heart attack, acute", "mine")
    assert (first["cui"], first["curie"], first["medlink_status"]) == ("C0027051", "umls:C0027051", "linked")
    assert (second["cui"], second["reason"]) == ("", "empty_after_normalisation")
    assert third["term"] == "Müller"


def test_json_lines_get_the_whole_result(environment, tmp_path):
    source, target = tmp_path / "mentions.jsonl", tmp_path / "linked.jsonl"
    source.write_text('{"text": "heart attack", "n": 1}\n\n{"text": "\\u0000"}\n', encoding="utf-8")

    run("link", "--input", str(source), "--output", str(target), environment=environment)

    first, second = (json.loads(line) for line in target.read_text(encoding="utf-8").splitlines())
    assert (first["n"], first["result"]["candidates"][0]["cui"]) == (1, "C0027051")
    assert second["result"]["error"]["code"] == "mention"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", "term\nx\n", "none of the 1 columns is called 'text'"),
        ("a.csv", "text,b\nx\n", "a.csv:2: 1 columns, the header has 2"),
        ("a.csv", b"text\n\xff\n", "UTF-8"),
        ("a.jsonl", '{"text": "x"}\n{', "a.jsonl:2: not JSON"),
        ("a.jsonl", "[]", "a.jsonl:1: not a JSON object"),
        ("a.jsonl", '{"term": 1}', "no text under 'text'"),
        ("a.xlsx", "", "unknown file format '.xlsx'; valid: .csv, .tsv, .jsonl"),
        ("a.csv", None, "no such file"),
    ],
)
def test_a_bad_file_is_a_clear_error_and_writes_nothing(environment, tmp_path, name, content, says):
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    files = ("--input", str(tmp_path / name), "--output", str(tmp_path / "out.csv"))
    said = run("link", *files, environment=environment, fails=True)

    assert says in said.replace("\n", " ")
    assert "Traceback" not in said
    assert {p.name for p in tmp_path.iterdir()} <= {name}


def test_an_index_build_is_not_made_twice_for_the_same_store(environment):
    assert "up to date" in run("index", "build", "--if-stale", environment=environment)
    assert "sound" in run("index", "verify", environment=environment)
    assert "active" in run("index", "list", environment=environment)


def test_errors_of_the_command_line_are_one_line(environment, tmp_path):
    said = run("index", "activate", "nonsense", environment=environment, fails=True)

    assert said.startswith("medlink: unknown index build 'nonsense'; valid: ")
    assert len(said.splitlines()) == 1
    assert run("link", "x", environment={**environment, "MEDLINK_PORT": "many"}, fails=True).startswith(
        "medlink: MEDLINK_PORT: "
    )
    nothing = {**environment, "MEDLINK_DATA_DIR": str(Path(tmp_path) / "none"), "MEDLINK_DATABASE_URL": ""}
    assert "medlink kb load" in run("link", "x", environment=nothing, fails=True)
