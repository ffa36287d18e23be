"""What a pretraining run is made of: a TOML file, every key known, every value of its type."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from training.toml_recipe import read_toml

Precision = Literal["fp32", "bf16", "fp16"]
LossName = Literal["multi-similarity", "info-nce"]
PoolingName = Literal["mean", "cls"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A run of `medlink train pretrain`; the defaults are SapBERT's (Liu et al. 2021, section 3)."""

    base: str
    """Local Hugging Face directory, or "minilm"."""
    pooling: PoolingName = "cls"
    """How token vectors become the vector of a name."""
    max_length: int = 25
    """Most tokens of a name, special ones included."""
    loss: LossName = "multi-similarity"
    """Multi-Similarity over mined pairs, or InfoNCE over all."""
    margin: float = 0.2
    """Of the miner: Euclidean distance of unit vectors."""
    temperature: float = 0.05
    """Of InfoNCE; smaller looks only at the hardest negatives."""
    hard_batches: bool = False
    """Whether concepts that are neighbours by the encoder of the epoch's beginning share a batch."""
    spare_ancestors: int = 0
    """Levels of broader concepts that are no negatives of a concept; 0 pushes them away like any other, as SapBERT."""
    dropout: float = 0.1
    """Of hidden states and attention. A run of one epoch over millions of pairs needs none, and is faster without."""
    batch_pairs: int = 256
    """Pairs of a batch, over all processes; a pair is two names."""
    chunk_texts: int = 512
    """Names that a process encodes at once; fewer than its share of a batch means gradient caching."""
    epochs: int = 1
    """Passes over the pairs."""
    max_steps: int = 0
    """Stop after this many batches; 0 means all."""
    learning_rate: float = 2e-5
    """Peak of AdamW, falling linearly to 0."""
    weight_decay: float = 0.01
    """Of AdamW, on matrices only."""
    warmup: float = 0.0
    """Share of the steps in which the learning rate rises from 0."""
    clip: float = 1.0
    """Largest norm of the gradient."""
    precision: Precision = "bf16"
    """Of the encoder; loss and miner are always fp32."""
    compiled: bool = False
    """Whether torch compiles the encoder: half as fast again on a CPU, after a minute; needs a C++ compiler there."""
    seed: int = 0
    """Decides order and dropout."""
    validate_every: int = 500
    """Steps between measurements on the dev names."""
    save_every: int = 500
    """Steps between states that a run can be resumed from."""


def read_recipe(path: Path) -> Recipe:
    """Read a recipe.

    Raises:
        SourceError: The file is missing, not TOML, or a key or value is not one of a recipe; names it.
    """
    return read_toml(path, Recipe)
