"""A whole fine-tuning run with a tiny network: it learns, goes on after a kill, and never sees what is scored."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from medlink.cli import app
from medlink.cli.finetune import _read, _without
from medlink.corpora.records import LabeledDocument, LabeledMention
from medlink.errors import EncoderError, SourceError, UnknownValueError
from medlink.kb.records import CodeRecord, NameRecord
from training.checkpoint import Checkpoint, read_checkpoint
from training.finetune import FinetuneData, _Batches, finetune
from training.finetune_recipe import FinetuneRecipe, read_finetune_recipe
from training.mentions import Mentions, Names, scored_splits
from training.names import NameRule
from training.run import read_log

pytestmark = pytest.mark.torch

RECIPE = Path(__file__).parents[2] / "training/recipes/finetune.toml"
STEMS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeo" for c in ("lum", "rix", "ton", "mia")]
FORMS = ("{}", "{} disease", "acute {}", "{}s of man")
ASKED = ("severe {} in a child", "the {}", "{}-like illness")


def mention(id: str, text: str, gold: str) -> LabeledDocument:
    return LabeledDocument(id, text, (LabeledMention(id, 0, len(text), text, "Disease", ((gold,),)),))


def mentions_of(form: str) -> list[LabeledDocument]:
    return [mention(f"{form} {at}", form.format(stem), f"MESH:D{at:06d}") for at, stem in enumerate(STEMS)]


@pytest.fixture(scope="module")
def names() -> Names:
    records = [NameRecord(f"X:{at}", form.format(stem), "X") for at, stem in enumerate(STEMS) for form in FORMS]
    codes = [CodeRecord(f"X:{at}", "MESH", f"D{at:06d}") for at in range(len(STEMS))]
    # Two concepts that share an id with another: neither right nor wrong for it.
    shared = [CodeRecord("X:0", "OMIM", "1"), CodeRecord("X:1", "OMIM", "1")]
    return Names.read([*records, *codes, *shared], NameRule())


@pytest.fixture(scope="module")
def data(names) -> FinetuneData:
    learnt = [document for form in ASKED[:2] for document in mentions_of(form)]
    return FinetuneData(names, Mentions.read(learnt, names), Mentions.read(mentions_of(ASKED[2]), names))


@pytest.fixture(scope="module")
def recipe() -> FinetuneRecipe:
    return FinetuneRecipe(
        batch_mentions=16, nearest_negatives=4, bm25_negatives=2, epochs=3, learning_rate=1e-3, precision="fp32"
    )


@pytest.fixture
def base(tiny_bert) -> Checkpoint:
    return read_checkpoint(tiny_bert, 25)


@pytest.fixture(scope="module")
def whole(recipe, data, tiny_bert, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("whole")
    finetune(recipe, read_checkpoint(tiny_bert, 25), data, directory)
    return directory


def weights(directory: Path) -> dict:
    return load_file(directory / "checkpoint/model.safetensors")


def same_weights(first: Path, second: Path) -> bool:
    return all(torch.equal(a, weights(second)[name]) for name, a in weights(first).items())


def curve(directory: Path) -> list[tuple]:
    return [(s.step, s.epoch, s.loss, s.negatives_kept, s.learning_rate, s.dev_acc_at_1) for s in read_log(directory)]


def test_the_loss_falls_and_unseen_mentions_are_found(whole, recipe, data, base, tmp_path):
    steps = read_log(whole)
    finetune(replace(recipe, learning_rate=0.0, max_steps=1), base, data, tmp_path)

    loss = [np.mean([s.loss for s in steps if s.epoch == epoch]) for epoch in range(recipe.epochs)]
    measured = [s for s in steps if s.dev_acc_at_1 is not None]
    assert loss == sorted(loss, reverse=True)
    assert [s.step for s in measured] == [8, 16, 24]
    assert measured[-1].dev_acc_at_1 > read_log(tmp_path)[-1].dev_acc_at_1 + 5


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(whole, recipe, data, tiny_bert, tmp_path):
    finetune(recipe, read_checkpoint(tiny_bert, 25), data, tmp_path / "again")
    finetune(replace(recipe, seed=1), read_checkpoint(tiny_bert, 25), data, tmp_path / "other")

    assert curve(tmp_path / "again") == curve(whole)
    assert same_weights(tmp_path / "again", whole)
    assert not same_weights(tmp_path / "other", whole)


def test_a_run_that_was_killed_goes_on_as_if_nothing_had_happened(whole, recipe, data, tiny_bert, tmp_path):
    class Killed(Exception):
        pass

    def kill(step, total):
        if step.step == 13:
            raise Killed

    with pytest.raises(Killed):
        finetune(recipe, read_checkpoint(tiny_bert, 25), data, tmp_path, progress=kill)
    resumed: list[int] = []
    finetune(
        recipe, read_checkpoint(tiny_bert, 25), data, tmp_path, progress=lambda step, total: resumed.append(step.step)
    )

    assert resumed == list(range(9, 25))
    assert curve(tmp_path) == curve(whole)
    assert same_weights(tmp_path, whole)


def test_a_state_of_another_recipe_or_other_mentions_is_refused(whole, recipe, data, tiny_bert):
    fewer = replace(data, mentions=Mentions.read(mentions_of(ASKED[0]), data.names))

    for other in ((replace(recipe, epochs=4), data), (recipe, fewer)):
        with pytest.raises(EncoderError, match="another recipe"):
            finetune(other[0], read_checkpoint(tiny_bert, 25), other[1], whole)


def test_without_mentions_nothing_is_trained(recipe, data, base, tmp_path):
    with pytest.raises(SourceError, match="no mention is left"):
        finetune(recipe, base, replace(data, mentions=Mentions.read([], data.names)), tmp_path)


def test_a_batch_holds_the_right_names_of_its_mentions_and_wrong_ones_of_each_kind(recipe, data, names):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(len(names), 8)).astype(np.float32)
    of_mentions = rng.normal(size=(len(data.mentions), 8)).astype(np.float32)
    seen: list[str] = []

    batches = list(_Batches(recipe, data).epoch(1, of_mentions, vectors))

    assert [number for number, _ in batches] == list(range(8, 16))
    for _, batch in batches:
        concepts, ids = (
            [set(rows.row(at).tolist()) for at in range(len(batch.texts))] for rows in (batch.concepts, batch.ids)
        )
        positive, negative = batch.masks()
        rows = range(len(batch.texts))
        assert positive.tolist() == [[a != b and bool(concepts[a] & concepts[b]) for b in rows] for a in rows]
        assert negative.tolist() == [[not ids[a] & ids[b] for b in rows] for a in rows]
        asked = [row for row in rows if batch.texts[row] in set(data.mentions.texts)]
        seen += [batch.texts[row] for row in asked]
        assert positive[asked, len(asked) :].sum(dim=1).min() >= recipe.positive_names
        assert negative[asked, len(asked) :].sum(dim=1).min() >= recipe.nearest_negatives
    assert sorted(seen) == sorted(data.mentions.texts)


def test_concepts_that_share_an_id_are_neither_right_nor_wrong_for_each_other(recipe, data, names):
    vectors = np.eye(len(names), dtype=np.float32)
    both = [f"severe {STEMS[at]} in a child" for at in (0, 1)]

    batches = _Batches(replace(recipe, batch_mentions=len(data.mentions)), data)
    ((_, batch),) = batches.epoch(0, np.zeros((len(data.mentions), len(names)), np.float32), vectors)

    positive, negative = batch.masks()
    first, second = (batch.texts.index(text) for text in both)
    assert not positive[first, second]
    assert not negative[first, second]


def write_split(folder: Path, split: str, form: str, first: int) -> None:
    """Write a corpus of single mentions, its PMIDs counted from a number."""
    blocks = []
    for at, stem in enumerate(STEMS):
        text, id_ = form.format(stem), first + at
        blocks.append(f"{id_}|t|{text}\n{id_}|a|\n{id_}\t0\t{len(text)}\t{text}\tSpecificDisease\tD{at:06d}\n\n")
    (folder / "ncbi-disease").mkdir(exist_ok=True)
    (folder / "ncbi-disease" / f"NCBI{split}set_corpus.txt").write_text("".join(blocks))


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """Train PMIDs 1000-1059, dev 1050-1109, test 1055-1114."""
    folder = tmp_path / "corpora"
    folder.mkdir()
    for split, form, first in (("train", ASKED[0], 1000), ("develop", ASKED[2], 1050), ("test", ASKED[2], 1055)):
        write_split(folder, split, form, first)
    return folder


def learnt(corpora: Path, *splits: str, scored: list[tuple[str, str]]) -> set[int]:
    kept, _ = _without(scored, _read(splits, corpora), corpora)
    return {int(document.id) for document in kept}


def test_no_document_of_a_scored_split_is_learnt_from(corpora):
    train, dev, test = "ncbi-disease:train", "ncbi-disease:dev", [("ncbi-disease", "test")]

    assert learnt(corpora, train, scored=scored_splits(corpora)) == set(range(1000, 1050))
    assert learnt(corpora, train, scored=test) == set(range(1000, 1055))
    assert learnt(corpora, train, dev, scored=test) == set(range(1000, 1055))


def test_a_scored_split_that_is_not_there_is_an_error_and_not_passed_over(corpora):
    with pytest.raises(SourceError):
        learnt(corpora, "ncbi-disease:train", scored=[("bc5cdr-disease", "test")])
    with pytest.raises(UnknownValueError, match="ncbi-disease"):
        learnt(corpora, "ncbi-disease:train", scored=[("ncbi", "test")])


def test_the_command_trains_on_a_release_and_says_what_it_left_out(corpora, tiny_bert, tmp_path):
    lines = [f'X:{at},{form.format(stem)},X,"MESH:D{at:06d}"' for at, stem in enumerate(STEMS) for form in FORMS]
    (tmp_path / "names.csv").write_text("\n".join(["id,name,sab,codes", *lines]))
    (tmp_path / "recipe.toml").write_text('epochs = 1\nprecision = "fp32"')
    arguments = [str(tmp_path / "recipe.toml"), str(tiny_bert), str(tmp_path / "run"), f"--data={corpora}"]
    options = ["--corpus=ncbi-disease:train", f"--names={tmp_path / 'names.csv'}", "--dev=ncbi-disease:dev"]
    options += ["--exclude=ncbi-disease:test"]

    result = CliRunner().invoke(app, ["train", "finetune", *arguments, *options], catch_exceptions=False)

    assert result.exit_code == 0, result.output
    said = [" ".join(line.split()) for line in result.output.splitlines()]
    assert {"10 dropped: in one of 2 scored splits", "50 mentions to learn from", "240 names to find"} <= set(said)
    sources = json.loads((tmp_path / "run/state/manifest.json").read_text())["run"]["sources"]
    assert sources["scored"] == [["ncbi-disease", "test"], ["ncbi-disease", "dev"]]
    assert sources["dropped"] == 10
    assert read_log(tmp_path / "run")[-1].dev_acc_at_1 is not None
    assert (tmp_path / "run/checkpoint/tokenizer.json").is_file()
    assert not any(STEMS[0] in line for line in said)


def test_a_split_without_a_colon_is_refused(corpora, tiny_bert, tmp_path):
    arguments = [str(RECIPE), str(tiny_bert), str(tmp_path / "run"), f"--data={corpora}", "--corpus=ncbi-disease"]

    result = CliRunner().invoke(app, ["train", "finetune", *arguments])

    assert result.exit_code == 2
    assert "corpus:split" in result.output


def test_the_shipped_recipe_can_be_read_and_hides_what_pairs_hide():
    assert read_finetune_recipe(RECIPE).held_out_percent == 5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("base = 'x'", "unknown key 'base'; valid: pooling, max_length"),
        ("pooling = 'max'", "pooling must be one of mean, cls"),
        ("epochs = 1.5", "epochs must be of type int"),
        ("batch_mentions = 0", "batch_mentions must be at least 1"),
    ],
)
def test_a_bad_recipe_names_what_is_wrong(tmp_path, text, says):
    path = tmp_path / "r.toml"
    path.write_text(text)

    with pytest.raises(SourceError, match=says):
        read_finetune_recipe(path)


def test_what_both_kinds_of_run_know_goes_to_the_updater(recipe):
    common = recipe.as_pretraining("x")

    assert (common.base, common.learning_rate, common.margin) == ("x", recipe.learning_rate, recipe.margin)
