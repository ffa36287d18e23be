"""Which concepts an encoder takes for each other: what hard batches are made of."""

import numpy as np
import torch
from numpy.typing import NDArray

from training.encoder import TextEncoder
from training.pairset import PairSet

_ROWS = 1024


def concept_neighbours(encoder: TextEncoder, pair_set: PairSet, *, neighbours: int = 15) -> NDArray[np.int32]:
    """Return the nearest concepts of each concept that has pairs, by the vectors of one name each.

    Args:
        encoder: As it is now.
        pair_set: The pairs; the name of a concept is the left one of its first pair.
        neighbours: Most concepts of a row.

    Returns:
        Indices of concepts, nearest first, filled up with -1; shape (concepts, neighbours).
    """
    concepts, first = np.unique(pair_set.pairs.concept, return_index=True)
    vectors = torch.from_numpy(encoder.encode(pair_set.texts(pair_set.pairs.left[first])))
    if torch.cuda.is_available():
        vectors = vectors.cuda()
    wanted = min(neighbours, len(concepts) - 1)
    found = np.full((len(pair_set.concepts), neighbours), -1, np.int32)
    for start in range(0, len(concepts), _ROWS):
        rows = np.arange(start, min(start + _ROWS, len(concepts)))
        cosine = vectors[rows] @ vectors.T
        cosine[np.arange(len(rows)), rows] = -2.0
        found[concepts[rows], :wanted] = concepts[cosine.topk(wanted, dim=1).indices.cpu().numpy()]
    return found
