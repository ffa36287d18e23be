"""One step of training: encode a batch, mine, take the loss, go back through the network, and move the weights."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from training.cache import cached_backward
from training.encoder import TextEncoder, Tokens
from training.gather import gather
from training.losses import LOSSES, MINED, Loss, info_nce_loss
from training.miner import mine
from training.recipe import Recipe

_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Update(NamedTuple):
    """What one step did; shares are of the pairs that the batch allowed."""

    loss: float
    positives_kept: float
    negatives_kept: float
    learning_rate: float


class Updater:
    """Trains an encoder in place, on the GPU if there is one, together with the other processes of `torchrun`.

    Args:
        encoder: Moved to the device.
        recipe: Loss, miner, optimizer, precision, dropout and seed; data and epochs do not matter.
        total: Steps of the whole run, by which the learning rate falls.
        rank: Number of this process, for its dropout.
    """

    def __init__(self, encoder: TextEncoder, recipe: Recipe, total: int, *, rank: int = 0) -> None:
        self._recipe = recipe
        self._total = total
        self._rank = rank
        local = int(os.environ.get("LOCAL_RANK", "0"))
        self.device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
        self._encoder = encoder
        _prepare(encoder, recipe, self.device)
        forward: Any = torch.compile(encoder, dynamic=True) if recipe.compiled else encoder
        self._parallel = (
            DistributedDataParallel(forward, broadcast_buffers=False) if distributed.is_initialized() else None
        )
        self._forward = self._parallel or forward
        self.optimizer = _optimizer(encoder, recipe)
        self._scaler = torch.amp.GradScaler(self.device.type, enabled=recipe.precision == "fp16")

    def step(self, tokens: Tokens, positive: Tensor, negative: Tensor, number: int) -> Update:
        """Do step `number`, counted from 0.

        Args:
            tokens: This process's texts of the batch.
            positive: Pairs of the whole batch that may be pulled together, bool, shape (texts, texts).
            negative: Pairs that may be pushed apart, likewise.
            number: Decides dropout, so that a resumed run needs no random state.
        """
        seeds = np.random.SeedSequence([self._recipe.seed, self._rank, number])
        torch.manual_seed(int(seeds.generate_state(1)[0]))
        rate = _learning_rate(self._recipe, number, self._total)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        objective = _Objective(self._recipe, positive.to(self.device), negative.to(self.device))
        loss = float(self._backward(tokens, objective))
        self._scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self._encoder.parameters(), self._recipe.clip)
        self._scaler.step(self.optimizer)
        self._scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return Update(loss, *objective.kept, rate)

    def _backward(self, tokens: Tokens, objective: Callable[[Tensor], Tensor]) -> Tensor:
        chunks = [chunk.to(self.device) for chunk in tokens.split(self._recipe.chunk_texts)]
        if len(chunks) == 1:
            loss = objective(self._encode(chunks[0]))
            self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]  # torch leaves it without types
            return loss.detach()
        no_sync: Callable[[], AbstractContextManager[object]] = (
            self._parallel.no_sync if self._parallel else nullcontext
        )
        return cached_backward(self._encode, chunks, objective, scale=self._scaler.scale, no_sync=no_sync)

    def _encode(self, tokens: Tokens) -> Tensor:
        precision = self._recipe.precision
        with torch.autocast(self.device.type, _TYPES[precision], enabled=precision != "fp32"):
            vectors: Tensor = self._forward(tokens.ids, tokens.mask)
        return vectors


class _Objective:
    """The loss of a batch, and which shares of its pairs the miner kept, known once it was called."""

    def __init__(self, recipe: Recipe, positive: Tensor, negative: Tensor) -> None:
        self._recipe = recipe
        self._loss = _loss(recipe)
        self._pairs = (positive, negative)
        self.kept = (0.0, 0.0)

    def __call__(self, embeddings: Tensor) -> Tensor:
        everyone = gather(embeddings)
        if self._recipe.loss not in MINED:
            return self._loss(everyone, *self._pairs)
        mined = mine(everyone, *self._pairs, margin=self._recipe.margin)
        positive, negative = (
            float(kept.sum() / allowed.sum().clamp(min=1)) for kept, allowed in zip(mined, self._pairs, strict=True)
        )
        self.kept = (positive, negative)
        return self._loss(everyone, *mined)


def _prepare(encoder: TextEncoder, recipe: Recipe, device: torch.device) -> None:
    """Move the encoder where it trains, with the recipe's dropout."""
    network: Any = encoder.network
    if device.type == "cpu":
        # torch's fused attention takes four times as long to go back through in bf16 there.
        network.set_attn_implementation("eager")
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = recipe.dropout
    encoder.to(device).train()


def _loss(recipe: Recipe) -> Loss:
    return partial(info_nce_loss, temperature=recipe.temperature) if recipe.loss == "info-nce" else LOSSES[recipe.loss]


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
