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


def evaluation(rows: Rows) -> list[list[str]]:
    """Return header and cells of the accuracy table."""
    table = [["corpus", "dictionary", "system", "n", "coverage", "acc@1 (95 %)", "acc@5"]]
    for row in rows:
        if row["subset"] == "all":
            low, high = row["ci95"]
            accuracy = f"{row['acc@1']:.1f} ({low:.1f}-{high:.1f})"
            numbers = [str(row["n"]), f"{row['coverage']:.1f}", accuracy, f"{row['acc@5']:.1f}"]
            table.append([f"{row['corpus']} {row['split']}", row["dictionary"], row["system"], *numbers])
    return table


def loading(rows: Rows) -> list[list[str]]:
    """Return header and cells of the loading table."""
    table = [["case", "database", "names", "rate", "CPU seconds", "peak memory, MiB"]]
    for row in rows:
        rate = f"{row['value']:,} {row['unit']}"
        numbers = [f"{row['cpu_seconds']:.0f}", f"{row['peak_rss_mib']:.0f}"]
        table.append([row["case"], row["system"], f"{row['names']:,}", rate, *numbers])
    return table


TABLES: dict[str, Callable[[Rows], list[list[str]]]] = {
    "eval-dev-medic": evaluation,
    "eval-dev-open": evaluation,
    "load-rrf": loading,
}


def filled(readme: str) -> str:
    """Return the README with every table made anew."""

    def fill(found: re.Match[str]) -> str:
        rows = json.loads((ROOT / "benchmarks/results" / f"{found[2]}.json").read_text(encoding="utf-8"))["rows"]
        header, *cells = TABLES[found[2]](rows)
        lines = [header, ["---"] * len(header), *cells]
        return found[1] + "".join(f"| {' | '.join(line)} |\n" for line in lines) + found[3]

    return _TABLE.sub(fill, readme)


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
