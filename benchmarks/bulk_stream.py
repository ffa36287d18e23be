"""Streams mentions through `POST /link/bulk` as NDJSON and says how fast, in how much memory, and beside what.

    python benchmarks/bulk_stream.py memory --lines 1000000 --distinct 100000
    python benchmarks/bulk_stream.py speed --lines 50000 --distinct 20000

`memory` serves a made-up knowledge base with the `HashingEncoder`, sends lines over one connection that is read while
it is written, and looks at the memory of the service on the way. `speed` uses the active build: the same lines through
the service and through the linker in this process, in one call with results thrown away, which is the least that can be
asked of it. They take turns; the ratio is of their median seconds. `cpu_ratio` is of the processor seconds of service
and linker, which other work on the machine disturbs less. The service has no answers from the round before: each round
starts it anew, and its start is not counted.
"""

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from app.serving import load_active_build
from app.settings import Settings
from index.build import Content, build_index
from index.store import BuildStore, IndexBuild
from medlink.encoders.hashing import HashingEncoder
from medlink.kb.builds import Builds
from medlink.kb.database import migrate, open_engine
from medlink.manifest import read_manifest
from medlink.types import Concept, LinkOptions, Mention, Name
from training.evaluate import write_results

ROOT = Path(__file__).resolve().parents[1]
_MIB = 1 << 20
_WORDS = (
    "heart",
    "lung",
    "skin",
    "bone",
    "liver",
    "acute",
    "chronic",
    "pain",
    "failure",
    "infection",
    "tumour",
    "loss",
)


@dataclass(frozen=True, slots=True)
class Run:
    """One pass: seconds, those of processors, and the memory of the service along the way, in bytes."""

    seconds: float
    cpu: float
    memory: tuple[int, ...] = ()
    answered: int = 0


