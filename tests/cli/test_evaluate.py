"""`medlink eval` runs what the install can run, and says what the rest needs."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from medlink.cli import app
from medlink.cli.eval_sources import CHANNELS, Selection
from medlink.encoders.hashing import HashingEncoder
from medlink.errors import UnknownValueError
from training.baselines import BASELINES

SYSTEMS = [*CHANNELS, *BASELINES]


@pytest.fixture
def without_scikit_learn(monkeypatch):
    """As on the base install, which serves and does not train."""
    monkeypatch.setitem(sys.modules, "sklearn", None)


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """A corpus with one dev mention that is a name of the dictionary and one that is a mention of the train split."""
    folder = tmp_path / "corpora"
    (folder / "ncbi-disease").mkdir(parents=True)
    train = "1|t|A hack.\n1|a|\n1\t2\t6\thack\tSpecificDisease\tD003371\n\n"
    cough, hack = (f"2\t{place}\tSpecificDisease\tD003371\n" for place in ("2\t7\tcough", "11\t15\thack"))
    dev = f"2|t|A cough, a hack.\n2|a|\n{cough}{hack}\n"
    for split, text in (("train", train), ("develop", dev), ("test", dev)):
        (folder / "ncbi-disease" / f"NCBI{split}set_corpus.txt").write_text(text)
    return folder


@pytest.fixture
def names(tmp_path: Path) -> Path:
    file = tmp_path / "names.csv"
    file.write_text("id,name,sab\nMESH:D003371,Cough,MESH\nMESH:D005334,Fever,MESH\n")
    return file


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch) -> Path:
    """A data directory and an encoder of our own."""
    HashingEncoder(dim=32).save(tmp_path / "encoder")
    monkeypatch.setenv("MEDLINK_DATA_DIR", str(tmp_path / "var"))
    monkeypatch.setenv("MEDLINK_ENCODER_DIR", str(tmp_path / "encoder"))
    monkeypatch.delenv("MEDLINK_DATABASE_URL", raising=False)
    return tmp_path / "var"


@pytest.fixture
def encoders(tmp_path: Path) -> list[str]:
    """Options for two encoders."""
    for dim in (16, 64):
        HashingEncoder(dim=dim).save(tmp_path / f"of-{dim}")
    return [f"--encoder-dir=small={tmp_path / 'of-16'}", f"--encoder-dir=large={tmp_path / 'of-64'}"]


def run(corpora: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["eval", "--corpus=ncbi-disease", f"--data={corpora}", *options])


def rows_of(result: Result, output: Path) -> list[dict]:
    assert result.exit_code == 0, result.output
    return json.loads(output.read_text())["rows"]


def said(result: Result) -> str:
    """Return what was printed, without the frame that breaks its lines."""
    return " ".join(result.output.replace("│", " ").split())


def test_the_exact_baseline_needs_neither_index_nor_scikit_learn(corpora, names, tmp_path, without_scikit_learn):
    output = tmp_path / "rows.json"

    result = run(corpora, f"--names={names}", "--system=baseline-exact", f"--output={output}")

    assert rows_of(result, output)[0]["acc@1"] == 50


def test_a_baseline_that_cannot_run_says_what_to_install(corpora, names, without_scikit_learn):
    result = run(corpora, f"--names={names}", "--system=baseline-tfidf")

    assert result.exit_code == 2
    assert "needs scikit-learn" in said(result)


def test_encoders_stand_beside_the_baselines_without_an_index_build(corpora, names, encoders, tmp_path):
    output = tmp_path / "rows.json"

    result = run(corpora, f"--names={names}", *encoders, f"--output={output}")

    rows = rows_of(result, output)
    systems = [("baseline-exact", None), ("baseline-tfidf", None), ("dense", "small"), ("dense", "large")]
    assert [(row["system"], row["encoder"]) for row in rows if row["subset"] == "all"] == systems
    assert {row["n"] for row in rows if row["subset"] == "all"} == {2}
    for row in rows:
        assert f"{row['subset']} {row['system']}" in said(result)


def test_paper_adds_the_mentions_of_the_train_split(corpora, names, encoders, tmp_path):
    output = tmp_path / "rows.json"

    result = run(corpora, f"--names={names}", *encoders, "--protocol=paper", f"--output={output}")

    assert {row["acc@1"] for row in rows_of(result, output) if row["subset"] == "all"} == {100.0}
    assert "protocol paper" in said(result)


@pytest.mark.parametrize(("protocol", "right"), [("dictionary", 50.0), ("paper", 100.0), ("strict", 50.0)])
def test_channels_run_over_an_index_build_of_the_names(corpora, names, place, tmp_path, protocol, right):
    output = tmp_path / "rows.json"
    options = [f"--names={names}", "--system=exact", "--system=fused", f"--protocol={protocol}", f"--output={output}"]

    rows = rows_of(run(corpora, *options), output)
    made = sorted(place.glob("eval/*/*/*Z"))
    run(corpora, *options)

    exact, fused = [row for row in rows if row["subset"] == "all"]
    assert (exact["system"], exact["dictionary"], exact["acc@1"]) == ("exact", "names", right)
    assert fused["system"] == "fused"
    assert fused["acc@1"] >= right
    assert sorted(place.glob("eval/*/*/*Z")) == made
    assert len(made) == (2 if protocol == "paper" else 1)


def test_only_a_test_split_is_final_and_it_must_be_asked_for(corpora, names, tmp_path):
    output = tmp_path / "rows.json"
    options = [f"--names={names}", "--system=baseline-exact", f"--output={output}"]

    refused = run(corpora, *options, "--split=test")
    assert "--final" in said(refused)
    assert not output.exists()

    run(corpora, *options, "--split=test", "--final")
    assert json.loads(output.read_text())["final"] is True
    run(corpora, *options, "--final")
    assert json.loads(output.read_text())["final"] is False


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--protocol=paper"], "names are added, which neither a service nor the active index build takes"),
        (["--protocol=paper", "--names={names}", "--url=http://x"], "names are added"),
        (["--system=baseline-exact"], "add --names"),
        (["--encoder-dir=a=b"], "add --names"),
        (["--names={names}", "--encoder-dir=b"], "takes LABEL=DIR"),
        (["--names={names}", "--encoder-dir=a=b", "--encoder-dir=a=c"], "two encoders are called a"),
    ],
)
def test_options_that_do_not_go_together_are_refused_with_the_way_out(corpora, names, options, says):
    result = run(corpora, *(option.format(names=names) for option in options))

    assert result.exit_code == 2
    assert says in said(result)


def test_a_corpus_and_its_folder_must_be_given():
    result = CliRunner().invoke(app, ["eval"])

    assert result.exit_code == 2
    assert "--corpus" in said(result)


@pytest.mark.parametrize("option", ["protocol", "system"])
def test_a_misspelt_choice_lists_the_valid_ones(option, corpora, names):
    result = run(corpora, f"--names={names}", f"--{option}=exakt")

    assert isinstance(result.exception, UnknownValueError)
    assert result.exception.valid == (["dictionary", "paper", "strict"] if option == "protocol" else SYSTEMS)


def test_systems_left_to_choose_are_those_that_can_run(without_scikit_learn):
    def chosen(protocol: str, names: str, *encoders: str, url: str = "") -> list[str]:
        selection = Selection.of_options(protocol, None, names, url, encoders)
        return [*selection.channels, *selection.baselines, *selection.encoders]

    assert chosen("dictionary", "open") == [*CHANNELS, "baseline-exact"]
    assert chosen("dictionary", "") == list(CHANNELS)
    assert chosen("strict", "open", "a=b") == ["baseline-exact", "a"]
    assert chosen("strict", "open", "a=b", url="http://x") == [*CHANNELS, "baseline-exact", "a"]
    assert chosen("paper", "open") == [*CHANNELS, "baseline-exact"]
    assert chosen("paper", "open", "a=b") == ["baseline-exact", "a"]
