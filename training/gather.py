"""Rows of all ranks in one tensor, so that mining sees the global batch."""

from typing import Any

import torch
from torch import Tensor, distributed


def gather(embeddings: Tensor) -> Tensor:
    """Return the embeddings of all ranks, and carry gradients back to those of this rank.

    Every rank must compute the same loss of the result: the global one. The gradient of a parameter is then the sum,
    over the ranks, of what flows through each rank's rows. DDP takes the mean of the ranks instead, so the way back
    multiplies by the number of ranks; whoever averages gradients as DDP does gets those of one process with the joined
    batch, and whoever adds them up must divide.

    Without an initialised process group this is the identity.

    Args:
        embeddings: Of this rank, shape (rows, dim); ranks may have different numbers of rows.

    Returns:
        Shape (rows of all ranks, dim), in order of rank.
    """
    if not distributed.is_initialized():
        return embeddings
    joined: Tensor = _Gather.apply(embeddings)  # type: ignore[no-untyped-call]
    return joined


def gather_rows(values: Tensor) -> Tensor:
    """Return what all ranks hold, concatenated along the first dimension in order of rank, without gradients.

    Without an initialised process group this is the identity.

    Args:
        values: Any type, shape (rows, ...); ranks may differ in rows only.
    """
    if not distributed.is_initialized():
        return values
    return torch.cat(_collect(values.detach()))


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, embeddings: Tensor) -> Tensor:  # noqa: ANN401 - torch gives the context no type
        parts = _collect(embeddings)
        rank = distributed.get_rank()
        ctx.ranks = len(parts)
        ctx.start = sum(len(part) for part in parts[:rank])
        ctx.rows = len(embeddings)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:  # noqa: ANN401
        # All ranks hold the gradient of the same loss: nothing has to be sent.
        own: Tensor = gradients[0][ctx.start : ctx.start + ctx.rows] * ctx.ranks
        return own


def _collect(values: Tensor) -> list[Tensor]:
    ranks = distributed.get_world_size()
    size = torch.tensor([len(values)], device=values.device)
    sizes = [torch.empty_like(size) for _ in range(ranks)]
    distributed.all_gather(sizes, size)
    rows = [int(each) for each in sizes]

    # all_gather wants one shape from every rank.
    padded = values.new_zeros((max(rows), *values.shape[1:]))
    padded[: len(values)] = values
    parts = [torch.empty_like(padded) for _ in range(ranks)]
    distributed.all_gather(parts, padded)
    return [part[:count] for part, count in zip(parts, rows, strict=True)]
