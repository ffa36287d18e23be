import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from medlink.cli import app
from medlink.encoders import OnnxEncoder, load_encoder
from medlink.errors import EncoderError, SourceError
from medlink.manifest import read_manifest
from training.checkpoint import read_checkpoint
from training.dev import DevNames
from training.encoder import as_encoder
from training.export import export
from training.names import NameRule, ReleaseTerminology
from training.pairs import PairRecipe, make_pairs
from training.shrink import Cut, shrink
from training.shrink_report import WHOLE, Variant, shrink_report, variants

pytestmark = pytest.mark.torch

SITES = ("liver", "heart", "brain", "skin", "bone", "lung", "tooth")
NAMES = DevNames(
    queries=[f"{site} pain" for site in SITES],
    query_concepts=list(SITES),
    names=[f"pain of the {site}" for site in SITES] + [f"broken {site}" for site in SITES],
    name_concepts=[frozenset({site}) for site in SITES] + [frozenset({f"no {site}"}) for site in SITES],
)


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("release") / "names.csv"
    rows = [f"X:{n},{name},MINE" for n, site in enumerate(SITES) for name in (f"{site} pain", f"pain of the {site}")]
    path.write_text("\n".join(["id,name,sab", *rows]) + "\n")
    return path


def test_each_variant_is_what_its_export_says_it_is(tiny_bert, tmp_path):
    cut = Cut(layers=(0,), vocabulary=("liver",), dim=4)
    chosen = [Variant(WHOLE, "fp32"), Variant("small", cut=cut)]

    whole, small = shrink_report(tiny_bert, chosen, NAMES, pooling="mean", max_length=20, runs=2)

    written = export(tiny_bert, tmp_path / "out", pooling="mean", max_length=20, cut=cut)
    assert small["megabytes"] == round(written.bytes / 1e6, 2) < whole["megabytes"]
    assert (whole["dim"], small["dim"]) == (32, 4)
    assert (whole["changes"], small["changes"]) == ([], read_manifest(tmp_path / "out")["base"]["changes"])
    assert (small["system"], small["peer"], small["unit"], small["runs"]) == ("small", WHOLE, "names/s", 2)


def test_accuracy_and_changed_neighbours_are_those_of_a_plain_loop(tiny_bert, tmp_path):
    cut = Cut(layers=(1,), dim=2)
    export(tiny_bert, tmp_path / "whole", pooling="mean", max_length=20, weights="fp32")
    export(tiny_bert, tmp_path / "small", pooling="mean", max_length=20, cut=cut)
    nearest = {}
    for name in ("whole", "small"):
        encoder = load_encoder(tmp_path / name)
        names = encoder.encode(NAMES.names).vectors
        nearest[name] = [int(np.argmax([q @ n for n in names])) for q in encoder.encode(NAMES.queries).vectors]
    right = [c in NAMES.name_concepts[n] for c, n in zip(NAMES.query_concepts, nearest["small"], strict=True)]

    rows = shrink_report(
        tiny_bert, [Variant(WHOLE, "fp32"), Variant("small", cut=cut)], NAMES, pooling="mean", max_length=20, runs=1
    )

    assert rows[0]["changed"] == 0
    changed = np.mean([a != b for a, b in zip(nearest["whole"], nearest["small"], strict=True)])
    assert rows[1]["changed"] == round(100 * float(changed), 2) > 0
    assert rows[1]["acc@1"] == round(100 * float(np.mean(right)), 2)
    assert rows[1]["ci95"][0] <= rows[1]["acc@1"] <= rows[1]["ci95"][1]


def test_a_ratio_of_speeds_is_the_median_over_rounds(tiny_bert, monkeypatch):
    # Each look at the clock is one reading further: two variants, three rounds, a beginning and an end each.
    clock = iter([0, 4, 4, 5, 5, 9, 9, 11, 11, 15, 15, 16])
    monkeypatch.setattr("training.shrink_report.perf_counter", lambda: next(clock))

    rows = shrink_report(
        tiny_bert, [Variant(WHOLE, "fp32"), Variant("bytes")], NAMES, pooling="mean", max_length=20, runs=3
    )

    assert [row["ratio"] for row in rows] == [1, 4]
    assert [row["value"] for row in rows] == [len(NAMES.names) / 4, len(NAMES.names)]


