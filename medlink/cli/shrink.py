"""`medlink train shrink-report`, and the options of `medlink train export` that cut an encoder."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from medlink.cli.train import PoolingChoice, open_terminology, train_extra
from medlink.errors import EncoderError, SourceError

if TYPE_CHECKING:
    from training.dev import DevNames
    from training.graph import BertShape
    from training.names import NameRule
    from training.shrink import Cut
    from training.shrink_report import Variant

_AXES_OF = 5000
"""Names that principal axes are fitted on; more move them by next to nothing."""
# Piped into a file, a table would be cut to the 80 columns that rich assumes.
_console = Console(width=None if sys.stdout.isatty() else 120)


def read_cut(layers: str, vocabulary: str, dim: int, axes: str, *, lowercase: bool) -> "Cut":
    """Return what `medlink train export` leaves out.

    Args:
        layers: As typed, empty for all.
        vocabulary: Where the names are whose tokens stay, empty for all tokens.
        dim: Numbers of a vector, 0 for all.
        axes: Where the names are whose principal axes are used, empty for the first numbers.
        lowercase: Whether texts are lower-cased before an uncased tokenizer would do it.
    """
    from training.names import NameRule
    from training.shrink import Cut

    if axes and not dim:
        raise typer.BadParameter("--axes says along what --dim is cut: add --dim")
    rule = NameRule(languages=None, lowercase=lowercase, include_suppressed=True)
    return Cut(
        layers=read_layers(layers),
        vocabulary=_texts(vocabulary, rule) if vocabulary else (),
        dim=dim,
        axes_of=some(_texts(axes, rule)) if axes else (),
    )


def read_layers(text: str) -> tuple[int, ...]:
    """Return the numbers of layers from `0,1,2`."""
    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise typer.BadParameter("--layers takes numbers separated by commas, 0,1,2") from None


def some(texts: Sequence[str]) -> list[str]:
    """Return enough texts to fit axes on, always the same ones."""
    import numpy as np

    places = np.random.default_rng(0).permutation(len(texts))[:_AXES_OF]
    return [texts[place] for place in np.sort(places)]


def _texts(source: str, rule: "NameRule") -> list[str]:
    import numpy as np

    from training.pairset import PAIRS, read_pairs

    if (Path(source) / PAIRS).is_file():
        pairs = read_pairs(Path(source))
        return pairs.texts(np.arange(pairs.text_count))
    names = _names(source, rule)
    return list(dict.fromkeys(name for own in names.values() for name in own))


def _names(source: str, rule: "NameRule") -> dict[str, list[str]]:
    from training.concept_names import names_by_concept

    with open_terminology("" if source == "store" else source, rule) as terminology:
        found = names_by_concept(terminology.records(), rule)
    if not found:
        raise SourceError("there are no names", file=source)
    return found


def shrink_report(
    model: Annotated[str, typer.Argument(help="Local Hugging Face directory, or 'minilm' for the packaged one.")],
    names: Annotated[str, typer.Option(help="Names to ask and to find: a release, a pack or `store`.")],
    pooling: Annotated[
        PoolingChoice | None, typer.Option(help="As the network was trained; needed but for 'minilm'.")
    ] = None,
    max_length: Annotated[int, typer.Option(min=3, help="Most tokens of a name, special ones included.")] = 25,
    layers: Annotated[
        list[str] | None, typer.Option(help="Layers to keep, 0,1,2; several times, or half of them in two ways.")
    ] = None,
    dim: Annotated[
        list[int] | None, typer.Option(min=1, help="Numbers of a vector to keep; several times, or a third.")
    ] = None,
    queries: Annotated[int, typer.Option(min=1, help="Names to ask for, each of another concept.")] = 2000,
    among: Annotated[int, typer.Option(min=1, help="Names to find.")] = 8000,
    runs: Annotated[int, typer.Option(min=1, help="Rounds of timing; speeds are compared within a round.")] = 3,
    seed: Annotated[int, typer.Option(help="Which names are asked for.")] = 0,
    output: Annotated[Path | None, typer.Option(help="Write the rows as JSON, e.g. to benchmarks/results/.")] = None,
) -> None:
    """Export a checkpoint in several smaller ways and print what each costs in accuracy and gives in speed."""
    from medlink.cli.progress import progress

    if pooling is None and model != "minilm":
        raise EncoderError("say --pooling cls or --pooling mean, whichever the network was trained with")
    with train_extra():
        from training.checkpoint import read_checkpoint
        from training.shrink_report import WHOLE
        from training.shrink_report import shrink_report as report
    from training.evaluate import write_results
    from training.names import NameRule

    checkpoint = read_checkpoint(model, max_length)
    by_concept = _names(names, NameRule(languages=None, lowercase=checkpoint.uncased))
    drawn = _draw(by_concept, queries, among, seed, file=names)
    chosen = _variants(checkpoint.shape, [read_layers(text) for text in layers or ()], dim or (), by_concept, drawn)
    with progress("variants") as advance:
        rows = report(
            model,
            chosen,
            drawn,
            pooling="cls" if pooling is PoolingChoice.CLS else "mean",
            max_length=max_length,
            runs=runs,
            progress=advance,
        )
    _console.print(_table(rows))
    _console.print(
        f"acc@1: {len(drawn.queries):,} names asked among {len(drawn.names):,}. changed: the nearest name is another"
        f" than that of {WHOLE!r}. speed: times that of {WHOLE!r}, median of {runs} rounds of this one run.",
        highlight=False,
    )
    if output:
        write_results(output, rows, command=["medlink", *sys.argv[1:]], final=False)


def _draw(by_concept: Mapping[str, list[str]], queries: int, among: int, seed: int, *, file: str) -> "DevNames":
    from training.concept_names import draw_queries

    try:
        return draw_queries(by_concept, queries=queries, among=among, seed=seed)
    except ValueError as error:
        raise SourceError(str(error), file=file) from None


def _variants(
    shape: "BertShape",
    layers: "Sequence[tuple[int, ...]]",
    dims: Sequence[int],
    by_concept: Mapping[str, list[str]],
    drawn: "DevNames",
) -> "list[Variant]":
    from training.shrink_report import variants

    halves = {tuple(range(0, shape.layers, 2)): None, tuple(range((shape.layers + 1) // 2)): None}
    # Neither tokens nor axes may come from the names that are asked for: a mention need not be a name.
    asked = set(drawn.queries)
    shown = list(dict.fromkeys(name for own in by_concept.values() for name in own if name not in asked))
    return variants(
        layers=layers or list(halves), dims=dims or [max(1, shape.dim // 3)], vocabulary=shown, axes_of=some(shown)
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("variant", title="smaller encoders", title_justify="left")
    for column in ("MB", "numbers", "acc@1, %", "95 %", "changed, %", "speed"):
        table.add_column(column, justify="right")
    for row in rows:
        low, high = row["ci95"]
        figures = [f"{row['megabytes']:.1f}", str(row["dim"]), f"{row['acc@1']:.1f}", f"{low:.1f}-{high:.1f}"]
        table.add_row(row["system"], *figures, f"{row['changed']:.1f}", f"{row['ratio']:.2f}")
    return table
