"""`medlink eval` runs what the install can run, and says what the rest needs."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from medlink.cli import app
from medlink.cli.evaluate import _chosen


@pytest.fixture
def without_scikit_learn(monkeypatch):
    """As on the base install, which serves and does not train."""
    monkeypatch.setitem(sys.modules, "sklearn", None)


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Scores a corpus of one mention against a dictionary that has it."""
    (tmp_path / "ncbi-disease").mkdir()
    document = "1|t|A cough.\n1|a|\n1\t2\t7\tcough\tSpecificDisease\tD003371\n\n"
    for split in ("train", "develop"):
        (tmp_path / "ncbi-disease" / f"NCBI{split}set_corpus.txt").write_text(document)
    (tmp_path / "names.csv").write_text("id,name,sab\nMESH:D003371,Cough,MESH\n")
    return ["eval", "--corpus=ncbi-disease", f"--data={tmp_path}", f"--names={tmp_path / 'names.csv'}"]


def test_the_exact_baseline_needs_neither_index_nor_scikit_learn(command, tmp_path, without_scikit_learn):
    result = CliRunner().invoke(app, [*command, "--system=baseline-exact", f"--output={tmp_path / 'rows.json'}"])

    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "rows.json").read_text())["rows"][0]["acc@1"] == 100


def test_a_baseline_that_cannot_run_says_what_to_install(command, without_scikit_learn):
    result = CliRunner().invoke(app, [*command, "--system=baseline-tfidf"])

    assert result.exit_code == 2
    assert "needs scikit-learn" in result.output


def test_systems_left_to_choose_are_those_that_can_run(without_scikit_learn):
    assert _chosen(None, Path("names.csv")) == ["exact", "dense", "exact+dense", "baseline-exact"]
