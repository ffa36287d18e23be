"""Which index builds there are, and which of them answers: the rows behind the build directory."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, insert, select, update

from medlink.errors import UnknownValueError
from medlink.kb import orm
from medlink.kb.database import writing


@dataclass(frozen=True, slots=True)
class BuildRecord:
    """An index build that was written and verified."""

    id: str
    created_at: datetime
    state: str
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ActiveBuild:
    """The build that answers; the generation grows with every activation, a rollback included."""

    build_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class Activation:
    """One entry in the log of activations."""

    generation: int
    build_id: str
    at: datetime


class Builds:
    """The index builds that the store knows of."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def register_build(self, build_id: str, manifest: Mapping[str, Any]) -> None:
        """Record a build whose directory is complete; registering it again replaces its manifest."""
        build = orm.IndexBuild
        values = {"state": "ready", "manifest": dict(manifest)}
        with writing(self._engine) as connection:
            changed = connection.execute(update(build).where(build.id == build_id).values(**values))
            if not changed.rowcount:
                connection.execute(insert(build).values(id=build_id, created_at=datetime.now(UTC), **values))

    def set_state(self, build_id: str, state: str) -> None:
        """Say that a build is ready, quarantined or deleted.

        Raises:
            UnknownValueError: No such build.
        """
        with writing(self._engine) as connection:
            build = orm.IndexBuild
            changed = connection.execute(update(build).where(build.id == build_id).values(state=state))
        if not changed.rowcount:
            raise UnknownValueError("index build", build_id, [known.id for known in self.builds()])

    def builds(self) -> list[BuildRecord]:
        """Return all builds, the oldest first."""
        build = orm.IndexBuild
        query = select(build.id, build.created_at, build.state, build.manifest).order_by(build.created_at, build.id)
        with self._engine.connect() as connection:
            return [BuildRecord(*row) for row in connection.execute(query)]

    def activate_build(self, build_id: str) -> int:
        """Let a build answer from now on, and return the new generation.

        Raises:
            UnknownValueError: No such build, or it is not ready.
        """
        active, build = orm.ActiveBuild, orm.IndexBuild
        with writing(self._engine) as connection:
            ready = list(connection.scalars(select(build.id).where(build.state == "ready").order_by(build.id)))
            if build_id not in ready:
                raise UnknownValueError("index build", build_id, ready)
            values = {"build_id": build_id, "generation": active.generation + 1}
            generation = connection.scalars(update(active).values(**values).returning(active.generation)).one()
            entry = {"generation": generation, "build_id": build_id, "at": datetime.now(UTC)}
            connection.execute(insert(orm.Activation).values(**entry))
        return generation

    def active_build(self) -> ActiveBuild | None:
        """Return the build that answers, None before the first activation."""
        active = orm.ActiveBuild
        query = select(active.build_id, active.generation).where(active.build_id.is_not(None))
        with self._engine.connect() as connection:
            found = connection.execute(query).first()
        return ActiveBuild(str(found.build_id), found.generation) if found else None

    def activations(self) -> list[Activation]:
        """Return the log of activations, the latest first; a build may be there several times."""
        log = orm.Activation
        query = select(log.generation, log.build_id, log.at).order_by(log.generation.desc())
        with self._engine.connect() as connection:
            return [Activation(*row) for row in connection.execute(query)]
