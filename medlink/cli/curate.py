"""`medlink kb curate`: corrections of the knowledge base that need no rebuild."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from medlink.kb.curation import Curations, Entry

app = typer.Typer(no_args_is_help=True)
_console = Console()

_Concept = Annotated[str, typer.Argument(help="A CUI, source id or CURIE.")]
_Why = Annotated[str, typer.Option(help="The reason, for whoever reads the list.")]
_Who = Annotated[str, typer.Option(help="Who decides; the user of this system if left out.")]


@app.command("add-synonym")
def add_synonym(
    concept: _Concept, name: Annotated[str, typer.Argument(help="The name to add.")], why: _Why, who: _Who = ""
) -> None:
    """Give a concept one more name."""
    _make(lambda curations: curations.add_synonym(concept, name, who=_name(who), why=why))


@app.command("block-name")
def block_name(
    name: Annotated[str, typer.Argument(help="A name as the knowledge base has it.")],
    why: _Why,
    concept: Annotated[str, typer.Option(help="Block it as a name of this concept only.")] = "",
    who: _Who = "",
) -> None:
    """Let a name answer no longer."""
    _make(lambda curations: curations.block_name(name, concept=concept or None, who=_name(who), why=why))


@app.command("block-concept")
def block_concept(concept: _Concept, why: _Why, who: _Who = "") -> None:
    """Let a concept answer no longer."""
    _make(lambda curations: curations.block_concept(concept, who=_name(who), why=why))


@app.command()
def pin(
    mention: Annotated[str, typer.Argument(help="A mention; a short one in capitals matches only as it is written.")],
    concept: _Concept,
    why: _Why,
    who: _Who = "",
) -> None:
    """Link a mention to one concept before all others."""
    _make(lambda curations: curations.pin(mention, concept, who=_name(who), why=why))


@app.command("list")
def list_entries(
    undone: Annotated[bool, typer.Option("--undone", help="Show entries that were undone too.")] = False,
) -> None:
    """List the corrections, oldest first; one that dangles has lost its concept or name since, and has no effect."""
    with _curations() as curations:
        revision, dangling, entries = curations.revision(), curations.dangling(), curations.entries()
    table = Table("", "correction", "concept", "text", "who", "when", "why", "state")
    for entry in entries:
        if undone or entry.revoked_at is None:
            table.add_row(*_row(entry, dangling.get(entry.id)))
    _console.print(table)
    _console.print(f"curation revision {revision}", highlight=False)


@app.command()
def undo(entry: Annotated[int, typer.Argument(help="A number of `medlink kb curate list`.")], who: _Who = "") -> None:
    """Put a correction out of force; the list keeps it."""
    with _curations() as curations:
        revision = curations.undo(entry, who=_name(who))
    _console.print(f"entry {entry} is undone, curation revision {revision}", highlight=False)


def _make(correct: "Callable[[Curations], Entry]") -> None:
    with _curations() as curations:
        entry, revision = correct(curations), curations.revision()
    _console.print(
        f"entry {entry.id} is in force, curation revision {revision}; running services follow within seconds",
        highlight=False,
        soft_wrap=True,
    )


@contextmanager
def _curations() -> "Iterator[Curations]":
    from app.settings import Settings
    from medlink.kb.curation import Curations
    from medlink.kb.database import check_schema, open_engine

    engine = open_engine(Settings().database_url)
    check_schema(engine)
    yield Curations(engine)
    engine.dispose()


def _name(who: str) -> str:
    from getpass import getuser

    from medlink.errors import CurationError

    try:
        return who or getuser()
    except (KeyError, OSError):
        raise CurationError("this system does not know your name; say it with --who") from None


def _row(entry: "Entry", dangles: str | None) -> list[str]:
    undone = f"undone by {entry.revoked_by}" if entry.revoked_at else "in force"
    return [
        str(entry.id),
        entry.action.replace("_", " "),
        escape(entry.concept_id or "all"),
        escape(entry.text or ""),
        escape(entry.who),
        entry.created_at.isoformat(timespec="minutes"),
        escape(entry.why),
        escape(f"dangling: {dangles}" if dangles else undone),
    ]
