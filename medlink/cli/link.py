"""`medlink link`: mentions from the arguments or from a file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from app.settings import Settings
    from medlink.linking.linker import Linker
    from medlink.types import LinkOptions

_console = Console()


def link(
    mentions: Annotated[list[str] | None, typer.Argument(help="Mentions to link.")] = None,
    input: Annotated[Path | None, typer.Option(help="A .csv, .tsv or .jsonl file of mentions.")] = None,
    column: Annotated[str, typer.Option(help="Column (or JSON key) that holds the mention.")] = "text",
    output: Annotated[Path | None, typer.Option(help="Where the linked file goes; the ending is its format.")] = None,
    top_k: Annotated[int, typer.Option(min=1, max=100, help="Distinct concepts a mention.")] = 5,
    semantic_types: Annotated[str, typer.Option(help="Only these types, e.g. T047,T191.")] = "",
    sabs: Annotated[str, typer.Option(help="Only concepts with a name or code there, e.g. MESH,MONDO.")] = "",
    channels: Annotated[
        str, typer.Option(help="Ways to find candidates: exact, dense, lexical.")
    ] = "exact,dense,lexical",
    composites: Annotated[bool, typer.Option(help="Answer the parts of a mention of several concepts.")] = True,
    explain: Annotated[bool, typer.Option(help="Say why each candidate is there; not in .csv and .tsv files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a mention.")] = False,
) -> None:
    """Link mentions, as `POST /link` does.

    A file keeps its columns and gains cui, curie, preferred_name, matched_name, score, probability, status and reason;
    JSON Lines get the whole result.
    """
    if bool(mentions) == bool(input) or bool(input) != bool(output):
        raise typer.BadParameter("give either mentions, or --input together with --output")
    from app.serving import load_active_build
    from app.settings import Settings
    from medlink.cli.mention_files import link_file
    from medlink.errors import UnknownValueError
    from medlink.types import CHANNELS, LinkOptions

    chosen = channels.split(",")
    for channel in chosen:
        if channel not in CHANNELS:
            raise UnknownValueError("channel", channel, list(CHANNELS))
    options = LinkOptions(
        top_k=top_k,
        semantic_types=frozenset(filter(None, semantic_types.split(","))),
        sabs=frozenset(filter(None, sabs.split(","))),
        channels=tuple(c for c in CHANNELS if c in chosen),
        composites=composites,
    )
    settings = Settings()
    linker = load_active_build(settings).linker
    if input and output:
        link_file(input, output, column, lambda texts: _answers(linker, texts, options, settings, explain=explain))
        return
    for answer in _answers(linker, mentions or [], options, settings, explain=explain):
        if as_json:
            _console.print_json(json.dumps(answer))
        else:
            for part in (answer, *answer.get("parts", ())):
                _console.print(_table(part))


def _answers(
    linker: "Linker", texts: Sequence[object], options: "LinkOptions", settings: "Settings", *, explain: bool
) -> list[dict[str, Any]]:
    """Return what the service would answer in bulk, as plain JSON values."""
    from app.answers import ErrorOut, ResultOut
    from app.mentions import check_each
    from app.schemas import Options
    from medlink.types import Mention

    checked = check_each(texts, settings)
    results = iter(linker.link([m for m in checked if isinstance(m, Mention)], options))
    request = Options(explain=explain)
    answers = [m if isinstance(m, ErrorOut) else ResultOut.of(next(results), request) for m in checked]
    return [answer.model_dump(mode="json", exclude_unset=True) for answer in answers]


def _table(answer: dict[str, Any]) -> Table:
    if "error" in answer:
        return Table(title=f"error: {answer['error']['detail']}")
    reason = f" ({answer['reason']})" if "reason" in answer else ""
    explained = any("explanation" in candidate for candidate in answer["candidates"])
    table = Table("", "concept", "preferred name", "matched name", "score", "types", "codes")
    if explained:
        table.add_column("why")
    table.title = f"{escape(answer['text'])}: {answer['status']}{reason}"
    for candidate in answer["candidates"]:
        table.add_row(
            str(candidate["rank"]),
            escape(candidate["cui"]),
            escape(candidate["preferred_name"]),
            escape(candidate["matched_name"] or "(withheld)"),
            f"{candidate['score']:.4f}",
            escape(", ".join(t["name"] for t in candidate["semantic_types"])),
            escape(", ".join(f"{c['sab']} {c['code']}" for c in candidate["codes"][:4])),
            *([_why(candidate)] if explained else ()),
        )
    return table


def _why(candidate: dict[str, Any]) -> str:
    from app.explanations import ExplanationOut, reasons

    return escape("; ".join(reasons(ExplanationOut.model_validate(candidate["explanation"]))))
