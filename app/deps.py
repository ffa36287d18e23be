"""What endpoints are given: settings, the active index build, and a body that is JSON."""

from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Engine

from app.bodies import NDJSON, is_ndjson, media_type
from app.errors import UnsupportedMediaTypeError
from app.facts import IndexOut
from app.linking import Linking
from app.rebuilds import Rebuilds
from app.serving import ActiveBuilds
from app.settings import Settings
from index.store import IndexBuild


def get_settings(request: Request) -> Settings:
    """Return the settings that the app was created with."""
    settings: Settings = request.state.settings
    return settings


def get_builds(request: Request) -> ActiveBuilds:
    """Return what follows the active build."""
    builds: ActiveBuilds = request.state.builds
    return builds


def get_build(request: Request) -> IndexBuild:
    """Return the build that this request is answered from, whole.

    Raises:
        NoIndexError: There is none.
    """
    return get_builds(request).current()


def get_linking(request: Request) -> Linking:
    """Return what links for the whole service."""
    linking: Linking = request.state.linking
    return linking


def get_rebuilds(request: Request) -> Rebuilds:
    """Return what starts workers."""
    rebuilds: Rebuilds = request.state.rebuilds
    return rebuilds


def get_store(request: Request) -> Engine:
    """Return the SQL store.

    Raises:
        StoreError: It cannot be reached, or its schema is not that of this program.
    """
    return get_builds(request).store()


def require_json(request: Request) -> None:
    """Refuse a body of another content type.

    Raises:
        UnsupportedMediaTypeError: It is not JSON.
    """
    if media_type(request.headers) != "application/json":
        raise UnsupportedMediaTypeError


def require_json_or_lines(request: Request) -> None:
    """Refuse a body of another content type.

    Raises:
        UnsupportedMediaTypeError: It is neither JSON nor NDJSON.
    """
    if media_type(request.headers) != "application/json" and not is_ndjson(request.headers):
        raise UnsupportedMediaTypeError(f"application/json or {NDJSON}")


def describe_index(build: IndexBuild) -> IndexOut:
    """Return which build answers, under which revision of curation."""
    return IndexOut(id=build.id, curation_revision=build.overlay.revision, channels=list(build.linker.channels))


SettingsDep = Annotated[Settings, Depends(get_settings)]
BuildsDep = Annotated[ActiveBuilds, Depends(get_builds)]
RebuildsDep = Annotated[Rebuilds, Depends(get_rebuilds)]
StoreDep = Annotated[Engine, Depends(get_store)]
BuildDep = Annotated[IndexBuild, Depends(get_build)]
LinkingDep = Annotated[Linking, Depends(get_linking)]
