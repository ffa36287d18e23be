"""`medlink keys`: who may use the service, and for what."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from medlink.kb.keys import Keys

app = typer.Typer(no_args_is_help=True)
_console = Console()


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Who will hold it; stands beside what is done with it.")],
    scope: Annotated[list[str] | None, typer.Option(help="link or admin (which may link too); repeatable.")] = None,
) -> None:
    """Make a key and print it, once."""
    key, text = _keys().create(name, scope or ["link"])
    _console.print(
        f"key {key.id} of {escape(name)} may: {', '.join(key.scopes)}; it is shown this once:", highlight=False
    )
    typer.echo(text)


@app.command("list")
def list_keys() -> None:
    """List the keys, without their secrets."""
    table = Table("key", "name", "may", "made", "state")
    for key in _keys().keys():
        state = f"revoked {key.revoked_at.isoformat(timespec='minutes')}" if key.revoked_at else "valid"
        made = key.created_at.isoformat(timespec="minutes")
        table.add_row(key.id, escape(key.name), ", ".join(key.scopes), made, state)
    _console.print(table)


@app.command()
def revoke(key: Annotated[str, typer.Argument(help="A key of `medlink keys list`.")]) -> None:
    """Let a key open nothing any more; running services follow within seconds."""
    _keys().revoke(key)
    _console.print(f"key {escape(key)} is revoked", highlight=False)


def _keys() -> "Keys":
    from app.settings import Settings
    from medlink.kb.database import check_schema, open_engine
    from medlink.kb.keys import Keys

    engine = open_engine(Settings().database_url)
    check_schema(engine)
    return Keys(engine)
