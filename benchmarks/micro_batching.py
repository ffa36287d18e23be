"""What it gains to link small requests together that wait at the same time, and how many threads to link with.

    python benchmarks/micro_batching.py --requests 400 --clients 16

Clients each send one mention after another to the service over the active build, every mention once. The service links
what waits in one call (`MEDLINK_MAX_TOGETHER`, 64 unless set) or one request a call (1), with the encoder and FAISS on
some threads (`MEDLINK_THREADS`). All ways take turns, each with a service of its own; the figures are medians.
`cpu_ms` is of the processor time of the service for one request, which other work on the machine disturbs less.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx
from bulk_stream import names_of, serving

from app.serving import load_active_build
from app.settings import Settings
from training.evaluate import write_results

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Run:
    """Requests a second, milliseconds of one request (median and 99th percentile) and of the processor for one."""

    rate: float
    p50: float
    p99: float
    cpu_ms: float


async def asked(port: int, texts: Sequence[str], clients: int) -> list[float]:
    """Send each text as a request of its own, from so many clients, and return the seconds that each took."""
    waiting: Iterator[str] = iter(texts)
    spent: list[float] = []

    async def one_client() -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120) as http:
            for text in waiting:
                begun = time.perf_counter()
                (await http.post("/link", json={"mentions": [text]})).raise_for_status()
                spent.append(time.perf_counter() - begun)

    await asyncio.gather(*(one_client() for _ in range(clients)))
    return spent


def measured(texts: Sequence[str], clients: int, together: int, threads: int) -> Run:
    """Serve and ask in one way."""
    with serving(MEDLINK_MAX_TOGETHER=str(together), MEDLINK_THREADS=str(threads)) as (port, process):
        asyncio.run(asked(port, [f"warm up {i}" for i in range(clients)], clients))
        begun, cpu = time.perf_counter(), process.cpu_seconds()
        spent = asyncio.run(asked(port, texts, clients))
        seconds, cpu = time.perf_counter() - begun, process.cpu_seconds() - cpu
    return Run(len(texts) / seconds, 1000 * median(spent), 1000 * quantiles(spent, n=100)[98], 1000 * cpu / len(texts))


def measure(requests: int, clients: int, rounds: int) -> list[dict[str, Any]]:
    """Return a row for each way."""
    texts = names_of(load_active_build(Settings()), requests)
    ways = list(product((1, 64), (1, 2)))
    runs: dict[tuple[int, int], list[Run]] = {way: [] for way in ways}
    for number in range(rounds):
        for way in ways[:: 1 if number % 2 == 0 else -1]:
            runs[way].append(measured(texts, clients, *way))
            print(f"round {number + 1}, {way}: {runs[way][-1]}", flush=True)
    return [
        {
            "case": f"{requests} requests of one mention, {clients} clients",
            "system": f"together {together}, threads {threads}",
            "value": round(median(run.rate for run in of_way), 1),
            "unit": "requests/s",
            "p50_ms": round(median(run.p50 for run in of_way)),
            "p99_ms": round(median(run.p99 for run in of_way)),
            "cpu_ms": round(median(run.cpu_ms for run in of_way), 1),
            "runs": len(of_way),
        }
        for (together, threads), of_way in runs.items()
    ]


def main() -> None:
    """Measure over the active build and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/micro-batching.json")
    arguments = parser.parse_args()
    rows = measure(arguments.requests, arguments.clients, arguments.rounds)
    print(json.dumps(rows, indent=1))
    write_results(
        arguments.output, rows, command=["python", "benchmarks/micro_batching.py", *sys.argv[1:]], final=False
    )


if __name__ == "__main__":
    main()
