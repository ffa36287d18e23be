"""What a pretraining run is made of: a TOML file, every key known, every value of its type."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from medlink.errors import SourceError

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
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SourceError("no such recipe", file=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"not TOML: {error}", file=str(path)) from None
    hints = get_type_hints(Recipe)
    unknown = sorted(set(given) - set(hints))
    if unknown or "base" not in given:
        what = f"unknown key {unknown[0]!r}" if unknown else "the key 'base' is missing"
        raise SourceError(f"{what}; valid: {', '.join(f.name for f in fields(Recipe))}", file=str(path))
    return Recipe(**{key: _checked(key, value, hints[key], path) for key, value in given.items()})


def _checked(key: str, value: Any, hint: Any, path: Path) -> Any:  # noqa: ANN401 - TOML values of any type
    if choices := get_args(hint):
        if value not in choices:
            raise SourceError(f"{key} must be one of {', '.join(choices)}", file=str(path))
        return value
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise SourceError(f"{key} must be of type {hint.__name__}", file=str(path))
    return value
