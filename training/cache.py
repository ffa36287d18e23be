"""Gradients of a batch that is too large to encode at once, the same as if it had been."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

Chunk = TypeVar("Chunk")


def cached_backward(
    encode: Callable[[Chunk], Tensor],
    chunks: Sequence[Chunk],
    objective: Callable[[Tensor], Tensor],
    *,
    scale: Callable[[Tensor], Tensor] | None = None,
    no_sync: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Tensor:
    """Add the gradient of `objective` over all chunks to the parameters, holding the activations of one chunk.

    Gradient caching (Gao et al. 2021, section 3.2): encode all chunks without a graph, take the gradient with respect
    to the embeddings, then encode each chunk again, now with a graph, and go back from that gradient. Every row sees
    every other as its negative, which accumulating the gradients of small batches does not give. It costs one more
    forward pass.

    Requirements:
        - Under DDP, `encode` calls the wrapped module, `no_sync` is the wrapper's own, so that ranks wait for each
          other once and may have different numbers of chunks, and the wrapper has `broadcast_buffers=False`.
          `objective` calls `training.gather.gather` on what it is given.
        - All randomness of `encode` (dropout) is torch's, on the CPU or on the current CUDA device: it is replayed.
        - `objective` has no parameters of its own.

    Args:
        encode: Turns a chunk into embeddings, shape (rows, dim). Autocast may be inside it or around this call.
        chunks: At least one.
        objective: Takes the embeddings of all chunks in their order, shape (n, dim), and gives a scalar.
        scale: `GradScaler.scale` when encoding in fp16; the gradients come out scaled.
        no_sync: `DistributedDataParallel.no_sync`; held around all chunks but the last.

    Returns:
        The loss, detached and unscaled.

    Raises:
        ValueError: There are no chunks.
    """
    if not chunks:
        raise ValueError("no chunks to encode")
    states, parts = [], []
    with torch.no_grad():
        for chunk in chunks:
            states.append(_RandomState.now())
            parts.append(encode(chunk))
    loss, gradient = _differentiate(objective, torch.cat(parts), scale)
    # torch 2.9 lets autocast keep the weights that it converted above, which have no graph, for the pass below.
    torch.clear_autocast_cache()

    gradients = torch.split(gradient, [len(part) for part in parts])
    for number, (chunk, state, part) in enumerate(zip(chunks, states, gradients, strict=True), start=1):
        with no_sync() if number < len(chunks) else nullcontext(), state.replayed():
            torch.autograd.backward(encode(chunk), part)
    return loss


def _differentiate(
    objective: Callable[[Tensor], Tensor], embeddings: Tensor, scale: Callable[[Tensor], Tensor] | None
) -> tuple[Tensor, Tensor]:
    embeddings.requires_grad_()
    loss = objective(embeddings)
    (gradient,) = torch.autograd.grad(loss if scale is None else scale(loss), embeddings)
    return loss.detach(), gradient


@dataclass(frozen=True, slots=True)
class _RandomState:
    """Where torch's random numbers stand."""

    cpu: Tensor
    cuda: Tensor | None

    @classmethod
    def now(cls) -> "_RandomState":
        return cls(torch.get_rng_state(), torch.cuda.get_rng_state() if torch.cuda.is_available() else None)

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Draw from here again, then go on as if nothing had been drawn."""
        with torch.random.fork_rng([] if self.cuda is None else [torch.cuda.current_device()]):
            torch.set_rng_state(self.cpu)
            if self.cuda is not None:
                torch.cuda.set_rng_state(self.cuda)
            yield
