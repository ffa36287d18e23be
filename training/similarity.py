"""Cosines between the rows of a batch, in full precision whatever the encoder computes in."""

import torch
from torch import Tensor
from torch.nn import functional as F


def cosines(embeddings: Tensor) -> Tensor:
    """Return the cosine of every two rows, shape (n, n), in fp32, or in fp64 where the rows are.

    Autocast is switched off inside: bf16 is off by up to 0.004 on a cosine, which a weight of 60 in an exponent makes
    a quarter of the result. For the same reason leave `torch.set_float32_matmul_precision` at "highest".

    Args:
        embeddings: Rows of any length and floating type, shape (n, dim). They are normalised here, so vectors that
            bf16 left a little off length 1 do no harm.
    """
    with torch.autocast(embeddings.device.type, enabled=False):
        precise = embeddings.to(torch.promote_types(embeddings.dtype, torch.float32))
        unit = F.normalize(precise, dim=1)
        return unit @ unit.T
