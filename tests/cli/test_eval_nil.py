"""`medlink eval nil` asks the active build twice, the second time with concepts hidden."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from medlink.cli import app
from medlink.errors import UnknownValueError

WORDS = {f"MESH:D{n:06}": f"{stem}itis" for n, stem in enumerate(("gastr", "hepat", "nephr", "arthr", "derm", "rhin"))}


@pytest.fixture(scope="module")
def home(tmp_path_factory, encoder_dir) -> Path:
    """A data folder with an active build of six concepts, and beside it a corpus whose mentions are their names."""
    home = tmp_path_factory.mktemp("nil")
    (home / "ours.csv").write_text("\n".join(["id,name,sab", *(f"{id_},{w},MESH" for id_, w in WORDS.items())]) + "\n")
    folder = home / "corpora/ncbi-disease"
    folder.mkdir(parents=True)
    text = " ".join(WORDS.values())
    lines = [
        f"1\t{text.index(word)}\t{text.index(word) + len(word)}\t{word}\tDisease\t{id_.removeprefix('MESH:')}"
        for id_, word in WORDS.items()
    ]
    for split in ("train", "develop", "test"):
        (folder / f"NCBI{split}set_corpus.txt").write_text("\n".join([f"1|t|{text}", "1|a|", *lines]) + "\n\n")
    with pytest.MonkeyPatch.context() as patch:
        point_at(patch, home, encoder_dir)
        for command in (["kb", "load", str(home / "ours.csv")], ["index", "build"]):
            result = CliRunner().invoke(app, command)
            assert result.exit_code == 0, result.output
    return home


def point_at(patch: pytest.MonkeyPatch, home: Path, encoder_dir: Path) -> None:
    patch.setenv("MEDLINK_DATA_DIR", str(home / "var"))
    patch.setenv("MEDLINK_ENCODER_DIR", str(encoder_dir))
    patch.delenv("MEDLINK_DATABASE_URL", raising=False)


@pytest.fixture
def run(home, encoder_dir, monkeypatch):
    point_at(monkeypatch, home, encoder_dir)

    def command(*options: str) -> Result:
        required = ["--corpus=ncbi-disease", f"--data={home / 'corpora'}"]
        return CliRunner().invoke(app, ["eval", "nil", *required, *options])

    return command


@pytest.mark.parametrize("protocol", ["strict", "dictionary"])
def test_the_build_is_asked_whole_and_with_a_share_of_the_gold_concepts_hidden(run, tmp_path, protocol):
    output = tmp_path / "nil.json"

    result = run(f"--protocol={protocol}", "--hide-share=0.5", "--dictionary=ours", f"--output={output}")

    assert result.exit_code == 0, result.output
    facts = json.loads(output.read_text())
    assert facts["final"] is False
    whole, hidden = facts["rows"]
    assert [(row["corpus"], row["dictionary"], row["protocol"], row["system"]) for row in (whole, hidden)] == [
        ("ncbi-disease", "ours", protocol, "fused")
    ] * 2
    assert [(row["hidden"], row["hidden_concepts"], row["n"], row["n_nil"]) for row in (whole, hidden)] == [
        (0.0, 0, 6, 0),
        (50.0, 3, 6, 3),
    ]
    assert [(row["accuracy_unrefused"], row["nil_recall"] is None) for row in (whole, hidden)] == [
        (100.0, True),
        (100.0, False),
    ]
    assert not any(word in output.read_text() + result.output for word in WORDS.values())


def test_nothing_is_hidden_where_no_share_is_asked_for(run, tmp_path):
    output = tmp_path / "nil.json"

    result = run("--hide-share=0", f"--output={output}")

    assert result.exit_code == 0, result.output
    assert [row["hidden"] for row in json.loads(output.read_text())["rows"]] == [0.0]


def test_a_test_split_must_be_asked_for_and_is_said_in_the_file(run, tmp_path):
    output = tmp_path / "nil.json"

    refused = run("--split=test", f"--output={output}")
    assert refused.exit_code == 2
    assert "--final" in refused.output
    assert not output.exists()

    assert run("--split=test", "--final", f"--output={output}").exit_code == 0
    assert json.loads(output.read_text())["final"] is True


def test_another_protocol_is_refused(run):
    result = run("--protocol=paper")

    assert isinstance(result.exception, UnknownValueError)
