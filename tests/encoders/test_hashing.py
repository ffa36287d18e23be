import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink.encoders import HashingEncoder, load_encoder
from medlink.errors import EncoderError, UnknownValueError
from medlink.manifest import read_manifest, write_manifest

WORD = 2**64 - 1
S = 5**-0.5


def slowly(text, dim):
    points = [2, *map(ord, text), 3]
    counts = [0] * dim
    for size in (2, 3):
        for start in range(len(points) - size + 1):
            x = size
            for point in points[start : start + size]:
                x = (x * 0x9E3779B97F4A7C15 + point) & WORD
                x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
                x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
                x ^= x >> 31
            counts[x % dim] += 1 if x >> 63 else -1
    length = sum(count * count for count in counts) ** 0.5
    return [count / length for count in counts]


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1, max_size=8))
def test_agrees_with_a_loop_over_characters(texts):
    found = HashingEncoder(16).encode(texts).vectors

    np.testing.assert_allclose(found, [slowly(text, 16) for text in texts], atol=1e-6)


def test_vectors_are_the_same_on_every_machine():
    found = HashingEncoder(8).encode(["", "asthma"]).vectors

    assert found.tolist() == [[0, 0, 1, 0, 0, 0, 0, 0], pytest.approx([-S, 0, S, 0, -S, -S, 0, S])]


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=400), dim=st.integers(1, 5))
def test_no_text_is_without_a_direction(text, dim):
    found = HashingEncoder(dim).encode([text]).vectors

    assert np.linalg.norm(found) == pytest.approx(1)


def test_a_misspelt_name_is_nearer_than_another():
    right, misspelt, other = HashingEncoder().encode(["diverticulitis", "diverticulitus", "hypothyroidism"]).vectors

    assert right @ misspelt > 0.7 > right @ other + 0.3


def test_more_texts_than_one_chunk_keep_their_rows():
    texts = [f"name {index}" for index in range(9000)]
    encoder = HashingEncoder(32)

    found = encoder.encode(texts).vectors

    for index in (0, 4095, 4096, 8999):
        assert np.array_equal(found[index], encoder.encode([texts[index]]).vectors[0])


@pytest.mark.parametrize("other", [HashingEncoder(128), HashingEncoder(max_length=20), HashingEncoder(lowercase=False)])
def test_whatever_decides_a_vector_is_in_the_fingerprint(other):
    assert other.fingerprint != HashingEncoder().fingerprint


def test_a_saved_directory_brings_every_option_back(tmp_path):
    saved = HashingEncoder(48, max_length=30, lowercase=False)

    saved.save(tmp_path / "encoder")
    loaded = load_encoder(tmp_path / "encoder")

    assert (loaded.dim, loaded.lowercase, loaded.fingerprint) == (48, False, saved.fingerprint)
    assert [path.name for path in tmp_path.iterdir()] == ["encoder"]


def test_saving_over_something_is_refused(tmp_path):
    (tmp_path / "precious").write_text("x")

    with pytest.raises(EncoderError, match="exists"):
        HashingEncoder().save(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"dim": 0}, "positive"),
        ({"dim": "256"}, "dim"),
        ({"dim": True}, "dim"),
        ({"colour": 1}, "colour"),
        ({"grams": [5]}, "n-grams"),
        ({"format": 2}, "format is 2"),
        ({"files": {"model.onnx": {"sha256": "0", "bytes": 1}}}, "model.onnx is missing"),
        ({"files": {"model.onnx": {"sha256": "0"}}}, "bytes"),
        ({"files": {"model.onnx": "0"}}, "not an object"),
    ],
)
def test_a_manifest_that_is_not_right_is_refused(tmp_path, change, says):
    HashingEncoder().save(tmp_path / "encoder")
    write_manifest(tmp_path / "encoder", read_manifest(tmp_path / "encoder") | change)

    with pytest.raises(EncoderError, match=says):
        load_encoder(tmp_path / "encoder")


def test_an_unknown_kind_is_an_error_that_lists_the_known_ones(tmp_path):
    HashingEncoder().save(tmp_path / "encoder")
    write_manifest(tmp_path / "encoder", read_manifest(tmp_path / "encoder") | {"kind": "glove"})

    with pytest.raises(UnknownValueError, match=r"'glove'; valid: hashing, onnx"):
        load_encoder(tmp_path / "encoder")


def test_a_manifest_changed_by_hand_is_refused(tmp_path):
    HashingEncoder().save(tmp_path / "encoder")
    path = tmp_path / "encoder" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"dim": 128}))

    with pytest.raises(EncoderError, match="seal"):
        load_encoder(tmp_path / "encoder")


def test_a_directory_without_a_manifest_is_refused_with_the_next_step(tmp_path):
    with pytest.raises(EncoderError, match=r"missing.*medlink train export"):
        load_encoder(tmp_path)


@pytest.mark.parametrize("dim", [0, -1])
def test_a_vector_has_at_least_one_number(dim):
    with pytest.raises(ValueError, match="positive"):
        HashingEncoder(dim)
