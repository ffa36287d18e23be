"""Self-alignment pretraining: names of one concept together, others apart (SapBERT, Liu et al. 2021).

Reads top down: `pretrain` sets up, fits, validates and saves. Under `torchrun` every process takes its share of each
batch, and mining sees the whole of it.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed

from training.checkpoint import read_checkpoint, write_checkpoint
from training.dev import DevNames
from training.encoder import TextEncoder, Tokens, read_encoder, token_lengths, tokenize
from training.gather import gather_rows
from training.masks import ancestors, pair_masks, spare_ancestors
from training.neighbours import concept_neighbours
from training.pairset import PairSet, read_pairs
from training.recipe import Recipe
from training.run import Run, Step
from training.sampler import Batch, PairSampler, Shard
from training.update import Updater

CHECKPOINT = "checkpoint"
Progress = Callable[[Step, int], None]
"""Called after each step, with how many there are in all."""


def pretrain(
    recipe: Recipe,
    pairs: Path,
    output: Path,
    *,
    dev: DevNames | None = None,
    progress: Progress = lambda step, total: None,
) -> Path:
    """Train, or go on with a run that was stopped, and return the directory of the finished checkpoint.

    Args:
        recipe: What to do.
        pairs: Directory of `medlink train pairs`.
        output: Directory of the run; a state in it is resumed.
        dev: Measured every `recipe.validate_every` steps.
        progress: Told of each step, on the first process.

    Raises:
        SourceError: The pairs cannot be read.
        EncoderError: The base cannot be read, or the state in `output` is of another run.
    """
    with _processes() as shard:
        pair_set = read_pairs(pairs)
        run = Run(output, {"recipe": asdict(recipe), "pairs": pair_set.manifest["files"]})
        trainer = _Trainer(recipe, pair_set, shard, run)
        first = run.restore(trainer.encoder, trainer.optimizer)
        lead = shard.rank == 0
        if lead:
            run.cut_log(first)
        for step in trainer.fit(first):
            if not lead:
                continue
            last = step.step == trainer.total
            measured = dev is not None and (last or step.step % recipe.validate_every == 0)
            noted = replace(step, dev_acc_at_1=dev_acc_at_1(trainer.encoder, dev)) if dev and measured else step
            run.log(noted)
            progress(noted, trainer.total)
            if last or step.step % recipe.save_every == 0:
                run.save(trainer.encoder, trainer.optimizer, step.step)
        if lead:
            base = read_checkpoint(recipe.base, recipe.max_length)
            write_checkpoint(base, trainer.encoder.network, output / CHECKPOINT)
    return output / CHECKPOINT


class _Trainer:
    def __init__(self, recipe: Recipe, pair_set: PairSet, shard: Shard, run: Run) -> None:
        self._recipe = recipe
        self._pair_set = pair_set
        self._shard = shard
        self._run = run
        self.encoder = read_encoder(recipe.base, pooling=recipe.pooling, max_length=recipe.max_length)
        self._lengths = token_lengths(self.encoder.tokenizer, pair_set.texts(np.arange(pair_set.text_count)))
        self._above = ancestors(pair_set.broader, recipe.spare_ancestors) if recipe.spare_ancestors else None
        self._batches = len(self._sampler())
        steps = recipe.epochs * self._batches
        self.total = min(steps, recipe.max_steps or steps)
        self._updater = Updater(self.encoder, recipe, self.total, rank=shard.rank)

    @property
    def optimizer(self) -> torch.optim.AdamW:
        """What a state keeps beside the weights."""
        return self._updater.optimizer

    def fit(self, first: int) -> Iterator[Step]:
        """Train from the step after `first` to the last."""
        for epoch in range(first // self._batches, self._recipe.epochs):
            start = max(0, first - epoch * self._batches)
            neighbours = self._neighbours(epoch, start) if self._recipe.hard_batches else None
            for batch in self._sampler(neighbours).epoch(epoch, start):
                number = epoch * self._batches + batch.index
                if number >= self.total:
                    return
                yield self._step(batch, number)

    def _sampler(self, neighbours: NDArray[np.int32] | None = None) -> PairSampler:
        return PairSampler(
            self._pair_set.pairs,
            self._lengths,
            batch_pairs=self._recipe.batch_pairs,
            seed=self._recipe.seed,
            shard=self._shard,
            neighbours=neighbours,
        )

    def _neighbours(self, epoch: int, start: int) -> NDArray[np.int32]:
        """Return the neighbours as they were when the epoch began, which a resumed run cannot compute again."""
        if start == 0 and self._shard.rank == 0:
            self._run.save_neighbours(epoch, concept_neighbours(self.encoder, self._pair_set))
        if distributed.is_initialized():
            distributed.barrier()
        return self._run.neighbours(epoch)

    def _step(self, batch: Batch, number: int) -> Step:
        began = time.perf_counter()
        done = self._updater.step(self._tokens(batch), *self._masks(batch), number)
        names = len(batch.texts) * self._shard.world_size
        speed = names / (time.perf_counter() - began)
        return Step(number + 1, batch.epoch, *done, names_per_second=round(speed, 1))

    def _tokens(self, batch: Batch) -> Tokens:
        return tokenize(self.encoder.tokenizer, self._pair_set.texts(batch.texts))

    def _masks(self, batch: Batch) -> tuple[Tensor, Tensor]:
        related = self._pair_set.memberships.take(batch.texts)
        labels, *rows = self._of_all(batch.labels, related.values, related.lengths)
        positive, negative = pair_masks(labels, *rows)
        if self._above:
            above = self._above.take(batch.labels)
            negative = spare_ancestors(negative, labels, *self._of_all(above.values, above.lengths))
        return positive, negative

    def _of_all(self, *parts: NDArray[np.integer]) -> list[Tensor]:
        """Return arrays of this process joined with those of the others."""
        return [gather_rows(torch.from_numpy(np.asarray(p, np.int64)).to(self._updater.device)) for p in parts]


def dev_acc_at_1(encoder: TextEncoder, dev: DevNames) -> float:
    """Return which percentage of the queries have a name of their concept nearest."""
    queries, names = encoder.encode(dev.queries), encoder.encode(dev.names)
    parts = np.array_split(queries, len(queries) // 256 + 1)
    nearest = np.concatenate([(part @ names.T).argmax(axis=1) for part in parts])
    right = sum(c in dev.name_concepts[n] for c, n in zip(dev.query_concepts, nearest.tolist(), strict=True))
    return round(100 * right / len(dev.queries), 2)


@contextmanager
def _processes() -> Iterator[Shard]:
    """Join the other processes of `torchrun`, if there are any."""
    if "RANK" not in os.environ:
        yield Shard()
        return
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield Shard(distributed.get_rank(), distributed.get_world_size())
    finally:
        distributed.destroy_process_group()
