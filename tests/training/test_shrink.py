import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

from medlink.encoders import load_encoder
from medlink.errors import EncoderError
from medlink.manifest import read_manifest
from training.checkpoint import Checkpoint, read_checkpoint
from training.encoder import as_encoder
from training.export import export
from training.parity import probe_texts
from training.shrink import Cut, first_axes, keep_layers, principal_axes, project, shrink, trim_vocabulary

pytestmark = pytest.mark.torch

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
WORDS = ["heart", "attack", "liver", "failure", "left", "##itis", "##oma"]
KEPT = ["heart failure", "hepatitis"]
OF_KEPT_TOKENS = ["heart failure", "failure heart", "hepatitis", "heart itis", "x", ""]
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "initializer_range": 0.3,
}


def write_bert(directory: Path, *, family: str = "bert") -> Path:
    """Write a network of four layers; "roberta" counts positions from its padding, which is not its first token."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] if family == "bert" else ["[CLS]", "[PAD]", "[SEP]", "[UNK]"]
    words = [*special, *WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    ids = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    directory.mkdir()
    tokenizer.save(str(directory / "tokenizer.json"))
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **names}
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    torch.manual_seed(7)
    shape, network = {"bert": (BertConfig, BertModel), "roberta": (RobertaConfig, RobertaModel)}[family]
    network(shape(vocab_size=len(words), pad_token_id=ids["[PAD]"], **SIZES)).save_pretrained(directory)
    return directory


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    return write_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def checkpoint(bert) -> Checkpoint:
    return read_checkpoint(bert, 20)


def vectors(checkpoint: Checkpoint, texts: list[str]) -> np.ndarray:
    return as_encoder(checkpoint, "mean").encode(texts)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_texts_of_kept_tokens_have_the_same_vectors(tmp_path, family):
    whole = read_checkpoint(write_bert(tmp_path / "model", family=family), 20)

    trimmed = trim_vocabulary(whole, KEPT)

    assert len(trimmed.state["embeddings.word_embeddings.weight"]) == 4 + 3 + 2 * len(LETTERS)
    assert np.array_equal(vectors(trimmed, OF_KEPT_TOKENS), vectors(whole, OF_KEPT_TOKENS))
    assert not np.allclose(vectors(trimmed, ["liver"]), vectors(whole, ["liver"]))


def test_any_text_still_has_a_unit_vector(checkpoint):
    found = vectors(trim_vocabulary(checkpoint, KEPT), [*probe_texts(lowercase=True), *WORDS, "☃"])

    assert np.allclose(np.linalg.norm(found, axis=1), 1)


def test_the_shrunk_checkpoint_leaves_the_whole_one_as_it_was(checkpoint):
    before = vectors(checkpoint, KEPT)

    shrink(checkpoint, Cut(layers=(0, 2), vocabulary=KEPT, dim=8), "mean")

    assert np.array_equal(vectors(checkpoint, KEPT), before)
    assert (checkpoint.network.config.num_hidden_layers, checkpoint.changes) == (4, ())


def test_kept_layers_are_run_one_after_another_and_no_other(checkpoint):
    texts = ["heart attack", "liver"]
    network, batch = checkpoint.network, checkpoint.tokenizer(texts, padding=True, return_tensors="pt")
    mask = batch["attention_mask"]
    with torch.inference_mode():
        hidden = network.embeddings(input_ids=batch["input_ids"])
        for number in (0, 3):
            hidden = network.encoder.layer[number](hidden, (1.0 - mask[:, None, None, :]) * -1e9)
            hidden = hidden[0] if isinstance(hidden, tuple) else hidden
    summed = (hidden * mask[:, :, None]).sum(dim=1)

    cut = keep_layers(checkpoint, (0, 3))

    expected = torch.nn.functional.normalize(summed).numpy()
    assert np.allclose(vectors(cut, texts), expected, atol=1e-5)
    assert not np.allclose(vectors(checkpoint, texts), expected, atol=1e-2)
    assert cut.shape.layers == 2


@pytest.mark.parametrize("layers", [(), (4,), (1, 0), (1, 1), (-1, 0)])
def test_layers_that_are_not_there_or_not_in_order_are_refused(checkpoint, layers):
    with pytest.raises(EncoderError, match="from 0 to 3 in ascending order"):
        keep_layers(checkpoint, layers)


@given(seed=st.integers(0, 50), count=st.integers(8, 40), dim=st.integers(1, 8))
def test_principal_axes_are_orthonormal_and_keep_more_of_the_vectors_than_others_do(seed, count, dim):
    rng = np.random.default_rng(seed)
    points = (rng.normal(size=(count, 8)) * np.arange(1, 9)).astype(np.float32)
    others = np.linalg.qr(rng.normal(size=(8, dim)))[0]

    axes = principal_axes(points, dim)

    assert axes.shape == (8, dim)
    assert np.allclose(axes.T @ axes, np.eye(dim), atol=1e-5)
    assert np.square(points @ axes).sum() >= np.square(points @ others).sum() * 0.9999
    assert np.array_equal(principal_axes(points[::-1], dim) > 0.05, axes > 0.05)


def test_axes_of_fewer_vectors_than_axes_are_refused():
    with pytest.raises(EncoderError, match="8 axes need as many names at least, not 3"):
        principal_axes(np.eye(3, 8, dtype=np.float32), 8)


def test_a_projected_name_is_the_projection_of_the_name(checkpoint):
    texts = ["heart attack", "liver", "left heart failure"]
    axes = principal_axes(vectors(checkpoint, probe_texts(lowercase=True)), 5)

    found = vectors(project(checkpoint, axes, "any"), texts)

    products = vectors(checkpoint, texts) @ axes
    assert np.allclose(np.linalg.norm(found, axis=1), 1)
    assert np.allclose(found, products / np.linalg.norm(products, axis=1, keepdims=True), atol=1e-5)


def test_all_principal_axes_together_keep_every_cosine(checkpoint):
    texts = probe_texts(lowercase=True)
    whole = vectors(checkpoint, texts)

    turned = vectors(shrink(checkpoint, Cut(dim=32, axes_of=texts), "mean"), texts)

    assert np.allclose(turned @ turned.T, whole @ whole.T, atol=1e-5)


def test_without_names_to_fit_on_the_first_numbers_are_kept(checkpoint):
    texts = ["heart attack", "liver"]

    found = vectors(shrink(checkpoint, Cut(dim=6), "mean"), texts)

    first = vectors(checkpoint, texts)[:, :6]
    assert np.allclose(found, first / np.linalg.norm(first, axis=1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("dim", [-1, 33])
def test_more_numbers_than_there_are_cannot_be_kept(checkpoint, dim):
    with pytest.raises(EncoderError, match="to 1 to 32 numbers"):
        shrink(checkpoint, Cut(dim=dim), "mean")


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("weights", ["fp32", "int8"])
def test_a_shrunk_export_agrees_with_the_shrunk_network_and_says_what_was_cut(bert, tmp_path, pooling, weights):
    texts = probe_texts(lowercase=True)
    cut = Cut(layers=(0, 2), vocabulary=KEPT, dim=8, axes_of=texts)
    expected = as_encoder(shrink(read_checkpoint(bert, 20), cut, pooling), pooling).encode(texts)

    report = export(bert, tmp_path / "out", pooling=pooling, max_length=20, weights=weights, cut=cut)

    encoder = load_encoder(tmp_path / "out")
    assert encoder.dim == report.dim == 8
    assert report.fp32.max_difference < 1e-5
    assert np.allclose(encoder.encode(texts).vectors, expected, atol=1e-5 if weights == "fp32" else 0.1)
    changes = read_manifest(tmp_path / "out")["base"]["changes"]
    assert changes == [
        "layers 0, 2 of 4 were kept",
        "79 of 83 tokens were kept",
        f"8 of 32 numbers of a vector were kept, along axes of {len(texts)} names",
    ]
    card = (tmp_path / "out" / "README.md").read_text()
    assert all(f"- Then cut: {change}.\n" in card for change in changes)


def test_a_whole_export_says_nothing_of_cuts(bert, tmp_path):
    export(bert, tmp_path / "out", pooling="mean", max_length=20)

    assert set(read_manifest(tmp_path / "out")["base"]) == {"model", "licence", "sha256"}
    assert "cut" not in (tmp_path / "out" / "README.md").read_text()


def test_first_axes_pick_the_first_numbers():
    assert np.array_equal(np.arange(5) @ first_axes(5, 2), [0, 1])
