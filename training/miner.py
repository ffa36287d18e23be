"""Keeps the pairs of a batch that are not yet apart by a margin."""

from math import inf

import torch
from torch import Tensor

from training.similarity import cosines


@torch.no_grad()
def mine(embeddings: Tensor, positive: Tensor, negative: Tensor, *, margin: float = 0.2) -> tuple[Tensor, Tensor]:
    """Keep the pairs that are in some triplet whose negative is not farther than its positive by more than `margin`.

    This is `TripletMarginMiner(margin, "all")` of SapBERT (Liu et al. 2021, section 2): a triplet of anchor a, positive
    p and negative n counts iff d(a,n) - d(a,p) <= margin. A pair is kept iff one of its triplets counts, and that is
    decided by the farthest positive, or the nearest negative, of its anchor: no (n, n, n) tensor is made.

    Args:
        embeddings: Shape (n, dim), n > 0; normalised here.
        positive: Pairs that may be pulled together, bool, shape (n, n), anchors in rows.
        negative: Pairs that may be pushed apart, bool, shape (n, n); no pair is in both.
        margin: Euclidean distance between unit vectors, from 0 to 2. It is not a difference of cosines.

    Returns:
        The kept part of `positive` and of `negative`. An anchor that lacks one kind keeps none of the other.
    """
    distance = (2 - 2 * cosines(embeddings)).clamp(min=0).sqrt()  # (n, n)
    farthest = distance.masked_fill(~positive, -inf).amax(dim=1, keepdim=True)
    nearest = distance.masked_fill(~negative, inf).amin(dim=1, keepdim=True)
    # Written so that a NaN is kept: a run that has diverged must show it in its loss, not a loss of 0.
    return positive & ~(nearest - distance > margin), negative & ~(distance - farthest > margin)
