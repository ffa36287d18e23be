"""Fine-tuning on mentions: each beside names of its concept, with the wrong names that are easiest to take for them.

Reads top down: `finetune` sets up; each epoch looks for negatives with the encoder as it then is (as BioSyn does, Sung
et al. 2020), fits, validates and saves. One process. A run that was stopped goes on from the end of
its last whole epoch, because negatives hang on the weights that an epoch began with.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medlink.errors import SourceError
from medlink.ragged import Ragged
from training.checkpoint import Checkpoint, write_checkpoint
from training.encoder import TextEncoder, as_encoder, tokenize
from training.finetune_recipe import FinetuneRecipe
from training.masks import pair_masks
from training.mentions import Mentions, Names, digest
from training.negatives import Bm25, Vectors, forbidden_names, nearest_names, one_a_concept, random_names, right_names
from training.pretrain import CHECKPOINT, Progress
from training.run import Run, Step
from training.update import Updater

# Names looked at for each concept that is wanted: one may own many of the nearest.
_NAMES_A_CONCEPT = 8


@dataclass(frozen=True, slots=True)
class FinetuneData:
    """What a run reads."""

    names: Names
    mentions: Mentions
    dev: Mentions | None = None
    """Measured after each epoch and never trained on."""
    sources: Mapping[str, Any] = field(default_factory=dict)
    """What all this was made of, as JSON; the state of the run keeps it."""


def finetune(
    recipe: FinetuneRecipe,
    checkpoint: Checkpoint,
    data: FinetuneData,
    output: Path,
    *,
    progress: Progress = lambda step, total: None,
) -> Path:
    """Train, or go on with a run that was stopped, and return the directory of the finished checkpoint.

    Args:
        recipe: What to do.
        checkpoint: What to begin from; its network is trained in place.
        data: Names, mentions to learn from and, maybe, mentions to measure on.
        output: Directory of the run; a state in it is resumed.
        progress: Told of each step.

    Raises:
        SourceError: There are no mentions to learn from, or none to measure on.
        EncoderError: The state in `output` is damaged or of another run.
    """
    if not data.mentions or (data.dev is not None and not data.dev):
        raise SourceError("no mention is left to learn from or to measure on", file="the corpora")
    encoder = as_encoder(checkpoint, recipe.pooling)
    batches = _Batches(recipe, data)
    updater = Updater(encoder, recipe.as_pretraining(checkpoint.name), batches.total)
    read = digest(data.names, data.mentions, *([data.dev] if data.dev else []))
    facts = {"recipe": asdict(recipe), "base": checkpoint.sha256, "data": read, "sources": dict(data.sources)}
    run = Run(output, facts)
    first = run.restore(encoder, updater.optimizer)
    run.cut_log(first)
    for step in _fit(recipe, data, encoder, batches, updater, first):
        run.log(step)
        progress(step, batches.total)
        if step.step == batches.total or step.step % batches.of_epoch == 0:
            run.save(encoder, updater.optimizer, step.step)
    write_checkpoint(checkpoint, encoder.network, output / CHECKPOINT)
    return output / CHECKPOINT


def _fit(
    recipe: FinetuneRecipe, data: FinetuneData, encoder: TextEncoder, batches: "_Batches", updater: Updater, first: int
) -> Iterator[Step]:
    """Train from the step after `first`, which ended an epoch, to the last."""
    if first >= batches.total:
        return
    vectors = encoder.encode(data.names.texts)
    for epoch in range(first // batches.of_epoch, recipe.epochs):
        for number, batch in batches.epoch(epoch, encoder.encode(data.mentions.texts), vectors):
            step = _step(encoder, updater, epoch, number, batch)
            last = step.step == batches.total
            if not last and step.step % batches.of_epoch:
                yield step
                continue
            # The vectors that an epoch ends with serve to measure it, and to find the negatives of the next.
            if data.dev or not last:
                vectors = encoder.encode(data.names.texts)
            yield replace(step, dev_acc_at_1=_acc_at_1(encoder, data.dev, data.names, vectors)) if data.dev else step
            if last:
                return


def _step(encoder: TextEncoder, updater: Updater, epoch: int, number: int, batch: "MentionBatch") -> Step:
    began = time.perf_counter()
    done = updater.step(tokenize(encoder.tokenizer, batch.texts), *batch.masks(), number)
    speed = len(batch.texts) / (time.perf_counter() - began)
    return Step(number + 1, epoch, *done, names_per_second=round(speed, 1))


@dataclass(frozen=True, slots=True)
class MentionBatch:
    """The texts of some mentions, then those of the names drawn for them, each once, and what relates them."""

    texts: list[str]
    concepts: Ragged
    """Concepts of each text."""
    ids: Ragged
    """Ids of each text, all those of its concepts among them."""

    def masks(self) -> tuple[Tensor, Tensor]:
        """Return which pairs are positives and which are negatives, bool, each (n, n).

        Texts that share a concept are positives, texts that share no id are negatives; what shares an id only, as
        two records of one disease may, is neither.
        """
        shares_concept, shares_id = ~_apart(self.concepts), ~_apart(self.ids)
        return shares_concept.fill_diagonal_(False), ~shares_id


class _Batches:
    """The batches of every epoch, which seed, epoch and the vectors that it begins with decide."""

    def __init__(self, recipe: FinetuneRecipe, data: FinetuneData) -> None:
        self._recipe = recipe
        self._names = data.names
        self._mentions = data.mentions
        self._right = right_names(data.mentions, data.names)
        self._forbidden = forbidden_names(data.mentions, data.names)
        # BM25 knows nothing of the encoder, so that these are the same in every epoch.
        bm25 = Bm25(data.names.texts) if recipe.bm25_negatives else None
        most = recipe.bm25_negatives * _NAMES_A_CONCEPT
        by_words = bm25.best_names(data.mentions.texts, self._forbidden, most) if bm25 else None
        self._by_words = by_words and one_a_concept(by_words, data.names.concepts, recipe.bm25_negatives)
        self.of_epoch = -(-len(data.mentions) // recipe.batch_mentions)
        steps = recipe.epochs * self.of_epoch
        self.total = min(steps, recipe.max_steps or steps)

    def epoch(self, epoch: int, mentions: Vectors, names: Vectors) -> Iterator[tuple[int, MentionBatch]]:
        """Yield the steps of an epoch, counted from 0 over all epochs, with their batches; the last may be smaller.

        Args:
            epoch: Counted from 0.
            mentions: Unit vectors of the mentions, shape (mentions, dim).
            names: Unit vectors of the names, shape (names, dim).
        """
        rng = np.random.default_rng([self._recipe.seed, epoch])
        order = rng.permutation(len(self._mentions))
        near = nearest_names(mentions, names, self._forbidden, self._recipe.nearest_negatives * _NAMES_A_CONCEPT)
        wrong = [
            one_a_concept(near, self._names.concepts, self._recipe.nearest_negatives),
            random_names(self._forbidden, len(self._names), self._recipe.random_negatives, rng),
            *([self._by_words] if self._by_words else []),
        ]
        positives = [self._some_right(at, rng) for at in range(len(self._mentions))]
        first = epoch * self.of_epoch
        for number in range(first, min(first + self.of_epoch, self.total)):
            start = (number - first) * self._recipe.batch_mentions
            chosen = order[start : start + self._recipe.batch_mentions]
            yield number, self._batch(chosen, [positives[at] for at in chosen], wrong)

    def _some_right(self, mention: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw names of the gold concepts; the one that reads like the mention teaches nothing, and comes last."""
        drawn = rng.permutation(self._right.row(mention))
        text = self._mentions.texts[mention]
        same = np.array([self._names.texts[name] == text for name in drawn], np.bool_)
        return np.concatenate([drawn[~same], drawn[same]])[: self._recipe.positive_names]

    def _batch(
        self, chosen: NDArray[np.int64], positives: list[NDArray[np.int32]], wrong: list[Ragged]
    ) -> MentionBatch:
        names = np.unique(np.concatenate([*positives, *(kind.take(chosen).values for kind in wrong)]))
        texts = [self._mentions.texts[at] for at in chosen] + [self._names.texts[at] for at in names]
        return MentionBatch(
            texts,
            _joined(self._mentions.concepts.take(chosen), self._names.concepts.take(names)),
            _joined(self._mentions.ids.take(chosen), self._names.ids.take(names)),
        )


def _acc_at_1(encoder: TextEncoder, dev: Mentions, names: Names, vectors: Vectors) -> float:
    """Return which percentage of the mention texts have a name of a gold concept nearest."""
    nothing = Ragged(np.zeros(len(dev) + 1, np.int64), np.empty(0, np.int32))
    nearest = nearest_names(encoder.encode(dev.texts), vectors, nothing, 1).values
    right = right_names(dev, names)
    return round(100 * sum(nearest[at] in right.row(at) for at in range(len(dev))) / len(dev), 2)


def _apart(rows: Ragged) -> Tensor:
    """Return which rows share no value, bool, (n, n); no row is apart from itself."""
    # Each row under a label of its own, below all values: then nothing but the values relates them.
    labels = -1 - torch.arange(len(rows))
    values, lengths = (torch.from_numpy(np.asarray(part, np.int64)) for part in (rows.values, rows.lengths))
    return pair_masks(labels, values, lengths)[1]


def _joined(first: Ragged, second: Ragged) -> Ragged:
    offsets = np.concatenate([first.offsets, second.offsets[1:] + first.offsets[-1]])
    return Ragged(offsets, np.concatenate([first.values, second.values]))
