"""Index builds that nobody needs any more go, and those that nobody told the store of are found."""

import re
from collections.abc import Sequence

import structlog
from sqlalchemy import Engine

from index.store import BuildStore, checked_manifest
from medlink.errors import IndexMismatchError, UnknownValueError
from medlink.kb.builds import Builds

_BUILD_ID = re.compile(r"\d{8}T\d{9}Z")
_log = structlog.get_logger()


def superfluous(builds: Builds, keep: int) -> list[str]:
    """Return the builds that can go, the oldest first.

    The active one stays, the one that a rollback leads to, and the `keep` latest that are ready.
    """
    states, active = builds.states(), builds.active_build()
    there = sorted(build_id for build_id, state in states.items() if state != "deleted")
    ready = [build_id for build_id in there if states[build_id] == "ready"]
    kept = {*ready[max(0, len(ready) - keep) :], active.build_id if active else None, builds.earlier_build()}
    return [build_id for build_id in there if build_id not in kept]


def remove_build(engine: Engine, store: BuildStore, build_id: str) -> None:
    """Remove one build; a service that answers from it goes on.

    Raises:
        UnknownIdError: No such build.
        BuildInUseError: It is the active one.
    """
    Builds(engine).delete(build_id)
    store.discard(build_id)
    _log.info("build_removed", build=build_id)


def prune(engine: Engine, store: BuildStore, keep: int) -> list[str]:
    """Remove the builds that `superfluous` names, and return them."""
    going = superfluous(Builds(engine), keep)
    for build_id in going:
        remove_build(engine, store, build_id)
    return going


def tidy(engine: Engine, store: BuildStore) -> None:
    """Register published builds that their builders did not live to register, and end removals that were broken off.

    Such a build is kept and not activated: whoever has put back an older database, or named the wrong one, has many.
    """
    # In this order: once no builder is at work, whatever is there is known to the store or never will be.
    there = [build_id for build_id in store.ids() if _BUILD_ID.fullmatch(build_id)]
    if store.is_being_written():
        return
    states = Builds(engine).states()
    _adopt(engine, store, [build_id for build_id in there if build_id not in states])
    for build_id in there:
        if states.get(build_id) == "deleted":
            store.discard(build_id)


def _adopt(engine: Engine, store: BuildStore, build_ids: Sequence[str]) -> None:
    for build_id in build_ids:
        try:
            manifest, state = checked_manifest(store.path(build_id)), "ready"
        except UnknownValueError:
            continue  # removed meanwhile
        except IndexMismatchError as error:
            manifest, state = {}, "quarantined"
            _log.error("build_refused", build=build_id, reason=str(error))
        Builds(engine).adopt(build_id, state, manifest)
        _log.info("build_adopted", build=build_id)
