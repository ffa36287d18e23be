"""A service whose database user may only read serves and follows, and says what it may not do."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import structlog
from sqlalchemy import make_url
from starlette.testclient import TestClient

from app.main import create_app
from app.rebuilds import Rebuilds
from app.serving import ActiveBuilds
from app.worker import run_next
from medlink.errors import StoreError
from medlink.kb.database import open_engine

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def reader_url(database_url, engine) -> Iterator[str]:
    """URL of the same store for a user made as the documentation says, or with which SQLite writes nothing."""
    url = make_url(database_url)
    if url.get_backend_name() == "sqlite":
        yield f"sqlite:///file:{url.database}?mode=ro&uri=true"
        return
    (statements,) = re.findall("```sql\n(.*?)```", (ROOT / "docs" / "operations.md").read_text(), re.DOTALL)
    name = f"reader_{url.database}"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(statements.replace("medlink_reader", name))
    yield url.set(username=name).render_as_string(hide_password=False)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


@pytest.fixture
def reading(settings, reader_url):
    return settings.model_copy(update={"database_url": reader_url})


def follows(client: TestClient, build_id: str) -> bool:
    until = time.monotonic() + 60
    while client.get("/readyz").json().get("index") != build_id:
        assert time.monotonic() < until, client.get("/readyz").text
        time.sleep(0.05)
    return client.get("/readyz").json()["status"] == "ready"


CORRECTION = {"action": "block_concept", "concept": "C0004096", "why": "x"}


def test_it_links_and_follows_and_refuses_what_would_write(reading, admin, make, builds, jobs):
    first = make()
    with TestClient(create_app(reading), headers=admin) as client:
        well = [follows(client, first)]
        second = make()
        well.append(follows(client, second))
        read = [client.get(path).status_code for path in ("/admin/index", "/admin/jobs", "/admin/curation")]
        linked = client.post("/link", json={"mentions": ["asthma"]}).status_code
        refused = [
            client.post("/admin/index/rebuild"),
            client.post("/admin/curation", json=CORRECTION),
            client.post(f"/admin/index/{first}/activate"),
            client.post("/admin/index/rollback"),
            client.delete(f"/admin/index/{first}"),
        ]

    assert well == [True, True]
    assert (read, linked) == ([200, 200, 200], 200)
    for answer in refused:
        assert (answer.status_code, answer.json()["code"]) == (503, "store_read_only")
    assert builds.active_build().build_id == second
    assert (reading.builds_dir / first).is_dir()
    assert len(jobs.jobs()) == 2


def test_what_a_dead_worker_left_waits_in_silence_for_a_worker_that_may_write(reading, settings, start, jobs, engine):
    job_id = jobs.request("rebuild", by="ann", parameters={}).id
    killed = start(hold="encode")
    killed.kill()
    killed.wait()
    builds = ActiveBuilds(reading)

    with structlog.testing.capture_logs() as logs:
        Rebuilds(reading, builds).look()
    builds.close()
    before = jobs.job(job_id).state
    run_next(settings, engine)

    assert (logs, before) == ([], "running")
    assert jobs.job(job_id).state == "failed"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_directory_that_is_not_there_is_not_made_for_a_store_that_is_only_read(reader_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(StoreError, match="SQLite must be able to write the file and its directory"):
        open_engine(reader_url.replace("medlink.sqlite", "nowhere/medlink.sqlite"))

    assert not list(tmp_path.glob("**/nowhere"))
    assert not (tmp_path / "file:").exists()
