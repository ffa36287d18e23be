"""A network half-way between two, such as before and after training.

Weights of networks that were trained from the same start can be averaged; the mean often keeps what training taught
and forgets less of what the start knew (WiSE-FT, Wortsman et al. 2022, section 3).
"""

from pathlib import Path
from typing import Any

from medlink.errors import EncoderError
from training.checkpoint import Checkpoint, write_checkpoint


def average(before: Checkpoint, after: Checkpoint, output: Path, *, weight: float) -> None:
    """Write the checkpoint (1 - weight) * before + weight * after.

    Args:
        before: Lends its tokenizer, licence and origin.
        after: Of the same architecture and vocabulary.
        output: Must not exist, or be empty.
        weight: From 0, which is `before`, to 1, which is `after`.

    Raises:
        ValueError: `weight` is not from 0 to 1.
        EncoderError: The two have other weights or vocabularies, or `output` is not empty.
    """
    if not 0 <= weight <= 1:
        raise ValueError("weight must be from 0 to 1")
    if output.exists() and any(output.iterdir()):
        raise EncoderError(f"{output} is not empty")
    network: Any = before.network
    mixed, other = network.state_dict(), after.network.state_dict()
    same = {name: values.shape for name, values in mixed.items()} == {name: v.shape for name, v in other.items()}
    if not same or before.tokenizer_json != after.tokenizer_json:
        raise EncoderError("the checkpoints differ in their weights' shapes or in their tokenizers")
    for name, values in mixed.items():
        if values.is_floating_point():
            mixed[name] = values.lerp(other[name], weight)
    network.load_state_dict(mixed)
    write_checkpoint(before, network, output)
