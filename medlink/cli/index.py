"""`medlink index build | verify | list | activate | prune | diff | worker`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from medlink.errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from app.settings import Settings

app = typer.Typer(no_args_is_help=True)
_console = Console()


@app.command()
def build(
    recipe: Annotated[str, typer.Option(help="How vectors are laid out: auto, flat, hnsw, hnsw-sq8.")] = "auto",
    activate: Annotated[bool, typer.Option(help="Let the build answer once it is verified.")] = True,
    if_stale: Annotated[
        bool, typer.Option("--if-stale", help="Do nothing if the active build is of this store and encoder.")
    ] = False,
    reuse: Annotated[
        bool, typer.Option(help="Take the vectors of names that the active build or one that did not end has.")
    ] = True,
) -> None:
    """Build an index over every name in the store, verify it and publish it."""
    from index.build import is_current
    from index.rebuild import build_from_store, content_of
    from index.store import BuildStore
    from medlink.cli.progress import progress
    from medlink.kb.builds import Builds
    from medlink.kb.repository import Repository

    settings, engine = _open()
    store, builds = BuildStore(settings.builds_dir), Builds(engine)
    content = content_of(Repository(engine))
    active = builds.active_build()
    if if_stale and active and is_current(store, active.build_id, content, settings.encoder, settings.models):
        _console.print(f"index build {active.build_id} is up to date")
        return
    # The lock says that a build which is published and not registered yet is no dead builder's.
    with progress("items") as advance, store.writing("shell"):
        build_id, facts = build_from_store(
            content,
            store,
            settings.encoder,
            reuse=([active.build_id] if active else []) if reuse else None,
            recipe=recipe,
            threads=settings.threads,
            models=settings.models,
            progress=advance,
        )
        builds.register_build(build_id, facts)
    if activate:
        builds.activate_build(build_id)
    _console.print(f"index build {build_id} is {'active' if activate else 'written'}")
    if facts["reused_vectors"]:
        of = f"{facts['reused_vectors']:,} of {facts['counts']['distinct_texts']:,}"
        _console.print(f"{of} vectors are those of the build before", highlight=False)


@app.command()
def verify(
    build_id: Annotated[str, typer.Argument(help="An id of `medlink index list`; the active build if left out.")] = "",
) -> None:
    """Check every file of a build against its manifest, load it, and ask its probes."""
    from index.store import BuildStore
    from medlink.errors import NoIndexError
    from medlink.kb.builds import Builds

    settings, engine = _open()
    active = Builds(engine).active_build()
    chosen = build_id or (active.build_id if active else "")
    if not chosen:
        raise NoIndexError("no index build is active; run `medlink index build`")
    store = BuildStore(settings.builds_dir)
    store.path(chosen)
    counts = store.open(chosen, threads=settings.threads).manifest["counts"]
    _console.print(f"index build {chosen} is sound: {counts['concepts']:,} concepts, {counts['names']:,} names")


@app.command("list")
def list_builds() -> None:
    """List the builds on disk, oldest first."""
    from index.store import BuildStore
    from medlink.kb.builds import Builds

    settings, engine = _open()
    builds = Builds(engine)
    active, records = builds.active_build(), {record.id: record for record in builds.builds()}
    table = Table("build", "state", "concepts", "names", "recipe")
    for build_id in BuildStore(settings.builds_dir).ids():
        record = records.get(build_id)
        state = "active" if active and active.build_id == build_id else (record.state if record else "unregistered")
        facts = record.manifest if record else {}
        counts, recipe = facts.get("counts", {}), facts.get("recipe", {}).get("name", "")
        table.add_row(build_id, state, f"{counts.get('concepts', 0):,}", f"{counts.get('names', 0):,}", recipe)
    _console.print(table)


@app.command()
def activate(build_id: Annotated[str, typer.Argument(help="An id of `medlink index list`.")]) -> None:
    """Verify a build and let it answer from now on; running services follow within seconds."""
    from index.store import BuildStore
    from medlink.kb.builds import Builds
    from medlink.manifest import read_manifest

    settings, engine = _open()
    store = BuildStore(settings.builds_dir)
    directory = store.path(build_id)
    store.open(build_id, threads=settings.threads)
    builds = Builds(engine)
    builds.register_build(build_id, read_manifest(directory))
    _console.print(f"index build {build_id} is active, generation {builds.activate_build(build_id)}")


@app.command()
def prune(
    keep: Annotated[int, typer.Option(min=0, help="How many of the latest builds stay.")] = 3,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
) -> None:
    """Remove old builds; the active one and the one that a rollback leads to stay whatever their age."""
    from app.old_builds import prune as remove_old
    from app.old_builds import superfluous
    from index.store import BuildStore
    from medlink.kb.builds import Builds

    settings, engine = _open()
    if dry_run:
        going = superfluous(Builds(engine), keep)
    else:
        going = remove_old(engine, BuildStore(settings.builds_dir), keep)
    engine.dispose()
    for build_id in going:
        _console.print(f"index build {build_id} {'would be' if dry_run else 'is'} removed")
    if not going:
        _console.print("no index build is superfluous")


@app.command()
def diff(
    earlier: Annotated[str, typer.Argument(help="An id of `medlink index list`.")],
    later: Annotated[str, typer.Argument(help="The build whose answers are the new ones.")],
    input: Annotated[Path | None, typer.Option(help="A .csv, .tsv or .jsonl file of mentions.")] = None,
    column: Annotated[str, typer.Option(help="Column (or JSON key) that holds the mention.")] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show which mentions of a file two builds answer differently, and why; the texts are not printed."""
    from app.drift import measure_drift
    from index.store import BuildStore
    from medlink.cli.mention_files import read_mentions

    settings, engine = _open()
    _yield_to_others(settings.rebuild_niceness)
    source = input or settings.drift_mentions
    if source is None:
        raise typer.BadParameter("give --input, or set MEDLINK_DRIFT_MENTIONS")
    for build_id in (earlier, later):
        BuildStore(settings.builds_dir).path(build_id)
    drift = measure_drift(settings, engine, earlier, later, read_mentions(source, column))
    if as_json:
        typer.echo(drift.model_dump_json())
        return
    table = Table("item", "id", "before", "after", "why")
    for change in drift.changes:
        place = str(change.item) if change.part is None else f"{change.item}, part {change.part}"
        before, after = (f"{a.status} {a.cui or a.reason or ''}" for a in (change.before, change.after))
        why = " ".join([change.why, *change.successors])
        table.add_row(place, escape(change.id or ""), escape(before), escape(after), escape(why))
    _console.print(table)
    _console.print(f"{drift.changed:,} of {drift.mentions:,} mentions are answered differently", highlight=False)


