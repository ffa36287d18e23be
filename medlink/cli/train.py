"""`medlink train`: makes encoders; needs the train extra."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from medlink.errors import EncoderError

app = typer.Typer(no_args_is_help=True)


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
    notice: Annotated[list[Path] | None, typer.Option(help="Licence file to put beside the weights.")] = None,
) -> None:
    """Write a checkpoint as an encoder directory, if it agrees with torch and no vector depends on its batch."""
    with _train_extra():
        from transformers.utils import logging

        from training.export import export as write
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if pooling is None and model != "minilm":
        raise EncoderError("say --pooling cls or --pooling mean, whichever the network was trained with")
    report = write(
        model,
        output,
        pooling="cls" if pooling is PoolingChoice.CLS else "mean",
        max_length=max_length,
        lowercase=lowercase,
        weights=weights.value,
        notices=notice or (),
    )
    typer.echo(f"{report.directory}: {report.name}, {report.dim} numbers a vector, {report.bytes / 1e6:.1f} MB")
    typer.echo(f"fp32 graph to torch: {report.fp32.max_difference:.1e} at most, on {report.probes} probe names")
    typer.echo(
        f"as stored to fp32: cosine {report.stored.mean_cosine:.5f} on average, {report.stored.min_cosine:.5f} at"
        f" least; {report.stored.changed_top1:.1%} of nearest neighbours changed"
    )


@contextmanager
def _train_extra() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise EncoderError(
            f"{error.name} is not installed; install medlink with its `train` extra to train and export"
        ) from None
