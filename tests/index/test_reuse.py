"""A build that takes vectors of earlier ones is the build that would have been made without them."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from index.build import Content, build_index
from index.reuse import KnownVectors
from index.store import BuildStore, IndexBuild
from medlink.encoders.hashing import HashingEncoder
from medlink.manifest import describe_files, read_manifest, write_manifest
from medlink.types import CHANNELS, Concept, Embeddings, LinkOptions, Mention, Name

# The second list shares texts with the first under other concepts, in another order, and has some of its own.
FIRST = {"A:1": ["Gout", "podagra"], "A:2": ["Fever", "GOUT"], "A:3": ["Cough"], "A:4": ["Nausea and vomiting"]}
SECOND = {"A:0": ["a cold", "fever!"], "A:2": ["hot spell", "gout"], "A:3": ["nausea, and vomiting"], "B:1": ["pox"]}
ASKED = ["gout", "fevers", "nausea", "pocks", "a colt", "spell"]


def concepts(names: dict[str, list[str]]) -> list[Concept]:
    return [Concept(id_, texts[0], tuple(Name(text, "X") for text in texts)) for id_, texts in sorted(names.items())]


@pytest.fixture
def make(tmp_path, encoder_dir):
    def make(
        where: str, names: dict[str, list[str]], *, reuse: Iterable[IndexBuild] = (), recipe: str = "flat"
    ) -> IndexBuild:
        store = BuildStore(tmp_path / where)
        content = Content(concepts(names), [], [], {}, len(names))
        directories = [directory_of(build, tmp_path) for build in reuse]
        return store.open(build_index(content, encoder_dir, store, recipe=recipe, reuse=directories))

    return make


def directory_of(build: IndexBuild, tmp_path: Path) -> Path:
    (directory,) = tmp_path.glob(f"*/{build.id}")
    return directory


def answers(build: IndexBuild) -> list:
    mentions = [Mention(text) for text in ASKED]
    return [build.linker.link(mentions, LinkOptions(channels=(channel,))) for channel in CHANNELS]


@pytest.mark.parametrize("recipe", ["flat", "hnsw", "hnsw-sq8"])
def test_it_is_the_same_build_whatever_its_own_recipe_is(make, recipe):
    earlier = make("earlier", FIRST)

    again, anew = make("again", SECOND, reuse=[earlier], recipe=recipe), make("anew", SECOND, recipe=recipe)

    assert (again.manifest["reused_vectors"], anew.manifest["reused_vectors"]) == (3, 0)
    assert again.manifest["files"]["dense.faiss"] == anew.manifest["files"]["dense.faiss"]
    assert answers(again) == answers(anew)


def test_a_graph_over_whole_vectors_serves_and_one_over_rounded_vectors_does_not(make):
    whole, rounded = make("whole", FIRST, recipe="hnsw"), make("rounded", FIRST, recipe="hnsw-sq8")

    assert make("a", SECOND, reuse=[rounded]).manifest["reused_vectors"] == 0
    assert make("b", SECOND, reuse=[rounded, whole]).manifest["reused_vectors"] == 3


def test_several_builds_each_give_what_those_before_have_not(make):
    first, other = make("first", FIRST), make("other", {"C:1": ["Pox"], "C:2": ["Gout"]})

    both = make("both", SECOND, reuse=[other, first])

    assert both.manifest["reused_vectors"] == 4
    assert both.manifest["files"]["dense.faiss"] == make("anew", SECOND).manifest["files"]["dense.faiss"]


class CountingEncoder(HashingEncoder):
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(dim=128)
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Embeddings:
        self.asked += texts
        return super().encode(texts)


def test_only_new_texts_are_encoded_slice_by_slice(make, tmp_path):
    encoder = CountingEncoder()
    texts = ["pox", "gout", "a cold", "fever", "cough", "spell"]
    directory = directory_of(make("earlier", FIRST), tmp_path)

    known = KnownVectors([directory], encoder, {text: row for row, text in enumerate(texts)})
    found = np.concatenate([known.vectors(texts[:2], 0), known.vectors(texts[2:5], 2), known.vectors(texts[5:], 5)])

    assert len(known) == 3
    assert encoder.asked == ["pox", "a cold", "spell"]
    assert found.tobytes() == HashingEncoder(dim=128).encode(texts).vectors.tobytes()


def test_a_build_of_another_encoder_is_passed_over(make, tmp_path):
    directory = directory_of(make("earlier", FIRST), tmp_path)

    assert len(KnownVectors([directory], HashingEncoder(dim=64), {"gout": 0})) == 0
    assert len(KnownVectors([directory], HashingEncoder(dim=128), {"gout": 0})) == 1


def test_a_build_of_another_text_version_or_a_newer_format_is_passed_over(make, tmp_path):
    directory = directory_of(make("earlier", FIRST), tmp_path)
    facts = read_manifest(directory)

    def served(**changed: object) -> int:
        write_manifest(directory, {**facts, **changed})
        return len(KnownVectors([directory], HashingEncoder(dim=128), {"gout": 0}))

    assert served(text={**facts["text"], "encoder_text": 1}) == 0
    assert served(format=facts["format"] + 1) == 0
    # How names are compared by the exact channel has nothing to do with their vectors.
    assert served(text={**facts["text"], "match_key": 999}, format=1) == 1


@pytest.mark.parametrize("name", ["manifest.json", "dense.faiss", "concepts.sqlite", "dense_rows.values.npy"])
def test_a_damaged_build_is_passed_over_and_so_is_one_that_is_gone(make, tmp_path, name):
    directory = directory_of(make("earlier", FIRST), tmp_path)
    sound = (directory / name).read_bytes()
    (directory / name).write_bytes(sound[:-2] + bytes([sound[-2] ^ 1]) + sound[-1:])
    assert len(KnownVectors([directory], HashingEncoder(dim=128), {"gout": 0})) == 0

    shutil.rmtree(directory)
    assert len(KnownVectors([directory], HashingEncoder(dim=128), {"gout": 0})) == 0


def test_a_snapshot_that_is_no_database_is_passed_over(make, tmp_path):
    directory = directory_of(make("earlier", FIRST), tmp_path)
    (directory / "concepts.sqlite").write_bytes(b"nothing of the kind")
    write_manifest(directory, {**read_manifest(directory), "files": describe_files(directory)})

    assert len(KnownVectors([directory], HashingEncoder(dim=128), {"gout": 0})) == 0
