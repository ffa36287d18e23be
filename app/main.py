"""Assembles the service: settings in, FastAPI app out."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypedDict

import structlog
from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from opentelemetry.trace import TracerProvider

from app import auth, docs, errors, matching, page
from app.drift import Drifts
from app.linking import Linking
from app.metrics import Metrics, forget_dead_workers
from app.observation import Observation
from app.rebuilds import Rebuilds
from app.routes import admin, concepts, curation, health, link
from app.serving import ActiveBuilds
from app.settings import Settings
from app.threads import to_its_end
from index.store import IndexBuild
from medlink import __version__

_log = structlog.get_logger()


class State(TypedDict):
    """What every request finds in `request.state`."""

    settings: Settings
    builds: ActiveBuilds
    metrics: Metrics
    rebuilds: Rebuilds
    drifts: Drifts
    linking: Linking


def create_app(settings: Settings, *, build: IndexBuild | None = None, spans: TracerProvider | None = None) -> FastAPI:
    """Return the service.

    Args:
        settings: Where the store and the builds are, and the limits.
        build: Answer from this build and follow nothing; for tests and for embedding.
        spans: Where spans of requests go; nowhere if left out.
    """
    builds, metrics = ActiveBuilds(settings, build=build), Metrics()
    rebuilds, linking, ring = Rebuilds(settings, builds), Linking(settings, metrics), auth.KeyRing(builds)

    look = partial(_look, builds, ring, linking, metrics)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[State]:
        forget_dead_workers()
        followers = [] if build else [_follow(look, settings.build_poll_seconds), rebuilds.watch()]
        async with linking.running():
            if settings.workers > 1 and not build:
                # Others answer meanwhile; a worker that joins them must not refuse what they would have answered.
                await look()
            following = [asyncio.create_task(follower) for follower in followers]
            yield State(
                settings=settings,
                builds=builds,
                metrics=metrics,
                rebuilds=rebuilds,
                drifts=Drifts(settings),
                linking=linking,
            )
        for task in following:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await asyncio.to_thread(ring.settle)
        builds.close()

    # A tracer that someone configures for the whole process would record exceptions with their text.
    silent: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False}
    app = FastAPI(
        title="medlink", version=__version__, lifespan=lifespan, telemetry=silent, docs_url=None, redoc_url=None
    )
    app.state.linking = linking
    auth.install(app, settings, ring)
    errors.install(app, max_body_bytes=settings.max_body_bytes, body_idle_seconds=settings.body_idle_seconds)
    app.add_middleware(Observation, metrics=metrics, spans=spans)
    docs.install(app)
    page.install(app)
    for routes in (link, concepts):
        app.include_router(routes.router, dependencies=auth.KEY, responses=errors.problems(401, 403))
    for routes in (health, admin, curation):
        app.include_router(routes.router)
    included = [route for routes in (link, concepts, health, admin, curation) for route in routes.router.routes]
    matching.keep(app, [*app.routes, *included])
    return app


async def _follow(look: Callable[[], Awaitable[None]], every: float) -> None:
    while True:
        await look()
        await asyncio.sleep(every)


async def _look(builds: ActiveBuilds, ring: auth.KeyRing, linking: Linking, metrics: Metrics) -> None:
    try:
        await to_its_end(builds.refresh)
        ring.look()
        metrics.state.observe(builds, is_open=linking.is_open)
        await to_its_end(lambda: metrics.state.observe_rebuild(builds))
    except Exception as error:  # noqa: BLE001  # a service that no longer follows would serve on and not say so
        _log.error("refresh_failed", kind=type(error).__name__)
