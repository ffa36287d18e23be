"""What a worker of `medlink serve` costs in memory, and how much of the index the workers share, over the active build.

    MEDLINK_DATA_DIR=var python benchmarks/worker_memory.py --mentions 400

The service runs with 1, 2 and 4 workers. Every worker answers the same mentions, one worker at a time while the others
are stopped, and then Linux is asked what each has in memory: `private` is what nobody else has (Private_Clean and
Private_Dirty of smaps_rollup), `pss` counts a page that n processes share as an nth, `index` is of the files of the
build as they are mapped. A page of the index that only one process has looked at yet counts as private, so the figures
of a single worker say nothing about sharing. `extra worker` is what the last workers added, a worker.
"""

import argparse
import json
import multiprocessing
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from bulk_stream import names_of, serving

from app.serving import load_active_build
from app.settings import Settings
from training.evaluate import write_results

ROOT = Path(__file__).resolve().parents[1]
WORKERS = (1, 2, 4)
_AT_ONCE = 10
_REGION = re.compile(r"[0-9a-f]+-[0-9a-f]+ ")


def drawn(count: int) -> list[str]:
    """Return mentions that are like the names of the active build."""
    return names_of(load_active_build(Settings()), count)


def drawn_elsewhere(count: int) -> list[str]:
    """Return them from a process that has ended: one that still had the build would seem to share it."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(drawn, count).result()


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


@contextmanager
def stopped(pids: Sequence[int]) -> Iterator[None]:
    """Keep processes from running."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def ask(port: int, texts: Sequence[str]) -> None:
    """Have whoever answers on a port link all mentions, over one connection."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300) as http:
        for start in range(0, len(texts), _AT_ONCE):
            http.post("/link", json={"mentions": texts[start : start + _AT_ONCE]}).raise_for_status()


def regions(pid: int) -> Iterator[tuple[str, Counter[str]]]:
    """Yield, for each mapping of a process, the file behind it ("" if none) and its figures in KiB."""
    path, figures = "", Counter[str]()
    for line in Path(f"/proc/{pid}/smaps").read_text("utf-8").splitlines():
        if _REGION.match(line):
            yield path, figures
            path, figures = line[73:], Counter[str]()
        elif line.endswith(" kB"):
            name, value, _ = line.split()
            figures[name.removesuffix(":")] += int(value)
    yield path, figures


def rollup(pid: int) -> Mapping[str, int]:
    """Return the figures of a whole process in KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8").splitlines()[1:]
    return {name.removesuffix(":"): int(value) for name, value, _ in map(str.split, lines)}


def memory(pid: int, builds: Path) -> dict[str, float]:
    """Return what a process has in memory, in MiB."""
    whole = rollup(pid)
    index, files, anonymous = Counter[str](), Counter[str](), Counter[str]()
    for path, figures in regions(pid):
        kind = index if path.startswith(f"{builds}/") else files if path.startswith("/") else anonymous
        kind.update(figures)
    in_kib = {
        "private": _private(whole),
        "pss": whole["Pss"],
        "rss": whole["Rss"],
        "private_anonymous": _private(anonymous),
        "private_libraries": _private(files),
        "index_mapped": index["Size"],
        "index_resident": index["Rss"],
        "index_shared": index["Shared_Clean"] + index["Shared_Dirty"],
        "index_private": _private(index),
    }
    return {f"{name}_mib": round(value / 1024, 1) for name, value in in_kib.items()}


def _private(figures: Mapping[str, int]) -> int:
    return figures["Private_Clean"] + figures["Private_Dirty"]


def measured(workers: int, texts: Sequence[str], builds: Path) -> dict[str, Any]:
    """Return a row about a service with so many workers."""
    settings = {"MEDLINK_WORKERS": str(workers), "MEDLINK_WORKER_SILENCE_SECONDS": "3600", "MEDLINK_LOG_LEVEL": "ERROR"}
    with serving(**settings) as (port, process):
        pids = children(process.pid) if workers > 1 else [process.pid]
        for pid in pids:
            with stopped([other for other in pids if other != pid]):
                ask(port, texts)
        each = [memory(pid, builds) for pid in pids]
        supervisor = memory(process.pid, builds) if workers > 1 else None
    whole = [*each, supervisor] if supervisor else each
    return {
        "case": f"{workers} worker{'s' if workers > 1 else ''}",
        "system": "medlink serve",
        "value": round(sum(of_one["pss_mib"] for of_one in whole), 1),
        "unit": "MiB",
        "note": "value: pss of all processes",
        "workers": each,
        "supervisor": supervisor,
    }


def extra(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a row about one worker more, from the rows of the most workers and of those before."""
    before, most = rows[-2:]
    added = len(most["workers"]) - len(before["workers"])

    def usual(name: str) -> float:
        return round(float(median(of_one[name] for of_one in most["workers"])), 1)

    return {
        "case": "extra worker",
        "system": "medlink serve",
        "value": usual("private_mib"),
        "unit": "MiB",
        "note": "value: private MiB of a worker, the median; pss_added: what all processes together grew by, a worker",
        "pss_added_mib": round((most["value"] - before["value"]) / added, 1),
        "index_mapped_mib": usual("index_mapped_mib"),
        "index_resident_mib": usual("index_resident_mib"),
        "index_shared_mib": usual("index_shared_mib"),
        "index_private_mib": usual("index_private_mib"),
    }


def main() -> None:
    """Measure over the active build and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mentions", type=int, default=400)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/worker-memory.json")
    arguments = parser.parse_args()
    texts = drawn_elsewhere(arguments.mentions)
    builds = Settings().builds_dir.resolve()
    rows: list[dict[str, Any]] = []
    for workers in WORKERS:
        rows.append(measured(workers, texts, builds))
        print(json.dumps(rows[-1], indent=1), flush=True)
    rows.append({**extra(rows), "mentions": arguments.mentions})
    print(json.dumps(rows[-1], indent=1))
    write_results(arguments.output, rows, command=["python", "benchmarks/worker_memory.py", *sys.argv[1:]], final=False)


if __name__ == "__main__":
    main()
