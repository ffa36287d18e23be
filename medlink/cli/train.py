"""`medlink train`: makes encoders; needs the train extra."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medlink.cli import learned
from medlink.cli.finetune import finetune
from medlink.errors import EncoderError, SourceError

if TYPE_CHECKING:
    from training.dev import DevNames
    from training.names import NameRule, Terminology

app = typer.Typer(no_args_is_help=True)
app.command()(finetune)
app.command()(learned.fusion)
app.command()(learned.calibrate)


class PoolingChoice(StrEnum):
    """How token vectors become the vector of a name."""

    MEAN = "mean"
    CLS = "cls"


class WeightsChoice(StrEnum):
    """How weights are stored."""

    INT8 = "int8"
    FP32 = "fp32"


@app.callback()
def train() -> None:
    """Train and export encoders (needs the train extra)."""


@app.command()
def export(
    model: Annotated[str, typer.Argument(help="Local Hugging Face directory, or 'minilm' for the packaged one.")],
    output: Annotated[Path, typer.Argument(help="Encoder directory to write; must not exist or be empty.")],
    pooling: Annotated[
        PoolingChoice | None, typer.Option(help="As the network was trained; needed but for 'minilm'.")
    ] = None,
    max_length: Annotated[int, typer.Option(min=3, help="Most tokens of a name, special ones included.")] = 25,
    lowercase: Annotated[
        bool | None, typer.Option("--lowercase/--cased", help="As the tokenizer does, if left out.")
    ] = None,
    weights: Annotated[WeightsChoice, typer.Option(help="int8 takes a quarter of the space.")] = WeightsChoice.INT8,
    name: Annotated[str, typer.Option(help="What the encoder is called; as its directory if left out.")] = "",
    card: Annotated[
        Path | None, typer.Option(help="Markdown that ends the model card.", exists=True, dir_okay=False)
    ] = None,
    notice: Annotated[list[Path] | None, typer.Option(help="Licence file to put beside the weights.")] = None,
    layers: Annotated[str, typer.Option(help="Keep these only, counted from 0: 0,1,2.")] = "",
    vocabulary: Annotated[
        str, typer.Option(help="Keep the tokens of these names: a directory of pairs, a release, a pack or `store`.")
    ] = "",
    dim: Annotated[int, typer.Option(min=0, help="Keep so many numbers of a vector.")] = 0,
    axes: Annotated[
        str, typer.Option(help="Measure vectors along the principal axes of these names; the first numbers if not.")
    ] = "",
) -> None:
    """Write a checkpoint as an encoder directory, if it agrees with torch and no vector depends on its batch."""
    from medlink.cli.shrink import read_cut

    with train_extra():
        from training.export import About
        from training.export import export as write
    if pooling is None and model != "minilm":
        raise EncoderError("say --pooling cls or --pooling mean, whichever the network was trained with")
    report = write(
        model,
        output,
        pooling="cls" if pooling is PoolingChoice.CLS else "mean",
        max_length=max_length,
        lowercase=lowercase,
        weights=weights.value,
        about=About(name, card, notice or ()),
        cut=read_cut(layers, vocabulary, dim, axes, lowercase=bool(lowercase)),
    )
    typer.echo(f"{report.directory}: {report.name}, {report.dim} numbers a vector, {report.bytes / 1e6:.1f} MB")
    typer.echo(f"fp32 graph to torch: {report.fp32.max_difference:.1e} at most, on {report.probes} probe names")
    typer.echo(
        f"as stored to fp32: cosine {report.stored.mean_cosine:.5f} on average, {report.stored.min_cosine:.5f} at"
        f" least; {report.stored.changed_top1:.1%} of nearest neighbours changed"
    )


@app.command()
def average(
    before: Annotated[str, typer.Argument(help="Checkpoint that training began from, or 'minilm'.")],
    after: Annotated[str, typer.Argument(help="Checkpoint that training ended with.")],
    output: Annotated[Path, typer.Argument(help="Checkpoint to write; must not exist or be empty.")],
    weight: Annotated[float, typer.Option(min=0, max=1, help="0 is before, 1 is after.")] = 0.5,
) -> None:
    """Write the weights between two checkpoints: what training taught, with less forgotten."""
    with train_extra():
        from training.average import average as write
        from training.checkpoint import read_checkpoint
    write(read_checkpoint(before, 25), read_checkpoint(after, 25), output, weight=weight)
    typer.echo(f"{output} is done; `medlink train export` exports it")


@app.command()
def pairs(
    output: Annotated[Path, typer.Argument(help="Directory to write; must not exist or be empty.")],
    source: Annotated[
        str, typer.Option(help="A release (directory, zip or file), `open` or `open-plus`; the store if left out.")
    ] = "",
    languages: Annotated[str, typer.Option(help="Languages of the names: ENG,DUT or all.")] = "ENG",
    lowercase: Annotated[bool, typer.Option("--lowercase/--cased", help="As the encoder to be trained.")] = True,
    max_pairs: Annotated[int, typer.Option(min=1, help="Most pairs of one concept.")] = 50,
    max_chars: Annotated[int, typer.Option(min=1, help="Longer names are left out.")] = 300,
    held_out_percent: Annotated[
        float, typer.Option(min=0, max=50, help="Names to hide for the held-out-synonym test; 5 for a shipped encoder.")
    ] = 0,
    include_suppressed: Annotated[bool, typer.Option("--include-suppressed", help="Use suppressed names too.")] = False,
    seed: Annotated[int, typer.Option(help="Which pairs are drawn, and which names hidden.")] = 0,
) -> None:
    """Write training pairs: two names of one concept each, the same bytes for the same input."""
    with train_extra():
        from training.pairs import PairRecipe, make_pairs
    from medlink.cli.kb import split_list
    from medlink.cli.progress import progress
    from training.names import NameRule

    chosen = None if languages == "all" else tuple(split_list("--languages", languages))
    rule = NameRule(chosen, lowercase=lowercase, max_chars=max_chars, include_suppressed=include_suppressed)
    recipe = PairRecipe(rule, max_pairs, held_out_percent, seed)
    with progress("items") as advance, open_terminology(source, rule) as terminology:
        report = make_pairs(terminology, output, recipe, progress=advance)
    for title, counts in (("", report.counts), ("left out: ", report.skipped)):
        for step, count in counts.items():
            typer.echo(f"{count:>12,}  {title}{step.replace('_', ' ')}")


@app.command()
def pretrain(
    recipe: Annotated[Path, typer.Argument(help="A TOML file as in training/recipes.")],
    pairs: Annotated[Path, typer.Argument(help="Directory of `medlink train pairs`.")],
    output: Annotated[Path, typer.Argument(help="Directory of the run; a run that was stopped there goes on.")],
    dev: Annotated[
        bool, typer.Option("--dev", help="Measure on names of the store that the pairs had hidden from them.")
    ] = False,
) -> None:
    """Pretrain an encoder so that names of one concept lie together; several GPUs through `torchrun`."""
    with train_extra():
        from training.pretrain import pretrain as run
    from medlink.cli.progress import training_progress
    from training.recipe import read_recipe

    chosen = read_recipe(recipe)
    names = _dev_names(pairs) if dev else None
    with training_progress(2 * chosen.batch_pairs) as advance:
        checkpoint = run(chosen, pairs, output, dev=names, progress=advance)
    typer.echo(
        f"{checkpoint} is done; `medlink train export {checkpoint} DIRECTORY --pooling {chosen.pooling}` exports it"
    )


def _dev_names(pairs: Path) -> "DevNames":
    from app.settings import Settings
    from medlink.kb.database import check_schema, open_engine
    from medlink.kb.repository import Repository
    from medlink.manifest import read_manifest
    from training.dev import dev_names
    from training.heldout import hold_out
    from training.names import NameRule

    try:
        facts = read_manifest(pairs)
    except ValueError as error:
        raise SourceError(f"{error}; run `medlink train pairs`", file=str(pairs)) from None
    of = facts["recipe"]["rule"]
    rule = NameRule(**{**of, "languages": of["languages"] and tuple(of["languages"])})
    engine = open_engine(Settings().database_url)
    check_schema(engine)
    repository = Repository(engine)
    split = hold_out(
        repository.concepts(), percent=facts["held_out"]["percent"], seed=facts["held_out"]["seed"], rule=rule
    )
    if split.fingerprint != facts["held_out"]["fingerprint"]:
        raise SourceError("the store is not the terminology that these pairs were made of", file=str(pairs))
    return dev_names(repository.concepts, split, rule)


@contextmanager
def open_terminology(source: str, rule: "NameRule") -> Iterator["Terminology"]:
    """Give the names of a release or pack, or of the store where `source` is empty."""
    from app.settings import Settings
    from medlink.cli.kb import find_release
    from medlink.kb.database import check_schema, open_engine
    from medlink.kb.repository import Repository
    from training.names import ReleaseTerminology, StoreTerminology

    settings = Settings()
    if source:
        yield ReleaseTerminology.open(find_release(source, settings.packs_dir)[0], rule)
        return
    engine = open_engine(settings.database_url)
    check_schema(engine)
    yield StoreTerminology(Repository(engine))
    engine.dispose()


@contextmanager
def train_extra() -> Iterator[None]:
    """Turn the absence of torch and its company into an error that says what to install."""
    try:
        from transformers.utils import logging

        # Its own bars and reports would run through ours.
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        yield
    except ModuleNotFoundError as error:
        raise EncoderError(
            f"{error.name} is not installed; install medlink with its `train` extra to train and export"
        ) from None
