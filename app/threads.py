"""Work in threads that a task which is cancelled does not leave behind."""

import asyncio
from collections.abc import Callable


async def to_its_end(work: Callable[[], None]) -> None:
    """Do work in a thread; a task that is cancelled meanwhile ends once the work is done, which nothing can stop."""
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await working
        raise
