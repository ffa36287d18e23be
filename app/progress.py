"""How far a rebuild is, and how long it will take."""

import time

from medlink.kb.jobs import Progress

# Where each stage begins and ends, as shares of the whole; encoding takes nearly all of it where nothing is reused.
_STAGES = {
    "start": (0.0, 0.0),
    "read": (0.0, 0.15),
    "encode": (0.15, 0.9),
    "verify": (0.9, 0.99),
    "publish": (0.99, 1.0),
}


class Pace:
    """Turns counts of a stage into a share of the whole, a rate and the time left in the stage."""

    def __init__(self) -> None:
        self._now = ("start", 0, 0)
        self._since = time.monotonic()
        self._first = 0

    def note(self, stage: str, done: int, total: int) -> None:
        """Take what is done of a stage; total 0 means that it is not known."""
        if stage != self._now[0]:
            self._since, self._first = time.monotonic(), done
        self._now = (stage, done, total)

    def progress(self) -> Progress:
        """Return how far it is."""
        stage, done, total = self._now
        begin, end = _STAGES[stage]
        spent = time.monotonic() - self._since
        rate = (done - self._first) / spent if spent > 0 and done > self._first else None
        return Progress(
            stage,
            round(begin + (end - begin) * (done / total if total else 0.0), 4),
            done,
            total,
            None if rate is None else round(rate, 1),
            None if rate is None or not total else round((total - done) / rate, 1),
        )
