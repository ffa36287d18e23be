import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel, RobertaConfig, RobertaModel

from medlink.encoders import pooling as numpy_pooling
from medlink.errors import EncoderError, UnknownValueError
from training.cache import cached_backward
from training.encoder import pool, read_encoder, token_lengths, tokenize
from training.losses import multi_similarity_loss
from training.masks import pair_masks
from training.parity import torch_vectors

pytestmark = pytest.mark.torch

SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
TEXTS = ["a", "heart attack", "x" * 40, "liver", "ab cd ef gh ij", "liver"]


def write_checkpoint(directory: Path, *, family: str = "bert") -> Path:
    directory.mkdir()
    letters = [chr(point) for point in range(33, 127)]
    # As in real checkpoints: BERT pads with 0 and RoBERTa with 1, which its positions depend on.
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters), "liver"]
    if family == "roberta":
        words[:2] = words[1::-1]
    ids = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_padding(length=40, pad_token="[PAD]", pad_id=ids["[PAD]"])
    tokenizer.save(str(directory / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **SPECIAL}
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    torch.manual_seed(7)
    kind, network = {"bert": (BertConfig, BertModel), "roberta": (RobertaConfig, RobertaModel)}[family]
    shape = kind(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=40,
        initializer_range=0.3,
        pad_token_id=ids["[PAD]"],
    )
    network(shape).save_pretrained(directory)
    return directory


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("models") / "tiny-bert")


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_pools_as_the_serving_encoder_does(pooling):
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(5, 7, 6, generator=generator)
    mask = (torch.arange(7)[None, :] < torch.tensor([1, 3, 7, 4, 2])[:, None]).long()

    found = pool(hidden, mask, pooling)

    np.testing.assert_allclose(found, numpy_pooling.pool(hidden.numpy(), mask.numpy(), pooling), atol=1e-6)


def test_pools_half_precision_in_single_precision():
    hidden = torch.randn(3, 25, 8, generator=torch.Generator().manual_seed(1)).bfloat16()
    mask = torch.ones(3, 25, dtype=torch.long)

    for pooling in ("mean", "cls"):
        found = pool(hidden, mask, pooling)

        assert found.dtype == torch.float32
        torch.testing.assert_close(found, pool(hidden.float(), mask, pooling))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_encodes_as_transformers_does(tmp_path, family, pooling):
    directory = write_checkpoint(tmp_path / family, family=family)
    encoder = read_encoder(directory, pooling=pooling, max_length=12)

    found = encoder.encode(TEXTS, batch=4)

    network, tokenizer = AutoModel.from_pretrained(directory).eval(), AutoTokenizer.from_pretrained(directory)
    expected = torch_vectors(network, tokenizer, TEXTS, pooling=pooling, max_length=12, padding="longest")
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_encoding_has_no_dropout_and_leaves_training_as_it_was(bert):
    encoder = read_encoder(bert, pooling="cls", max_length=12).train()

    first, second = encoder.encode(TEXTS), encoder.encode(TEXTS)

    assert np.array_equal(first, second)
    assert encoder.training
    assert encoder.network.training
    assert encoder.encode([]).shape == (0, 32)


def test_tokens_are_cut_at_the_length_and_padded_to_the_longest(bert):
    encoder = read_encoder(bert, pooling="cls", max_length=12)

    tokens = tokenize(encoder.tokenizer, TEXTS)
    narrow = tokenize(encoder.tokenizer, ["liver", "a"])

    assert tokens.ids.shape == tokens.mask.shape == (6, 12)
    assert tokens.mask.sum(dim=1).tolist() == [3, 12, 12, 3, 12, 3]
    assert narrow.ids.shape == (2, 3)


def test_padding_is_what_the_network_takes_for_padding(tmp_path):
    encoder = read_encoder(write_checkpoint(tmp_path / "roberta", family="roberta"), pooling="cls", max_length=12)

    tokens = tokenize(encoder.tokenizer, TEXTS)

    assert tokens.ids[tokens.mask == 0].unique().tolist() == [encoder.network.config.pad_token_id] == [1]


def test_chunks_of_tokens_train_like_the_whole_batch(bert):
    labels = torch.arange(6) // 2

    def objective(embeddings):
        return multi_similarity_loss(embeddings, *pair_masks(labels, labels, torch.ones_like(labels)))

    whole, chunked = (read_encoder(bert, pooling="mean", max_length=12) for _ in range(2))
    tokens = tokenize(whole.tokenizer, TEXTS)
    chunks = tokens.split(2)

    cached_backward(lambda part: chunked(part.ids, part.mask), chunks, objective)

    objective(whole(tokens.ids, tokens.mask)).backward()
    assert [chunk.ids.shape for chunk in chunks] == [(2, 12), (2, 12), (2, 12)]
    assert tokens.split(1)[3].ids.shape == (1, 3)
    found, expected = (dict(model.named_parameters()) for model in (chunked, whole))
    for name, parameter in expected.items():
        torch.testing.assert_close(found[name].grad, parameter.grad, rtol=1e-4, atol=1e-5, msg=name)
    assert expected["network.embeddings.word_embeddings.weight"].grad.abs().max() > 1e-3


def test_mistakes_are_named(bert, tmp_path):
    with pytest.raises(UnknownValueError, match="pooling 'max'; valid: cls, mean"):
        read_encoder(bert, pooling="max", max_length=12)
    with pytest.raises(EncoderError, match=r"config\.json"):
        read_encoder(tmp_path, pooling="cls", max_length=12)


def test_token_lengths_are_those_of_the_tokens_however_many_texts(bert):
    tokenizer = read_encoder(bert, pooling="mean", max_length=12).tokenizer

    found = token_lengths(tokenizer, TEXTS)

    assert found.tolist() == [int(tokenize(tokenizer, [text]).mask.sum()) for text in TEXTS]
    assert found.max() == 12
    assert token_lengths(tokenizer, []).tolist() == []
