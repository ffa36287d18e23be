"""What a mention says is nowhere but in the answer to whoever sent it."""

import io
import json
import logging
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest
import structlog
from sqlalchemy import MetaData, select
from starlette.testclient import TestClient

from app.main import create_app
from app.worker import run_next
from medlink.kb.keys import Keys
from medlink.linking.linker import Linker

MARKER = "zyzzogeton"
# Whole, in pieces, as the linker reads it and as JSON spells it.
TRACES = (MARKER, MARKER.upper(), "zyzzo", "7a797a7a6f")


@pytest.fixture
def served(jobs, settings, engine, tmp_path):
    """A service with a build, and the headers of its administrator."""
    jobs.request("rebuild", by="ann", parameters={})
    run_next(settings, engine)
    mentions = tmp_path / "mentions.csv"
    mentions.write_text(f"id,text\nn1,{MARKER} asthma\n")
    settings = settings.model_copy(update={"drift_mentions": mentions, "rebuild_in_service": False})
    return create_app(settings), {"X-API-Key": Keys(engine).create("boss", ["admin"])[1]}


def good_requests(client: TestClient) -> list[object]:
    context = f"He has {MARKER} (ZZ). ZZ hurts."
    mentions = [MARKER, {"id": "n1", "text": "ZZ", "context": context, "start": 22, "end": 24}, f"{MARKER} and asthma"]
    body = {"mentions": mentions, "explain": True}
    return [client.post("/link", json=body), client.post("/link/bulk", json={**body, "channels": ["lexical"]})]


def bad_requests(client: TestClient, admin: dict[str, str]) -> list[object]:
    as_json = {"Content-Type": "application/json"}
    correction = {"action": "pin_mention", "concept": MARKER, "text": MARKER, "why": "x"}
    return [
        client.post("/link", json={"mentions": [MARKER + "\0"]}),
        client.post("/link", json={"mentions": [MARKER * 1000]}),
        client.post("/link", json={"mentions": [{"text": MARKER, "start": 5, "end": 1}]}),
        client.post("/link", json={"mentions": [{"text": MARKER, MARKER: 1}]}),
        client.post("/link", json={"mentions": MARKER}),
        client.post("/link", json={MARKER: MARKER}),
        client.post("/link", json=[MARKER]),
        client.post("/link", content=f'{{"mentions": ["{MARKER}\\ud800"]}}', headers=as_json),
        client.post("/link", content=f'{{"mentions": ["{MARKER}', headers=as_json),
        client.post("/link", content=MARKER.encode("utf-16"), headers=as_json),
        client.post("/link", content=MARKER, headers={"Content-Type": "text/plain"}),
        client.post("/link", content=MARKER * 1_000_000, headers=as_json),
        client.post("/admin/curation", json=correction, headers=admin),
        client.post("/admin/curation", json={**correction, "action": MARKER}, headers=admin),
        client.post("/admin/curation", json={**correction, "concept": "C0004096", "why": " "}, headers=admin),
        client.post("/admin/index/rebuild", json={"recipe": MARKER}, headers=admin),
        client.post("/admin/index/rebuild", json={MARKER: MARKER}, headers=admin),
        client.post("/link", json={"mentions": [MARKER]}, headers={"X-API-Key": MARKER}),
    ]


def failing_request(client: TestClient, monkeypatch) -> object:
    """Link where something that nobody foresaw goes wrong, with the mention in its message."""

    def fail(self, mentions, options):
        raise KeyError(mentions[0].text)

    monkeypatch.setattr(Linker, "link", fail)
    return client.post("/link", json={"mentions": [MARKER]})


def test_a_mention_is_in_no_log_error_metric_job_or_table(served, engine, monkeypatch, caplog):
    app, admin = served
    caplog.set_level(logging.DEBUG)
    written = io.StringIO()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(written))
    with redirect_stdout(written), redirect_stderr(written), TestClient(app, raise_server_exceptions=False) as client:
        while client.get("/readyz").status_code != 200:
            pass
        good = good_requests(client)
        bad = bad_requests(client, admin)
        paths = ["/livez", "/readyz", "/info", "/metrics", "/admin/jobs", "/admin/index", "/admin/curation"]
        others = [client.get(path, headers=admin) for path in paths]
        bad.append(failing_request(client, monkeypatch))
    structlog.reset_defaults()

    assert [answer.status_code for answer in good] == [200, 200]
    assert MARKER in good[0].text
    assert all(400 <= answer.status_code < 600 for answer in bad)
    assert bad[-1].status_code == 500
    seen = {
        "errors": [answer.text for answer in bad],
        "headers": [repr(answer.headers) for answer in (*good, *bad)],
        "other answers": [answer.text for answer in others],
        "logs": [written.getvalue(), caplog.text],
        "tables": [stored(engine)],
    }
    for where, texts in seen.items():
        assert [trace for trace in TRACES for text in texts if trace in text] == [], where
    assert "unexpected_error" in written.getvalue()


def stored(engine) -> str:
    """Return all that the store holds, but keys and names."""
    tables = MetaData()
    tables.reflect(engine)
    with engine.connect() as connection:
        rows = {name: list(map(repr, connection.execute(select(table)))) for name, table in tables.tables.items()}
    assert rows["job"]
    return json.dumps(rows)


def test_a_job_that_fails_says_why_without_a_name(jobs, settings, engine, monkeypatch):
    def fail(*arguments):
        raise ValueError(MARKER)

    monkeypatch.setattr("index.build._write_concepts", fail)
    job = jobs.request("rebuild", by="ann", parameters={})
    with structlog.testing.capture_logs() as logs:
        run_next(settings, engine)

    failed = jobs.job(job.id)
    assert (failed.state, failed.error.split(":")[0]) == ("failed", "ValueError at test_no_text.py")
    assert MARKER not in repr((failed, logs, sys.exc_info()))
