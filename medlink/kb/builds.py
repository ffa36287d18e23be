"""Which index builds there are, and which of them answers: the rows behind the build directory."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, insert, select, update

from medlink.errors import BuildInUseError, UnknownIdError, UnknownValueError
from medlink.kb import orm
from medlink.kb.database import reading, writing


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
        with writing(self._engine) as connection:
            register(connection, build_id, manifest)

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
        with writing(self._engine) as connection:
            return activate(connection, build_id)

    def roll_back(self) -> str:
        """Let the build answer that did before the one that does now, and return its id; twice goes back twice.

        Raises:
            UnknownIdError: None did, or none that did is ready.
        """
        with writing(self._engine) as connection:
            _active_locked(connection)
            way = _way_here(connection)
            if len(way) < 2:
                raise UnknownIdError("earlier index build that is ready")
            activate(connection, way[-2])
            return way[-2]

    def earlier_build(self) -> str | None:
        """Return the build that a rollback would let answer."""
        with reading(self._engine) as connection:
            way = _way_here(connection)
        return way[-2] if len(way) > 1 else None

    def delete(self, build_id: str) -> None:
        """Say that a build is deleted, after which it can be activated no more; its files go next.

        Raises:
            UnknownIdError: No such build.
            BuildInUseError: It is the active one.
        """
        build = orm.IndexBuild
        with writing(self._engine) as connection:
            if build_id == _active_locked(connection):
                raise BuildInUseError(f"index build {build_id} is the active one; activate another first")
            changed = connection.execute(update(build).where(build.id == build_id).values(state="deleted"))
        if not changed.rowcount:
            raise UnknownIdError("index build")

    def adopt(self, build_id: str, state: str, manifest: Mapping[str, Any]) -> None:
        """Record a build that whoever made it did not; one that is recorded by now stays as it is."""
        build = orm.IndexBuild
        with writing(self._engine) as connection:
            _active_locked(connection)
            if connection.scalar(select(build.id).where(build.id == build_id)) is None:
                values = {"id": build_id, "state": state, "manifest": dict(manifest)}
                connection.execute(insert(build).values(created_at=datetime.now(UTC), **values))

    def states(self) -> dict[str, str]:
        """Return the state of every build, by its id."""
        build = orm.IndexBuild
        with self._engine.connect() as connection:
            return {id_: state for id_, state in connection.execute(select(build.id, build.state))}

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


def register(connection: Connection, build_id: str, manifest: Mapping[str, Any]) -> None:
    """Record a build in a transaction; see `Builds.register_build`."""
    build = orm.IndexBuild
    values = {"state": "ready", "manifest": dict(manifest)}
    changed = connection.execute(update(build).where(build.id == build_id).values(**values))
    if not changed.rowcount:
        connection.execute(insert(build).values(id=build_id, created_at=datetime.now(UTC), **values))


def activate(connection: Connection, build_id: str) -> int:
    """Let a build answer from the end of a transaction on; see `Builds.activate_build`."""
    active = orm.ActiveBuild
    _active_locked(connection)
    ready = _ready(connection)
    if build_id not in ready:
        raise UnknownValueError("index build", build_id, ready)
    values = {"build_id": build_id, "generation": active.generation + 1}
    generation = connection.scalars(update(active).values(**values).returning(active.generation)).one()
    entry = {"generation": generation, "build_id": build_id, "at": datetime.now(UTC)}
    connection.execute(insert(orm.Activation).values(**entry))
    return generation


def _active_locked(connection: Connection) -> str | None:
    """Return the active build; nobody else activates or deletes one until the transaction ends."""
    active = orm.ActiveBuild
    same = update(active).values(generation=active.generation)
    return connection.scalars(same.returning(active.build_id)).one()


def _ready(connection: Connection) -> list[str]:
    build = orm.IndexBuild
    return list(connection.scalars(select(build.id).where(build.state == "ready").order_by(build.id)))


def _way_here(connection: Connection) -> list[str]:
    """Return the ready builds that one came by to the present one, without those that were rolled back."""
    log, ready = orm.Activation, set(_ready(connection))
    way: list[str] = []
    for build_id in connection.scalars(select(log.build_id).order_by(log.generation)):
        if len(way) > 1 and way[-2] == build_id:
            way.pop()
        elif way[-1:] != [build_id]:
            way.append(build_id)
    return [build_id for build_id in way[:-1] if build_id in ready] + way[-1:]
