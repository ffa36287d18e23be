import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_metric_learning.miners import TripletMarginMiner
from torch.nn import functional as F

from training.masks import pair_masks
from training.miner import mine

pytestmark = pytest.mark.torch

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=12) | st.integers(1, 8).map(lambda n: [0] * n)
SEEDS = st.integers(0, 2**16)


def masks_of(labels: list[int]):
    return pair_masks(torch.tensor(labels), torch.tensor(labels), torch.ones(len(labels), dtype=torch.long))


def embeddings_of(rows: int, seed: int, *, dim: int = 3, repeat: bool = False):
    """Few dimensions and any length, so that some triplets violate the margin and some do not."""
    drawn = torch.randn(rows, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return drawn[torch.arange(rows) % 3] if repeat else drawn


def mined_triplet_by_triplet(embeddings, positive, negative, margin):
    unit = F.normalize(embeddings, dim=1)
    kept_positive, kept_negative = torch.zeros_like(positive), torch.zeros_like(negative)
    for a, p in positive.nonzero().tolist():
        for n in negative[a].nonzero().flatten().tolist():
            if (unit[a] - unit[n]).norm() - (unit[a] - unit[p]).norm() <= margin:
                kept_positive[a, p] = kept_negative[a, n] = True
    return kept_positive, kept_negative


@settings(max_examples=80, deadline=None)
@given(LABELS, SEEDS, st.sampled_from([0.0001, 0.2, 0.9]), st.booleans())
def test_agrees_with_every_triplet_looked_at(labels, seed, margin, repeat):
    positive, negative = masks_of(labels)
    embeddings = embeddings_of(len(labels), seed, repeat=repeat)
    # Pairs that are neither, as a string of two concepts makes them.
    negative &= torch.rand(negative.shape, generator=torch.Generator().manual_seed(seed)) < 0.8

    found = mine(embeddings, positive, negative, margin=margin)

    for mask, expected in zip(found, mined_triplet_by_triplet(embeddings, positive, negative, margin), strict=True):
        assert mask.tolist() == expected.tolist()


@settings(max_examples=40, deadline=None)
@given(LABELS, SEEDS)
def test_agrees_with_pytorch_metric_learning(labels, seed):
    embeddings = embeddings_of(len(labels), seed)

    positive, negative = mine(embeddings, *masks_of(labels))

    anchors, positives, negatives = TripletMarginMiner(margin=0.2, type_of_triplets="all")(
        embeddings, torch.tensor(labels)
    )
    assert set(map(tuple, positive.nonzero().tolist())) == set(zip(anchors.tolist(), positives.tolist(), strict=True))
    assert set(map(tuple, negative.nonzero().tolist())) == set(zip(anchors.tolist(), negatives.tolist(), strict=True))


def on_a_circle(*degrees: float):
    angles = torch.tensor(degrees).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def test_the_margin_is_a_distance_and_not_a_cosine():
    # From row 0: the positive at distance 0.52, negatives at 0.68 and 0.77; in cosines 0.87, 0.77 and 0.71.
    embeddings = on_a_circle(0, 30, 40, 45)
    positive, negative = masks_of([1, 1, 2, 3])

    kept_positive, kept_negative = mine(embeddings, positive, negative, margin=0.2)

    assert kept_positive[0].tolist() == [False, True, False, False]
    assert kept_negative[0].tolist() == [False, False, True, False]


def test_a_lone_anchor_and_a_batch_of_one_concept_keep_nothing():
    alone = mine(embeddings_of(4, 1), *masks_of([1, 2, 3, 4]), margin=2.0)
    one_concept = mine(embeddings_of(4, 1), *masks_of([1, 1, 1, 1]), margin=2.0)

    assert not any(mask.any() for mask in (*alone, *one_concept))


def test_half_precision_keeps_what_single_precision_of_the_same_rows_keeps():
    half = embeddings_of(60, 3, dim=16).bfloat16()
    masks = masks_of([row // 2 for row in range(60)])

    with torch.autocast("cpu", torch.bfloat16):
        found = mine(half, *masks)

    expected = mine(half.float(), *masks)
    assert 0 < expected[1].sum() < masks[1].sum()
    for mask, other in zip(found, expected, strict=True):
        assert torch.equal(mask, other)


def test_pairs_of_a_diverged_row_are_kept():
    embeddings = embeddings_of(4, 1)
    embeddings[0] = torch.nan

    positive, negative = mine(embeddings, *masks_of([1, 1, 2, 2]))

    assert positive[0, 1]
    assert negative[0, 2]


def test_mining_keeps_nothing_for_a_way_back():
    embeddings, masks, kept = embeddings_of(4, 1).requires_grad_(), masks_of([1, 1, 2, 2]), []

    with torch.autograd.graph.saved_tensors_hooks(kept.append, lambda tensor: tensor):
        mine(embeddings, *masks)

    assert not kept
