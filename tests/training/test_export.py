import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertConfig,
    BertModel,
    DistilBertConfig,
    RobertaConfig,
    RobertaModel,
)
from typer.testing import CliRunner

from medlink.cli.train import app
from medlink.encoders import OnnxEncoder, load_encoder
from medlink.errors import EncoderError, UnknownValueError
from medlink.manifest import describe_files, read_manifest, write_manifest
from training.checkpoint import read_checkpoint
from training.export import About, export
from training.graph import encoder_graph
from training.parity import drift, probe_texts, require_agreement, require_batch_invariance

pytestmark = pytest.mark.torch

SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
SHIPPED = Path(__file__).parents[2] / "artefacts" / "encoder"
SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 50,
    # Far from the usual 0.02, so that names differ and a wrong wire shows.
    "initializer_range": 0.3,
    "pad_token_id": 0,
}


def write_tokenizer(directory: Path, *, lowercase: bool) -> int:
    letters = [chr(point) for point in range(33, 127)]
    words = [*SPECIAL.values(), *letters, *(f"##{letter}" for letter in letters), "liver", "of", "the"]
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_padding(length=40, pad_token="[PAD]")
    tokenizer.save(str(directory / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **SPECIAL}
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return len(words)


def write_network(directory: Path, *, family: str = "bert", lowercase: bool = True, **changes: object) -> Path:
    directory.mkdir()
    size = write_tokenizer(directory, lowercase=lowercase)
    torch.manual_seed(7)
    config, network = {"bert": (BertConfig, BertModel), "roberta": (RobertaConfig, RobertaModel)}[family]
    network(config(vocab_size=size, **{**SHAPE, **changes})).save_pretrained(directory)
    return directory


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    return write_network(tmp_path_factory.mktemp("models") / "tiny-bert")


def expected_vectors(directory: Path, texts: list[str], pooling: str, max_length: int) -> np.ndarray:
    network, tokenizer = AutoModel.from_pretrained(directory).eval(), AutoTokenizer.from_pretrained(directory)
    rows = []
    for text in texts:
        inputs = tokenizer(text, truncation=True, max_length=max_length, padding=False, return_tensors="pt")
        inputs.pop("token_type_ids", None)
        with torch.inference_mode():
            hidden = network(**inputs).last_hidden_state[0]
        rows.append(hidden[0] if pooling == "cls" else hidden.mean(dim=0))
    return torch.nn.functional.normalize(torch.stack(rows)).numpy()


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_exported_encoder_gives_the_vectors_of_the_network(tmp_path, family, pooling):
    model = write_network(tmp_path / "model", family=family)
    texts = probe_texts(lowercase=True)

    report = export(model, tmp_path / "out", pooling=pooling, max_length=20, weights="fp32")

    encoder = load_encoder(tmp_path / "out")
    found, expected = encoder.encode(texts), expected_vectors(model, texts, pooling, 20)
    assert np.abs(found.vectors - expected).max() < 1e-5
    assert report.fp32.max_difference < 1e-5
    assert report.dim == encoder.dim == 32
    assert found.truncated[-1]


def test_bytes_cost_little_and_the_report_says_how_little(bert, tmp_path):
    fp32 = export(bert, tmp_path / "fp32", pooling="mean", max_length=20, weights="fp32")
    int8 = export(bert, tmp_path / "int8", pooling="mean", max_length=20)
    texts = probe_texts(lowercase=True)
    exact, stored = (load_encoder(tmp_path / name).encode(texts).vectors for name in ("fp32", "int8"))

    assert (fp32.stored.max_difference, fp32.stored.changed_top1) == (0, 0)
    assert int8.stored == drift(stored, exact)
    assert 0.999 < int8.stored.min_cosine < int8.stored.mean_cosine < 1
    assert read_manifest(tmp_path / "int8")["parity"]["stored_to_fp32"]["min_cosine"] == int8.stored.min_cosine
    sizes = [(tmp_path / name / "model.onnx").stat().st_size for name in ("fp32", "int8")]
    assert sizes[1] < 0.6 * sizes[0]


def test_stored_bytes_are_multiplied_out_before_anything_is_computed(bert, tmp_path):
    export(bert, tmp_path / "int8", pooling="mean", max_length=20)
    graph = onnx.load(tmp_path / "int8" / "model.onnx").graph
    weights = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in [node for node in graph.node if node.op_type == "DequantizeLinear"]:
        stored, scales = (weights[name] for name in node.input)
        repeats = len(stored) // len(scales)
        full = scales[:, None] if scales.ndim == 1 else np.repeat(scales, repeats, axis=0)
        graph.initializer.append(onnx.numpy_helper.from_array(stored.astype(np.float32) * full, node.output[0]))
        graph.node.remove(node)
    plain = tmp_path / "plain"
    export(bert, plain, pooling="mean", max_length=20)
    model = onnx.load(plain / "model.onnx")
    model.graph.CopyFrom(graph)
    (plain / "model.onnx").write_bytes(model.SerializeToString())
    write_manifest(plain, read_manifest(plain) | {"files": describe_files(plain)})
    texts = probe_texts(lowercase=True)

    found, expected = (load_encoder(directory).encode(texts).vectors for directory in (tmp_path / "int8", plain))

    assert np.array_equal(found, expected)


def test_the_same_checkpoint_gives_the_same_encoder(bert, tmp_path):
    for name in ("first", "second"):
        export(bert, tmp_path / name, pooling="cls", max_length=20)

    first, second = (read_manifest(tmp_path / name) for name in ("first", "second"))
    assert first == second


@pytest.mark.parametrize("lowercase", [True, False])
def test_case_is_read_from_the_tokenizer_unless_given(tmp_path, lowercase):
    model = write_network(tmp_path / "model", lowercase=lowercase)

    read = export(model, tmp_path / "read", pooling="cls", max_length=20)
    given = export(model, tmp_path / "given", pooling="cls", max_length=20, lowercase=not lowercase)

    assert (read.lowercase, given.lowercase) == (lowercase, not lowercase)
    assert load_encoder(tmp_path / "read").lowercase is lowercase


def test_licence_files_travel_with_the_weights(tmp_path):
    model = write_network(tmp_path / "model")
    (model / "LICENSE").write_text("do as you like")
    (model / "README.md").write_text("---\nlicense: mit\n---\n# A model\n")
    (tmp_path / "NOTICE").write_text("thanks")

    export(model, tmp_path / "out", pooling="cls", max_length=20, about=About(notices=[tmp_path / "NOTICE"]))

    assert (tmp_path / "out" / "LICENSE").read_text() == "do as you like"
    assert (tmp_path / "out" / "NOTICE").read_text() == "thanks"
    assert "licence: mit" in (tmp_path / "out" / "README.md").read_text()
    assert read_manifest(tmp_path / "out")["base"]["licence"] == "mit"


def assert_refused(model: Path, tmp_path: Path, says: str, max_length: int = 20) -> None:
    before = sorted(tmp_path.iterdir())

    with pytest.raises(EncoderError, match=says):
        export(model, tmp_path / "out", pooling="cls", max_length=max_length)

    assert sorted(tmp_path.iterdir()) == before


def test_a_network_that_computes_something_else_leaves_nothing_behind(tmp_path):
    # A decoder looks at earlier tokens only; the graph looks at all of them.
    model = write_network(tmp_path / "model", is_decoder=True)

    assert_refused(model, tmp_path, "differs from torch.*nothing was written")


def test_a_checkpoint_without_all_its_weights_is_refused(tmp_path):
    model = write_network(tmp_path / "model")
    weights = load_file(model / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})

    assert_refused(model, tmp_path, r"lacks 1 weights.*encoder\.layer\.1\.output\.dense\.weight")


