"""The one thread that links: requests queue in front of it, and small ones that wait are linked together."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import structlog

from medlink.errors import MedlinkError, NotServingError
from medlink.stages import tell
from medlink.types import Mention

A = TypeVar("A")
Link = Callable[[Sequence[Mention]], Sequence[A]]
_SMOOTHING = 0.2
# A thread that hangs must not keep the process.
_LONGEST_CALL = 10.0
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, eq=False)
class _Job(Generic[A]):
    """Mentions of one request; jobs of one group have a `link` that does the same."""

    group: Hashable
    link: Link[A]
    mentions: Sequence[Mention]
    answers: Future[list[A | Exception]] = field(default_factory=Future)
    asked: float = field(default_factory=time.monotonic)
    context: Context = field(default_factory=copy_context)


@dataclass(slots=True)
class Counts:
    """What happened so far; `waited` and `worked` are in seconds."""

    batches: int = 0
    mentions: int = 0
    dropped: int = 0
    waited: float = 0.0
    worked: float = 0.0


class LinkQueue(Generic[A]):
    """Runs jobs one after another in a thread of its own.

    One thread is enough because the encoder and FAISS use all cores for one job; several would fight over them.

    Args:
        together: Most mentions of several jobs that are linked in one call.
        stuck_after: Seconds after which a call that has not come back counts as dead.
        dropped: Is told how many mentions were given up because nobody waits for them.
    """

    def __init__(
        self, *, together: int, stuck_after: float, dropped: Callable[[int], None] = lambda mentions: None
    ) -> None:
        self._dropped = dropped
        self._together = together
        self._stuck_after = stuck_after
        self._jobs: deque[_Job[A]] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._busy_since: float | None = None
        self._thread = threading.Thread(target=self._live, name="medlink-linking", daemon=True)
        self.counts = Counts()
        self.rate = 0.0
        """Mentions a second of late."""

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the call in progress and refuse the rest; returns when the thread has ended, unless it hangs."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(_LONGEST_CALL)

    @property
    def alive(self) -> bool:
        """Whether jobs are worked on."""
        busy_since = self._busy_since
        stuck = busy_since is not None and time.monotonic() - busy_since > self._stuck_after
        return self._thread.is_alive() and not self._stopping and not stuck

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return len(self._jobs)

    async def link(self, group: Hashable, link: Link[A], mentions: Sequence[Mention]) -> list[A | Exception]:
        """Return an answer or an error for each mention; cancelled before its turn, it costs nothing.

        Args:
            group: Jobs of equal groups may be linked together, by the `link` of any of them.
            link: Links mentions; runs in the thread.
            mentions: What to link.

        Raises:
            MedlinkError: `link` refuses whatever mentions it is given.
            NotServingError: The thread has died or is stopped.
        """
        if not mentions:
            return []
        job = _Job(group, link, mentions)
        with self._changed:
            if not self.alive:
                raise NotServingError("nothing links any more; restart the service")
            self._jobs.append(job)
            self._changed.notify()
        return await asyncio.wrap_future(job.answers)

    def _live(self) -> None:
        try:
            while jobs := self._next():
                self._run(jobs)
        except BaseException as error:  # noqa: BLE001  # Python would print its message, which may hold a mention
            _log.critical("linking_thread_died", kind=type(error).__name__)
        finally:
            self._refuse_all()

    def _next(self) -> list[_Job[A]]:
        """Return the jobs to run together, the longest waiting first; none when it is time to stop."""
        with self._changed:
            while not self._stopping:
                taken = self._take()
                if taken:
                    return taken
                self._changed.wait()
            return []

    def _take(self) -> list[_Job[A]]:
        taken: list[_Job[A]] = []
        left: deque[_Job[A]] = deque()
        room = self._together
        for job in self._jobs:
            fits = not taken or (job.group == taken[0].group and len(job.mentions) <= room)
            if not fits:
                left.append(job)
            elif job.answers.set_running_or_notify_cancel():
                taken.append(job)
                room -= len(job.mentions)
            else:
                self.counts.dropped += len(job.mentions)
                self._dropped(len(job.mentions))
        self._jobs = left
        return taken

    def _run(self, jobs: Sequence[_Job[A]]) -> None:
        mentions = [mention for job in jobs for mention in job.mentions]
        begun = self._busy_since = time.monotonic()
        try:
            for job in jobs:
                job.context.run(tell, "queue", begun - job.asked, len(job.mentions))
            # Who listens to the stages of a request hears those of the call that it shares.
            answers = iter(jobs[0].context.run(link_each, jobs[0].link, mentions))
        except MedlinkError as error:
            for job in jobs:
                job.answers.set_exception(error)
        except BaseException:
            for job in jobs:
                job.answers.set_exception(NotServingError("what links has died; restart the service"))
            raise
        else:
            self._count(jobs, len(mentions), begun)
            for job in jobs:
                job.answers.set_result([next(answers) for _ in job.mentions])
        finally:
            self._busy_since = None

    def _count(self, jobs: Sequence[_Job[A]], mentions: int, begun: float) -> None:
        worked = time.monotonic() - begun
        self.counts.batches += 1
        self.counts.mentions += mentions
        self.counts.worked += worked
        self.counts.waited += sum(begun - job.asked for job in jobs)
        rate = mentions / max(worked, 1e-6)
        self.rate = rate if not self.rate else (1 - _SMOOTHING) * self.rate + _SMOOTHING * rate

    def _refuse_all(self) -> None:
        with self._changed:
            self._stopping = True
            for job in self._jobs:
                if job.answers.set_running_or_notify_cancel():
                    job.answers.set_exception(NotServingError("the service stopped before it came to this"))
            self._jobs.clear()


def link_each(link: Link[A], mentions: Sequence[Mention]) -> list[A | Exception]:
    """Return the answer to each mention; where linking fails unexpectedly, only the mentions at fault have errors.

    Raises:
        MedlinkError: `link` refuses whatever it is given.
    """
    try:
        return list(link(mentions))
    except MedlinkError:
        raise
    except Exception as error:  # noqa: BLE001  # a fault of one mention must not be that of all others
        if len(mentions) == 1:
            return [error]
        half = len(mentions) // 2
        return link_each(link, mentions[:half]) + link_each(link, mentions[half:])
