"""Pictures: names by concept before and after training, the curves of training runs, stated against true accuracy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.manifold import TSNE

from medlink.errors import EncoderError, LimitError, UnknownValueError
from medlink.metrics import Bin

if TYPE_CHECKING:
    # It imports torch, which a picture of names needs not.
    from training.run import Step

Method = Literal["tsne", "umap"]
METHODS: tuple[str, ...] = get_args(Method)
FORMATS = (".png", ".svg")
MOST_NAMES = 2000

# Okabe and Ito's colours, which the colour-blind tell apart, without the yellow that white paper swallows.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LINES = ("-", "--", ":", "-.")
MOST_CONCEPTS = len(_COLOURS) * len(_MARKERS)
_FEWEST_NAMES = 4
_LONGEST_LABEL = 40


@dataclass(frozen=True, slots=True)
class Panel:
    """The names of some concepts as one encoder sees them."""

    title: str
    vectors: NDArray[np.float32]
    """Unit vectors, shape (names, dim)."""


def names_figure(panels: Sequence[Panel], concepts: Sequence[str], *, method: Method = "tsne", seed: int = 0) -> Figure:
    """Return panels side by side, a point a name, a colour and a shape a concept.

    Under each title stands how many names have another name of their concept nearest, measured on the whole vectors:
    a plane of two directions shows some neighbours that are none.

    Args:
        panels: Of the same names in the same order.
        concepts: What the legend calls the concept of each name.
        method: "tsne" (van der Maaten and Hinton 2008), or "umap" where umap-learn is installed.
        seed: Of the method.

    Raises:
        EncoderError: umap-learn is asked for and not installed.
        LimitError: There are more names or concepts than can be told apart, or hardly any names.
        UnknownValueError: There is no such method.
    """
    if method not in METHODS:
        raise UnknownValueError("method", method, list(METHODS))
    distinct = list(dict.fromkeys(concepts))
    if len(concepts) < _FEWEST_NAMES:
        raise LimitError(f"a picture needs {_FEWEST_NAMES} names, not {len(concepts)}; choose more concepts")
    if len(concepts) > MOST_NAMES or len(distinct) > MOST_CONCEPTS:
        raise LimitError(
            f"a picture holds {MOST_NAMES:,} names of {MOST_CONCEPTS} concepts at most, not {len(concepts):,} of"
            f" {len(distinct)}; choose fewer concepts"
        )
    owners = np.array([distinct.index(concept) for concept in concepts])
    with rc_context({"text.parse_math": False}):
        figure = Figure(figsize=(5.2 * len(panels), 5.4 + 0.21 * -(-len(distinct) // 3)), layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=True):
            _scatter(axis, flatten(panel.vectors, method, seed), owners)
            axis.set_title(f"{panel.title}\nnearest name is of the same concept: {together(panel.vectors, owners):.0%}")
        labels = [_label(concept) for concept in distinct]
        figure.legend(axes[0].collections, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _scatter(axis: Axes, points: NDArray[np.float64], owners: NDArray[np.int64]) -> None:
    for concept in range(int(owners.max()) + 1):
        own = points[owners == concept]
        # Colour and shape count in different cycles, so that each pair of them comes once.
        colour, marker = _COLOURS[concept % len(_COLOURS)], _MARKERS[concept % len(_MARKERS)]
        axis.scatter(own[:, 0], own[:, 1], s=46, c=colour, marker=marker, alpha=0.85, linewidths=0)
    axis.set(xticks=[], yticks=[])


def flatten(vectors: NDArray[np.float32], method: Method, seed: int) -> NDArray[np.float64]:
    """Return a point in the plane for each vector, shape (names, 2), near ones near each other.

    Raises:
        EncoderError: umap-learn is asked for and not installed.
    """
    if method == "umap":
        return _umap(vectors, seed)
    perplexity = max(1.0, min(30.0, (len(vectors) - 1) / 3))
    # Exact, because the approximation sums in whatever order its threads finish.
    plane = TSNE(perplexity=perplexity, init="pca", method="exact", random_state=seed)
    points: NDArray[np.float64] = plane.fit_transform(vectors.astype(np.float64))
    return points


def _umap(vectors: NDArray[np.float32], seed: int) -> NDArray[np.float64]:
    try:
        umap = import_module("umap")
    except ModuleNotFoundError:
        raise EncoderError("umap-learn is not installed; `pip install umap-learn`, or use --method tsne") from None
    neighbours = max(2, min(15, len(vectors) - 1))
    plane = umap.UMAP(n_neighbors=neighbours, metric="cosine", random_state=seed, n_jobs=1)
    points: NDArray[np.float64] = plane.fit_transform(vectors)
    return points


def together(vectors: NDArray[np.float32], owners: NDArray[np.int64]) -> float:
    """Return the share of names whose nearest other name is of the same concept.

    Args:
        vectors: Unit vectors, shape (names, dim), more than one.
        owners: Number of the concept of each name, shape (names,).
    """
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    return float((owners[cosines.argmax(axis=1)] == owners).mean())


def training_figure(runs: "Mapping[str, Sequence[Step]]") -> Figure:
    """Return loss, mined shares and dev acc@1 by step, several runs laid over each other.

    Loss and shares are shown as the mean of some steps, the single steps faint behind it; shares only if a run mined.

    Args:
        runs: The steps of each run under its label.
    """
    with rc_context({"text.parse_math": False}):
        mining = any(step.positives_kept for steps in runs.values() for step in steps)
        figure = Figure(figsize=(8, 10 if mining else 5), layout="constrained")
        axes = figure.subplots(4 if mining else 2, 1, sharex=True)
        loss, dev = axes[0], axes[-1]
        for number, steps in enumerate(runs.values()):
            colour, line = _COLOURS[number % len(_COLOURS)], _LINES[number % len(_LINES)]
            style: dict[str, Any] = {"color": colour, "linestyle": line}
            _curve(loss, steps, [step.loss for step in steps], style)
            if mining:
                _curve(axes[1], steps, [100 * step.positives_kept for step in steps], style)
                _curve(axes[2], steps, [100 * step.negatives_kept for step in steps], style)
            measured = [step for step in steps if step.dev_acc_at_1 is not None]
            places, values = [step.step for step in measured], [step.dev_acc_at_1 for step in measured]
            dev.plot(places, values, marker=_MARKERS[number % len(_MARKERS)], **style)
        loss.set_ylabel("loss")
        if mining:
            axes[1].set_ylabel("positives mined, %")
            axes[2].set_ylabel("negatives mined, %")
        dev.set(ylabel="dev acc@1, %", xlabel="step")
        for axis in axes:
            axis.grid(alpha=0.3)
            axis.spines[["top", "right"]].set_visible(False)
        figure.legend(dev.lines, [_label(name) for name in runs], loc="outside upper center", ncols=2, frameon=False)
    return figure


def _curve(axis: Axes, steps: "Sequence[Step]", values: Sequence[float], style: dict[str, Any]) -> None:
    places = [step.step for step in steps]
    axis.plot(places, values, alpha=0.2, linewidth=0.8, color=style["color"])
    axis.plot(places, smooth(values), **style)


def smooth(values: Sequence[float]) -> NDArray[np.float64]:
    """Return at each place the mean of the last values there, a fiftieth of all of them.

    >>> smooth([1.0, 2.0, 3.0]).tolist()
    [1.0, 2.0, 3.0]
    """
    width = max(1, len(values) // 50)
    sums = np.cumsum([0.0, *values])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(0, ends - width)
    means: NDArray[np.float64] = (sums[ends] - sums[starts]) / (ends - starts)
    return means


@dataclass(frozen=True, slots=True)
class Reliability:
    """Stated probability against accuracy, as one curve of a panel."""

    label: str
    bins: Sequence[Bin]
    """From the lowest stated probability to the highest."""


def calibration_figure(panels: Mapping[str, Sequence[Reliability]]) -> Figure:
    """Return a panel for each corpus: how often answers of about the same stated probability are right.

    A curve on the diagonal states the truth; below it, it is too sure.

    Args:
        panels: The curves of each panel under its title.
    """
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    with rc_context({"text.parse_math": False}):
        figure = Figure(figsize=(4.2 * columns, 4.4 * lines), layout="constrained")
        axes = figure.subplots(lines, columns, squeeze=False).flat
        # In this order zip takes no axis that it has no panel for.
        for (title, curves), axis in zip(panels.items(), axes, strict=False):
            axis.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
            for number, curve in enumerate(curves):
                stated, right = [part.probability for part in curve.bins], [part.accuracy for part in curve.bins]
                colour, marker = _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)]
                axis.plot(stated, right, color=colour, marker=marker, markersize=5, label=curve.label)
            axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal", title=title)
            axis.set(xlabel="stated probability", ylabel="share right")
            axis.grid(alpha=0.3)
            axis.spines[["top", "right"]].set_visible(False)
            axis.legend(loc="upper left", frameon=False, fontsize=9)
        for axis in axes:  # those that no corpus fills
            axis.set_visible(False)
    return figure


def save(figure: Figure, output: Path) -> None:
    """Write a picture, the same bytes for the same figure on the same machine.

    Args:
        figure: Drawn without pyplot, so no window is ever opened.
        output: Ends in .png or .svg; SVG keeps its text as text, to be read aloud and searched.

    Raises:
        OSError: It cannot be written there.
        UnknownValueError: It ends in something else.
    """
    check_format(output)
    metadata = {"Date": None} if output.suffix.lower() == ".svg" else {"Software": None}
    with rc_context({"svg.hashsalt": "medlink", "svg.fonttype": "none", "text.parse_math": False}):
        figure.savefig(output, dpi=150, metadata=metadata)


def check_format(output: Path) -> None:
    """Refuse a file that is neither PNG nor SVG, before anything is computed for it.

    Raises:
        UnknownValueError: It ends in something else.
    """
    if output.suffix.lower() not in FORMATS:
        raise UnknownValueError("picture format", output.suffix, list(FORMATS))


def _label(text: str) -> str:
    short = text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"
    # A legend leaves out what begins with an underscore.
    return f" {short}" if short.startswith("_") else short
