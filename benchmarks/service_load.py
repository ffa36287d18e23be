"""Loads the service at half of what it can do while everything happens to it, and says what its clients saw.

    python benchmarks/service_load.py --seconds 300 --workers 2

It works on a copy of the data directory (MEDLINK_DATA_DIR), whose active build is taken for vectors. A few made-up
names that mean another concept in each build are added, and builds A and B are made: an answer that names one build and
has a concept of the other is a mixed one. Then, in one run: how many requests a second the service answers at most
(several clients, each waiting for its answers); half the time at half that rate with nothing else going on; `--seconds`
at the same rate with trouble; then the other half with nothing else going on. Requests come at moments by chance,
whether or not those before are answered, and their time counts from that moment.

Trouble: builds are activated and rolled back every twenty seconds; a cold rebuild runs, its worker is killed, a rebuild
with vectors from before makes another build and lets it answer, and a cold one runs again; and one process that serves
is told to stop and is replaced. `ratio` is the 99th percentile with all of that to the one without.
"""

import argparse
import asyncio
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx
from bulk_stream import names_of, serving
from traffic import KINDS, Outcome, Traffic

from app.serving import load_active_build
from app.settings import Settings
from training.evaluate import write_results

ROOT = Path(__file__).resolve().parents[1]
_CLIENTS = 8
_SWITCH_SECONDS = 20.0
_PROBES = tuple(f"zorvexian syndrome type {number}" for number in range(40))
_MEDLINK = (sys.executable, "-m", "medlink.cli")


@dataclass(slots=True)
class Happened:
    """What was done to the service, and how its rebuilds ended."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: list[int] = field(default_factory=list)
    """Statuses of calls of administration that should have succeeded."""


class Trouble:
    """Does to a service what administrators and accidents do."""

    def __init__(self, http: httpx.AsyncClient, process: int, builds: Sequence[str], happened: Happened) -> None:
        self._http = http
        self._process = process
        self._builds = builds
        self._happened = happened

    async def make(self, seconds: float, workers: int) -> None:
        """Go on for so long."""
        happenings = [self._rebuild_on(), self._switch_on(), self._kill_after(0.4 * seconds)]
        if workers > 1:
            happenings.append(self._stop_after(0.7 * seconds))
        tasks = [asyncio.create_task(happening) for happening in happenings]
        try:
            # Whatever fails ends the run: trouble that is not made measures nothing.
            await asyncio.wait_for(asyncio.gather(*tasks), seconds)
        except TimeoutError:
            pass
        await self._cancel()

    async def _rebuild_on(self) -> None:
        for reuse in chain((False, True), repeat(False)):
            job = (await self._call("POST", "/admin/index/rebuild", {"reuse": reuse}))["id"]
            self._happened.counts["rebuilds begun"] += 1
            while (state := (await self._call("GET", f"/admin/jobs/{job}"))["state"]) in ("queued", "running"):
                await asyncio.sleep(1)
            self._happened.counts[f"rebuilds {state}"] += 1

    async def _switch_on(self) -> None:
        while True:
            for path in (f"/admin/index/{self._builds[0]}/activate", f"/admin/index/{self._builds[1]}/activate"):
                await self._call("POST", path)
                self._happened.counts["activated"] += 1
                await asyncio.sleep(_SWITCH_SECONDS)
            await self._call("POST", "/admin/index/rollback")
            self._happened.counts["rolled back"] += 1
            await asyncio.sleep(_SWITCH_SECONDS)

    async def _kill_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        os.kill(_child(self._process, "worker", within=30), signal.SIGKILL)
        self._happened.counts["rebuild workers killed"] += 1

    async def _stop_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        os.kill(_child(self._process, "serving_process"), signal.SIGTERM)
        self._happened.counts["serving workers restarted"] += 1

    async def _cancel(self) -> None:
        for job in (await self._call("GET", "/admin/jobs"))["jobs"]:
            if job["state"] in ("queued", "running"):
                self._happened.counts["rebuilds under way at the end"] += 1
                await self._call("DELETE", f"/admin/jobs/{job['id']}")

    async def _call(self, method: str, path: str, body: Mapping[str, bool] | None = None) -> dict[str, Any]:
        response = await self._http.request(method, path, json=body)
        if not response.is_success:
            self._happened.refused.append(response.status_code)
        answer: dict[str, Any] = response.json()
        return answer


def _children(process: int) -> Iterator[tuple[int, str]]:
    """Yield the processes that a process started, directly or not, with their command lines."""
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield int(child), Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
            yield from _children(int(child))


def _child(process: int, words: str, within: float = 0.0) -> int:
    until = time.monotonic() + within
    while True:
        for child, command in _children(process):
            if words in command:
                return child
        if time.monotonic() > until:
            raise SystemExit(f"no process of the service has {words!r} in its command line")
        time.sleep(0.2)


def medlink(*arguments: str) -> str:
    """Run a command and return what it printed."""
    return subprocess.run([*_MEDLINK, *arguments], check=True, capture_output=True, text=True).stdout


def with_probes(folder: Path, letter: str) -> None:
    """Load names that mean a concept of this letter."""
    path = folder / "probes.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "name", "sab"))
        rows.writerows((f"PROBE:{letter}{number}", name, "PROBE") for number, name in enumerate(_PROBES))
    medlink("kb", "load", str(path), "--name", "probes")


def prepared(folder: Path) -> list[str]:
    """Make builds A and B in a copied data directory, load what the next one is made of, and return their ids."""
    ids = []
    for letter in "AB":
        with_probes(folder, letter)
        medlink("index", "build")
        ids.append(load_active_build(Settings()).id)
    with_probes(folder, "C")
    return ids


@dataclass(frozen=True, slots=True)
class Load:
    """What clients saw without and with trouble, what happened, and the requests a second at most and as sent."""

    quiet: list[Outcome]
    troubled: list[Outcome]
    happened: Happened
    most: float
    rate: float


async def loaded(port: int, process: int, arguments: argparse.Namespace, builds: Sequence[str], key: str) -> Load:
    """Send requests to a service, without trouble and with it."""
    letters = dict(zip(builds, "AB", strict=True))
    texts = names_of(load_active_build(Settings()), arguments.distinct)
    traffic = Traffic(port, texts, _PROBES, lambda build: f"PROBE:{letters.get(build, 'C')}")
    happened = Happened()
    await traffic.as_fast_as_it_goes(_CLIENTS, 10)
    most, _ = await traffic.as_fast_as_it_goes(_CLIENTS, arguments.capacity_seconds)
    rate = most / 2
    print(f"at most {most:.1f} requests/s", flush=True)
    quiet = await traffic.at_a_rate(rate, arguments.seconds / 2)
    print(f"without: {_brief(quiet)}", flush=True)
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=120) as http:
        trouble = Trouble(http, process, builds, happened)
        troubled, _ = await asyncio.gather(
            traffic.at_a_rate(rate, arguments.seconds), trouble.make(arguments.seconds, arguments.workers)
        )
    print(f"with: {_brief(troubled)}; {dict(happened.counts)}", flush=True)
    await asyncio.sleep(10)
    quiet += await traffic.at_a_rate(rate, arguments.seconds / 2)
    await traffic.close()
    return Load(quiet, troubled, happened, most, rate)


def _brief(outcomes: Sequence[Outcome]) -> str:
    return f"{len(outcomes)} requests, {_faults(outcomes)}, p99 {_times(outcomes)['p99_ms']} ms"


def _faults(outcomes: Sequence[Outcome]) -> dict[str, int]:
    return {
        "not_2xx": sum(outcome.status != 200 for outcome in outcomes),
        "mixed": sum(outcome.mixed for outcome in outcomes),
        "connections_broken_and_asked_again": sum(outcome.broken for outcome in outcomes),
    }


def _times(outcomes: Sequence[Outcome]) -> dict[str, float]:
    cuts = quantiles((1000 * outcome.seconds for outcome in outcomes), n=100)
    return {"p50_ms": round(cuts[49]), "p99_ms": round(cuts[98])}


def rows_of(quiet: Sequence[Outcome], troubled: Sequence[Outcome], facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row over all requests and one for each kind that was asked often enough."""
    rows = []
    for name in ("all", *(kind.name for kind in KINDS)):
        without, under = ([o for o in outcomes if name in ("all", o.kind.name)] for outcomes in (quiet, troubled))
        if min(len(without), len(under)) < 50:
            continue
        times = {"without": _times(without), "with": _times(under)}
        row = {
            "case": name,
            "system": "service",
            "ratio": round(times["with"]["p99_ms"] / times["without"]["p99_ms"], 2),
            "unit": "p99 with trouble / without",
            **times,
            "requests": {"without": len(without), "with": len(under)},
            "faults": {"without": _faults(without), "with": _faults(under)},
        }
        rows.append(row | (dict(facts) if name == "all" else {}))
    return rows


