"""`medlink eval held-out` asks every system for the same hidden names, among the same others."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from medlink.cli import app
from medlink.encoders.hashing import HashingEncoder


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("release") / "ours.csv"
    syllables = ("ba", "ko", "ri", "du", "fe", "mo", "sa", "ti", "pu", "ne")
    rows = [
        f"{sab}:{n}{m},{name},{sab}"
        for sab in ("MONDO", "CL")
        for n, one in enumerate(syllables)
        for m, other in enumerate(syllables)
        for stem in [one + other + syllables[n * m % 7] + other]
        for name in (f"{stem} {sab}", f"{stem}s of {sab}", f"{sab} with {stem}")
    ]
    file.write_text("\n".join(["id,name,sab", *rows]) + "\n")
    return file


@pytest.fixture(scope="module")
def pairs(release, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("pairs") / "pairs"
    result = CliRunner().invoke(app, ["train", "pairs", str(directory), f"--source={release}", "--held-out-percent=50"])
    assert result.exit_code == 0, result.output
    return directory


def run(pairs: Path, release: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["eval", "held-out", str(pairs), f"--source={release}", *options])


def test_every_system_gets_the_same_queries_of_each_source(pairs, release, tmp_path):
    for dim in (16, 256):
        HashingEncoder(dim=dim).save(tmp_path / f"of-{dim}")
    encoders = [f"--encoder-dir={dim}={tmp_path / f'of-{dim}'}" for dim in (16, 256)]
    output = tmp_path / "rows.json"

    result = run(pairs, release, *encoders, "--queries-per-source=12", f"--output={output}")

    assert result.exit_code == 0, result.output
    facts = json.loads(output.read_text())
    assert facts["final"] is False
    found = {(row["corpus"], row["system"], row["encoder"]): row for row in facts["rows"]}
    systems = [("baseline-exact", None), ("baseline-tfidf", None), ("dense", "16"), ("dense", "256")]
    assert set(found) == {(f"heldout-synonyms:{sab}", *s) for sab in ("CL", "MONDO") for s in systems}
    assert {(row["n"], row["coverage"]) for row in found.values()} == {(12, 100.0)}
    assert found["heldout-synonyms:CL", "baseline-exact", None]["acc@5"] == 0
    assert found["heldout-synonyms:CL", "dense", "256"]["acc@5"] > 50
    assert "not the terminology" not in result.output


def test_one_source_may_be_asked_for_alone(pairs, release, tmp_path):
    output = tmp_path / "rows.json"

    result = run(pairs, release, "--sabs=CL", "--system=baseline-exact", f"--output={output}")

    assert result.exit_code == 0, result.output
    (row,) = json.loads(output.read_text())["rows"]
    assert (row["corpus"], row["dictionary"], row["protocol"]) == ("heldout-synonyms:CL", "ours:CL", "held-out")


def test_another_terminology_than_that_of_the_pairs_is_said(pairs, release, tmp_path):
    part = tmp_path / "part.csv"
    part.write_text("".join(release.read_text().splitlines(keepends=True)[:200]))

    result = run(pairs, part, "--system=baseline-exact")

    assert result.exit_code == 0, result.output
    assert "not the terminology of the pairs" in result.output


def test_a_channel_of_an_index_build_is_no_system_of_this_test(pairs, release):
    result = run(pairs, release, "--system=exact")

    assert result.exception is not None
    assert "baseline-exact, baseline-tfidf" in str(result.exception)
