"""Self-alignment pretraining: names of one concept together, others apart (SapBERT, Liu et al. 2021).

Reads top down: `pretrain` sets up, fits, validates and saves. Under `torchrun` every process takes its share of each
batch, and mining sees the whole of it.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from training.cache import cached_backward
from training.checkpoint import read_checkpoint
from training.dev import DevNames
from training.encoder import TextEncoder, Tokens, read_encoder, token_lengths, tokenize
from training.gather import gather, gather_rows
from training.losses import LOSSES, MINED
from training.masks import pair_masks
from training.miner import mine
from training.pairset import PairSet, read_pairs
from training.recipe import Recipe
from training.run import Run, Step
from training.sampler import Batch, PairSampler, Shard

CHECKPOINT = "checkpoint"
Progress = Callable[[Step, int], None]
"""Called after each step, with how many there are in all."""

_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


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
        trainer = _Trainer(recipe, pair_set, shard)
        run = Run(output, {"recipe": asdict(recipe), "pairs": pair_set.manifest["files"]})
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
            network: Any = trainer.encoder.network
            network.save_pretrained(output / CHECKPOINT)
            read_checkpoint(recipe.base, recipe.max_length).tokenizer.save_pretrained(output / CHECKPOINT)
    return output / CHECKPOINT


class _Trainer:
    def __init__(self, recipe: Recipe, pair_set: PairSet, shard: Shard) -> None:
        self._recipe = recipe
        self._pair_set = pair_set
        self._shard = shard
        local = int(os.environ.get("LOCAL_RANK", "0"))
        self._device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
        self.encoder = read_encoder(recipe.base, pooling=recipe.pooling, max_length=recipe.max_length)
        self.encoder.to(self._device).train()
        self._parallel = (
            DistributedDataParallel(self.encoder, broadcast_buffers=False) if distributed.is_initialized() else None
        )
        self.optimizer = _optimizer(self.encoder, recipe)
        self._scaler = torch.amp.GradScaler(self._device.type, enabled=recipe.precision == "fp16")
        self._sampler = PairSampler(
            pair_set.pairs,
            token_lengths(self.encoder.tokenizer, pair_set.texts(np.arange(pair_set.text_count))),
            batch_pairs=recipe.batch_pairs,
            seed=recipe.seed,
            shard=shard,
        )
        steps = recipe.epochs * len(self._sampler)
        self.total = min(steps, recipe.max_steps or steps)

    def fit(self, first: int) -> Iterator[Step]:
        """Train from the step after `first` to the last."""
        for epoch in range(first // len(self._sampler), self._recipe.epochs):
            start = max(0, first - epoch * len(self._sampler))
            for batch in self._sampler.epoch(epoch, start):
                number = epoch * len(self._sampler) + batch.index
                if number >= self.total:
                    return
                yield self._step(batch, number)

    def _step(self, batch: Batch, number: int) -> Step:
        began = time.perf_counter()
        # Dropout depends on the step alone, so that a resumed run needs no random state.
        seeds = np.random.SeedSequence([self._recipe.seed, self._shard.rank, number])
        torch.manual_seed(int(seeds.generate_state(1)[0]))
        rate = _learning_rate(self._recipe, number, self.total)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        positive, negative = self._masks(batch)
        kept = [0.0, 0.0]

        def objective(embeddings: Tensor) -> Tensor:
            everyone = gather(embeddings)
            if self._recipe.loss not in MINED:
                return LOSSES[self._recipe.loss](everyone, positive, negative)
            mined = mine(everyone, positive, negative, margin=self._recipe.margin)
            kept[:] = [float(m.sum() / a.sum().clamp(min=1)) for m, a in zip(mined, (positive, negative), strict=True)]
            return LOSSES[self._recipe.loss](everyone, *mined)

        loss = self._backward(self._tokens(batch), objective)
        self._scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.encoder.parameters(), self._recipe.clip)
        self._scaler.step(self.optimizer)
        self._scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        names = len(batch.texts) * self._shard.world_size
        speed = names / (time.perf_counter() - began)
        return Step(number + 1, batch.epoch, float(loss), kept[0], kept[1], rate, round(speed, 1))

    def _backward(self, tokens: Tokens, objective: Callable[[Tensor], Tensor]) -> Tensor:
        chunks = [chunk.to(self._device) for chunk in tokens.split(self._recipe.chunk_texts)]
        if len(chunks) == 1:
            loss = objective(self._encode(chunks[0]))
            self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]  # torch leaves it without types
            return loss.detach()
        no_sync: Callable[[], AbstractContextManager[object]] = (
            self._parallel.no_sync if self._parallel else nullcontext
        )
        return cached_backward(self._encode, chunks, objective, scale=self._scaler.scale, no_sync=no_sync)

    def _encode(self, tokens: Tokens) -> Tensor:
        with torch.autocast(
            self._device.type, _TYPES[self._recipe.precision], enabled=self._recipe.precision != "fp32"
        ):
            vectors: Tensor = (self._parallel or self.encoder)(tokens.ids, tokens.mask)
        return vectors

    def _tokens(self, batch: Batch) -> Tokens:
        return tokenize(self.encoder.tokenizer, self._pair_set.texts(batch.texts))

    def _masks(self, batch: Batch) -> tuple[Tensor, Tensor]:
        related = self._pair_set.memberships.take(batch.texts)
        parts = (batch.labels, related.values, related.lengths)
        return pair_masks(*(gather_rows(torch.from_numpy(np.asarray(p, np.int64)).to(self._device)) for p in parts))


def dev_acc_at_1(encoder: TextEncoder, dev: DevNames) -> float:
    """Return which percentage of the queries have a name of their concept nearest."""
    queries, names = encoder.encode(dev.queries), encoder.encode(dev.names)
    parts = np.array_split(queries, len(queries) // 256 + 1)
    nearest = np.concatenate([(part @ names.T).argmax(axis=1) for part in parts])
    right = sum(c in dev.name_concepts[n] for c, n in zip(dev.query_concepts, nearest.tolist(), strict=True))
    return round(100 * right / len(dev.queries), 2)


def _learning_rate(recipe: Recipe, step: int, total: int) -> float:
    """Rise to the peak over the warm-up, then fall to zero, both linearly; `step` counts from 0."""
    warm = int(recipe.warmup * total)
    if step < warm:
        return recipe.learning_rate * (step + 1) / warm
    return recipe.learning_rate * (total - step) / max(1, total - warm)


def _optimizer(encoder: TextEncoder, recipe: Recipe) -> torch.optim.AdamW:
    matrices = [p for p in encoder.parameters() if p.ndim > 1]
    rest = [p for p in encoder.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate)


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
