import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from medlink.cli import app
from medlink.encoders.hashing import HashingEncoder
from medlink.errors import SourceError, UnknownConceptError, UnknownValueError
from training.run import Step

pytestmark = pytest.mark.torch

SITES = ("Liver", "Heart", "Brain", "Skin", "Bone")
FINDINGS = ("disease", "disorder", "trouble", "complaint", "DISEASE")


@pytest.fixture
def release(tmp_path) -> Path:
    """A table of five concepts with four names that differ in more than their case, and one with a single name."""
    rows = [f"X:{n},{site} {finding},MINE" for n, site in enumerate(SITES) for finding in FINDINGS]
    path = tmp_path / "names.csv"
    path.write_text("\n".join(["id,name,sab", *rows, "X:9,Lonely,MINE"]) + "\n")
    return path


@pytest.fixture
def encoders(tmp_path) -> dict[str, Path]:
    directories = {"before": tmp_path / "plain", "after": tmp_path / "trained"}
    for dim, directory in zip((64, 128), directories.values(), strict=True):
        HashingEncoder(dim=dim).save(directory)
    return directories


def draw(encoders: dict[str, Path], release: Path, output: Path, *more: str):
    paths = [part for name, path in encoders.items() for part in (f"--{name}", str(path))]
    return CliRunner().invoke(app, ["plot", "names", *paths, "--names", str(release), "--output", str(output), *more])


def marks(picture: Path) -> list[int]:
    """Return how many points each group has: concepts of the left panel, of the right one, of the legend."""
    groups = [g for g in ElementTree.parse(picture).iter() if str(g.get("id")).startswith("PathCollection_")]
    return [len([n for n in group.iter() if n.tag.endswith("}use")]) for group in groups]


def text(picture: Path) -> str:
    return "\n".join("".join(node.itertext()) for node in ElementTree.parse(picture).iter() if "text" in node.tag)


def test_chosen_concepts_are_drawn_with_all_their_names(encoders, release, tmp_path):
    result = draw(encoders, release, tmp_path / "x.svg", "--concepts", "X:3, x:1,X:9")

    assert result.exit_code == 0, result.output
    assert "9 names of 3 concepts" in result.output
    assert marks(tmp_path / "x.svg") == [4, 4, 1] * 2 + [1] * 3
    said = text(tmp_path / "x.svg")
    assert all(part in said for part in ("before: plain", "after: trained", "Skin disease", "Heart disease", "Lonely"))


def test_drawn_concepts_have_several_names_and_the_seed_decides_which(encoders, release, tmp_path):
    for name, seed in (("first", 0), ("again", 0), ("other", 3)):
        assert draw(encoders, release, tmp_path / f"{name}.svg", "--count", "2", "--seed", str(seed)).exit_code == 0

    first, again, other = ((tmp_path / f"{name}.svg") for name in ("first", "again", "other"))
    assert first.read_bytes() == again.read_bytes()
    assert text(first) != text(other)
    assert marks(first) == marks(other) == [4, 4] * 2 + [1] * 2


def test_a_concept_of_many_names_shows_some_of_them(encoders, release, tmp_path):
    assert draw(encoders, release, tmp_path / "x.svg", "--count", "3", "--names-each", "2").exit_code == 0

    assert marks(tmp_path / "x.svg") == [2, 2, 2] * 2 + [1] * 3


def test_concepts_of_one_preferred_name_are_told_apart_by_their_ids(encoders, release, tmp_path):
    with release.open("a") as handle:
        handle.write("Y:1,Liver disease,MINE\n")

    assert draw(encoders, release, tmp_path / "x.svg", "--concepts", "X:0,Y:1").exit_code == 0

    assert "X:0 Liver disease" in text(tmp_path / "x.svg")
    assert "Y:1 Liver disease" in text(tmp_path / "x.svg")


def test_an_unknown_concept_and_a_wrong_file_type_are_refused(encoders, release, tmp_path):
    unknown = draw(encoders, release, tmp_path / "x.svg", "--concepts", "X:3,X:77")
    wrong = draw(encoders, release, tmp_path / "x.gif")

    assert isinstance(unknown.exception, UnknownConceptError)
    assert "'X:77'" in str(unknown.exception)
    assert isinstance(wrong.exception, UnknownValueError)
    assert not list(tmp_path.glob("x.*"))


def test_a_release_without_names_to_draw_says_so(encoders, tmp_path):
    (tmp_path / "few.csv").write_text("id,name,sab\nX:1,Liver,MINE\n")

    result = draw(encoders, tmp_path / "few.csv", tmp_path / "x.svg")

    assert isinstance(result.exception, SourceError)
    assert "no concept has 4 names" in str(result.exception)


