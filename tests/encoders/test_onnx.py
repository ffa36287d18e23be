import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from medlink.encoders import OnnxEncoder
from medlink.encoders.onnx import available_cores, equal_length_batches
from medlink.errors import EncoderError
from medlink.manifest import describe_files, read_manifest, write_manifest

SHIPPED = Path(__file__).parents[2] / "artefacts" / "encoder"
NAMES = [f"{what} of the {where}" for what in ("pain", "rupture", "carcinoma") for where in ("ear", "left lung", "hip")]


@pytest.fixture
def copy(tmp_path) -> Path:
    shutil.copytree(SHIPPED, tmp_path / "encoder")
    return tmp_path / "encoder"


def reseal(directory: Path, **changes: object) -> None:
    write_manifest(directory, read_manifest(directory) | {"files": describe_files(directory)} | changes)


@given(lengths=st.lists(st.integers(2, 70), min_size=1, max_size=80), budget=st.integers(1, 300))
def test_batches_hold_every_text_once_with_texts_of_its_length_within_the_budget(lengths, budget):
    batches = list(equal_length_batches(np.array(lengths), budget))

    assert sorted(row for rows in batches for row in rows.tolist()) == list(range(len(lengths)))
    for rows in batches:
        (length,) = {lengths[row] for row in rows}
        assert len(rows) == 1 or len(rows) * length <= budget


def test_the_number_of_threads_changes_no_vector():
    one, three = (OnnxEncoder.load(SHIPPED, threads=threads) for threads in (1, 3))

    assert np.array_equal(one.encode(NAMES).vectors, three.encode(NAMES).vectors)


def test_threads_that_share_an_encoder_do_not_disturb_each_other():
    encoder = OnnxEncoder.load(SHIPPED, threads=2)
    expected = encoder.encode(NAMES).vectors

    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(lambda _: encoder.encode(NAMES).vectors, range(8)))

    assert all(np.array_equal(vectors, expected) for vectors in found)


@pytest.mark.parametrize("threads", [0, -1])
def test_a_thread_count_below_one_is_refused(threads):
    with pytest.raises(ValueError, match="threads"):
        OnnxEncoder.load(SHIPPED, threads=threads)


def test_this_process_has_at_least_a_core():
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


def test_padding_and_truncation_of_the_tokenizer_file_do_not_count(copy):
    tokenizer = Tokenizer.from_file(str(copy / "tokenizer.json"))
    tokenizer.enable_padding(length=40)
    tokenizer.enable_truncation(4)
    tokenizer.save(str(copy / "tokenizer.json"))
    reseal(copy)

    found = OnnxEncoder.load(copy).encode(NAMES)

    assert np.array_equal(found.vectors, OnnxEncoder.load(SHIPPED).encode(NAMES).vectors)
    assert not found.truncated.any()


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "LICENSE"])
def test_one_flipped_bit_in_any_file_is_refused(copy, name):
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)

    with pytest.raises(EncoderError, match=f"{name} differs"):
        OnnxEncoder.load(copy)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_refused_with_the_next_step(copy, name):
    (copy / name).unlink()

    with pytest.raises(EncoderError, match=f"{name} is missing.*medlink train export"):
        OnnxEncoder.load(copy)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_manifest_that_does_not_list_a_needed_file_is_refused(copy, name):
    (copy / name).unlink()
    reseal(copy)

    with pytest.raises(EncoderError, match=f"lists no {name}"):
        OnnxEncoder.load(copy)


@pytest.mark.parametrize("content", [b"", b"not a graph" * 9])
def test_a_file_that_is_no_graph_is_refused(copy, content):
    (copy / "model.onnx").write_bytes(content)
    reseal(copy)

    with pytest.raises(EncoderError, match=r"onnxruntime refuses model\.onnx"):
        OnnxEncoder.load(copy)


def test_a_file_that_is_no_tokenizer_is_refused(copy):
    (copy / "tokenizer.json").write_text("{}")
    reseal(copy)

    with pytest.raises(EncoderError, match=r"tokenizer\.json is not a tokenizer"):
        OnnxEncoder.load(copy)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pooling": "max"}, "pooling"),
        ({"weights": "int4"}, "weights"),
        ({"normalise": False}, "normalise"),
        ({"max_length": "64"}, "max_length"),
        ({"dim": 768}, "768 numbers"),
        ({"base": {"model": "x"}}, "licence, sha256"),
        ({"kind": "hashing"}, "not 'onnx'"),
        ({"device": "cuda"}, "device"),
    ],
)
def test_a_manifest_that_is_not_right_is_refused(copy, changes, says):
    reseal(copy, **changes)

    with pytest.raises(EncoderError, match=says):
        OnnxEncoder.load(copy)


@pytest.mark.parametrize("changes", [{"pooling": "cls"}, {"max_length": 32}, {"lowercase": False}])
def test_whatever_decides_a_vector_is_in_the_fingerprint(copy, changes):
    before = OnnxEncoder.load(copy).fingerprint
    reseal(copy, **changes)

    assert OnnxEncoder.load(copy).fingerprint != before


def test_a_new_licence_file_or_name_leaves_the_fingerprint(copy):
    before = OnnxEncoder.load(copy).fingerprint
    (copy / "NOTICE").write_text("thanks")
    reseal(copy, name="another")

    assert OnnxEncoder.load(copy).fingerprint == before


def test_the_shipped_encoder_is_small_licensed_and_knows_its_origin():
    facts = read_manifest(SHIPPED)

    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 25_000_000
    assert "Apache License" in (SHIPPED / "LICENSE").read_text()
    assert facts["base"]["model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert facts["base"]["licence"] == "apache-2.0"
    assert facts["parity"]["fp32_to_torch"]["max_difference"] < 1e-4


def test_the_shipped_encoder_puts_names_of_one_concept_side_by_side():
    names = ["heart attack", "myocardial infarction", "renal failure", "kidney failure", "broken leg", "fractured leg"]

    vectors = OnnxEncoder.load(SHIPPED).encode(names).vectors

    similar = vectors @ vectors.T - np.eye(len(names))
    assert similar.argmax(axis=1).tolist() == [1, 0, 3, 2, 5, 4]


def test_serving_imports_neither_torch_nor_transformers():
    code = "import sys, medlink.encoders as e; sys.exit(bool({'torch', 'transformers', 'onnx'} & set(sys.modules)))"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
