"""Which build answers under which curation: follows both in the store, and keeps the last good build."""

import ctypes
import gc
import threading
import time
from collections.abc import Iterator

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from app.settings import Settings
from index.store import BuildStore, IndexBuild
from medlink.encoders.onnx import available_cores
from medlink.errors import IndexMismatchError, NoIndexError, StoreError
from medlink.kb.builds import Builds
from medlink.kb.curation import Curations, CurationState
from medlink.kb.database import check_schema, open_engine

_NO_INDEX = "no index build is active; run `medlink kb load open` and `medlink index build`"
# Seconds: a volume that is mounted late is there soon, a damaged build costs a look at all of its bytes each time.
_FIRST_WAIT = 2.0
_LONGEST_WAIT = 300.0
_log = structlog.get_logger()


class _Again:
    """When to try once more what failed: soon at first, then ever more seldom, and never if nothing failed."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all failures."""
        self._wait, self._at = _FIRST_WAIT, float("inf")

    def failed(self) -> None:
        """Note a failure."""
        self._at = time.monotonic() + self._wait
        self._wait = min(2 * self._wait, _LONGEST_WAIT)

    def is_due(self) -> bool:
        """Say whether it is time."""
        return time.monotonic() >= self._at


class ActiveBuilds:
    """Holds the curated build that answers now; `refresh` may be called from one thread while others read."""

    def __init__(self, settings: Settings, *, build: IndexBuild | None = None) -> None:
        self._settings = settings
        self._store = BuildStore(settings.builds_dir)
        self._engine: Engine | None = None
        self._build = build
        self._generation = -1
        self._again = _Again()
        self._refreshing = threading.Lock()
        self._reaching = threading.Lock()
        self.refused: dict[str, str] = {}
        """Builds that could not be loaded although they are, or once were, the active one; with the reason."""
        self.store_problem: str | None = None
        """Why the store could not be read when it was last looked at; answers do not need it."""

    @property
    def answering(self) -> IndexBuild | None:
        """The build that answers, None if there is none."""
        return self._build

    def current(self) -> IndexBuild:
        """Return the build that answers.

        Raises:
            NoIndexError: There is none; the text gives the reason or the command that makes one.
        """
        build = self._build
        if build is None:
            raise NoIndexError("; ".join(self.refused.values()) or self.store_problem or _NO_INDEX)
        return build

    def refresh(self) -> None:
        """Load the active build if another one was activated, and lay the corrections in force over it.

        An unreachable store or a bad build changes nothing; a bad build is tried again after a while.
        """
        with self._refreshing:
            try:
                engine = self.store()
                curations = Curations(engine)
                self._follow_builds(Builds(engine), curations)
                self._follow_curation(curations)
                self.store_problem = None
            except (StoreError, SQLAlchemyError) as error:
                # An answer needs no SQL, so serving goes on; SQLAlchemy's own text may hold values.
                reason = str(error) if isinstance(error, StoreError) else type(error).__name__
                self.store_problem = reason
                _log.warning("store_unavailable", reason=reason)

    def store(self) -> Engine:
        """Return the store.

        Raises:
            StoreError: It cannot be reached, or its schema is not that of this program.
        """
        with self._reaching:
            if self._engine is None:
                engine = open_engine(self._settings.database_url, patience=self._settings.store_timeout_seconds)
                try:
                    check_schema(engine)
                except StoreError:
                    engine.dispose()
                    raise
                self._engine = engine
            return self._engine

    def close(self) -> None:
        """Give back the connections to the store; it is opened again when it is needed."""
        with self._reaching:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None

    def _follow_builds(self, records: Builds, curations: Curations) -> None:
        active = records.active_build()
        if active is None:
            return
        if active.generation != self._generation:
            self._generation = active.generation
            self._again.reset()
        elif not self._again.is_due():
            return
        # Until it is loaded; also if what keeps it from that is nothing that anybody foresaw.
        self._again.failed()
        if self._load_first_sound(self._in_order(records, active.build_id), curations.in_force()) == active.build_id:
            self._again.reset()

    def _load_first_sound(self, build_ids: Iterator[str], corrections: CurationState) -> str | None:
        refused: dict[str, str] = {}
        loaded = None
        for build_id in build_ids:
            if self._build is not None and self._build.id == build_id:
                loaded = build_id
                break
            try:
                whole = self._store.open(build_id, threads=threads_of_a_worker(self._settings))
                opened = whole.within(self._settings.max_licence_level)
                # Uncurated it must not answer for a moment, nor without saying what was refused before it.
                curated = opened.curated(corrections)
                self.refused = dict(refused)
                self._build = curated
            except IndexMismatchError as error:
                refused[build_id] = str(error)
                _log.error("build_refused", build=build_id, reason=str(error))
            else:
                spare_collections()
                _log.info("build_loaded", build=build_id, generation=self._generation)
                loaded = build_id
                break
        self.refused = refused
        return loaded

    def _follow_curation(self, curations: Curations) -> None:
        build = self._build
        if build is None or curations.revision() == build.overlay.revision:
            return
        corrections = curations.in_force()
        self._build = build.curated(corrections)
        _log.info("curation_followed", revision=corrections.revision, entries=len(corrections.entries))

    def _in_order(self, records: Builds, active: str) -> Iterator[str]:
        yield active
        if self._build is not None:
            yield self._build.id
        earlier = dict.fromkeys(activation.build_id for activation in records.activations())
        yield from (build_id for build_id in earlier if build_id != active)


def threads_of_a_worker(settings: Settings) -> int:
    """Return how many threads one process of the service links with: its share of the cores, unless it is told."""
    return settings.threads or max(1, available_cores() // settings.workers)


def load_active_build(settings: Settings) -> IndexBuild:
    """Return the active build, under the corrections in force, for use in this process.

    Raises:
        NoIndexError: None is active.
        IndexMismatchError: The active one is damaged.
        StoreError: The store cannot be read.
    """
    engine = open_engine(settings.database_url)
    check_schema(engine)
    active, corrections = Builds(engine).active_build(), Curations(engine).in_force()
    engine.dispose()
    if active is None:
        raise NoIndexError(_NO_INDEX)
    build = BuildStore(settings.builds_dir).open(active.build_id, threads=settings.threads)
    build = build.within(settings.max_licence_level).curated(corrections)
    spare_collections()
    return build


def spare_collections() -> None:
    """Keep the garbage collector from looking again and again at what lives as long as a build.

    Linking makes very many small objects, none of them in a cycle; by default a sixth of its time goes into looking.
    """
    # What an earlier build left goes first.
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    _give_memory_back()


def _give_memory_back() -> None:
    """Have the C library return what loading has used for a moment, tens of MiB, which glibc keeps unless asked."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)
