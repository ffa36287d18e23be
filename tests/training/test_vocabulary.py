import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from medlink.errors import EncoderError
from training.vocabulary import trim_tokenizer

SPEECH = [
    "heart attack",
    "heart failure",
    "attack of the heart",
    "failure of the left heart",
    "liver failure",
    "acute liver failure in adults",
    "left bundle branch block",
    "branch retinal vein occlusion",
    "β-catenin",
    "5% dextrose",
] * 3
KEPT = ["heart failure", "liver", "left branch"]


def word_piece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer.train_from_iterator(SPEECH, trainers.WordPieceTrainer(special_tokens=special, vocab_size=200))
    ends = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    return tokenizer


def byte_pairs() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(special_tokens=special, vocab_size=340, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(SPEECH, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    # As RoBERTa's mask: it has no row among the merged pieces.
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return tokenizer


def unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(special_tokens=special, vocab_size=80, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(SPEECH, trainer)
    ends = [(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=ends)
    return tokenizer


WHOLE = {"WordPiece": word_piece(), "BPE": byte_pairs(), "Unigram": unigram()}
TRIMMED = {kind: trim_tokenizer(whole.to_str(), KEPT) for kind, whole in WHOLE.items()}
LETTERS = sorted(set("".join(SPEECH)))


@pytest.mark.parametrize("kind", WHOLE)
def test_texts_of_kept_tokens_are_cut_as_before_and_their_ids_say_where_they_were(kind):
    trimmed, old = TRIMMED[kind]
    tokenizer = Tokenizer.from_str(trimmed)

    assert tokenizer.get_vocab_size() == len(old) < WHOLE[kind].get_vocab_size()
    assert (np.diff(old) > 0).all()
    for text in [*KEPT, "heart", "liver failure", "left branch failure", ""]:
        whole, fewer = WHOLE[kind].encode(text), tokenizer.encode(text)
        assert fewer.tokens == whole.tokens
        assert old[fewer.ids].tolist() == whole.ids


@pytest.mark.parametrize("kind", WHOLE)
def test_a_kept_id_names_the_token_that_it_named(kind):
    trimmed, old = TRIMMED[kind]
    tokenizer = Tokenizer.from_str(trimmed)

    names = [tokenizer.id_to_token(number) for number in range(len(old))]

    assert names == [WHOLE[kind].id_to_token(int(number)) for number in old]


@pytest.mark.parametrize("kind", WHOLE)
@given(text=st.text(st.sampled_from(LETTERS), max_size=40))
def test_any_text_that_could_be_read_still_can_be(kind, text):
    unknown = {"WordPiece": "[UNK]"}.get(kind, "<unk>")
    tokenizer = Tokenizer.from_str(TRIMMED[kind][0])

    whole, fewer = WHOLE[kind].encode(text).tokens, tokenizer.encode(text).tokens

    assert (unknown in fewer) == (unknown in whole)
    assert "".join(fewer).replace("##", "") == "".join(whole).replace("##", "")


@pytest.mark.parametrize("kind", WHOLE)
def test_a_dropped_word_is_spelt_in_smaller_pieces(kind):
    tokenizer = Tokenizer.from_str(TRIMMED[kind][0])

    whole, fewer = WHOLE[kind].encode("occlusion").tokens, tokenizer.encode("occlusion").tokens

    assert len(fewer) > len(whole)


@given(text=st.text(max_size=30))
def test_bytes_stand_for_any_character_of_the_world(text):
    tokenizer = Tokenizer.from_str(TRIMMED["BPE"][0])

    assert tokenizer.decode(tokenizer.encode(text).ids) == WHOLE["BPE"].decode(WHOLE["BPE"].encode(text).ids) == text


def test_a_character_without_a_piece_of_its_own_keeps_the_pieces_that_have_it():
    vocabulary = {"[UNK]": 0, "a": 1, "##a": 2, "aß": 3, "aa": 4, "##ßa": 5}
    whole = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))

    trimmed, old = trim_tokenizer(whole.to_str(), [])

    assert old.tolist() == [0, 1, 2, 3, 5]
    assert Tokenizer.from_str(trimmed).encode("aßa").tokens == ["aß", "##a"]


def test_byte_pieces_of_a_sentence_piece_vocabulary_stay():
    vocabulary = [("<unk>", 0.0), ("<0x41>", -2.0), ("<0x42>", -2.0), ("ab", -1.0), ("a", -3.0), ("b", -3.0)]
    alphabet = [(c, -9.0) for c in "<0x412>"]
    whole = Tokenizer(models.Unigram([*vocabulary, *alphabet], unk_id=0, byte_fallback=True))

    trimmed, old = trim_tokenizer(whole.to_str(), [])

    assert 3 not in old
    assert Tokenizer.from_str(trimmed).encode("A").tokens == ["<0x41>"]


def test_the_beginning_of_a_vocabulary_can_be_held_fast():
    _, old = trim_tokenizer(WHOLE["WordPiece"].to_str(), KEPT, fixed=40)

    assert old[:40].tolist() == list(range(40))


def test_the_post_processors_of_bert_and_of_a_sequence_are_renumbered():
    whole = Tokenizer.from_str(WHOLE["WordPiece"].to_str())
    facts = json.loads(whole.to_str())
    for name, place in (("[CLS]", 60), ("[SEP]", 61)):
        other = next(piece for piece, number in facts["model"]["vocab"].items() if number == place)
        vocabulary = facts["model"]["vocab"]
        vocabulary[name], vocabulary[other] = vocabulary[other], vocabulary[name]
    facts["added_tokens"] = []
    bert = {"type": "BertProcessing", "sep": ["[SEP]", 61], "cls": ["[CLS]", 60]}
    facts["post_processor"] = {"type": "Sequence", "processors": [bert]}
    moved = Tokenizer.from_str(json.dumps(facts))

    trimmed, old = trim_tokenizer(moved.to_str(), KEPT)

    found = Tokenizer.from_str(trimmed).encode("liver")
    assert found.tokens == ["[CLS]", "liver", "[SEP]"]
    assert old[found.ids].tolist() == moved.encode("liver").ids


def test_a_vocabulary_of_another_kind_is_refused_with_those_that_work():
    words = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))

    with pytest.raises(EncoderError, match="WordLevel cannot be trimmed; WordPiece, BPE, Unigram can"):
        trim_tokenizer(words.to_str(), [])
