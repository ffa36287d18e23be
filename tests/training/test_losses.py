from math import exp, log

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pytorch_metric_learning.losses import MultiSimilarityLoss, NTXentLoss
from pytorch_metric_learning.miners import TripletMarginMiner
from torch.nn import functional as F

from training.losses import LOSSES, info_nce_loss, multi_similarity_loss
from training.masks import pair_masks
from training.miner import mine

pytestmark = pytest.mark.torch

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=10) | st.integers(1, 8).map(lambda n: [0] * n)
SEEDS = st.integers(0, 2**16)


def masks_of(labels: list[int]):
    return pair_masks(torch.tensor(labels), torch.tensor(labels), torch.ones(len(labels), dtype=torch.long))


def embeddings_of(rows: int, seed: int, *, dim: int = 3, dtype=torch.float64):
    drawn = torch.randn(rows, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return drawn.to(dtype).requires_grad_()


def value_and_gradient(loss, embeddings):
    (gradient,) = torch.autograd.grad(loss, embeddings)
    return loss.detach(), gradient


def require_equal(found, expected, **tolerance):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, check_dtype=False, **tolerance)


def multi_similarity_pair_by_pair(embeddings, positive, negative):
    unit = F.normalize(embeddings, dim=1)
    total = 0 * embeddings.sum()
    for a in range(len(unit)):
        positives, negatives = (mask[a].nonzero().flatten().tolist() for mask in (positive, negative))
        pull = sum(((-1.0 * (unit[a] @ unit[p] - 0.5)).exp() for p in positives), start=torch.tensor(1.0))
        push = sum(((60.0 * (unit[a] @ unit[n] - 0.5)).exp() for n in negatives), start=torch.tensor(1.0))
        total = total + pull.log() / 1.0 + push.log() / 60.0
    return total / len(unit)


def info_nce_pair_by_pair(embeddings, positive, negative):
    unit = F.normalize(embeddings, dim=1)
    terms = [0 * embeddings.sum()]
    for a, p in positive.nonzero().tolist():
        weight = (unit[a] @ unit[p] / 0.05).exp()
        others = sum((unit[a] @ unit[n] / 0.05).exp() for n in negative[a].nonzero().flatten().tolist())
        terms.append(-(weight / (weight + others)).log())
    return sum(terms) / max(1, len(terms) - 1)


SLOW = {"multi-similarity": multi_similarity_pair_by_pair, "info-nce": info_nce_pair_by_pair}


@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=60, deadline=None)
@given(labels=LABELS, seed=SEEDS, mined=st.booleans())
def test_agrees_with_a_loop_over_pairs_in_value_and_gradient(name, labels, seed, mined):
    embeddings = embeddings_of(len(labels), seed)
    masks = masks_of(labels)
    if mined:
        masks = mine(embeddings, *masks)

    found = value_and_gradient(LOSSES[name](embeddings, *masks), embeddings)

    expected = value_and_gradient(SLOW[name](embeddings, *masks), embeddings)
    require_equal(found, expected, rtol=1e-6, atol=1e-8)


def both_libraries(embeddings, labels: list[int]):
    """Return value and gradient of ours and of theirs, and how many triplets were mined."""
    ours = multi_similarity_loss(embeddings, *mine(embeddings, *masks_of(labels)))
    triplets = TripletMarginMiner(0.2, type_of_triplets="all")(embeddings, torch.tensor(labels))
    theirs = MultiSimilarityLoss(1, 60, 0.5)(embeddings, torch.tensor(labels), triplets)
    return value_and_gradient(ours, embeddings), value_and_gradient(theirs, embeddings), len(triplets[0])


@settings(max_examples=60, deadline=None)
@given(labels=LABELS, seed=SEEDS)
def test_miner_and_multi_similarity_equal_pytorch_metric_learning(labels, seed):
    ours, theirs, triplets = both_libraries(embeddings_of(len(labels), seed), labels)

    assume(triplets != 1)
    require_equal(ours, theirs, rtol=1e-9, atol=1e-12)


