"""Batches of pairs: of like length, in an order that seed and epoch decide, the same wherever one resumes.

A batch is the same whatever the number of processes; each takes its share of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Pairs:
    """Concept, left and right text of each pair, by index; int32 (n,) each."""

    concept: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.concept)


@dataclass(frozen=True, slots=True)
class Shard:
    """Which share of every batch a process takes."""

    rank: int = 0
    world_size: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world_size:
            raise ValueError(f"rank {self.rank} is not one of {self.world_size} processes")


@dataclass(frozen=True, slots=True)
class Batch:
    """The texts of some pairs, all left ones before all right ones, and their concepts; int32 (2 * pairs,) each.

    To resume after it: `sampler.epoch(batch.epoch, start=batch.index + 1)`.
    """

    epoch: int
    index: int
    texts: NDArray[np.int32]
    labels: NDArray[np.int32]


class PairSampler:
    """Cuts pairs into batches, every pair at most once an epoch; what does not fill the last batch is dropped.

    Batches are of like length, to save padding: shuffled pairs are cut into chunks of `chunk_batches` batches, each
    chunk is sorted by length and cut, and the batches of all chunks are shuffled. With `neighbours` they are hard
    instead: concepts that are neighbours share a batch, where a concept has one pair as long as there are concepts
    enough to fill it, and lengths are mixed.

    Args:
        pairs: The pairs.
        lengths: Length of each text in tokens, as the encoder cuts it. Characters serve badly: on the open
            knowledge base half of what a batch holds is then padding, against a sixth.
        batch_pairs: Pairs of a whole batch, over all processes.
        seed: Decides the order, together with the number of the epoch.
        shard: The share of this process.
        chunk_batches: Batches that are sorted together; more of them save more padding and mix less.
        neighbours: For each concept its nearest ones, (concepts, k), filled up with -1.

    Raises:
        ValueError: The pairs do not fill one batch, the processes cannot share one equally, or the neighbours do not
            fit the pairs.
    """

    def __init__(
        self,
        pairs: Pairs,
        lengths: NDArray[np.int32],
        *,
        batch_pairs: int = 256,
        seed: int = 0,
        shard: Shard | None = None,
        chunk_batches: int = 50,
        neighbours: NDArray[np.int32] | None = None,
    ) -> None:
        self._pairs = pairs
        self._longer = np.maximum(lengths[pairs.left], lengths[pairs.right])
        self._batch_pairs = batch_pairs
        self._seed = seed
        self._shard = shard or Shard()
        self._chunk = chunk_batches * batch_pairs
        self._neighbours = neighbours
        if batch_pairs < 1 or chunk_batches < 1:
            raise ValueError("batch_pairs and chunk_batches must be at least 1")
        if batch_pairs % self._shard.world_size:
            raise ValueError(f"{self._shard.world_size} processes cannot share {batch_pairs} pairs equally")
        if len(pairs) < batch_pairs:
            raise ValueError(f"{len(pairs)} pairs do not fill one batch of {batch_pairs}")
        if neighbours is not None:
            _check(neighbours, pairs)

    def __len__(self) -> int:
        """Return the batches of an epoch."""
        return len(self._pairs) // self._batch_pairs

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """Yield this process's share of the batches of an epoch, from the one with index `start` on."""
        order = self.order(number)
        for index in range(start, len(order)):
            chosen = order[index, self._shard.rank :: self._shard.world_size]
            texts = np.concatenate([self._pairs.left[chosen], self._pairs.right[chosen]])
            yield Batch(number, index, texts, np.tile(self._pairs.concept[chosen], 2))

    def order(self, number: int) -> NDArray[np.int32]:
        """Return the pairs of each batch of an epoch, whole batches, shape (batches, batch_pairs)."""
        rng = np.random.default_rng([self._seed, number])
        shuffled = rng.permutation(np.arange(len(self._pairs), dtype=np.int32))
        if self._neighbours is None:
            arranged = self._by_length(shuffled[: len(self) * self._batch_pairs])
        else:
            arranged = self._by_neighbourhood(shuffled, self._neighbours, rng)[: len(self) * self._batch_pairs]
        return rng.permutation(arranged.reshape(len(self), self._batch_pairs))

    def _by_length(self, shuffled: NDArray[np.int32]) -> NDArray[np.int32]:
        for start in range(0, len(shuffled), self._chunk):
            chunk = shuffled[start : start + self._chunk]
            chunk[:] = chunk[np.argsort(self._longer[chunk], kind="stable")]
        return shuffled

    def _by_neighbourhood(
        self, shuffled: NDArray[np.int32], neighbours: NDArray[np.int32], rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Order pairs in rounds of one pair a concept, neighbours beside each other, the groups of each anew."""
        concept = self._pairs.concept[shuffled]
        group, place = _group(neighbours, np.unique(concept), rng)
        by_concept = np.argsort(concept, kind="stable")
        sizes = np.bincount(concept, minlength=len(neighbours))
        turn = np.empty(len(concept), np.int64)
        turn[by_concept] = np.arange(len(concept)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        met, which = np.unique(turn * len(neighbours) + group[concept], return_inverse=True)
        return shuffled[np.lexsort((place[concept], rng.permutation(len(met))[which], turn))]


def _check(neighbours: NDArray[np.int32], pairs: Pairs) -> None:
    if neighbours.ndim != 2 or len(neighbours) <= pairs.concept.max():
        raise ValueError("neighbours must have a row for every concept of the pairs")
    if neighbours.size and not -1 <= neighbours.min() <= neighbours.max() < len(neighbours):
        raise ValueError("neighbours must be concepts, or -1")


def _group(
    neighbours: NDArray[np.int32], concepts: NDArray[np.int32], rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the group of each concept, and its place in it: one at random, with those neighbours that had none yet."""
    group = np.full(len(neighbours), -1, np.int32)
    place = np.zeros(len(neighbours), np.int32)
    free = np.zeros(len(neighbours), np.bool_)
    free[concepts] = True
    for number, concept in enumerate(rng.permutation(concepts).tolist()):
        if free[concept]:
            members = [m for m in dict.fromkeys([concept, *neighbours[concept].tolist()]) if m >= 0 and free[m]]
            group[members], place[members], free[members] = number, np.arange(len(members)), False
    return group, place
