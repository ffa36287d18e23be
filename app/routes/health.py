"""`/livez`, `/readyz`, `/info`, `/metrics`: is it up, can it answer, with what, and how it fares."""

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import BaseModel

from app.deps import BuildDep, BuildsDep, LinkingDep, SettingsDep
from app.errors import problems
from app.metrics import Metrics
from medlink import __version__

router = APIRouter(tags=["health"])


class Live(BaseModel):
    """The process answers."""

    status: str = "live"


class Ready(BaseModel):
    """The process can link; `refused` names builds that were activated and could not be loaded, with the reason."""

    status: str
    index: str
    refused: dict[str, str]
    store: Literal["reachable", "unreachable"]


class Info(BaseModel):
    """What answers, where its content comes from, and the limits of a request."""

    version: str
    index: dict[str, Any]
    limits: dict[str, int]


@router.get("/livez")
async def livez() -> Live:
    """Say that the process is up."""
    return Live()


@router.get("/readyz", responses=problems(503), response_model=Ready)
def readyz(builds: BuildsDep, linking: LinkingDep) -> Ready | JSONResponse:
    """Say whether mentions can be linked; `degraded` means on an older build, or without news from the store."""
    linking.check()
    build, lost = builds.current(), builds.store_problem is not None
    status = "degraded" if builds.refused or lost else "ready"
    store: Literal["reachable", "unreachable"] = "unreachable" if lost else "reachable"
    return Ready(status=status, index=build.id, refused=dict(builds.refused), store=store)


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request, builds: BuildsDep, linking: LinkingDep) -> Response:
    """Give figures in Prometheus's text format: requests, stages, queue, build, rebuild, memory; never a mention."""
    figures: Metrics = request.state.metrics
    figures.state.observe(builds, is_open=linking.is_open)
    return Response(figures.exposition(), media_type=CONTENT_TYPE_PLAIN_0_0_4)


@router.get("/info", responses=problems(503))
def info(build: BuildDep, settings: SettingsDep) -> Info:
    """Describe the active index build, its sources and terms, and the limits of a request."""
    models = {key: build.manifest[key] for key in ("fusion", "calibration") if key in build.manifest}
    shown = ("id", "created_at", "counts", "sources", "encoder", "text", "recipe", "metric", "measured_recall")
    limits = {name: getattr(settings, name) for name in type(settings).model_fields if name.startswith("max_")}
    index = {key: build.manifest[key] for key in shown}
    vocabulary = {
        "curation_revision": build.overlay.revision,
        "channels": build.linker.channels,
        "sabs": build.arrays.sabs,
        "semantic_types": build.arrays.tuis,
    }
    return Info(version=__version__, index={**index, **models, **vocabulary}, limits=limits)
