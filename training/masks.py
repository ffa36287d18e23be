"""Which rows of a batch name one concept, and which may be pushed apart."""

import torch
from torch import Tensor


def pair_masks(labels: Tensor, related: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Return which pairs of rows are positives and which are negatives.

    Two rows of one concept are positives, as in SapBERT. Two rows are negatives if nothing relates them: no concept
    that has the string of one as a name, or is a trade name of such a concept or has it as one, is so related to the
    other. A pair that is neither must stay out of the loss: a string that two concepts share would otherwise be pushed
    away from itself, and such a pair, cosine 1, takes the whole negative weight of its row.

    Across ranks the three arguments are joined by `training.gather.gather_rows`, each by itself.

    Args:
        labels: Concept of each row, shape (n,), integers.
        related: Concepts of the string of each row, row after row, in the numbers of `labels`, shape (sum of sizes,).
            The row's own label may be left out. Order and repeats do not matter.
        sizes: How many of `related` belong to each row, shape (n,).

    Returns:
        `positive` and `negative`, bool, each (n, n) and symmetric; both are False on the diagonal.

    Raises:
        ValueError: The shapes do not fit together.
    """
    rows = len(labels)
    if len(sizes) != rows or int(sizes.sum()) != len(related):
        raise ValueError(f"{rows} labels, {len(sizes)} sizes with the sum {int(sizes.sum())}, {len(related)} related")
    same = labels[:, None] == labels[None, :]  # (n, n)
    negative = ~(same | _share_a_concept(labels, related, sizes))
    return same.fill_diagonal_(False), negative


def _share_a_concept(labels: Tensor, related: Tensor, sizes: Tensor) -> Tensor:
    """Return which rows of two labels have a concept in common, bool, (n, n); rows of one label as it comes."""
    own = torch.arange(len(labels), device=labels.device)
    row = torch.cat([own, own.repeat_interleave(sizes)])
    concepts, column = torch.unique(torch.cat([labels, related]), return_inverse=True)

    holder = labels[row].to(concepts.dtype)
    # Most concepts are held under one label only and relate nothing: what is left makes a narrow matrix.
    lowest, highest = (
        torch.zeros_like(concepts).scatter_reduce(0, column, holder, how, include_self=False)
        for how in ("amin", "amax")
    )
    relates = (lowest != highest)[column]
    concepts, column = torch.unique(column[relates], return_inverse=True)
    holds = torch.zeros(len(labels), len(concepts), device=labels.device)
    holds[row[relates], column] = 1
    return (holds @ holds.T) > 0