def test_an_activation_that_the_graph_lacks_is_refused(tmp_path):
    assert_refused(write_network(tmp_path / "model", hidden_act="relu"), tmp_path, "'relu'.*'gelu' can")


def test_a_family_that_the_graph_lacks_is_refused_with_those_it_has(tmp_path):
    DistilBertConfig().save_pretrained(tmp_path / "model")

    assert_refused(tmp_path / "model", tmp_path, "'distilbert' cannot be exported; bert, roberta, xlm-roberta can")


def test_a_directory_that_is_no_checkpoint_is_refused(tmp_path):
    assert_refused(tmp_path / "nothing", tmp_path, r"no config\.json")


def test_weights_that_cannot_be_read_are_refused(tmp_path):
    model = write_network(tmp_path / "model")
    (model / "model.safetensors").unlink()

    assert_refused(model, tmp_path, "cannot read the checkpoint")


@pytest.mark.parametrize("max_length", [2, 51])
def test_a_length_that_the_network_has_no_positions_for_is_refused(bert, tmp_path, max_length):
    assert_refused(bert, tmp_path, "from 3 to 50", max_length)


def test_an_output_that_holds_something_is_left_alone(bert, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("x")

    assert_refused(bert, tmp_path, "exists")
    assert (tmp_path / "out" / "precious").read_text() == "x"


@pytest.mark.parametrize("wrong", [{"pooling": "max"}, {"weights": "int4"}])
def test_an_unknown_choice_lists_the_valid_ones(bert, tmp_path, wrong):
    with pytest.raises(UnknownValueError, match="valid: "):
        export(bert, tmp_path / "out", **{"pooling": "cls", "max_length": 20, **wrong})


def test_weights_in_another_file_are_refused(bert, tmp_path):
    directory = tmp_path / "out"
    export(bert, directory, pooling="cls", max_length=20, weights="fp32")
    model = onnx.load(directory / "model.onnx")
    onnx.save(model, directory / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    write_manifest(directory, read_manifest(directory) | {"files": describe_files(directory)})

    with pytest.raises(EncoderError, match="another file"):
        OnnxEncoder.load(directory)


def test_agreement_needs_every_number_and_every_neighbour():
    expected = np.eye(4, dtype=np.float32)[[0, 0, 1, 1]]
    nudged, swapped, broken = expected.copy(), expected[[0, 2, 1, 3]], expected.copy()
    nudged[0, 3] = 2e-4
    broken[0, 0] = np.nan

    assert require_agreement(expected, expected, "itself").changed_top1 == 0
    for wrong in (nudged, swapped, broken):
        with pytest.raises(EncoderError, match="differs from itself"):
            require_agreement(wrong, expected, "itself")


def test_drift_counts_changed_neighbours_but_no_ties():
    expected = np.array([[1, 0], [0.8, 0.6], [0, 1]], dtype=np.float32)
    changed = np.array([[1, 0], [0.8, 0.6], [0.6, -0.8]], dtype=np.float32)
    tied = np.ones((3, 2), dtype=np.float32) / np.float32(2**0.5)

    assert drift(changed, expected).changed_top1 == pytest.approx(1 / 3)
    assert drift(tied, tied).changed_top1 == 0


def test_the_graph_is_written_for_the_positions_that_are_used(bert):
    checkpoint = read_checkpoint(bert, 20)

    model = encoder_graph(checkpoint.state, checkpoint.shape, "fp32")

    (positions,) = [tensor for tensor in model.graph.initializer if tensor.name == "positions"]
    assert list(positions.dims) == [20, 32]


def test_the_shipped_encoder_is_small_the_same_in_any_batch_and_knows_synonyms():
    encoder = load_encoder(SHIPPED)
    texts = probe_texts(lowercase=True)

    require_batch_invariance(encoder, texts)
    assert encoder.dim <= 384
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 25e6
    facts = read_manifest(SHIPPED)
    assert (facts["base"]["model"], facts["base"]["licence"]) == (
        "sentence-transformers/all-MiniLM-L6-v2",
        "apache-2.0",
    )
    assert facts["parity"]["fp32_to_torch"]["max_difference"] < 1e-4
    asked = ["heart attack", "high blood pressure", "wilms tumor", "low blood sugar"]
    names = ["myocardial infarction", "hypertension", "nephroblastoma", "hypoglycemia", "heart failure", "hypotension"]
    cosines = encoder.encode(asked).vectors @ encoder.encode(names).vectors.T
    assert cosines.argmax(axis=1).tolist() == [0, 1, 2, 3]


def test_the_command_exports_and_says_how_close_it_came(bert, tmp_path):
    arguments = ["export", str(bert), str(tmp_path / "out"), "--pooling", "cls", "--cased", "--weights", "fp32"]

    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 0, result.output
    assert "tiny-bert, 32 numbers a vector" in result.output
    facts = read_manifest(tmp_path / "out")
    assert (facts["max_length"], facts["lowercase"], facts["pooling"]) == (25, False, "cls")


def test_the_command_asks_for_the_pooling_of_any_other_network(bert, tmp_path):
    result = CliRunner().invoke(app, ["export", str(bert), str(tmp_path / "out")])

    assert isinstance(result.exception, EncoderError)
    assert "--pooling" in str(result.exception)