def write_run(directory: Path, steps: int) -> Path:

    directory.mkdir(parents=True)
    lines = [
        asdict(Step(n, 0, 1 / n, 0.5, 0.01, 1e-5, 100.0, 50.0 if n == steps else None)) for n in range(1, steps + 1)
    ]
    (directory / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return directory


def draw_runs(output: Path, *runs: Path):
    return CliRunner().invoke(app, ["plot", "training", *map(str, runs), "--output", str(output)])


def test_runs_are_laid_over_each_other_under_names_that_differ(tmp_path):
    runs = [write_run(tmp_path / name, steps) for name, steps in (("a/run", 5), ("b/run", 9), ("c", 3))]

    result = draw_runs(tmp_path / "x.svg", *runs)

    assert result.exit_code == 0, result.output
    assert "a/run, 5 steps, b/run, 9 steps, c, 3 steps" in result.output
    assert all(part in text(tmp_path / "x.svg") for part in ("a/run", "b/run", "dev acc@1, %", "loss", "step"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such log; give the output directory of `medlink train pretrain`"),
        ("", "the run has made no step yet"),
        ('{"step": 1}\n', "not the log of a training run of this version"),
        ("step 1: loss 2\n", "not the log of a training run of this version"),
    ],
)
def test_a_directory_that_is_no_run_is_named(tmp_path, content, says):
    (tmp_path / "run").mkdir()
    if content is not None:
        (tmp_path / "run" / "log.jsonl").write_text(content)

    result = draw_runs(tmp_path / "x.png", tmp_path / "run")

    assert isinstance(result.exception, SourceError)
    assert says in str(result.exception)
    assert "run/log.jsonl" in str(result.exception)
    assert not (tmp_path / "x.png").exists()


def write_calibration(path: Path, *rows: tuple[str, float, str | float, list[dict]]) -> Path:
    facts = [
        {"corpus": corpus, "split": "dev", "dictionary": "open", "protocol": "strict", "hidden": hidden}
        | {"threshold": threshold, "n_ece": 1200, "ece": 0.0314, "bins": bins}
        for corpus, hidden, threshold, bins in rows
    ]
    path.write_text(json.dumps({"rows": facts}))
    return path


def test_calibration_is_drawn_by_corpus_with_a_curve_for_each_share_hidden(tmp_path):
    bins = [{"probability": 0.2, "accuracy": 0.1, "count": 600}, {"probability": 0.9, "accuracy": 0.95, "count": 600}]
    thresholds = [("gsc-plus", 0.0, t, bins) for t in ("default", 0.5)]
    first = write_calibration(tmp_path / "a.json", *thresholds, ("gsc-plus", 30.0, "default", bins))
    second = write_calibration(tmp_path / "b.json", ("ncbi-disease", 0.0, "default", bins))

    files = [str(first), str(second), "--output", str(tmp_path / "x.svg")]
    result = CliRunner().invoke(app, ["plot", "calibration", *files])

    assert result.exit_code == 0, result.output
    said = text(tmp_path / "x.svg")
    assert [said.count(part) for part in ("gsc-plus dev, strict", "ncbi-disease dev", "30 % hidden")] == [1, 1, 1]
    assert said.count("0 % hidden, n = 1,200, ECE 0.031") == 3


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file"),
        ("{", "not a result of `medlink eval nil`"),
        ('{"rows": [{"corpus": "x"}]}', "not a result of `medlink eval nil`"),
        ('{"rows": []}', "the answers had no probabilities"),
    ],
)
def test_a_file_without_calibration_is_named(tmp_path, content, says):
    if content is not None:
        (tmp_path / "a.json").write_text(content)

    files = [str(tmp_path / "a.json"), "--output", str(tmp_path / "x.png")]
    result = CliRunner().invoke(app, ["plot", "calibration", *files])

    assert isinstance(result.exception, SourceError)
    assert says in str(result.exception)
    assert not (tmp_path / "x.png").exists()


def test_without_matplotlib_the_command_says_which_extra_to_install(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from medlink.cli import app\n"
        "from medlink.errors import EncoderError\n"
        "try:\n"
        "    app(['plot', 'training', sys.argv[1], '--output', 'x.png'], standalone_mode=False)\n"
        "except EncoderError as error:\n"
        "    sys.exit(str(error))\n"
    )

    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, capture_output=True, text=True)

    assert "matplotlib is not installed; install medlink with its `plot` extra" in run.stderr
