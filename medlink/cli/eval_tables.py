"""Shows rows of an evaluation on a terminal, one table for each corpus, dictionary and protocol."""

import sys
from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

_ABOUT = ("corpus", "split", "dictionary", "protocol")


def print_tables(rows: Sequence[dict[str, Any]]) -> None:
    """Print every row, in percent; tables come in the order of their first rows."""
    # Piped into a file, a table would be cut to the 80 columns that rich assumes.
    console = Console(width=None if sys.stdout.isatty() else 160)
    grouped: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(tuple(row[key] for key in _ABOUT), []).append(row)
    for (corpus, split, dictionary, protocol), members in grouped.items():
        console.print(_table(f"{corpus} {split}, {dictionary}, protocol {protocol}, in percent", members))


def _table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for column in ("subset", "system", "encoder"):
        table.add_column(column, overflow="fold")
    for column in ("n", "cov.", "acc@1", "95 %", "acc@5", "mrr"):
        table.add_column(column, justify="right", no_wrap=True)
    by_subset: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_subset.setdefault(row["subset"], []).append(row)
    for members in by_subset.values():
        for row in members:
            table.add_row(*_cells(row))
        table.add_section()
    return table


def _cells(row: dict[str, Any]) -> list[str]:
    low, high = row["ci95"]
    figures = [f"{row['coverage']:.1f}", f"{row['acc@1']:.1f}", f"{low:.1f}-{high:.1f}"]
    labels = [row["subset"], row["system"], row["encoder"] or ""]
    return [*labels, str(row["n"]), *figures, f"{row['acc@5']:.1f}", f"{row['mrr']:.1f}"]


_NIL_FIGURES = ("nil_precision", "nil_recall", "accuracy", "kept")


def print_nil_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print the figures of refusal and calibration in one table, in percent but for probabilities."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for column in ("corpus", "dictionary", "protocol"):
        table.add_column(column, overflow="fold")
    for column in ("hidden", "threshold", "n", "NIL", "precision", "recall", "acc@1", "kept", "n ece", "ece"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        about = [f"{row['corpus']} {row['split']}", row["dictionary"], row["protocol"], f"{row['hidden']:g}"]
        counts = [str(row["threshold"]), str(row["n"]), str(row["n_nil"])]
        figures = [_figure(row[key], 1) for key in _NIL_FIGURES]
        table.add_row(*about, *counts, *figures, str(row["n_ece"]), _figure(row["ece"], 3))
    console.print(table)


def _figure(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