@app.command()
def worker(
    once: Annotated[bool, typer.Option("--once", help="End when no rebuild waits, and wait for none.")] = False,
) -> None:
    """Run the rebuilds that `POST /admin/index/rebuild` asks for, at low priority; any number of workers may run."""
    import time

    from sqlalchemy.exc import SQLAlchemyError

    from app import logs
    from app.worker import run_next, tidy_up

    settings, engine = _open()
    _yield_to_others(settings.rebuild_niceness)
    logs.configure(settings.log_format, settings.log_level)
    is_tidy = False
    while True:
        try:
            ran = run_next(settings, engine)
            if ran or not is_tidy:
                tidy_up(settings, engine)
                is_tidy = True
        except SQLAlchemyError:
            if once:
                raise StoreError("the store cannot be read or written now; check that it runs") from None
            ran = False
        if once and not ran:
            return
        if not ran:
            time.sleep(settings.build_poll_seconds)


def _yield_to_others(niceness: int) -> None:
    """Leave the processor to whoever answers requests."""
    import os

    os.nice(niceness)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _open() -> tuple["Settings", "Engine"]:
    from app.settings import Settings
    from medlink.kb.database import check_schema, open_engine

    settings = Settings()
    engine = open_engine(settings.database_url)
    check_schema(engine)
    return settings, engine
