"""What a fine-tuning run is made of."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path

from medlink.errors import SourceError
from training.recipe import LossName, PoolingName, Precision, Recipe
from training.toml_recipe import read_toml


@dataclass(frozen=True, slots=True)
class FinetuneRecipe:
    """A run of `medlink train finetune`; where the checkpoint was pretrained, keep its pooling and length."""

    pooling: PoolingName = "mean"
    """How token vectors become the vector of a text: as the checkpoint was trained."""
    max_length: int = 25
    """Most tokens of a text, special ones included."""
    loss: LossName = "multi-similarity"
    """Multi-Similarity over mined pairs, or InfoNCE over all."""
    margin: float = 0.2
    """Of the miner: Euclidean distance of unit vectors."""
    batch_mentions: int = 32
    """Mentions of a batch, each with the names that are drawn for it."""
    positive_names: int = 3
    """Names of the gold concepts beside each mention, drawn anew each epoch."""
    nearest_negatives: int = 8
    """Wrong names nearest to each mention, one a concept, by the encoder as it is when the epoch begins."""
    bm25_negatives: int = 3
    """Wrong names that share the most telling words with each mention, one a concept."""
    random_negatives: int = 2
    """Wrong names drawn for each mention, anew each epoch."""
    chunk_texts: int = 512
    """Texts encoded at once; fewer than a batch has means gradient caching."""
    epochs: int = 3
    """Passes over the mentions; negatives are looked for before each."""
    max_steps: int = 0
    """Stop after this many batches; 0 means all."""
    learning_rate: float = 2e-5
    """Peak of AdamW, falling linearly to 0."""
    weight_decay: float = 0.01
    """Of AdamW, on matrices only."""
    warmup: float = 0.1
    """Share of the steps in which the learning rate rises from 0."""
    clip: float = 1.0
    """Largest norm of the gradient."""
    precision: Precision = "bf16"
    """Of the encoder in training; loss, miner and the search for negatives are always fp32."""
    seed: int = 0
    """Decides order, dropout and what is drawn."""
    held_out_percent: float = 0.0
    """Names left out as in the pairs of the same terminology; 5 for a shipped encoder."""
    held_out_seed: int = 0
    """The seed of those pairs."""

    def __post_init__(self) -> None:
        least = {"batch_mentions": 1, "positive_names": 1, "chunk_texts": 1, "epochs": 1, "max_steps": 0}
        least |= {"nearest_negatives": 0, "bm25_negatives": 0, "random_negatives": 0}
        for key, bound in least.items():
            if getattr(self, key) < bound:
                raise ValueError(f"{key} must be at least {bound}")

    def as_pretraining(self, base: str) -> Recipe:
        """Return what the two kinds of run have in common, by key.

        Args:
            base: What the checkpoint is called.
        """
        common = {f.name for f in fields(Recipe)} & {f.name for f in fields(self)}
        return Recipe(base=base, **{key: value for key, value in asdict(self).items() if key in common})


def read_finetune_recipe(path: Path) -> FinetuneRecipe:
    """Read a recipe.

    Raises:
        SourceError: The file is missing, not TOML, or a key or value is not one of such a recipe; names it.
    """
    try:
        return read_toml(path, FinetuneRecipe)
    except ValueError as error:
        raise SourceError(str(error), file=str(path)) from None
