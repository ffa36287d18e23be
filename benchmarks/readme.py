"""Writes the tables of the README from the committed results; a test holds that they agree.

Usage: python benchmarks/readme.py
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_TABLE = re.compile(r"(<!-- table:([\w-]+) -->\n).*?(<!-- /table -->)", re.DOTALL)
Rows = list[dict[str, Any]]


def linking(rows: Rows) -> list[list[str]]:
    """Return header and cells of the table that sets the channels beside each other and what fusion makes of them."""
    keys = ("corpus", "split", "dictionary", "protocol")
    return _beside(rows, keys, ["mentions", "dictionary", "protocol", "n"], "acc@1", lambda row: str(row["system"]))


def loading(rows: Rows) -> list[list[str]]:
    """Return header and cells of the loading table."""
    table = [["case", "database", "names", "rate", "CPU seconds", "peak memory, MiB"]]
    for row in rows:
        rate = f"{row['value']:,} {row['unit']}"
        numbers = [f"{row['cpu_seconds']:.0f}", f"{row['peak_rss_mib']:.0f}"]
        table.append([row["case"], row["system"], f"{row['names']:,}", rate, *numbers])
    return table


def encoders(rows: Rows) -> list[list[str]]:
    """Return header and cells of the table that sets the shipped encoder beside what it must beat."""
    return _beside(rows, ("corpus", "split", "protocol"), ["mentions", "protocol", "n"], "acc@1")


def synonyms(rows: Rows) -> list[list[str]]:
    """Return header and cells of the held-out-synonym table."""
    asked = [{**row, "corpus": row["corpus"].partition(":")[2]} for row in rows]
    return _beside(asked, ("corpus",), ["vocabulary", "n"], "acc@1")


def refusal(rows: Rows) -> list[list[str]]:
    """Return header and cells of the table of NIL and calibration, at the threshold that a build has by itself."""
    header = ["mentions", "dictionary", "protocol", "hidden", "n", "NIL", "precision", "recall", "kept", "ECE (n)"]
    table = [header]
    for row in rows:
        if row["threshold"] == "default":
            about = [f"{row['corpus']} {row['split']}", row["dictionary"], row["protocol"], f"{row['hidden']:g} %"]
            figures = ["" if row[key] is None else f"{row[key]:.1f}" for key in ("nil_precision", "nil_recall", "kept")]
            error = "" if row["ece"] is None else f"{row['ece']:.3f} ({row['n_ece']})"
            table.append([*about, str(row["n"]), str(row["n_nil"]), *figures, error])
    return table


def load(rows: Rows) -> list[list[str]]:
    """Return header and cells of the table of what clients see while all happens to the service."""
    table = [["requests", "n", "p50, ms", "p99, ms", "p50 with trouble", "p99 with trouble", "ratio of p99", "failed"]]
    for row in rows:
        times = [f"{row[when][key]:,}" for when in ("without", "with") for key in ("p50_ms", "p99_ms")]
        failed = sum(faults["not_2xx"] + faults["mixed"] for faults in row["faults"].values())
        table.append([row["case"], f"{sum(row['requests'].values()):,}", *times, f"{row['ratio']:.2f}", str(failed)])
    return table


def service(rows: Rows) -> list[list[str]]:
    """Return header and cells of the table of what streams and workers cost."""
    table = [["case", "figure"]]
    for row in rows:
        if "grown_mib" in row:
            figure = (
                f"{row['grown_mib']} MiB more memory at most than after a quarter of it ({row['memory_mib'][-1]} MiB)"
            )
        elif "cpu_ratio" in row:
            figure = f"{row['ratio']:.2f} times the seconds of the {row['peer']} (processor: {row['cpu_ratio']:.2f})"
        elif row["case"] == "extra worker":
            shared = f"of {row['index_resident_mib']:.0f} MiB of the index {row['index_shared_mib']:.0f} shared"
            figure = f"{row['value']:.0f} MiB of its own; {shared}"
        else:
            continue
        table.append([row["case"], figure])
    return table


def _system(row: dict[str, Any]) -> str:
    return f"dense, {row['encoder']}" if row["encoder"] else row["system"].removeprefix("baseline-")


def _beside(
    rows: Rows,
    keys: tuple[str, ...],
    header: list[str],
    figure: str,
    system: Callable[[dict[str, Any]], str] = _system,
) -> list[list[str]]:
    """Put the systems of one test beside each other."""
    systems: dict[str, None] = {}
    tests: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        if row["subset"] == "all":
            systems[system(row)] = None
            tests.setdefault(tuple(row[key] for key in keys), []).append(row)
    table = [[*header, *systems]]
    for named, found in tests.items():
        figures = {system(row): f"{row[figure]:.1f} ({row['ci95'][0]:.1f}-{row['ci95'][1]:.1f})" for row in found}
        what = [" ".join(named[:2]), *named[2:]]
        table.append([*what, str(found[0]["n"]), *(figures.get(name, "") for name in systems)])
    return table


LINKING_DEV = (
    "linking-dev-medic-ncbi",
    "linking-dev-medic",
    "linking-dev-mesh",
    "linking-dev-hpo",
    "linking-dev-open",
    "linking-dev-open-strict",
)
LINKING_TEST = (
    "linking-test-medic-ncbi",
    "linking-test-medic",
    "linking-test-medic-learnt-ncbi",
    "linking-test-medic-learnt",
    "linking-test-mesh",
    "linking-test-open-strict",
    "linking-test-paper-ncbi",
    "linking-test-paper",
    "linking-test-paper-learnt-ncbi",
    "linking-test-paper-learnt",
)
TABLES: dict[str, tuple[Callable[[Rows], list[list[str]]], tuple[str, ...]]] = {
    "linking-dev": (linking, LINKING_DEV),
    "linking-test": (linking, LINKING_TEST),
    "encoder": (
        encoders,
        (
            "encoder-dev-dictionary",
            "encoder-dev-paper",
            "encoder-test-dictionary",
            "encoder-test-paper",
        ),
    ),
    "held-out": (synonyms, ("held-out-open", "held-out-open-plus")),
    "load-rrf": (loading, ("load-rrf",)),
    "service-load": (load, ("service-load",)),
    "service": (service, ("bulk-stream-speed", "bulk-stream-memory", "worker-memory")),
    "nil": (refusal, ("nil-dev", "nil-dev-medmentions", "nil-test")),
}
"""The tables by name: how each is written, and from which results."""


def filled(readme: str) -> str:
    """Return the README with every table made anew."""

    def fill(found: re.Match[str]) -> str:
        write, files = TABLES[found[2]]
        results = (ROOT / "benchmarks/results" / f"{file}.json" for file in files)
        header, *cells = write([row for path in results for row in json.loads(path.read_text("utf-8"))["rows"]])
        lines = [header, ["---"] * len(header), *cells]
        return found[1] + "".join(f"| {' | '.join(line)} |\n" for line in lines) + found[3]

    return _TABLE.sub(fill, readme)


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
