from contextlib import contextmanager, nullcontext

import pytest
import torch
from torch import nn

from training.cache import cached_backward
from training.losses import multi_similarity_loss
from training.masks import pair_masks
from training.miner import mine

pytestmark = pytest.mark.torch

ROWS = 14
LABELS = torch.arange(ROWS) // 2


def network(*, dropout: float = 0.0, dtype=torch.float64) -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 4)).to(dtype)


def batch(dtype=torch.float64):
    return torch.randn(ROWS, 6, dtype=dtype, generator=torch.Generator().manual_seed(5))


def objective(embeddings):
    masks = pair_masks(LABELS, LABELS, torch.ones_like(LABELS))
    return multi_similarity_loss(embeddings, *mine(embeddings, *masks))


def gradients(model):
    return [parameter.grad for parameter in model.parameters()]


def require_equal(model, other, **tolerance):
    for one, two in zip(gradients(model), gradients(other), strict=True):
        assert two.abs().max() > 0
        torch.testing.assert_close(one, two, **tolerance)


@pytest.mark.parametrize("rows", [1, 3, ROWS])
def test_chunks_give_the_loss_and_the_gradients_of_one_large_batch(rows):
    model, whole = network(), network()

    loss = cached_backward(model, batch().split(rows), objective)

    expected = objective(whole(batch()))
    expected.backward()
    torch.testing.assert_close(loss, expected.detach(), rtol=1e-12, atol=0)
    require_equal(model, whole, rtol=1e-9, atol=1e-12)


def test_small_batches_one_after_the_other_do_not():
    model, whole = network(), network()
    objective(whole(batch())).backward()

    def of_chunk(embeddings):
        labels = LABELS[: len(embeddings)]
        return multi_similarity_loss(embeddings, *pair_masks(labels, labels, torch.ones_like(labels)))

    for chunk in batch().split(2):
        of_chunk(model(chunk)).backward()

    assert not torch.allclose(gradients(model)[0], gradients(whole)[0], rtol=0.1)


def test_dropout_is_drawn_once_and_the_next_step_draws_anew():
    model, whole = network(dropout=0.5), network(dropout=0.5)
    chunks = batch().split(4)
    torch.manual_seed(11)

    def noisy(embeddings):
        return objective(embeddings + 0.1 * torch.randn_like(embeddings))

    losses = [cached_backward(model, chunks, noisy) for _ in range(2)]
    after = torch.rand(3)

    torch.manual_seed(11)
    expected = []
    for _ in range(2):
        expected.append(noisy(torch.cat([whole(chunk) for chunk in chunks])))
        expected[-1].backward()
    assert torch.equal(after, torch.rand(3))
    assert losses[0] != losses[1]
    torch.testing.assert_close(torch.stack(losses), torch.stack(expected).detach(), rtol=1e-12, atol=0)
    require_equal(model, whole, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("where", ["around the call", "inside encode"])
def test_works_under_autocast(where):
    model, whole = network(dtype=torch.float32), network(dtype=torch.float32)
    seen = []

    def autocast():
        return torch.autocast("cpu", torch.bfloat16)

    def encode(chunk):
        with autocast() if where == "inside encode" else nullcontext():
            seen.append(model(chunk))
        return seen[-1]

    with autocast() if where == "around the call" else nullcontext():
        cached_backward(encode, batch(torch.float32).split(5), objective)

    with autocast():
        embeddings = whole(batch(torch.float32))
    objective(embeddings).backward()
    assert {part.dtype for part in seen} == {torch.bfloat16}
    # A gradient is rounded to bf16 once a chunk instead of once a batch.
    require_equal(model, whole, rtol=0.02, atol=1e-3)


def test_a_gradient_scaler_scales_the_gradients_and_not_the_loss():
    model, whole = network(), network()

    loss = cached_backward(model, batch().split(4), objective, scale=lambda loss: loss * 1024)

    expected = objective(whole(batch()))
    (expected * 1024).backward()
    torch.testing.assert_close(loss, expected.detach())
    require_equal(model, whole, rtol=1e-9, atol=1e-9)


def test_only_one_chunk_has_a_graph_at_a_time_and_only_the_last_one_is_synced():
    model, events, depth = network(), [], 0

    @contextmanager
    def no_sync():
        nonlocal depth
        depth += 1
        yield
        depth -= 1

    def encode(chunk):
        events.append((torch.is_grad_enabled(), depth))
        return model(chunk)

    def counted(embeddings):
        events.append("objective")
        assert embeddings.is_leaf
        return objective(embeddings)

    cached_backward(encode, batch().split(5), counted, no_sync=no_sync)

    assert events == [*[(False, 0)] * 3, "objective", (True, 1), (True, 1), (True, 0)]


def test_no_chunks_are_refused():
    with pytest.raises(ValueError, match="no chunks"):
        cached_backward(network(), [], objective)
