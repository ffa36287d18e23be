"""Which rows of a batch name one concept, and which may be pushed apart."""

import numpy as np
import torch
from torch import Tensor

from medlink.ragged import Ragged


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


def ancestors(broader: Ragged, levels: int) -> Ragged:
    """Return the concepts at most `levels` above each concept, itself left out even where a hierarchy runs in circles.

    Args:
        broader: Concepts directly above each concept.
        levels: At least 1.
    """
    count = len(broader)
    row, above = np.repeat(np.arange(count), broader.lengths), broader.values
    found = row * count + above
    for _ in range(levels - 1):
        parents = broader.take(above)
        reached = np.unique(np.repeat(row, parents.lengths) * count + parents.values)
        row, above = reached // count, reached % count
        found = np.union1d(found, reached)
    found = found[found // count != found % count]
    return Ragged.of_sorted((found // count).astype(np.int32), (found % count).astype(np.int32), count)


def spare_ancestors(negative: Tensor, labels: Tensor, above: Tensor, sizes: Tensor) -> Tensor:
    """Return the negatives without those whose concepts stand above each other.

    An annotator who lacks a narrow concept takes a broader one, and so does whoever asks a smaller vocabulary: a name
    must not be taught that its parent is as wrong as a stranger.

    Args:
        negative: Of `pair_masks`, bool, (n, n).
        labels: Concept of each row, shape (n,).
        above: Concepts above that of each row, row after row, shape (sum of sizes,).
        sizes: How many of `above` belong to each row, shape (n,).
    """
    concepts, column = torch.unique(labels, return_inverse=True)
    row = torch.arange(len(labels), device=labels.device).repeat_interleave(sizes)
    place = torch.searchsorted(concepts, above).clamp(max=len(concepts) - 1)
    present = concepts[place] == above
    stands = torch.zeros(len(labels), len(concepts), dtype=torch.bool, device=labels.device)
    stands[row[present], place[present]] = True
    over = stands[:, column]  # (n, n): whether the concept of the column stands above that of the row
    return negative & ~(over | over.T)


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
