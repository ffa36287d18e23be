import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from index.build import Content, build_index, is_current
from index.store import BuildStore, open_build
from medlink.encoders.hashing import HashingEncoder
from medlink.errors import IndexMismatchError, StoreError, UnknownValueError
from medlink.manifest import describe_files, read_manifest, write_manifest
from medlink.types import LinkOptions, Mention


@pytest.fixture
def directory(build, make_build, tmp_path) -> Path:
    """A copy of a sound build that a test may damage."""
    make_build(tmp_path / "builds")
    (copy,) = (tmp_path / "builds").iterdir()
    return copy


def files_of(directory: Path) -> list[str]:
    return [p.relative_to(directory).as_posix() for p in sorted(directory.rglob("*")) if p.is_file()]


def test_a_build_holds_all_that_an_answer_reads(build):
    names = set(build.manifest["files"])

    assert {"dense.faiss", "lexical_codes.npy", "concepts.sqlite", "encoder/manifest.json"} <= names
    assert build.manifest["counts"] == {"concepts": 6, "names": 11, "distinct_texts": 10}
    assert build.manifest["text"] == {"encoder_text": 2, "match_key": 1, "loose_key": 2}
    assert build.manifest["measured_recall"] == 1.0


def test_one_flipped_byte_in_any_file_is_refused(directory):
    for name in files_of(directory):
        path = directory / name
        sound = path.read_bytes()
        path.write_bytes(sound[: len(sound) // 2] + bytes([sound[len(sound) // 2] ^ 1]) + sound[len(sound) // 2 + 1 :])

        with pytest.raises(IndexMismatchError, match=directory.name):
            open_build(directory)

        path.write_bytes(sound)
    assert open_build(directory).id == directory.name


def test_every_byte_of_the_manifest_counts(directory):
    path = directory / "manifest.json"
    sound = path.read_bytes()
    for place in range(0, len(sound), 7):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])

        with pytest.raises(IndexMismatchError):
            open_build(directory)


@pytest.mark.parametrize("name", ["dense.faiss", "concepts.sqlite", "manifest.json", "encoder/manifest.json"])
def test_a_missing_or_cut_file_is_refused(directory, name):
    sound = (directory / name).read_bytes()
    (directory / name).write_bytes(sound[:-1])
    with pytest.raises(IndexMismatchError):
        open_build(directory)

    (directory / name).unlink()
    with pytest.raises(IndexMismatchError, match=r"missing|cannot"):
        open_build(directory)


def test_a_stray_file_is_refused(directory):
    (directory / "extra.npy").write_bytes(b"")

    with pytest.raises(IndexMismatchError, match="not in the manifest"):
        open_build(directory)


def test_another_encoder_under_the_same_vectors_is_refused(directory):
    facts = read_manifest(directory)
    shutil.rmtree(directory / "encoder")
    HashingEncoder(dim=64).save(directory / "encoder")
    write_manifest(directory, {**facts, "files": describe_files(directory)})

    with pytest.raises(IndexMismatchError, match="was made with encoder"):
        open_build(directory)


def test_a_build_of_another_text_version_is_refused(directory):
    facts = read_manifest(directory)
    write_manifest(directory, {**facts, "text": {"encoder_text": 1, "match_key": 999}})

    with pytest.raises(IndexMismatchError, match="another version"):
        open_build(directory)


def test_a_build_made_before_the_lexical_channel_asks_to_be_made_again(directory):
    facts = read_manifest(directory)
    for path in directory.glob("lexical_*"):
        path.unlink()
    write_manifest(directory, {**facts, "format": 1, "files": describe_files(directory)})

    with pytest.raises(IndexMismatchError, match="another version of medlink; run `medlink index build`"):
        open_build(directory)


@pytest.mark.parametrize("channel", ["dense", "lexical"])
def test_probes_notice_rows_that_belong_to_other_names(directory, channel):
    facts = read_manifest(directory)
    probes = [{**facts["probes"][0], channel: 0.5}]
    write_manifest(directory, {**facts, "probes": probes})

    with pytest.raises(IndexMismatchError, match="1 of 1 probes"):
        open_build(directory)


def test_a_probe_may_differ_by_what_another_processor_computes(directory):
    facts = read_manifest(directory)
    probes = [{**facts["probes"][0], "dense": 0.9999, "lexical": 0.9999}]
    write_manifest(directory, {**facts, "probes": probes})

    assert open_build(directory).id == directory.name


def test_a_kind_of_encoder_that_this_version_lacks_is_refused(directory):
    facts = read_manifest(directory)
    write_manifest(directory / "encoder", {**read_manifest(directory / "encoder"), "kind": "psychic"})
    write_manifest(directory, {**facts, "files": describe_files(directory)})

    with pytest.raises(IndexMismatchError, match="psychic"):
        open_build(directory)


def test_a_file_that_the_system_cannot_read_is_refused(directory):
    (directory / "manifest.json").unlink()
    (directory / "manifest.json").mkdir()

    with pytest.raises(IndexMismatchError, match="cannot be read"):
        open_build(directory)


def test_an_empty_store_makes_no_build_and_leaves_nothing(tmp_path, encoder_dir):
    with pytest.raises(StoreError, match="medlink kb load"):
        build_index(Content([], [], [], {}, 0), encoder_dir, BuildStore(tmp_path))

    assert list(tmp_path.iterdir()) == []


def test_a_failure_in_the_middle_leaves_nothing(tmp_path, encoder_dir):
    def broken():
        yield from ()
        raise RuntimeError("the database went away")

    with pytest.raises(RuntimeError):
        build_index(Content(broken(), [], [], {}, 0), encoder_dir, BuildStore(tmp_path))

    assert list(tmp_path.iterdir()) == []


def test_what_builders_of_an_earlier_version_left_is_cleared_by_the_next(make_build, tmp_path):
    (tmp_path / ".tmp-20260101T000000000Z-99999999").mkdir()
    (tmp_path / ".tmp-of-somebody-else").mkdir()

    build = make_build(tmp_path)

    assert sorted(p.name for p in tmp_path.iterdir()) == [".tmp-of-somebody-else", build.id]


def test_an_unknown_recipe_names_the_valid_ones(make_build, tmp_path):
    with pytest.raises(UnknownValueError, match="auto, flat, hnsw"):
        make_build(tmp_path, recipe="flatt")


def test_the_same_content_gives_the_same_answers(make_build, tmp_path, build):
    other = make_build(tmp_path)
    mentions = [Mention(t) for t in ("heart attack", "cold", "astma", "lung", "itchy skin")]

    answers = [b.linker.link(mentions, LinkOptions()) for b in (build, other)]

    assert answers[0] == answers[1]


def test_a_build_is_current_until_store_or_encoder_change(make_build, tmp_path, encoder_dir):
    build = make_build(tmp_path, loads="1")
    store = BuildStore(tmp_path)
    content = Content([], [], [], {"tiny": "1"}, 0)
    HashingEncoder(dim=64).save(tmp_path / "other")

    assert is_current(store, build.id, content, encoder_dir)
    assert not is_current(store, build.id, replace(content, loads={"tiny": "2"}), encoder_dir)
    assert not is_current(store, build.id, content, tmp_path / "other")
    assert not is_current(store, "20200101T000000000Z", content, encoder_dir)


def test_a_damaged_build_is_not_current(directory, encoder_dir):
    content = Content([], [], [], {"tiny": "1"}, 0)
    store = BuildStore(directory.parent)
    assert is_current(store, directory.name, content, encoder_dir)

    (directory / "dense.faiss").write_bytes(b"")

    assert not is_current(store, directory.name, content, encoder_dir)
