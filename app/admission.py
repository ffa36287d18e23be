"""How many mentions may wait: a request has places for all of its mentions, or is refused."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from medlink.errors import OverloadedError

_FIRST_GUESS = 5
_LONGEST_WAIT = 60


class Admission:
    """Places in front of the encoder; used by the event loop only.

    Args:
        places: How many mentions may wait or be worked on, of all requests together.
        rate: Tells how many mentions a second are linked of late; 0 if that is not known.
        told: Is told how many places are in use whenever that changes.
    """

    def __init__(
        self, places: int, rate: Callable[[], float] = lambda: 0.0, told: Callable[[int], None] = lambda taken: None
    ) -> None:
        self._places = places
        self._rate = rate
        self._told = told
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.taken = 0
        """Places in use."""
        self.refused = 0
        """Requests that did not fit, so far."""

    @contextmanager
    def take(self, count: int) -> Iterator[None]:
        """Hold so many places for as long as the context lasts.

        Raises:
            OverloadedError: There are not so many.
        """
        if self.taken + count > self._places:
            self.refused += 1
            raise OverloadedError(
                f"{self.taken} mentions wait to be linked and {count} more are over max_queue_mentions ="
                f" {self._places}; try again later",
                retry_after=self._retry_after(count),
            )
        self._use(count)
        try:
            yield
        finally:
            self._give(count)

    @asynccontextmanager
    async def wait(self, count: int) -> AsyncIterator[None]:
        """Hold so many places as soon as there are; whoever waits longest gets them first."""
        if count > self._places:
            raise ValueError(f"{count} places will never be free, there are {self._places}")
        if count and (self._waiting or self.taken + count > self._places):
            await self._turn(count)
        else:
            self._use(count)
        try:
            yield
        finally:
            self._give(count)

    def check(self) -> None:
        """Do nothing if there is any room.

        Raises:
            OverloadedError: Not even one place is free.
        """
        with self.take(1):
            pass

    async def _turn(self, count: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give(count)
            raise

    def _use(self, count: int) -> None:
        self.taken += count
        self._told(self.taken)

    def _give(self, count: int) -> None:
        self._use(-count)
        while self._waiting and (self._waiting[0][1].done() or self.taken + self._waiting[0][0] <= self._places):
            count, turn = self._waiting.popleft()
            if not turn.done():
                self._use(count)
                turn.set_result(None)

    def _retry_after(self, count: int) -> int:
        """Return the seconds until so many places are free, as far as one can tell."""
        rate = self._rate()
        if not rate:
            return _FIRST_GUESS
        return min(_LONGEST_WAIT, max(1, round((self.taken + count - self._places) / rate)))
