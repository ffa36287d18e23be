"""The `medlink` command: one module a group, heavy imports inside the commands."""

import sqlite3
import sys

import typer

from medlink.cli import evaluate, index, kb, keys, link, plot, serve, shrink, train
from medlink.errors import MedlinkError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Link medical mentions to ranked concepts of a knowledge base.",
)
app.add_typer(kb.app, name="kb", help="Load knowledge bases into the store.")
app.add_typer(index.app, name="index", help="Build, check and switch index builds.")
app.add_typer(keys.app, name="keys", help="API keys of the service.")
train.app.command("shrink-report")(shrink.shrink_report)
app.add_typer(train.app, name="train", help="Train and export encoders (needs the train extra).")
app.add_typer(evaluate.app, name="eval", help="Score linkers, encoders and baselines.")
app.add_typer(plot.app, name="plot", help="Draw names and training runs (needs the plot extra).")
app.command("link")(link.link)
app.command("serve")(serve.serve)


def main() -> None:
    """Run the command line; an error of ours, of a file or of a setting is one line on stderr and exit code 1."""
    try:
        app()
    except MedlinkError as error:
        sys.stderr.write(f"medlink: {error}\n")
        raise SystemExit(1) from None
    except OSError as error:
        # NumPy gives no reason when a file ends up shorter than what was written.
        hint = "" if error.errno else "; a file could not be written whole: is the disk full?"
        sys.stderr.write(f"medlink: {error}{hint}\n")
        raise SystemExit(1) from None
    except ValueError as error:
        sys.stderr.write(f"medlink: {_wrong_settings(error)}\n")
        raise SystemExit(1) from None
    except Exception as error:  # noqa: BLE001  # SQLAlchemy is not imported before it is used
        sys.stderr.write(f"medlink: {_told_by_the_store(error)}\n")
        raise SystemExit(1) from None


def _told_by_the_store(error: Exception) -> str:
    """Return what the database said, without the statement and its values; any other error goes on."""
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

    if isinstance(error, sqlite3.Error):
        cause: Exception = error
    elif isinstance(error, SQLAlchemyError):
        cause = error.orig if isinstance(error, DBAPIError) and isinstance(error.orig, Exception) else error
    else:
        raise error
    # What follows the first line may quote a row.
    return f"the store failed: {(str(cause).splitlines() or [type(cause).__name__])[0]}"


def _wrong_settings(error: ValueError) -> str:
    """Return what is wrong with the environment, without its values; any other error goes on."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError) or error.title != "Settings":
        raise error
    told = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(
        ": ".join([*(f"MEDLINK_{place}".upper() for place in e["loc"]), e["msg"].removeprefix("Value error, ")])
        for e in told
    )
