"""Also the program of one rank: `python test_gather.py RANK DIRECTORY`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from training.cache import cached_backward
from training.gather import gather, gather_rows
from training.losses import multi_similarity_loss
from training.masks import pair_masks
from training.miner import mine

pytestmark = pytest.mark.torch

ROWS = 14
# Rows of rank 0; the concept of row 6 has its other row on the other rank when they are uneven.
CASES = {"even": 8, "uneven": 5, "cached": 5, "cached even": 8}
RANKS = 2


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)).double()


def batch():
    """Return inputs, labels, related concepts and their number a row."""
    labels = torch.arange(ROWS) // 2
    related = [[int(label), 3] if row % 5 == 0 else [int(label)] for row, label in enumerate(labels)]
    inputs = torch.randn(ROWS, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    flat = torch.tensor([concept for row in related for concept in row])
    return inputs, labels, flat, torch.tensor([len(row) for row in related])


def part_of(rank: int, first: int):
    inputs, labels, related, sizes = batch()
    cut = [first, ROWS - first]
    by_row = related.split(sizes.tolist())
    rows = slice(0, first) if rank == 0 else slice(first, ROWS)
    return inputs.split(cut)[rank], labels.split(cut)[rank], torch.cat(by_row[rows]), sizes.split(cut)[rank]


def global_loss(embeddings, labels, related, sizes):
    joined = gather(embeddings)
    masks = pair_masks(gather_rows(labels), gather_rows(related), gather_rows(sizes))
    return multi_similarity_loss(joined, *mine(joined, *masks))


def step(case: str, rank: int):
    model = DistributedDataParallel(network(), broadcast_buffers=False)
    inputs, *concepts = part_of(rank, CASES[case])
    if case.startswith("cached"):
        # Uneven: 3 chunks on one rank and 5 on the other.
        loss = cached_backward(model, inputs.split(2), lambda e: global_loss(e, *concepts), no_sync=model.no_sync)
    else:
        loss = global_loss(model(inputs), *concepts)
        loss.backward()
    return {"loss": loss.detach(), "gradients": [parameter.grad for parameter in model.parameters()]}


def run_rank(rank: int, directory: Path) -> None:
    meeting = (directory / "meeting").as_uri()
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=RANKS)
    results = {case: step(case, rank) for case in CASES}
    results["rows"] = gather_rows(torch.arange(rank + 1)[:, None] + 10 * rank)
    torch.save(results, directory / f"{rank}.pt")
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    directory = tmp_path_factory.mktemp("ranks")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    programs = [
        subprocess.Popen([sys.executable, __file__, str(rank), str(directory)], env=environment)
        for rank in range(RANKS)
    ]
    try:
        assert [program.wait(timeout=120) for program in programs] == [0] * RANKS
    finally:
        for program in programs:
            program.kill()
            program.wait()
    return [torch.load(directory / f"{rank}.pt") for rank in range(RANKS)]


@pytest.mark.parametrize("case", CASES)
def test_two_processes_give_the_loss_and_the_gradients_of_one_with_the_joined_batch(ranks, case):
    one = network()
    inputs, *concepts = batch()

    expected = global_loss(one(inputs), *concepts)
    expected.backward()

    for found in (rank[case] for rank in ranks):
        torch.testing.assert_close(found["loss"], expected.detach(), rtol=1e-12, atol=0)
        for gradient, parameter in zip(found["gradients"], one.parameters(), strict=True):
            assert parameter.grad.abs().max() > 1e-3
            torch.testing.assert_close(gradient, parameter.grad, rtol=1e-9, atol=1e-12)


def test_rows_come_in_order_of_rank_however_many_each_has(ranks):
    for rank in ranks:
        assert rank["rows"].tolist() == [[0], [10], [11]]


def test_one_process_alone_gathers_what_it_has():
    rows = torch.arange(3.0).requires_grad_()

    assert gather(rows) is rows
    assert gather_rows(rows) is rows


if __name__ == "__main__":
    run_rank(int(sys.argv[1]), Path(sys.argv[2]))