def test_a_single_mined_triplet_counts_though_pytorch_metric_learning_drops_it():
    degrees = torch.tensor([0.0, 90.0, 120.0], dtype=torch.float64)
    radians = degrees.deg2rad()
    embeddings = torch.stack([radians.cos(), radians.sin()], dim=1).requires_grad_()

    # Of anchor 1 the negative is nearer than the positive; of anchor 0 it is farther by 0.32.
    (loss, _), theirs, triplets = both_libraries(embeddings, [0, 0, 1])

    assert triplets == 1
    assert theirs[0] == 0
    assert loss.item() == pytest.approx((log(1 + exp(0.5)) + log(1 + exp(60 * (3**0.5 / 2 - 0.5))) / 60) / 3)


def test_miner_and_multi_similarity_equal_pytorch_metric_learning_on_a_whole_batch():
    labels = [row // 2 for row in range(128)]

    ours, theirs, triplets = both_libraries(embeddings_of(128, 5, dim=24, dtype=torch.float32), labels)

    assert 128 < triplets < 128 * 126
    require_equal(ours, theirs, rtol=1e-5, atol=1e-7)


def test_info_nce_equals_pytorch_metric_learning():
    labels = [0, 0, 0, 1, 1, 2, 3, 3]
    embeddings = embeddings_of(8, 2)

    loss = info_nce_loss(embeddings, *masks_of(labels), temperature=0.07)

    theirs = NTXentLoss(0.07)(embeddings, torch.tensor(labels))
    require_equal(value_and_gradient(loss, embeddings), value_and_gradient(theirs, embeddings), rtol=1e-6, atol=1e-9)


def test_alpha_weighs_the_positives_and_beta_the_negatives():
    embeddings = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    pair, none = ~torch.eye(2, dtype=torch.bool), torch.zeros(2, 2, dtype=torch.bool)

    pull = multi_similarity_loss(embeddings, pair, none)
    push = multi_similarity_loss(embeddings, none, pair)

    assert pull.item() == pytest.approx(log(1 + exp(-1 * (0.6 - 0.5))))
    assert push.item() == pytest.approx(log(1 + exp(60 * (0.6 - 0.5))) / 60)


def test_rows_without_pairs_count_in_the_mean():
    embeddings = torch.tensor([[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0], [0.0, -1.0]])
    positive = torch.zeros(4, 4, dtype=torch.bool)
    positive[0, 1] = True

    loss = multi_similarity_loss(embeddings, positive, torch.zeros_like(positive))

    assert loss.item() == pytest.approx(log(1 + exp(-0.1)) / 4)


@pytest.mark.parametrize("name", LOSSES)
def test_no_pair_at_all_is_a_zero_with_zero_gradients(name):
    embeddings = embeddings_of(3, 1)
    none = torch.zeros(3, 3, dtype=torch.bool)

    loss, gradient = value_and_gradient(LOSSES[name](embeddings, none, none), embeddings)

    assert loss.item() == 0
    assert gradient.eq(0).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_single_precision(name, dtype):
    labels = [row // 2 for row in range(32)]
    half = embeddings_of(32, 4, dim=8, dtype=dtype)
    single = half.detach().float().requires_grad_()
    # Identical rows of two concepts: exp(60 * 0.5) is more than fp16 holds.
    half.data[2], single.data[2] = half.data[0], single.data[0]

    with torch.autocast("cpu", torch.bfloat16):
        loss = LOSSES[name](half, *masks_of(labels))
    found = value_and_gradient(loss, half)

    expected = value_and_gradient(LOSSES[name](single, *masks_of(labels)), single)
    assert loss.dtype == torch.float32
    assert found[0].item() == pytest.approx(expected[0].item(), rel=1e-6)
    torch.testing.assert_close(found[1], expected[1].to(dtype), rtol=0.01, atol=1e-4)


@pytest.mark.parametrize("name", LOSSES)
def test_a_diverged_row_shows_in_the_loss(name):
    embeddings = embeddings_of(4, 1).detach()
    embeddings[0] = torch.nan
    masks = masks_of([1, 1, 2, 2])

    assert LOSSES[name](embeddings, *mine(embeddings, *masks)).isnan()
