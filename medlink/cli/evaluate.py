"""`medlink eval`: accuracy on labeled corpora of linkers, encoders and baselines."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from medlink.cli import eval_held_out, eval_nil
from medlink.cli.eval_sources import CHANNELS, Selection, open_sources
from medlink.cli.eval_tables import print_tables
from training.baselines import BASELINES
from training.protocols import PROTOCOLS

app = typer.Typer()
app.command("held-out")(eval_held_out.held_out)
app.command("nil")(eval_nil.nil)


@app.callback(invoke_without_command=True)
def evaluate(
    context: typer.Context,
    corpus: Annotated[
        list[str] | None, typer.Option(help="A corpus of the catalogue; may be given several times.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that holds the corpora.")] = None,
    split: Annotated[str, typer.Option(help="train, dev or test; test asks for --final.")] = "dev",
    protocol: Annotated[
        str, typer.Option(help=f"How mentions are asked and answers are scored: {', '.join(PROTOCOLS)}.")
    ] = "dictionary",
    system: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join((*CHANNELS, *BASELINES))}; by default all that the other options allow."),
    ] = None,
    url: Annotated[
        str, typer.Option(help="Ask this service; by default an index build of --names, or the active one.")
    ] = "",
    names: Annotated[
        str, typer.Option(help="Dictionary of baselines, encoders and, without --url, channels: a release, `open`.")
    ] = "",
    encoder_dir: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL=DIR", help="Encoder to run over --names; may be given several times."),
    ] = None,
    typos: Annotated[
        Path | None, typer.Option(help="File of `typo||correction` lines; mentions are corrected by it.")
    ] = None,
    dictionary: Annotated[str, typer.Option(help="What rows call the dictionary; its sources by default.")] = "",
    encoder: Annotated[str, typer.Option(help="What rows call the build's encoder; its fingerprint by default.")] = "",
    top_k: Annotated[int, typer.Option(min=5, max=100, help="How far down an answer is read.")] = 20,
    final: Annotated[bool, typer.Option("--final", help="Score a test split; choices are made on dev.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the rows as JSON, e.g. to benchmarks/results/.")] = None,
) -> None:
    """Score systems on labeled mentions and print a table; rows hold figures only, never mention text.

    Encoders run over the names of a release, without an index build, all of them over the same names and mentions.
    Channels run over an index build of the release, which is made and kept under `eval` in the data directory. Under
    the protocol `paper` the mentions of the earlier splits are names too; under `strict` a mention is asked for as
    written, in its document.
    """
    from medlink.client import ServiceError
    from training.evaluate import Task, write_results
    from training.protocols import read_typos
    from training.scoring import corpus_test, score_systems

    if context.invoked_subcommand:
        return
    if not corpus or not data:
        raise typer.BadParameter("say which --corpus, and which folder the --data are in")
    if split == "test" and not final:
        raise typer.BadParameter("a test split is scored once, at the end: add --final, or use --split dev")
    chosen = Selection.of_options(protocol, system, names, url, encoder_dir or [])
    # Read before any index is opened, so that a misspelt corpus fails at once.
    corrections = read_typos(typos) if typos else None
    tests = [corpus_test(Task(name, split, "", protocol), data, corrections) for name in corpus]
    try:
        with open_sources(chosen, url=url, names=names, dictionary=dictionary, encoder=encoder) as sources:
            rows = [row for test in tests for source in sources for row in score_systems(test, source, top_k)]
    except ServiceError as error:
        sys.stderr.write(f"medlink: {error}\n")
        raise typer.Exit(1) from None
    print_tables(rows)
    if output:
        write_results(output, rows, command=["medlink", *sys.argv[1:]], final=split == "test")