def measure(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of one run."""
    with tempfile.TemporaryDirectory(prefix="medlink-load-", dir=arguments.scratch) as folder:
        home = Path(folder) / "data"
        shutil.copytree(Settings().data_dir, home)
        os.environ["MEDLINK_DATA_DIR"] = str(home)
        builds = prepared(Path(folder))
        key = medlink("keys", "create", "load", "--scope", "admin").split()[-1]
        print(f"builds {builds}", flush=True)
        more = {"MEDLINK_WORKERS": str(arguments.workers)} if arguments.workers > 1 else {}
        with serving(**more) as (port, process):
            load = asyncio.run(loaded(port, process.pid, arguments, builds, key))
    facts = {
        "workers": arguments.workers,
        "most_requests_per_second": round(load.most, 1),
        "requests_per_second": round(load.rate, 1),
        "mentions_per_second": round(load.rate * sum(kind.share * kind.mentions for kind in KINDS), 1),
        "happened": dict(load.happened.counts),
        "builds_that_answered": len({outcome.build for outcome in load.troubled if outcome.build}),
        "administration_refused": load.happened.refused,
    }
    return rows_of(load.quiet, load.troubled, facts)


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--capacity-seconds", type=float, default=45)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--distinct", type=int, default=60_000, help="mentions")
    parser.add_argument("--scratch", type=Path, help="where the copy of the data directory goes")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/service-load.json")
    arguments = parser.parse_args()
    rows = measure(arguments)
    print(json.dumps(rows, indent=1))
    write_results(arguments.output, rows, command=["python", "benchmarks/service_load.py", *sys.argv[1:]], final=False)


if __name__ == "__main__":
    main()
