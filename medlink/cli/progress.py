"""A progress bar with rates for terminals, and a few plain lines where there is none."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from training.run import Step

_QUIET_SECONDS = 10.0
_STEPS_BETWEEN_LINES = 100

Advance = Callable[[str, int, int], None]
"""Takes the stage, how much of it is done and how much there is (0: not known)."""


class Lines:
    """Says in one line every few seconds how far a stage has come."""

    def __init__(self, console: Console, unit: str) -> None:
        self._console = console
        self._unit = unit
        self._stage = ""
        self._started = self._said = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note progress; print if it is time or the stage is complete."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._started, self._said = stage, now, now
        if now - self._said < _QUIET_SECONDS and done != total:
            return
        self._said = now
        rate = f", {done / (now - self._started):,.0f} {self._unit}/s" if now > self._started and done else ""
        of = f" of {total:,}" if total else ""
        self._console.print(f"{stage}: {done:,}{of}{rate}" if done else stage, highlight=False)


@contextmanager
def progress(unit: str) -> Iterator[Advance]:
    """Give a function that shows progress on stderr.

    Args:
        unit: What is counted, in the plural.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines(console, unit)
        return
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bars:
        tasks: dict[str, tuple[TaskID, float]] = {}

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = (bars.add_task(stage, rate=""), time.monotonic())
            task, started = tasks[stage]
            spent = time.monotonic() - started
            rate = f"{done / spent:,.0f} {unit}/s" if spent > 1 else ""
            bars.update(task, completed=done, total=total or None, rate=rate)

        yield advance


@contextmanager
def training_progress(
    names: int, *, stage: str = "pretrain", unit: str = "names"
) -> "Iterator[Callable[[Step, int], None]]":
    """Give a function that shows the steps of a training run on stderr.

    Args:
        names: Names of a batch.
        stage: What the run is called.
        unit: What a batch is made of, if not of names.
    """
    with progress(unit) as advance:
        console = Console(stderr=True)

        def show(step: "Step", total: int) -> None:
            advance(stage, step.step * names, total * names)
            if step.dev_acc_at_1 is not None or step.step % _STEPS_BETWEEN_LINES == 0:
                dev = "" if step.dev_acc_at_1 is None else f", dev acc@1 {step.dev_acc_at_1:.1f} %"
                kept = f", {step.positives_kept:.0%} of positives, {step.negatives_kept:.2%} of negatives mined"
                mined = kept if step.positives_kept or step.negatives_kept else ""
                console.print(f"step {step.step} of {total}: loss {step.loss:.4f}{mined}{dev}", highlight=False)

        yield show
