"""Builds an index from the SQL store, with the vectors of the build before; registers and activates nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from index.build import Content, Progress, build_index
from index.store import BuildStore
from medlink.errors import StoreError
from medlink.kb.repository import Repository
from medlink.manifest import read_manifest

# A build is written once, and what it grows by is little beside what it holds.
_ROOM = 1.2


def content_of(repository: Repository) -> Content:
    """Return everything of a store that goes into an index."""
    return Content(
        # Before what is streamed: a load that comes between leaves a build that says it is stale, never the reverse.
        loads=repository.fingerprints(),
        sources=repository.sources(),
        total=repository.concept_count(),
        concepts=repository.concepts(),
        retirements=repository.retirements(),
    )


def build_from_store(
    content: Content,
    store: BuildStore,
    encoder_dir: Path,
    *,
    reuse: Sequence[str] | None = (),
    recipe: str = "auto",
    threads: int | None = None,
    models: Path | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> tuple[str, dict[str, Any]]:
    """Write, verify and publish an index build, and return its id and manifest.

    Args:
        content: What goes into it.
        store: Where it goes.
        encoder_dir: The encoder, which is copied into the build.
        reuse: Builds whose vectors are used again where they are the same; one that is gone is done without. None:
            every name is encoded, also those that a build which did not end has encoded.
        recipe: How vectors are laid out, or `auto`.
        threads: Of the encoder and of the search.
        models: Directory of the fusion model and its calibration.
        progress: Told how far it is.

    Raises:
        StoreError: There is no name to index, or too little room on the disk.
        IndexMismatchError: The build does not pass its own checks, or a model cannot be used.
    """
    here = None if reuse is None else [store.path(earlier) for earlier in reuse if earlier in store.ids()]
    _check_room(store)
    build_id = build_index(
        content,
        encoder_dir,
        store,
        recipe=recipe,
        threads=threads,
        reuse=here,
        models=models,
        progress=progress,
    )
    return build_id, read_manifest(store.path(build_id))


def _check_room(store: BuildStore) -> None:
    """Refuse to begin what will fill the disk, going by the latest build."""
    latest = [store.path(build_id) for build_id in store.ids()[-1:]]
    needed = _ROOM * sum(p.stat().st_size for path in latest for p in path.rglob("*") if p.is_file())
    free = store.free_bytes()
    if free < needed:
        raise StoreError(
            f"an index build needs some {needed / 1e6:,.0f} MB and the disk has {free / 1e6:,.0f} MB left; make room"
        )
