"""Two builds are compared by the mentions of a file, from the shell and over HTTP, and no text comes back."""

import json
import os
import subprocess
import sys

import pytest
from starlette.testclient import TestClient

from app.drift import measure_drift
from app.main import create_app
from app.worker import run_next
from medlink.cli.mention_files import read_mentions
from medlink.kb.keys import Keys


@pytest.fixture
def two(jobs, settings, engine, load_names) -> tuple[str, str]:
    """Two builds, the later of which lost a concept and gained a name."""
    made = []
    for names in (None, "id,name,sab\nC0004096,asthma,OURS\nC0004096,the wheezes,OURS\n"):
        if names:
            load_names(names)
        job = jobs.request("rebuild", by="ann", parameters={})
        run_next(settings, engine)
        made.append(jobs.job(job.id).build_id)
    return made[0], made[1]


@pytest.fixture
def mentions(tmp_path):
    path = tmp_path / "mentions.csv"
    path.write_text("id,text\nn1,asthma\nn2,common cold\nn3,the wheezes\nn4,nul\0\n")
    return path


def test_what_changed_is_counted_by_reason(two, settings, engine, mentions):
    drift = measure_drift(settings, engine, *two, read_mentions(mentions, "text"))

    assert (drift.mentions, drift.refused) == (4, 1)
    assert [(c.item, c.id, c.why) for c in drift.changes if c.id == "n2"] == [(1, "n2", "concept_gone")]
    assert sum(drift.by_why.values()) == len(drift.changes)
    assert "cold" not in drift.model_dump_json()


def test_the_shell_and_the_service_say_the_same(two, settings, engine, mentions):
    admin = {"X-API-Key": Keys(engine).create("boss", ["admin"])[1]}
    settings = settings.model_copy(update={"drift_mentions": mentions})
    command = [sys.executable, "-m", "medlink.cli", "index", "diff", *two, "--input", str(mentions), "--json"]

    environment = {**os.environ, **settings.environment()}
    said = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout)
    with TestClient(create_app(settings)) as client:
        answer = client.get(f"/admin/index/{two[0]}/diff/{two[1]}", headers=admin)
        unknown = client.get(f"/admin/index/{two[0]}/diff/20200101T000000000Z", headers=admin)

    assert answer.json() == said
    assert "cold" not in answer.text
    assert unknown.status_code == 404


def test_without_a_file_the_service_says_what_to_set(two, settings, engine):
    admin = {"X-API-Key": Keys(engine).create("boss", ["admin"])[1]}

    with TestClient(create_app(settings)) as client:
        answer = client.get(f"/admin/index/{two[0]}/diff/{two[1]}", headers=admin)

    assert (answer.status_code, "MEDLINK_DRIFT_MENTIONS" in answer.json()["detail"]) == (409, True)


def test_a_file_that_cannot_be_read_is_said_without_a_line_of_it(two, settings, engine, tmp_path):
    admin = {"X-API-Key": Keys(engine).create("boss", ["admin"])[1]}
    (tmp_path / "bad.csv").write_text("id,words\nn1,what the patient said\n")
    settings = settings.model_copy(update={"drift_mentions": tmp_path / "bad.csv"})

    with TestClient(create_app(settings)) as client:
        answer = client.get(f"/admin/index/{two[0]}/diff/{two[1]}", headers=admin)

    assert (answer.status_code, answer.json()["code"]) == (503, "index_mismatch")
    assert "patient" not in answer.text
