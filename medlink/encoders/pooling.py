"""From one vector a token to one unit vector a text."""

from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

Pooling = Literal["mean", "cls"]
POOLINGS: tuple[str, ...] = get_args(Pooling)


def pool(hidden: NDArray[np.float32], mask: NDArray[np.int64], pooling: Pooling) -> NDArray[np.float32]:
    """Return one unit vector a text.

    Args:
        hidden: Last hidden state, shape (texts, tokens, dim).
        mask: 1 for tokens and 0 for padding, shape (texts, tokens); the first token of a text is never padding.
        pooling: "mean" averages over the mask, [CLS] and [SEP] included; "cls" takes the first token, before
            any pooler layer.

    Returns:
        Unit vectors, shape (texts, dim). A row depends on the text's own row of `hidden` and `mask` only.
    """
    if pooling == "cls":
        return normalise(hidden[:, 0])
    weights = mask[:, :, None].astype(np.float32)
    return normalise((hidden * weights).sum(axis=1) / weights.sum(axis=1))


def normalise(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale each row to length 1, shape (n, dim); a row of zeros stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return cast(NDArray[np.float32], vectors / np.maximum(lengths, np.float32(1e-12)))
