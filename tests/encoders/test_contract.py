"""What every encoder must do, whatever its kind."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medlink.encoders import HashingEncoder, OnnxEncoder, load_encoder
from medlink.protocols import Encoder

SHIPPED = Path(__file__).parents[2] / "artefacts" / "encoder"
NAMES = [
    "myocardial infarction",
    "heart attack",
    "type 2 diabetes mellitus",
    "c7",
    "ifn-γ",
    "müller’s m² café 🩺",
    "ألم في الصدر",
    "心臓発作",
    "5% dextrose in water",
    "a",
    "non-small cell lung cancer with metastasis to the left adrenal gland",
]
MAKERS: dict[str, Callable[[], Encoder]] = {
    "hashing": HashingEncoder,
    "onnx": lambda: OnnxEncoder.load(SHIPPED, threads=2),
}
ENCODERS = {name: make() for name, make in MAKERS.items()}


@pytest.fixture(params=sorted(MAKERS))
def kind(request) -> str:
    return request.param


@pytest.fixture
def encoder(kind) -> Encoder:
    return ENCODERS[kind]


def test_no_texts_give_no_vectors(encoder):
    found = encoder.encode([])

    assert found.vectors.shape == (0, encoder.dim)
    assert found.vectors.dtype == np.float32
    assert found.truncated.shape == (0,)
    assert found.truncated.dtype == np.bool_


def test_vectors_are_float32_of_length_one(encoder):
    found = encoder.encode(["", *NAMES])

    assert found.vectors.dtype == np.float32
    assert found.vectors.shape == (len(NAMES) + 1, encoder.dim)
    np.testing.assert_allclose(np.linalg.norm(found.vectors, axis=1), 1, atol=1e-6)


def test_different_names_have_different_vectors_and_one_name_has_one(encoder):
    found = encoder.encode([NAMES[0], NAMES[1], NAMES[0]]).vectors

    assert np.array_equal(found[0], found[2])
    assert found[0] @ found[1] < 0.999


def test_two_instances_agree_bit_for_bit(kind):
    found, again = (MAKERS[kind]() for _ in range(2))

    assert np.array_equal(found.encode(NAMES).vectors, again.encode(NAMES).vectors)
    assert found.fingerprint == again.fingerprint


@pytest.mark.parametrize("size", [2, 3, 7, 64, 256])
def test_a_vector_is_the_same_bit_for_bit_alone_and_in_a_batch(encoder, size):
    alone = {name: encoder.encode([name]).vectors[0] for name in NAMES}
    batch = [NAMES[index % len(NAMES)] for index in range(size)]

    found = encoder.encode(batch).vectors

    assert all(np.array_equal(vector, alone[name]) for name, vector in zip(batch, found, strict=True))


@settings(max_examples=25, deadline=None)
@given(kind=st.sampled_from(sorted(MAKERS)), texts=st.lists(st.sampled_from(NAMES) | st.text("ab é🩺", max_size=40)))
def test_order_and_companions_never_change_a_vector(kind, texts):
    encoder = ENCODERS[kind]
    found = encoder.encode(texts)

    turned = encoder.encode(texts[::-1])

    assert np.array_equal(found.vectors, turned.vectors[::-1])
    assert np.array_equal(found.truncated, turned.truncated[::-1])
    for index, text in enumerate(texts[:3]):
        assert np.array_equal(encoder.encode([text]).vectors[0], found.vectors[index])


def test_only_a_text_beyond_the_length_is_called_truncated(encoder):
    found = encoder.encode(["pain", "chronic pain of the knee " * 400, ""])

    assert found.truncated.tolist() == [False, True, False]
    assert np.isfinite(found.vectors).all()


@pytest.mark.parametrize("bad", ["\ud800", "pain \udfff", None, 7, b"pain"])
def test_a_text_that_cannot_be_read_is_refused_by_its_index(encoder, bad):
    with pytest.raises(ValueError, match=r"text 1 ") as caught:
        encoder.encode(["secret name", bad, "secret name"])

    assert "secret" not in str(caught.value)


def test_one_string_is_not_a_sequence_of_texts(encoder):
    with pytest.raises(ValueError, match="sequence"):
        encoder.encode("pain")


def test_text_with_nul_has_a_vector(encoder):
    assert np.isfinite(encoder.encode(["a\0b"]).vectors).all()


def test_load_encoder_gives_back_what_was_saved(kind, tmp_path):
    directory = SHIPPED
    if kind == "hashing":
        directory = tmp_path / "encoder"
        HashingEncoder().save(directory)

    loaded = load_encoder(directory, threads=1)

    assert loaded.fingerprint == ENCODERS[kind].fingerprint
    assert (loaded.dim, loaded.lowercase) == (ENCODERS[kind].dim, ENCODERS[kind].lowercase)
    assert np.array_equal(loaded.encode(NAMES).vectors, ENCODERS[kind].encode(NAMES).vectors)
