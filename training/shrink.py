"""A checkpoint made smaller without training: fewer tokens, fewer layers, fewer numbers a vector."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast
from transformers.modeling_outputs import BaseModelOutput

from medlink.encoders.pooling import Pooling
from medlink.errors import EncoderError
from training.checkpoint import Checkpoint
from training.encoder import as_encoder
from training.graph import HEAD
from training.vocabulary import trim_tokenizer


@dataclass(frozen=True, slots=True)
class Cut:
    """What is left out of a checkpoint; the defaults leave it whole."""

    layers: tuple[int, ...] = ()
    """Layers to keep, counted from 0."""
    vocabulary: Sequence[str] = ()
    """Encoder texts whose tokens are kept."""
    dim: int = 0
    """Numbers of a vector."""
    axes_of: Sequence[str] = ()
    """Encoder texts along whose principal axes vectors are measured; the first `dim` numbers if left out."""


def shrink(checkpoint: Checkpoint, cut: Cut, pooling: Pooling) -> Checkpoint:
    """Return a checkpoint with everything that `cut` asks for, in the one order in which it can be done.

    Raises:
        EncoderError: There are no such layers, not so many numbers, too few texts, or a vocabulary of another kind.
    """
    if cut.layers:
        checkpoint = keep_layers(checkpoint, cut.layers)
    if cut.vocabulary:
        checkpoint = trim_vocabulary(checkpoint, cut.vocabulary)
    if cut.dim:
        width = checkpoint.shape.dim
        if not 1 <= cut.dim <= width:
            raise EncoderError(f"a vector can be cut to 1 to {width} numbers, not {cut.dim}")
        if not cut.axes_of:
            return project(checkpoint, first_axes(width, cut.dim), "the first ones")
        vectors = as_encoder(checkpoint, pooling).encode(cut.axes_of)
        checkpoint = project(checkpoint, principal_axes(vectors, cut.dim), f"along axes of {len(vectors):,} names")
    return checkpoint


def keep_layers(checkpoint: Checkpoint, layers: Sequence[int]) -> Checkpoint:
    """Return the network without its other layers.

    Args:
        checkpoint: Not yet projected.
        layers: Their numbers from 0, ascending.

    Raises:
        EncoderError: There are no such layers, or they stand in another order.
    """
    had = checkpoint.shape.layers
    if not layers or list(layers) != sorted(set(layers) & set(range(had))):
        raise EncoderError(f"layers must be numbers from 0 to {had - 1} in ascending order, not {list(layers)}")
    network: Any = deepcopy(checkpoint.network)
    network.encoder.layer = nn.ModuleList(network.encoder.layer[number] for number in layers)
    network.config.num_hidden_layers = len(layers)
    change = f"layers {', '.join(map(str, layers))} of {had} were kept"
    return _changed(replace(checkpoint, shape=replace(checkpoint.shape, layers=len(layers))), network, change)


def trim_vocabulary(checkpoint: Checkpoint, texts: Iterable[str]) -> Checkpoint:
    """Return the network without the tokens that no text uses; see `trim_tokenizer` for what stays anyway.

    Args:
        checkpoint: Not yet projected.
        texts: Encoder texts.

    Raises:
        EncoderError: The vocabulary is of a kind that is not cut here.
    """
    network: Any = deepcopy(checkpoint.network)
    padding: int = network.config.pad_token_id or 0
    trimmed, kept = trim_tokenizer(checkpoint.tokenizer_json, texts, fixed=padding + 1)
    table: Tensor = network.get_input_embeddings().weight.detach()
    network.set_input_embeddings(
        nn.Embedding(len(kept), table.shape[1], padding, _weight=table[torch.from_numpy(kept)].clone())
    )
    network.config.vocab_size = len(kept)
    special = checkpoint.tokenizer.special_tokens_map
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(trimmed), **special)
    whole = replace(checkpoint, tokenizer_json=trimmed, tokenizer=tokenizer)
    return _changed(whole, network, f"{len(kept):,} of {len(table):,} tokens were kept")


def project(checkpoint: Checkpoint, axes: NDArray[np.float32], which: str) -> Checkpoint:
    """Return the network with a matrix behind its last layer.

    A token is projected, not a name: both poolings are linear, so the vector of a name is the same, and an encoder
    needs nothing but its graph.

    Args:
        checkpoint: Whole, or without some layers and tokens.
        axes: One a column, shape (width, dim).
        which: What the axes are, in a few words, for whoever reads the model card.
    """
    width, dim = axes.shape
    state = {**checkpoint.state, HEAD: axes}
    change = f"{dim} of {width} numbers of a vector were kept, {which}"
    return replace(
        checkpoint,
        shape=replace(checkpoint.shape, dim=dim),
        state=state,
        network=_Projected(checkpoint.network, axes).eval(),
        changes=(*checkpoint.changes, change),
    )


def principal_axes(vectors: NDArray[np.float32], dim: int) -> NDArray[np.float32]:
    """Return the orthonormal axes that keep most of the cosines between vectors, shape (width, dim).

    Nothing is subtracted first, as PCA would: vectors are compared by angle, and the angle is seen from the origin.

    Args:
        vectors: Unit vectors, shape (n, width).
        dim: How many axes.

    Raises:
        EncoderError: There are fewer vectors than axes.
    """
    if len(vectors) < dim:
        raise EncoderError(f"{dim} axes need as many names at least, not {len(vectors)}")
    exact = vectors.astype(np.float64)
    # Ascending, so the last columns are those that matter.
    axes = np.linalg.eigh(exact.T @ exact).eigenvectors[:, ::-1][:, :dim]
    # An axis has no direction of its own; which one it gets must not hang on the machine.
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(dim)])
    return np.ascontiguousarray(axes * signs, np.float32)


def first_axes(width: int, dim: int) -> NDArray[np.float32]:
    """Return the axes of the first `dim` numbers, shape (width, dim)."""
    return np.eye(width, dim, dtype=np.float32)


class _Projected(nn.Module):
    """A network whose last hidden state is multiplied with a matrix."""

    def __init__(self, network: nn.Module, axes: NDArray[np.float32]) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("axes", torch.from_numpy(axes))

    @property
    def config(self) -> Any:  # noqa: ANN401 - each family has a type of its own
        return self.network.config

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> BaseModelOutput:
        hidden = self.network(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return BaseModelOutput(last_hidden_state=hidden @ self.axes)


def _changed(checkpoint: Checkpoint, network: nn.Module, change: str) -> Checkpoint:
    state = {name: values.float().numpy() for name, values in network.state_dict().items()}
    return replace(checkpoint, network=network.eval(), state=state, changes=(*checkpoint.changes, change))