@dataclass(frozen=True, slots=True)
class Process:
    """What Linux tells about a process."""

    pid: int

    def memory(self) -> int:
        """Return the bytes that it has in memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        """Return the seconds that it has used, on all cores."""
        fields = Path(f"/proc/{self.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(**environment: str) -> Iterator[tuple[int, Process]]:
    """Run `medlink serve` in a process of its own; gives its port when it is ready."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [sys.executable, "-m", "medlink.cli", "serve"]
    more = {"MEDLINK_PORT": str(port), "MEDLINK_DRAIN_NOTICE_SECONDS": "0", **environment}
    process = subprocess.Popen(command, env=os.environ | more, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(lambda: httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200)
        yield port, Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def _wait(true: Callable[[], bool]) -> None:
    for _ in range(600):
        try:
            if true():
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise SystemExit("the service did not become ready")


async def streamed(port: int, lines: Iterator[bytes], process: Process, look_every: int) -> Run:
    """Send lines over one connection while reading the answers; the memory is looked at every so many answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    begun, cpu = time.perf_counter(), process.cpu_seconds()
    head = b"POST /link/bulk HTTP/1.1\r\nHost: medlink\r\nContent-Type: application/x-ndjson\r\n"
    writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
    sending = asyncio.create_task(_send(writer, lines))
    answered, memory = -1, []
    async for content in _content(reader):
        before = answered
        answered += content.count(b"\n")
        if answered // look_every > before // look_every:
            memory.append(process.memory())
    await sending
    writer.close()
    spent = process.cpu_seconds() - cpu
    return Run(time.perf_counter() - begun, spent, tuple(memory), answered)


async def _send(writer: asyncio.StreamWriter, lines: Iterator[bytes]) -> None:
    for line in lines:
        writer.write(b"%x\r\n%s\r\n" % (len(line), line))
        await writer.drain()
    writer.write(b"0\r\n\r\n")


async def _content(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    status = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in status:
        raise SystemExit(status.decode())
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)


def drawn(texts: list[str], count: int, seed: int = 0) -> Iterator[bytes]:
    """Yield lines in an order by chance: every text once, as far as there is room, and some again."""
    rng = random.Random(seed)
    order = [i % len(texts) if i < len(texts) else rng.randrange(len(texts)) for i in range(count)]
    rng.shuffle(order)
    return (json.dumps(texts[i], ensure_ascii=False).encode() + b"\n" for i in order)


def numbered(count: int, distinct: int) -> Iterator[bytes]:
    """Yield lines drawn by chance from so many different ones."""
    rng = random.Random(0)
    for _ in range(count):
        i = rng.randrange(distinct)
        yield json.dumps(f"{_WORDS[i % 12]} {_WORDS[i // 12 % 12]} {i}").encode() + b"\n"


def names_of(build: IndexBuild, count: int, seed: int = 0) -> list[str]:
    """Return distinct mentions: names of a build, most with a letter lost or a word more."""
    rng = random.Random(seed)
    names = [text for _, text in build.snapshot.texts()]
    texts: dict[str, None] = {}
    while len(texts) < count:
        name = rng.choice(names)
        at = rng.randrange(len(name))
        texts.setdefault(rng.choice((name, name[:at] + name[at + 1 :] or name, f"severe {name}"))[:200])
    return list(texts)


def made_up(home: Path) -> None:
    """Make a small knowledge base with the `HashingEncoder` the active build of a data directory."""
    concepts = [
        Concept(f"T:{a}{b}", f"{a} {b}", (Name(f"{a} {b}", "TEST"), Name(f"{b} of the {a}", "TEST")))
        for a in _WORDS
        for b in _WORDS
    ]
    HashingEncoder().save(home / "encoder")
    settings = Settings(data_dir=home)
    engine = open_engine(settings.database_url)
    migrate(engine)
    content = Content(sorted(concepts, key=lambda c: c.id), (), (), {"made-up": "1"}, len(concepts))
    build_id = build_index(content, home / "encoder", BuildStore(settings.builds_dir), recipe="flat")
    Builds(engine).register_build(build_id, read_manifest(settings.builds_dir / build_id))
    Builds(engine).activate_build(build_id)
    engine.dispose()


def measure_memory(lines: int, distinct: int) -> list[dict[str, Any]]:
    """Return a row about one long stream."""
    with tempfile.TemporaryDirectory(prefix="medlink-stream-") as folder:
        made_up(Path(folder))
        with serving(MEDLINK_DATA_DIR=folder) as (port, process):
            run = asyncio.run(streamed(port, numbered(lines, distinct), process, max(1, lines // 20)))
    early = run.memory[len(run.memory) // 4]
    return [
        {
            "case": f"{lines:,} lines, {distinct:,} different, HashingEncoder",
            "system": "stream",
            "value": round(run.answered / run.seconds),
            "unit": "lines/s",
            "answered": run.answered,
            "cpu_seconds": round(run.cpu, 1),
            "memory_mib": [round(m / _MIB) for m in run.memory],
            "grown_mib": round((max(run.memory) - early) / _MIB),
            "note": "grown: the most after the first quarter less the memory at its end",
        }
    ]


def measure_speed(lines: int, distinct: int, rounds: int) -> list[dict[str, Any]]:
    """Return a row about a stream beside the linker in this process."""
    build = load_active_build(Settings())
    texts = names_of(build, distinct)
    runs: dict[str, list[Run]] = {"linker": [], "stream": []}
    build.linker.link([Mention(text) for text in texts[:100]], LinkOptions())
    for number in range(rounds):
        for way in list(runs)[:: 1 if number % 2 == 0 else -1]:
            sent = drawn(texts, lines, seed=number)
            runs[way].append(_linked(build, sent) if way == "linker" else _served(sent, lines))
            print(f"round {number + 1}, {way}: {runs[way][-1].seconds:.1f} s", flush=True)
    seconds = {way: median(run.seconds for run in of_way) for way, of_way in runs.items()}
    cpu = {way: median(run.cpu for run in of_way) for way, of_way in runs.items()}
    return [
        {
            "case": f"{lines:,} lines, {distinct:,} different",
            "system": "stream",
            "peer": "linker in-process, one call",
            "ratio": round(seconds["stream"] / seconds["linker"], 3),
            "cpu_ratio": round(cpu["stream"] / cpu["linker"], 3),
            "value": round(lines / seconds["stream"], 1),
            "peer_value": round(lines / seconds["linker"], 1),
            "unit": "lines/s",
            "names": build.manifest["counts"]["names"],
            "seconds": {way: [round(run.seconds, 1) for run in of_way] for way, of_way in runs.items()},
            "cpu_seconds": {way: [round(run.cpu, 1) for run in of_way] for way, of_way in runs.items()},
        }
    ]


def _linked(build: IndexBuild, lines: Iterator[bytes]) -> Run:
    mentions = [Mention(json.loads(line)) for line in lines]
    begun, cpu = time.perf_counter(), time.process_time()
    build.linker.link(mentions, LinkOptions())
    return Run(time.perf_counter() - begun, time.process_time() - cpu, (), len(mentions))


def _served(lines: Iterator[bytes], count: int) -> Run:
    with serving() as (port, process):
        httpx.post(f"http://127.0.0.1:{port}/link", json={"mentions": ["warm up"]}, timeout=60)
        run = asyncio.run(streamed(port, lines, process, count))
    if run.answered != count:
        raise SystemExit(f"{run.answered} answers to {count} lines")
    return run


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=("memory", "speed"))
    parser.add_argument("--lines", type=int, required=True)
    parser.add_argument("--distinct", type=int, help="how many lines are different")
    parser.add_argument("--rounds", type=int, default=3, help="of `speed`")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.case == "memory":
        rows = measure_memory(arguments.lines, arguments.distinct or 100_000)
    else:
        rows = measure_speed(arguments.lines, arguments.distinct or 20_000, arguments.rounds)
    print(json.dumps(rows, indent=1))
    output = arguments.output or ROOT / f"benchmarks/results/bulk-stream-{arguments.case}.json"
    write_results(output, rows, command=["python", "benchmarks/bulk_stream.py", *sys.argv[1:]], final=False)


if __name__ == "__main__":
    main()
