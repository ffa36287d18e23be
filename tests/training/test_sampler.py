"""Batches: each pair at most once, of like length, the same for the same seed, shared out and resumed exactly."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.sampler import Pairs, PairSampler, Shard

LENGTHS = np.random.default_rng(7).integers(3, 60, 400).astype(np.int32)


def some_pairs(count: int, concepts: int = 40, seed: int = 0) -> Pairs:
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, len(LENGTHS), (2, count)).astype(np.int32)
    return Pairs(rng.integers(0, concepts, count).astype(np.int32), left, right)


def rows(batches) -> list[tuple[int, int, list[int], list[int]]]:
    return [(b.epoch, b.index, b.texts.tolist(), b.labels.tolist()) for b in batches]


def pairs_of(batches) -> list[tuple[int, int, int]]:
    found = []
    for batch in batches:
        half = len(batch.texts) // 2
        assert batch.labels[:half].tolist() == batch.labels[half:].tolist()
        found += zip(batch.labels.tolist(), batch.texts[:half].tolist(), batch.texts[half:].tolist())  # noqa: B905
    return found


def as_tuples(pairs: Pairs) -> list[tuple[int, int, int]]:
    return list(zip(pairs.concept.tolist(), pairs.left.tolist(), pairs.right.tolist(), strict=True))


@given(count=st.integers(8, 300), batch=st.integers(1, 8), chunk=st.integers(1, 5), epoch=st.integers(0, 3))
def test_an_epoch_takes_each_pair_once_but_what_does_not_fill_a_batch(count, batch, chunk, epoch):
    pairs = some_pairs(count)
    sampler = PairSampler(pairs, LENGTHS, batch_pairs=batch, chunk_batches=chunk)

    batches = list(sampler.epoch(epoch))

    assert len(batches) == len(sampler) == count // batch
    assert all(len(b.texts) == len(b.labels) == 2 * batch for b in batches)
    taken = Counter(pairs_of(batches))
    assert taken.total() == count // batch * batch
    assert taken <= Counter(as_tuples(pairs))


@given(
    count=st.integers(12, 200),
    epoch=st.integers(0, 5),
    start=st.integers(0, 20),
    seed=st.integers(0, 9),
    hard=st.booleans(),
)
def test_resuming_gives_exactly_the_batches_that_were_left(count, epoch, start, seed, hard):
    def sampler() -> PairSampler:
        return PairSampler(some_pairs(count), LENGTHS, batch_pairs=6, seed=seed, neighbours=ring(40) if hard else None)

    whole = rows(sampler().epoch(epoch))

    assert rows(sampler().epoch(epoch, start)) == whole[start:]


@given(world=st.sampled_from([1, 2, 3, 4]), epoch=st.integers(0, 3))
def test_processes_share_each_batch_equally_and_without_overlap(world, epoch):
    pairs = some_pairs(100)
    alone = list(PairSampler(pairs, LENGTHS, batch_pairs=12).epoch(epoch))

    shares = [
        list(PairSampler(pairs, LENGTHS, batch_pairs=12, shard=Shard(rank, world)).epoch(epoch))
        for rank in range(world)
    ]

    for whole, *parts in zip(alone, *shares, strict=True):
        assert {len(part.texts) for part in parts} == {24 // world}
        assert Counter(pairs_of(parts)) == Counter(pairs_of([whole]))


def test_epochs_and_seeds_differ_and_repeat():
    def order(seed: int, epoch: int) -> list[tuple[int, int, int]]:
        return pairs_of(PairSampler(some_pairs(200), LENGTHS, batch_pairs=8, seed=seed).epoch(epoch))

    assert order(0, 0) == order(0, 0)
    assert order(0, 0) != order(0, 1)
    assert order(0, 0) != order(1, 0)


def test_batches_are_of_like_length_and_in_no_order_of_length():
    pairs = some_pairs(6400)
    longer = np.maximum(LENGTHS[pairs.left], LENGTHS[pairs.right])

    def padding(chunk: int) -> float:
        order = PairSampler(pairs, LENGTHS, batch_pairs=32, chunk_batches=chunk).order(0)
        return float(1 - longer[order].mean() / longer[order].max(axis=1).mean())

    order = PairSampler(pairs, LENGTHS, batch_pairs=32, chunk_batches=50).order(0)
    means = longer[order].mean(axis=1)
    assert padding(50) < 0.05 < 0.2 < padding(1)
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.3


def test_the_pairs_left_out_change_from_epoch_to_epoch():
    pairs = Pairs(np.arange(11, dtype=np.int32), *np.arange(22, dtype=np.int32).reshape(2, 11))
    sampler = PairSampler(pairs, LENGTHS, batch_pairs=4)

    left_out = {frozenset(range(11)) - set(sampler.order(epoch).flatten().tolist()) for epoch in range(5)}

    assert len(left_out) > 1


def ring(concepts: int, reach: int = 2) -> np.ndarray:
    """Neighbours on a ring, the last column empty."""
    near = [[(c + step) % concepts for step in range(1, reach + 1)] + [-1] for c in range(concepts)]
    return np.array(near, np.int32)


def cliques(concepts: int, size: int) -> np.ndarray:
    """Concepts in groups that know each other and nobody else."""
    group = np.arange(concepts) // size * size
    members = group[:, None] + np.arange(size)
    return np.where(members == np.arange(concepts)[:, None], -1, members).astype(np.int32)


def test_neighbours_share_a_batch():
    concept = np.random.default_rng(1).permutation(np.repeat(np.arange(600, dtype=np.int32), 3))
    pairs = Pairs(concept, *np.random.default_rng(2).integers(0, 400, (2, 1800)).astype(np.int32))
    sampler = PairSampler(pairs, LENGTHS, batch_pairs=60, neighbours=cliques(600, 6))

    batches = [concept[chosen] for chosen in sampler.order(0)]

    assert all(len(set(batch.tolist())) == 60 for batch in batches)  # one pair of a concept in each
    assert all(set(Counter((batch // 6).tolist()).values()) == {6} for batch in batches)
    assert len({frozenset(batch.tolist()) for batch in batches}) == len(batches)


@given(count=st.integers(10, 200), epoch=st.integers(0, 3))
def test_hard_batches_take_each_pair_once_too(count, epoch):
    pairs = some_pairs(count)

    order = PairSampler(pairs, LENGTHS, batch_pairs=5, neighbours=ring(40)).order(epoch)

    assert order.shape == (count // 5, 5)
    assert len(set(order.flatten().tolist())) == order.size


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"batch_pairs": 0}, "at least 1"),
        ({"batch_pairs": 101}, "do not fill one batch"),
        ({"batch_pairs": 10, "shard": Shard(0, 3)}, "cannot share"),
        ({"batch_pairs": 10, "chunk_batches": 0}, "at least 1"),
        ({"batch_pairs": 10, "neighbours": ring(20)}, "a row for every concept"),
        ({"batch_pairs": 10, "neighbours": np.full((40, 2), 40, np.int32)}, "must be concepts"),
        ({"batch_pairs": 10, "neighbours": np.full((40, 2), -2, np.int32)}, "must be concepts"),
    ],
)
def test_what_cannot_work_is_refused(options, problem):
    with pytest.raises(ValueError, match=problem):
        PairSampler(some_pairs(100), LENGTHS, **options)


@pytest.mark.parametrize(("rank", "world"), [(2, 2), (-1, 2), (0, 0)])
def test_a_rank_that_does_not_exist_is_refused(rank, world):
    with pytest.raises(ValueError, match="rank"):
        Shard(rank, world)
