"""Tells whoever listens how long each stage of an answer took, and over how many items."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Literal

Stage = Literal["queue", "short_forms", "exact", "encode", "dense", "lexical", "fusion", "serialise"]
"""What is timed; `encode` is a part of `dense`, and `serialise` is told once a result."""
Listener = Callable[[Stage, float, int], None]

# A listener belongs to a request, or to a thread that works for many; it passes to threads that copy the context.
_listener: ContextVar[Listener | None] = ContextVar("stage_listener", default=None)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Let a listener hear of every stage inside.

    >>> with heard_by(lambda name, seconds, items: print(name, seconds < 1, items)), stage("fusion", 3):
    ...     pass
    fusion True 3
    """
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def stage(name: Stage, items: int = 0) -> Iterator[None]:
    """Time what is inside, if anyone listens.

    Args:
        name: Which stage it is.
        items: How many mentions or texts it works on.
    """
    begin = perf_counter()
    try:
        yield
    finally:
        tell(name, perf_counter() - begin, items)


def tell(name: Stage, seconds: float, items: int) -> None:
    """Tell whoever listens of a stage that was timed otherwise."""
    listener = _listener.get()
    if listener:
        listener(name, seconds, items)
