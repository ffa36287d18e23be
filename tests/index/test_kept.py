"""What a build has encoded is not lost with it."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from index import kept
from index.build import Content, build_index
from index.kept import KeptVectors
from index.store import BuildStore
from medlink.encoders.hashing import HashingEncoder
from medlink.manifest import read_manifest
from medlink.types import Concept, Embeddings, Name

TEXTS = [f"disease {number}" for number in range(60)]


class CountingEncoder(HashingEncoder):
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Embeddings:
        self.asked += texts
        return super().encode(texts)


@pytest.fixture(autouse=True)
def keep_few(monkeypatch):
    monkeypatch.setattr(kept, "_WORTH_KEEPING", 1)


def shards(store: Path) -> list[Path]:
    return sorted(store.glob(".encoded-*/*"))


def test_what_was_encoded_before_is_not_encoded_again_and_is_the_same(tmp_path):
    encoder = CountingEncoder()
    before = KeptVectors(tmp_path, encoder)
    before.vectors(TEXTS[:20])
    before.vectors(TEXTS[20:40])
    encoder.asked.clear()

    again = KeptVectors(tmp_path, encoder)
    shuffled = [TEXTS[i] for i in np.random.default_rng(0).permutation(60)]
    vectors = again.vectors(shuffled)

    assert sorted(encoder.asked) == sorted(TEXTS[40:])
    assert again.found == 40
    assert np.array_equal(vectors, HashingEncoder().encode(shuffled).vectors)


def test_nothing_is_kept_of_nothing(tmp_path):
    assert KeptVectors(tmp_path, HashingEncoder()).vectors([]).shape == (0, HashingEncoder().dim)
    assert shards(tmp_path) == []


@pytest.mark.parametrize("at", [0.02, 0.5, 0.99])
def test_a_damaged_or_half_written_shard_is_passed_over(tmp_path, at):
    encoder = CountingEncoder()
    KeptVectors(tmp_path, encoder).vectors(TEXTS[:30])
    KeptVectors(tmp_path, encoder).vectors(TEXTS[30:])
    flipped, cut = shards(tmp_path)
    content = bytearray(flipped.read_bytes())
    content[int(at * len(content))] ^= 1
    flipped.write_bytes(content)
    cut.write_bytes(cut.read_bytes()[:-1])
    encoder.asked.clear()

    vectors = KeptVectors(tmp_path, encoder).vectors(TEXTS)

    assert sorted(encoder.asked) == sorted(TEXTS)
    assert np.array_equal(vectors, HashingEncoder().encode(TEXTS).vectors)


def test_vectors_of_another_encoder_are_left_alone(tmp_path):
    KeptVectors(tmp_path, HashingEncoder(dim=32)).vectors(TEXTS)
    other = CountingEncoder()

    KeptVectors(tmp_path, other).vectors(TEXTS)

    assert len(other.asked) == len(TEXTS)
    assert len(shards(tmp_path)) == 2


def test_a_disk_that_takes_no_shard_costs_only_the_shard(tmp_path, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept.np, "save", full)

    vectors = KeptVectors(tmp_path, HashingEncoder()).vectors(TEXTS)

    assert np.array_equal(vectors, HashingEncoder().encode(TEXTS).vectors)
    assert shards(tmp_path) == []


class Killed(BaseException):
    """Ends a build wherever it is."""


def build(
    store: BuildStore,
    encoder_dir: Path,
    *,
    dies: bool = False,
    recipe: str = "flat",
    reuse: tuple[Path, ...] | None = (),
) -> str:
    concepts = [Concept(f"T:{i:02}", text, (Name(text, "TEST"),)) for i, text in enumerate(TEXTS)]

    def progress(stage: str, _done: int, _total: int) -> None:
        if dies and stage == "verify":
            raise Killed

    content = Content(concepts, [], [], {}, len(concepts))
    return build_index(content, encoder_dir, store, recipe=recipe, progress=progress, reuse=reuse)


def test_a_build_takes_up_what_one_that_died_had_encoded_and_leaves_nothing_behind(tmp_path, encoder_dir):
    store = BuildStore(tmp_path)
    with pytest.raises(Killed):
        build(store, encoder_dir, dies=True)

    build_id = build(store, encoder_dir)

    facts = read_manifest(store.path(build_id))
    assert facts["reused_vectors"] == len(TEXTS)
    anew = BuildStore(tmp_path / "other")
    whole = read_manifest(anew.path(build(anew, encoder_dir)))
    assert facts["files"]["dense.faiss"] == whole["files"]["dense.faiss"]
    assert shards(tmp_path) == []


def test_a_build_that_is_to_start_anew_encodes_all(tmp_path, encoder_dir):
    store = BuildStore(tmp_path)
    with pytest.raises(Killed):
        build(store, encoder_dir, dies=True)

    build_id = build(store, encoder_dir, reuse=None)

    assert read_manifest(store.path(build_id))["reused_vectors"] == 0


def test_where_an_index_rounds_its_vectors_the_next_takes_those_that_were_kept(tmp_path, encoder_dir):
    store = BuildStore(tmp_path)
    build(store, encoder_dir, recipe="hnsw-sq8")

    build_id = build(store, encoder_dir, recipe="hnsw-sq8")

    assert read_manifest(store.path(build_id))["reused_vectors"] == len(TEXTS)


def test_vectors_of_an_encoder_that_is_out_of_use_are_forgotten(tmp_path, encoder_dir):
    for dim in (16, 32):
        KeptVectors(tmp_path, HashingEncoder(dim=dim)).vectors(TEXTS)
    old, recent = sorted(tmp_path.glob(".encoded-*"))
    os.utime(old, (0, 0))

    build(BuildStore(tmp_path), encoder_dir)

    assert list(tmp_path.glob(".encoded-*")) == [recent]
