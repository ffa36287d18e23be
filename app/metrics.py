"""What Prometheus scrapes: requests, stages, queue, the build that answers, rebuilds, memory; no word of a mention."""

import os
import resource
from pathlib import Path
from typing import TypedDict

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from sqlalchemy.exc import SQLAlchemyError

from app.serving import ActiveBuilds
from medlink import __version__
from medlink.errors import StoreError
from medlink.kb.jobs import Jobs
from medlink.stages import Stage

_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_ITEMS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)


class _Where(TypedDict):
    """Where a figure is kept, as the classes of prometheus_client want to be told."""

    registry: CollectorRegistry


class StateGauges:
    """What is looked at now and then: the build that answers, memory, a rebuild."""

    def __init__(self, where: _Where) -> None:
        def gauge(name: str, told: str, mode: str, labels: tuple[str, ...] = ()) -> Gauge:
            return Gauge(name, told, labels, multiprocess_mode=mode, **where)  # type: ignore[arg-type]

        labels = ("version", "build", "encoder")
        self._build = gauge(
            "medlink_build_info", "1 for the build that answers, 0 for earlier ones.", "livemax", labels
        )
        self._ready = gauge("medlink_ready", "1 if mentions can be linked, as /readyz says.", "livemin")
        self._names = gauge("medlink_build_names", "Names in the build that answers.", "livemax")
        self._revision = gauge("medlink_curation_revision", "Revision of curation that answers.", "livemin")
        self._rebuilding = gauge("medlink_rebuild_running", "1 while a rebuild waits or runs.", "livemax")
        self._rebuilt = gauge("medlink_rebuild_progress_ratio", "Share of the running rebuild done.", "livemax")
        self._memory = gauge("medlink_resident_memory_bytes", "Memory with shared pages, by process.", "liveall")
        self._store = gauge("medlink_store_reachable", "1 if the SQL store could be read when last tried.", "livemin")
        self._shown: tuple[str, str, str] | None = None

    def observe(self, builds: ActiveBuilds, *, is_open: bool) -> None:
        """Take down which build answers, whether the store can be read, and how much memory the process has.

        `is_open` says whether a request can be taken, as far as that is not up to the build.
        """
        build = builds.answering
        self._store.set(builds.store_problem is None)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        self._memory.set(pages * resource.getpagesize())
        self._ready.set(is_open and build is not None)
        if build is None:
            return
        self._names.set(build.manifest["counts"]["names"])
        self._revision.set(build.overlay.revision)
        shown = (__version__, build.id, build.encoder.fingerprint[:12])
        if self._shown and self._shown != shown:
            # A file that several processes share forgets no label.
            self._build.labels(*self._shown).set(0)
        self._build.labels(*shown).set(1)
        self._shown = shown

    def observe_rebuild(self, builds: ActiveBuilds) -> None:
        """Take down whether there is a rebuild and how far it is; asks the store."""
        try:
            newest = Jobs(builds.store()).jobs(limit=1)
        except (StoreError, SQLAlchemyError):
            # What was known last is shown on; medlink_store_reachable says so.
            return
        active = [job for job in newest if job.state in ("queued", "running")]
        self._rebuilding.set(len(active))
        self._rebuilt.set(active[0].progress if active else 0)


class Metrics:
    """The figures of one process or, where PROMETHEUS_MULTIPROC_DIR names a directory, of all that share it.

    A label takes its values from a short list of ours: route templates, status codes, stages, reasons, builds.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        where: _Where = {"registry": self._registry}
        if not _is_shared():
            ProcessCollector(**where)
        self.state = StateGauges(where)
        self.requests = Counter("http_requests", "Answers.", ["method", "route", "status"], **where)
        self.request_seconds = Histogram(
            "http_request_duration_seconds", "To the end of an answer.", ["route"], buckets=_SECONDS, **where
        )
        self.in_progress, self.queued = (
            Gauge(name, told, multiprocess_mode="livesum", **where)
            for name, told in (
                ("http_requests_in_progress", "Requests being answered."),
                ("medlink_queue_mentions", "Mentions that wait for the linker."),
            )
        )
        self.cache = Counter("medlink_cache_lookups", "Looks into the cache.", ["result"], **where)
        self.rejected = Counter("medlink_rejected", "Requests not let in.", ["reason"], **where)
        self.dropped = Counter("medlink_dropped", "Mentions given up as the client had left.", **where)
        told = "A stage of an answer; encode is a part of dense, serialise comes once a result."
        self._stage_seconds = Histogram("medlink_stage_duration_seconds", told, ["stage"], buckets=_SECONDS, **where)
        told = "Mentions or texts in a stage: short_forms has those asked, encode those encoded, equal ones once."
        self._stage_items = Counter("medlink_stage_items", told, ["stage"], **where)
        told = "Distinct texts encoded at once."
        self._batch = Histogram("medlink_batch_size", told, buckets=_ITEMS, **where)

    def hear(self, stage: Stage, seconds: float, items: int) -> None:
        """Count a stage of an answer; a listener for `medlink.stages.heard_by`."""
        self._stage_seconds.labels(stage).observe(seconds)
        self._stage_items.labels(stage).inc(items)
        if stage == "encode":
            self._batch.observe(items)

    def exposition(self) -> bytes:
        """Return everything in Prometheus's text format."""
        if not _is_shared():
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)


def forget_dead_workers() -> None:
    """Leave out what workers that are gone said of their own state; what they counted stays."""
    if not _is_shared():
        return
    for file in Path(os.environ[_DIRECTORY]).glob("gauge_live*_*.db"):
        process = file.stem.rpartition("_")[2]
        if process.isdecimal() and not Path(f"/proc/{process}").exists():
            mark_process_dead(int(process))  # type: ignore[no-untyped-call]


def _is_shared() -> bool:
    return bool(os.environ.get(_DIRECTORY))
