"""Whether an exported encoder still gives the vectors of the network that it was made from."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from medlink.encoders.pooling import Pooling, pool
from medlink.errors import EncoderError
from medlink.protocols import Encoder
from medlink.text import encoder_text

MOST_DIFFERENCE = 1e-4

_FINDINGS = ("inflammation", "fracture", "malignant tumour", "congenital absence", "injury", "chronic pain")
_SITES = ("liver", "left kidney", "heart valve", "upper respiratory tract", "big toe", "brain", "C7", "retina")
_ODD = (
    "",
    "x",
    "IFN-γ",
    "β2-microglobulin",
    "2,3-dihydro-5-hydroxy-(1H)-indole",
    "Müller’s m² café 🩺",
    "ألم في الصدر",
    "心臓発作",
    "AIDS",
    "5% dextrose",
    "word " * 400,
)


@dataclass(frozen=True, slots=True)
class Drift:
    """How far one set of vectors is from another, row by row and in who is next to whom."""

    max_difference: float
    mean_cosine: float
    min_cosine: float
    changed_top1: float
    """Share of rows whose nearest other row is another one, and not by a tie."""


def probe_texts(*, lowercase: bool) -> list[str]:
    """Return some 60 encoder texts: names of every usual length, and the odd ones."""
    names = [f"{finding} of the {site}" for finding, site in product(_FINDINGS, _SITES)]
    return [encoder_text(name, lowercase=lowercase) for name in (*names, *_ODD)]


def torch_vectors(
    network: torch.nn.Module,
    tokenizer: Any,  # noqa: ANN401 - transformers gives its tokenizers no common type
    texts: Sequence[str],
    *,
    pooling: Pooling,
    max_length: int,
    padding: str,
) -> NDArray[np.float32]:
    """Encode texts the plain way: transformers' own tokenizer and network, padded batches, an attention mask.

    Args:
        network: In evaluation mode.
        tokenizer: As transformers loads it.
        texts: Encoder texts.
        pooling: As in the exported encoder.
        max_length: As in the exported encoder.
        padding: "longest" pads to the batch, "max_length" always.
    """
    parts = []
    for start in range(0, len(texts), 16):
        batch = tokenizer(
            list(texts[start : start + 16]),
            padding=padding,
            truncation=True,
            max_length=max_length,
            return_tensors="pt",
        )
        mask = batch["attention_mask"]
        with torch.inference_mode():
            hidden = network(input_ids=batch["input_ids"], attention_mask=mask).last_hidden_state
        parts.append(pool(hidden.float().numpy(), mask.numpy(), pooling))
    return np.concatenate(parts)


def drift(found: NDArray[np.float32], expected: NDArray[np.float32]) -> Drift:
    """Compare unit vectors, shape (n, dim), n > 1, with those that they should be."""
    cosines = (found * expected).sum(axis=1)
    similar = expected @ expected.T
    np.fill_diagonal(similar, -np.inf)
    found_similar = found @ found.T
    np.fill_diagonal(found_similar, -np.inf)
    chosen = similar[np.arange(len(similar)), found_similar.argmax(axis=1)]
    return Drift(
        max_difference=float(np.abs(found - expected).max()),
        mean_cosine=float(cosines.mean()),
        min_cosine=float(cosines.min()),
        changed_top1=float((similar.max(axis=1) - chosen > MOST_DIFFERENCE).mean()),
    )


def require_agreement(found: NDArray[np.float32], expected: NDArray[np.float32], against: str) -> Drift:
    """Return the drift of fp32 vectors from torch's.

    Raises:
        EncoderError: One number is off by more than 1e-4, or the nearest neighbour of a text has changed.
    """
    result = drift(found, expected)
    # Written so that a NaN fails.
    if not result.max_difference < MOST_DIFFERENCE or result.changed_top1:
        raise EncoderError(
            f"the exported network differs from {against}: by {result.max_difference:.2g} at most,"
            f" {result.changed_top1:.1%} of nearest neighbours changed; nothing was written"
        )
    return result


def require_batch_invariance(encoder: Encoder, texts: Sequence[str]) -> None:
    """Check that each text has the same vector, bit for bit, alone, among all and in another order.

    Raises:
        EncoderError: One has not.
    """
    together = encoder.encode(texts).vectors
    alone = np.concatenate([encoder.encode([text]).vectors for text in texts])
    backwards = encoder.encode(list(reversed(texts))).vectors[::-1]
    if not (np.array_equal(together, alone) and np.array_equal(together, backwards)):
        raise EncoderError(
            "the exported network gives a text another vector when other texts are encoded with it;"
            " nothing was written, check the version of onnxruntime"
        )
