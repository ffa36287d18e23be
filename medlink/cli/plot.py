"""`medlink plot names | training | calibration`: pictures as PNG or SVG; needs the plot extra."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medlink.cli.train import open_terminology
from medlink.errors import EncoderError, SourceError, UnknownConceptError

if TYPE_CHECKING:
    from training.plots import Panel, Reliability
    from training.run import Step

app = typer.Typer(no_args_is_help=True)

_FEWEST_TO_DRAW = 4
"""A concept drawn by lot has so many names at least: fewer show nothing of whether they lie together."""


class MethodChoice(StrEnum):
    """How vectors become points in the plane."""

    TSNE = "tsne"
    UMAP = "umap"


@app.callback()
def plot() -> None:
    """Draw names before and after training, curves of training runs, and calibration (needs the plot extra)."""


@app.command()
def names(
    before: Annotated[Path, typer.Option(help="Encoder directory for the left panel.")],
    after: Annotated[Path, typer.Option(help="Encoder directory for the right panel.")],
    output: Annotated[Path, typer.Option(help="Picture to write, .png or .svg.")],
    names: Annotated[str, typer.Option(help="Where the names are: a release, a pack or `store`.")] = "open",
    concepts: Annotated[str, typer.Option(help="Ids of the concepts, separated by commas; a draw if left out.")] = "",
    count: Annotated[int, typer.Option(min=1, help="How many concepts to draw by lot.")] = 12,
    names_each: Annotated[int, typer.Option(min=1, help="Most names of a concept.")] = 20,
    method: Annotated[MethodChoice, typer.Option(help="umap needs the package umap-learn.")] = MethodChoice.TSNE,
    seed: Annotated[int, typer.Option(help="Of the draw and of the method.")] = 0,
) -> None:
    """Draw the names of some concepts as two encoders see them, coloured by concept."""
    with plot_extra():
        from training.plots import check_format, names_figure, save
    from medlink.cli.kb import split_list

    check_format(output)
    by_concept = _names(names)
    ids = split_list("--concepts", concepts) if concepts else _draw(by_concept, count, seed, file=names)
    chosen = _chosen(by_concept, ids, names_each, seed)
    texts = [text for own in chosen.values() for text in own]
    titles = _titles({id_: by_concept[id_][0] for id_ in chosen})
    labels = [titles[id_] for id_, own in chosen.items() for _ in own]
    panels = [_panel(word, path, texts) for word, path in (("before", before), ("after", after))]
    save(names_figure(panels, labels, method=method.value, seed=seed), output)
    typer.echo(f"{output}: {len(texts)} names of {len(chosen)} concepts")


@app.command()
def training(
    runs: Annotated[list[Path], typer.Argument(help="Directories of `medlink train pretrain`.")],
    output: Annotated[Path, typer.Option(help="Picture to write, .png or .svg.")],
) -> None:
    """Draw loss, mined shares and dev accuracy of training runs, laid over each other."""
    with plot_extra():
        from training.plots import check_format, save, training_figure

    check_format(output)
    steps = {label: _read(directory) for label, directory in _labels(runs).items()}
    save(training_figure(steps), output)
    typer.echo(f"{output}: {', '.join(f'{label}, {len(read):,} steps' for label, read in steps.items())}")


@app.command()
def calibration(
    results: Annotated[list[Path], typer.Argument(help="JSON files that `medlink eval nil --output` wrote.")],
    output: Annotated[Path, typer.Option(help="Picture to write, .png or .svg.")],
) -> None:
    """Draw how often answers of about the same stated probability are right, one panel for each corpus."""
    with plot_extra():
        from training.plots import calibration_figure, check_format, save

    check_format(output)
    panels: dict[str, list[Reliability]] = {}
    for path in results:
        for title, curve in _reliability(path).items():
            panels.setdefault(title, []).extend(curve)
    save(calibration_figure(panels), output)
    typer.echo(f"{output}: {len(panels)} panels")


def _reliability(path: Path) -> "dict[str, list[Reliability]]":
    """Return the curves of a file by what their panel is called, one for each share of hidden concepts."""
    import json

    from medlink.metrics import Bin
    from training.plots import Reliability

    found: dict[str, dict[str, Reliability]] = {}
    try:
        for row in json.loads(path.read_text("utf-8"))["rows"]:
            title = f"{row['corpus']} {row['split']}, {row['protocol']}\n{row['dictionary']}"
            hidden = f"{row['hidden']:g} % hidden, n = {row['n_ece']:,}"
            bins = [Bin(**part) for part in row["bins"]]
            if bins:
                # Rows of several thresholds have the same bins.
                found.setdefault(title, {})[hidden] = Reliability(f"{hidden}, ECE {row['ece']:.3f}", bins)
    except OSError as error:
        raise SourceError(error.strerror or "cannot be read", file=str(path)) from None
    except (ValueError, TypeError, KeyError):
        raise SourceError("not a result of `medlink eval nil`", file=str(path)) from None
    if not found:
        raise SourceError("the answers had no probabilities; use a build with calibration", file=str(path))
    return {title: list(curves.values()) for title, curves in found.items()}


def _names(source: str) -> dict[str, list[str]]:
    """Return names by concept, in their own case, for encoders that may not agree on it."""
    from training.concept_names import names_by_concept
    from training.names import NameRule

    rule = NameRule(lowercase=False)
    with open_terminology("" if source == "store" else source, rule) as terminology:
        return names_by_concept(terminology.records(), rule)


def _draw(by_concept: Mapping[str, Sequence[str]], count: int, seed: int, *, file: str) -> list[str]:
    import numpy as np

    several = [id_ for id_, own in by_concept.items() if len(_distinct(own)) >= _FEWEST_TO_DRAW]
    if not several:
        raise SourceError(f"no concept has {_FEWEST_TO_DRAW} names; choose some with --concepts", file=file)
    return [several[place] for place in np.random.default_rng(seed).permutation(len(several))[:count]]


def _chosen(
    by_concept: Mapping[str, Sequence[str]], ids: Sequence[str], names_each: int, seed: int
) -> dict[str, list[str]]:
    import numpy as np

    from medlink.types import concept_id

    chosen = {}
    for given in ids:
        found = given if given in by_concept else concept_id(given)
        if found not in by_concept:
            raise UnknownConceptError(f"no concept {given!r} with names to train on; `medlink kb stats` lists sources")
        own = _distinct(by_concept[found])
        places = np.random.default_rng(seed).permutation(len(own))[:names_each]
        chosen[found] = [own[place] for place in np.sort(places)]
    return chosen


def _titles(preferred: Mapping[str, str]) -> dict[str, str]:
    """Return what the legend calls each concept: its preferred name, after its id where two have the same."""
    shared = Counter(preferred.values())
    return {id_: name if shared[name] == 1 else f"{id_} {name}" for id_, name in preferred.items()}


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names that differ in more than their case."""
    return list({name.lower(): name for name in reversed(names)}.values())[::-1]


