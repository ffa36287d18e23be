"""What training minimises: cosines of positives up, cosines of negatives down."""

from collections.abc import Callable
from math import inf

import torch
from torch import Tensor
from torch.nn import functional as F

from training.similarity import cosines

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Takes embeddings (n, dim), positive (n, n) and negative (n, n), and gives a scalar."""


def multi_similarity_loss(
    embeddings: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    alpha: float = 1.0,
    beta: float = 60.0,
    base: float = 0.5,
) -> Tensor:
    """Pull names of one concept together and push others away, the hardest pairs most.

    Each row a adds 1/alpha log(1 + sum_p exp(-alpha (cos(a,p) - base))) + 1/beta log(1 + sum_n exp(beta (cos(a,n) -
    base))): equation 10 of Wang et al. 2019, with the constants of SapBERT (Liu et al. 2021).

    Args:
        embeddings: Shape (n, dim), any floating type; normalised here and computed in fp32.
        positive: Pairs to pull together, bool, shape (n, n), anchors in rows; usually what `training.miner` kept.
        negative: Pairs to push apart, likewise.
        alpha: Weight of positives; larger looks only at the hardest ones.
        beta: Weight of negatives, likewise.
        base: Cosine around which both terms pivot.

    Returns:
        Scalar, the mean over all n rows; a row without pairs counts and adds nothing. Without any pair it is 0 and
        can still be differentiated.
    """
    cosine = cosines(embeddings) - base  # (n, n)
    pull = _soft_sum(-alpha * cosine, positive) / alpha
    push = _soft_sum(beta * cosine, negative) / beta
    return (pull + push).mean()


def info_nce_loss(embeddings: Tensor, positive: Tensor, negative: Tensor, *, temperature: float = 0.05) -> Tensor:
    """Pick the positive out of the anchor's negatives, by a softmax over cosines.

    Each pair (a,p) adds -log(exp(cos(a,p)/t) / (exp(cos(a,p)/t) + sum_n exp(cos(a,n)/t))): van den Oord et al. 2018,
    equation 4, and NT-Xent of Chen et al. 2020; other positives of the anchor are left out of its sum.

    Args:
        embeddings: Shape (n, dim), any floating type; normalised here and computed in fp32.
        positive: Pairs to pull together, bool, shape (n, n), anchors in rows.
        negative: Pairs to push apart, likewise. A softmax finds hard ones by itself: give all, not the mined ones.
        temperature: t; smaller looks only at the hardest negatives.

    Returns:
        Scalar, the mean over all positive pairs; 0, and still differentiable, where there is none.
    """
    scaled = cosines(embeddings) / temperature  # (n, n)
    # Not -inf: a row without negatives would have the gradient NaN.
    others = scaled.masked_fill(~negative, torch.finfo(scaled.dtype).min).logsumexp(dim=1, keepdim=True)
    each = F.softplus(others - scaled).masked_fill(~positive, 0)  # (n, n)
    return each.sum() / positive.sum().clamp(min=1)


MINED = frozenset({"multi-similarity"})
"""Losses that are given the mined pairs; a softmax finds the hard ones itself."""
LOSSES: dict[str, Loss] = {"multi-similarity": multi_similarity_loss, "info-nce": info_nce_loss}
"""The losses that a recipe can name."""


def _soft_sum(exponents: Tensor, mask: Tensor) -> Tensor:
    """Return log(1 + sum of exp) over the masked part of each row, shape (n,)."""
    kept = exponents.masked_fill(~mask, -inf)
    # The column of zeros is the 1, and keeps the gradient of a row without pairs finite.
    return torch.cat([kept, kept.new_zeros(len(kept), 1)], dim=1).logsumexp(dim=1)
