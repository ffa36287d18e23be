"""A tokenizer without the tokens that nobody needs; it still reads every text."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from medlink.errors import EncoderError

_WINDOW = 16_384
_KINDS = ("WordPiece", "BPE", "Unigram")
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


def trim_tokenizer(tokenizer_json: str, texts: Iterable[str], *, fixed: int = 0) -> tuple[str, NDArray[np.int64]]:
    """Return a tokenizer with fewer tokens, and the old id of each of them, shape (tokens,), ascending.

    It keeps what `texts` use, the special tokens and single characters or bytes, so that a text in whose tokens all
    were kept is cut as before, and any other into smaller pieces. A character that the vocabulary has in longer
    pieces only keeps those; the words between two such characters may become unknown.

    Args:
        tokenizer_json: Content of a tokenizer.json without truncation and padding.
        texts: Encoder texts.
        fixed: So many tokens stay from the beginning of the vocabulary; positions of RoBERTa hang on its padding.

    Raises:
        EncoderError: The vocabulary is of a kind that is not cut here.
    """
    facts = json.loads(tokenizer_json)
    model = facts["model"]
    if model["type"] not in _KINDS:
        raise EncoderError(f"a vocabulary of type {model['type']} cannot be trimmed; {', '.join(_KINDS)} can")
    tokenizer = Tokenizer.from_str(tokenizer_json)
    ids: dict[str, int] = tokenizer.get_vocab()
    kept = {*range(fixed), *tokenizer.encode("").ids, *_used(tokenizer, texts)}
    kept.update(token["id"] for token in facts["added_tokens"])
    kept.update(ids[piece] for piece in _needed(model))
    if model["type"] == "BPE":
        kept |= _parts(model, kept)
    old = np.array(sorted(kept), np.int64)
    new = {int(number): place for place, number in enumerate(old)}
    _cut(model, new)
    for token in facts["added_tokens"]:
        token["id"] = new[token["id"]]
    _renumber(facts["post_processor"], new)
    return Tokenizer.from_str(json.dumps(facts)).to_str(), old


def _used(tokenizer: Tokenizer, texts: Iterable[str]) -> set[int]:
    found: set[int] = set()
    rest = iter(texts)
    while window := list(islice(rest, _WINDOW)):
        for encoding in tokenizer.encode_batch_fast(window):
            found.update(encoding.ids)
    return found


def _needed(model: dict[str, Any]) -> Iterator[str]:
    """Yield the pieces without which some text could not be read: those that no smaller ones can stand for."""
    pieces = _pieces(model)
    known = set(pieces)
    if model["type"] == "Unigram":
        if model["unk_id"] is not None:
            yield pieces[model["unk_id"]]
    elif model["unk_token"] in known:
        yield model["unk_token"]
    prefix = model.get("continuing_subword_prefix") or ""
    for piece in pieces:
        spelt = _spell(piece, prefix)
        if len(spelt) == 1 or not known.issuperset(spelt) or _BYTE.fullmatch(piece):
            yield piece


def _spell(piece: str, prefix: str) -> list[str]:
    """Return the smallest pieces of a piece.

    >>> _spell("flu", "##"), _spell("##id", "##")
    (['f', '##l', '##u'], ['##i', '##d'])
    """
    if prefix and piece.startswith(prefix) and piece != prefix:
        return [prefix + character for character in piece.removeprefix(prefix)]
    return [piece[:1], *(prefix + character for character in piece[1:])]


def _parts(model: dict[str, Any], kept: set[int]) -> set[int]:
    """Return everything that byte pairs are merged from on the way to the kept pieces."""
    vocabulary: dict[str, int] = model["vocab"]
    sources: dict[int, list[int]] = {}
    for left, right in model["merges"]:
        merged = vocabulary[_merge(model, left, right)]
        sources.setdefault(merged, []).extend((vocabulary[left], vocabulary[right]))
    found: set[int] = set()
    waiting = list(kept)
    while waiting:
        for part in sources.get(waiting.pop(), ()):
            if part not in found:
                found.add(part)
                waiting.append(part)
    return found


def _cut(model: dict[str, Any], new: dict[int, int]) -> None:
    if model["type"] == "Unigram":
        model["vocab"] = [piece for number, piece in enumerate(model["vocab"]) if number in new]
        model["unk_id"] = new.get(model["unk_id"])
        return
    by_id = sorted(model["vocab"].items(), key=lambda item: item[1])
    vocabulary = model["vocab"] = {piece: new[number] for piece, number in by_id if number in new}
    if model["type"] == "BPE":
        model["merges"] = [pair for pair in model["merges"] if _merge(model, *pair) in vocabulary]


def _merge(model: dict[str, Any], left: str, right: str) -> str:
    return left + right.removeprefix(model["continuing_subword_prefix"] or "")


def _pieces(model: dict[str, Any]) -> Sequence[str]:
    return [piece for piece, _ in model["vocab"]] if model["type"] == "Unigram" else list(model["vocab"])


def _renumber(processor: dict[str, Any] | None, new: dict[int, int]) -> None:
    """Give the special tokens that are put around a text their new ids."""
    if processor is None:
        return
    kind = processor["type"]
    if kind == "TemplateProcessing":
        for special in processor["special_tokens"].values():
            special["ids"] = [new[number] for number in special["ids"]]
    elif kind in ("BertProcessing", "RobertaProcessing"):
        for end in ("sep", "cls"):
            processor[end] = [processor[end][0], new[processor[end][1]]]
    elif kind == "Sequence":
        for part in processor["processors"]:
            _renumber(part, new)
