"""A whole pretraining run with a tiny network: it learns, goes on after a kill, and two processes are one."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from medlink.encoders import load_encoder
from medlink.errors import EncoderError, SourceError
from medlink.kb.records import NameRecord
from medlink.types import Concept, Name
from training.dev import DevNames, dev_names
from training.encoder import read_encoder
from training.export import export
from training.heldout import HeldOut, hold_out
from training.names import NameRule
from training.neighbours import concept_neighbours
from training.pairs import PairRecipe, make_pairs
from training.pairset import read_pairs
from training.pretrain import pretrain
from training.recipe import Recipe, read_recipe
from training.run import read_log

pytestmark = pytest.mark.torch

RECIPES = Path(__file__).parents[2] / "training/recipes"
FINETUNE = RECIPES / "finetune.toml"  # a recipe of another kind, read by tests of its own
STEMS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeo" for c in ("lum", "rix", "ton", "mia")]
CONCEPTS = [
    Concept(
        f"X:{i:03d}", stem, tuple(Name(form.format(stem), "SRC") for form in ("{}", "{} disease", "{}s", "acute {}"))
    )
    for i, stem in enumerate(STEMS)
]


class Terms:
    def records(self):
        return [NameRecord(c.id, n.text, n.sab) for c in CONCEPTS for n in c.names]

    def facts(self):
        return {"kind": "memory"}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("pairs") / "pairs"
    make_pairs(Terms(), directory, PairRecipe(held_out_percent=10))
    return directory


@pytest.fixture(scope="module")
def recipe(tiny_bert) -> Recipe:
    return Recipe(
        base=str(tiny_bert), pooling="mean", batch_pairs=16, epochs=2, learning_rate=1e-3, warmup=0.1,
        precision="fp32", validate_every=10, save_every=6,
    )  # fmt: skip


@pytest.fixture(scope="module")
def dev() -> DevNames:
    return dev_names(lambda: CONCEPTS, hold_out(CONCEPTS, percent=10), NameRule())


@pytest.fixture(scope="module")
def whole(recipe, pairs, dev, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("whole")
    pretrain(recipe, pairs, directory, dev=dev)
    return directory


def weights(directory: Path) -> dict:
    return load_file(directory / "checkpoint/model.safetensors")


def curve(directory: Path) -> list[tuple]:
    return [(s.step, s.epoch, s.loss, s.positives_kept, s.learning_rate, s.dev_acc_at_1) for s in read_log(directory)]


def test_training_raises_the_accuracy_on_hidden_names(whole, recipe, pairs, dev, tmp_path):
    steps = read_log(whole)
    pretrain(replace(recipe, learning_rate=0.0, max_steps=1), pairs, tmp_path, dev=dev)

    untrained = read_log(tmp_path)[-1].dev_acc_at_1
    assert steps[-1].dev_acc_at_1 > untrained + 5
    assert steps[-1].loss < steps[0].loss
    assert max(s.learning_rate for s in steps) == pytest.approx(1e-3)


def test_a_run_that_was_killed_goes_on_as_if_nothing_had_happened(whole, recipe, pairs, dev, tmp_path):
    class Killed(Exception):
        pass

    def kill(step, total):
        if step.step == 9:
            raise Killed

    with pytest.raises(Killed):
        pretrain(recipe, pairs, tmp_path, dev=dev, progress=kill)
    pretrain(recipe, pairs, tmp_path, dev=dev)

    assert curve(tmp_path) == curve(whole)
    assert all(torch.equal(a, weights(tmp_path)[name]) for name, a in weights(whole).items())


def test_hard_batches_go_on_after_a_kill_with_the_neighbours_of_their_epoch(recipe, pairs, tmp_path):
    class Killed(Exception):
        pass

    def kill(step, total):
        if step.step == 7:
            raise Killed

    hard = replace(recipe, hard_batches=True, save_every=5)
    pretrain(hard, pairs, tmp_path / "whole")
    with pytest.raises(Killed):
        pretrain(hard, pairs, tmp_path / "killed", progress=kill)
    pretrain(hard, pairs, tmp_path / "killed")

    assert curve(tmp_path / "killed") == curve(tmp_path / "whole")


def test_neighbours_are_the_nearest_other_concepts(recipe, pairs, tiny_bert):
    encoder = read_encoder(tiny_bert, pooling="mean", max_length=25)
    pair_set = read_pairs(pairs)
    concepts, first = np.unique(pair_set.pairs.concept, return_index=True)

    found = concept_neighbours(encoder, pair_set, neighbours=4)

    vectors = encoder.encode(pair_set.texts(pair_set.pairs.left[first]))
    for row, concept in enumerate(concepts):
        others = [other for other in range(len(concepts)) if other != row]
        cosine = {int(concepts[other]): float(vectors[row] @ vectors[other]) for other in others}
        assert concept not in found[concept]
        assert [cosine[c] for c in found[concept]] == pytest.approx(sorted(cosine.values(), reverse=True)[:4], abs=1e-5)


def test_info_nce_learns_too(recipe, pairs, tmp_path):
    pretrain(replace(recipe, loss="info-nce", temperature=0.1), pairs, tmp_path)

    steps = read_log(tmp_path)
    assert steps[-1].loss < steps[0].loss


def test_a_state_of_another_recipe_is_refused(recipe, pairs, whole):
    with pytest.raises(EncoderError, match="another recipe or other pairs"):
        pretrain(replace(recipe, seed=1), pairs, whole)


def test_chunks_change_no_step(recipe, pairs, tmp_path):
    # Without dropout the only difference left is the order of sums.
    one = replace(recipe, dropout=0.0, max_steps=6)

    pretrain(one, pairs, tmp_path / "one")
    pretrain(replace(one, chunk_texts=5), pairs, tmp_path / "chunks")
    two = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", __file__]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    arguments = [json.dumps(asdict(replace(one, chunk_texts=7))), str(pairs), str(tmp_path / "two")]
    subprocess.run([*two, *arguments], env=environment, check=True, timeout=200, capture_output=True)

    expected = [s.loss for s in read_log(tmp_path / "one")]
    for other in ("chunks", "two"):
        assert [s.loss for s in read_log(tmp_path / other)] == pytest.approx(expected, rel=1e-4)
        for name, value in weights(tmp_path / "one").items():
            torch.testing.assert_close(weights(tmp_path / other)[name], value, rtol=1e-2, atol=1e-4)


def test_the_checkpoint_exports_and_serves(whole, recipe, tmp_path):
    export(whole / "checkpoint", tmp_path / "encoder", pooling="mean", max_length=recipe.max_length, weights="fp32")

    encoder = load_encoder(tmp_path / "encoder")

    names = [c.preferred_name for c in CONCEPTS[:20]]
    cosines = encoder.encode([f"{n} disease" for n in names]).vectors @ encoder.encode(names).vectors.T
    assert (cosines.argmax(axis=1) == range(20)).mean() > 0.8


def test_dev_names_are_hidden_ones_among_shown_ones(dev):
    split = hold_out(CONCEPTS, percent=10)

    assert all(split.is_held_out(q) for q in dev.queries)
    assert not any(split.is_held_out(n) for n in dev.names)
    with pytest.raises(ValueError, match="held-out-percent"):
        dev_names(lambda: CONCEPTS, HeldOut(0, 0), NameRule())


@pytest.mark.parametrize("path", sorted(set(RECIPES.glob("*.toml")) - {FINETUNE}), ids=lambda p: p.stem)
def test_shipped_recipes_can_be_read(path):
    assert read_recipe(path).batch_pairs > 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pooling = 'cls'", "'base' is missing"),
        ("base = 'x'\nlr = 1", "unknown key 'lr'; valid: base, pooling"),
        ("base = 'x'\npooling = 'max'", "pooling must be one of mean, cls"),
        ("base = 'x'\nepochs = 1.5", "epochs must be of type int"),
        ("base = 'x'\nepochs = true", "epochs must be of type int"),
        ("base =", "not TOML"),
    ],
)
def test_a_bad_recipe_names_what_is_wrong(tmp_path, text, says):
    path = tmp_path / "r.toml"
    path.write_text(text)

    with pytest.raises(SourceError, match=says):
        read_recipe(path)


if __name__ == "__main__":
    pretrain(Recipe(**json.loads(sys.argv[1])), Path(sys.argv[2]), Path(sys.argv[3]))
