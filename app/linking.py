"""What links for the whole service: the queue with its thread, the places before it, answers already given."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from app.admission import Admission
from app.answer_cache import AnswerCache
from app.answering import Answering, Batch
from app.errors import code_of
from app.link_queue import LinkQueue
from app.metrics import Metrics
from app.schemas import Options
from app.settings import Settings
from index.store import IndexBuild
from medlink.errors import DeadlineError, NotServingError, OverloadedError


class Linking:
    """Admits requests and answers them, one mention or many by the same rule."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._metrics = metrics
        self._deadline = settings.request_deadline_seconds
        self._drain_seconds = settings.drain_seconds
        self.together = settings.max_together
        """Most mentions that are linked in one go."""
        self.queue = self._new_queue()
        self.admission = Admission(settings.max_queue_mentions, rate=lambda: self.queue.rate, told=metrics.queued.set)
        self.cache = AnswerCache(
            settings.answer_cache_bytes,
            looked=lambda found: metrics.cache.labels("found" if found else "missed").inc(),
        )
        self.draining = False
        """Whether the service takes no more requests, because it is told to stop."""
        self._drained = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have the thread run as long as the context lasts."""
        # An app may be started again, a thread may not.
        self.queue = self._new_queue()
        self.draining = False
        self.queue.start()
        try:
            yield
        finally:
            await asyncio.to_thread(self.queue.stop)

    @property
    def is_open(self) -> bool:
        """Whether a request can be taken."""
        return not self.draining and self.queue.alive

    def check(self) -> None:
        """Do nothing if a request can be taken.

        Raises:
            NotServingError: The service is stopping, or the thread that links has died or hangs.
        """
        if self.draining:
            raise NotServingError("the service is stopping; ask another replica or try again later")
        if not self.queue.alive:
            raise NotServingError("the thread that links has died or hangs; restart the service")

    def drain(self) -> None:
        """Take no more requests, and let streams go on only for the time that the settings allow."""
        self.draining = True
        asyncio.get_running_loop().call_later(self._drain_seconds, self._drained.set)

    @property
    def drained(self) -> bool:
        """Whether the time to finish is over."""
        return self._drained.is_set()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        try:
            yield
        except (OverloadedError, NotServingError) as error:
            self._metrics.rejected.labels(code_of(error)).inc()
            raise

    def _new_queue(self) -> LinkQueue[bytes]:
        return LinkQueue(together=self.together, stuck_after=self._deadline, dropped=self._metrics.dropped.inc)

    async def answering(self, build: IndexBuild, request: Options) -> Answering:
        """Return what answers a request of these options.

        Raises:
            NotServingError: Nothing can be answered now.
            UnknownValueError, NotCalibratedError: The build cannot answer with these options.
        """
        with self._counted():
            self.check()
        return await asyncio.to_thread(Answering, build, request, self.cache, self.queue)

    async def answer(self, answering: Answering, batch: Batch) -> None:
        """Answer a batch whole within the deadline, or refuse it.

        Raises:
            OverloadedError: There is no room for all of it.
            DeadlineError: It took too long.
            NotServingError: The thread that links has died or is stopped.
        """
        try:
            with self._counted(), self.admission.take(len(batch.unanswered)):
                async with asyncio.timeout(self._deadline):
                    await answering.answer(batch, together=self.together)
        except TimeoutError:
            self._metrics.rejected.labels("deadline").inc()
            raise DeadlineError(
                f"no answer within request_deadline_seconds = {self._deadline:g}; send fewer mentions at a time"
            ) from None

    def check_room(self) -> None:
        """Do nothing if a stream may begin.

        Raises:
            OverloadedError: There is no room at all.
        """
        with self._counted():
            self.admission.check()

    async def answer_in_turn(self, answering: Answering, batch: Batch) -> None:
        """Answer a part of a stream as soon as there is room for it, which is what slows the stream down.

        Raises:
            NotServingError: The thread that links has died or is stopped.
        """
        async with self.admission.wait(len(batch.unanswered)):
            await answering.answer(batch, together=self.together)