def _panel(word: str, directory: Path, texts: Sequence[str]) -> "Panel":
    from medlink.encoders import load_encoder
    from medlink.text import encoder_text
    from training.plots import Panel

    encoder = load_encoder(directory)
    vectors = encoder.encode([encoder_text(text, lowercase=encoder.lowercase) for text in texts]).vectors
    return Panel(f"{word}: {directory.resolve().name}", vectors)


def _labels(runs: Sequence[Path]) -> dict[str, Path]:
    """Return directories under their last names, or under longer ones where two have the same."""
    places = [directory.resolve() for directory in dict.fromkeys(runs)]
    short = [place.name for place in places]
    return {
        place.name if short.count(place.name) == 1 else f"{place.parent.name}/{place.name}": place for place in places
    }


def _read(directory: Path) -> "list[Step]":
    from training.run import LOG, read_log

    file = str(directory / LOG)
    try:
        steps = read_log(directory)
    except FileNotFoundError:
        raise SourceError("no such log; give the output directory of `medlink train pretrain`", file=file) from None
    except (ValueError, TypeError):
        raise SourceError("not the log of a training run of this version", file=file) from None
    if not steps:
        raise SourceError("the run has made no step yet", file=file)
    return steps


@contextmanager
def plot_extra() -> Iterator[None]:
    """Turn the absence of matplotlib and its company into an error that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise EncoderError(f"{error.name} is not installed; install medlink with its `plot` extra to draw") from None