def test_every_cut_stands_alone_and_the_first_of_each_kind_together():
    found = variants(layers=[(0, 2), (0, 1)], dims=[8, 4], vocabulary=["a"], axes_of=["b"])

    assert [(variant.name, variant.weights) for variant in found] == [
        (WHOLE, "fp32"),
        ("whole, int8", "int8"),
        ("vocabulary", "int8"),
        ("layers 0,2", "int8"),
        ("layers 0,1", "int8"),
        ("8 numbers, axes", "int8"),
        ("8 numbers, first", "int8"),
        ("4 numbers, axes", "int8"),
        ("4 numbers, first", "int8"),
        ("together", "int8"),
    ]
    assert found[-1].cut == Cut(layers=(0, 2), vocabulary=["a"], dim=8, axes_of=["b"])


def test_the_command_prints_and_writes_a_row_for_each_variant(tiny_bert, release, tmp_path):
    output = tmp_path / "rows.json"
    arguments = [str(tiny_bert), "--names", str(release), "--pooling", "cls", "--runs", "1", "--queries", "5"]

    result = CliRunner().invoke(
        app, ["train", "shrink-report", *arguments, "--dim", "4", "--among", "9", "--output", str(output)]
    )

    assert result.exit_code == 0, result.output
    names = [WHOLE, "whole, int8", "vocabulary", "layers 0", "4 numbers, axes", "4 numbers, first", "together"]
    assert all(name in result.output for name in names)
    assert "5 names asked among 9" in " ".join(result.output.split())
    facts = json.loads(output.read_text())
    assert [row["system"] for row in facts["rows"]] == names
    assert {row["case"] for row in facts["rows"]} == {"shrink"}
    assert not any(site in output.read_text() for site in SITES)


def test_the_command_refuses_names_of_which_none_can_be_asked(tiny_bert, tmp_path):
    (tmp_path / "few.csv").write_text("id,name,sab\nX:1,liver,MINE\n")

    result = CliRunner().invoke(
        app, ["train", "shrink-report", str(tiny_bert), "--names", str(tmp_path / "few.csv"), "--pooling", "cls"]
    )

    assert isinstance(result.exception, SourceError)
    assert "few.csv: no concept has two names" in str(result.exception)


def test_the_command_asks_for_the_pooling_of_any_other_network(tiny_bert, release):
    result = CliRunner().invoke(app, ["train", "shrink-report", str(tiny_bert), "--names", str(release)])

    assert isinstance(result.exception, EncoderError)
    assert "--pooling" in str(result.exception)


def export_by_command(model: Path, output: Path, *more: str):
    return CliRunner().invoke(app, ["train", "export", str(model), str(output), "--pooling", "mean", *more])


@pytest.mark.parametrize("source", ["release", "pairs"])
def test_the_export_command_cuts_as_it_is_told(tiny_bert, release, tmp_path, source):
    if source == "pairs":
        rule = NameRule()
        make_pairs(ReleaseTerminology.open(release, rule), tmp_path / "pairs", PairRecipe(rule, 50, 0, 0))
    names = str(release if source == "release" else tmp_path / "pairs")
    options = ["--layers", "1", "--vocabulary", names, "--dim", "6", "--axes", names, "--weights", "fp32"]

    result = export_by_command(tiny_bert, tmp_path / "out", *options)

    assert result.exit_code == 0, result.output
    texts = [name for site in SITES for name in (f"{site} pain", f"pain of the {site}")]
    cut = Cut(layers=(1,), vocabulary=texts, dim=6, axes_of=texts)
    expected = as_encoder(shrink(read_checkpoint(tiny_bert, 25), cut, "mean"), "mean").encode(texts)
    assert np.allclose(OnnxEncoder.load(tmp_path / "out").encode(texts).vectors, expected, atol=1e-5)
    assert len(read_manifest(tmp_path / "out")["base"]["changes"]) == 3


@pytest.mark.parametrize(
    ("options", "says"),
    [(["--layers", "0,x"], "numbers separated by commas"), (["--axes", "open"], "add --dim")],
)
def test_options_that_say_nothing_are_refused(tiny_bert, tmp_path, options, says):
    result = export_by_command(tiny_bert, tmp_path / "out", *options)

    assert result.exit_code == 2
    assert says in " ".join(result.output.replace("│", "").split())
    assert not (tmp_path / "out").exists()


def test_a_layer_that_is_not_there_leaves_nothing_behind(tiny_bert, tmp_path):
    result = export_by_command(tiny_bert, tmp_path / "out", "--layers", "0,2")

    assert isinstance(result.exception, EncoderError)
    assert "from 0 to 1" in str(result.exception)
    assert not list(tmp_path.iterdir())
