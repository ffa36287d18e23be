"""What making an encoder smaller costs in accuracy and gives in speed: every variant exported, asked and timed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medlink.encoders.onnx import OnnxEncoder
from medlink.encoders.pooling import Pooling
from medlink.manifest import read_manifest
from medlink.metrics import bootstrap_interval
from training.dev import DevNames
from training.export import export
from training.graph import Weights
from training.parity import MOST_DIFFERENCE
from training.shrink import Cut

WHOLE = "whole, fp32"
"""The variant that all others are compared with."""

_TIMED = 1000


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to export a checkpoint."""

    name: str
    weights: Weights = "int8"
    cut: Cut = field(default_factory=Cut)


@dataclass(frozen=True, slots=True)
class _Made:
    """A variant as it would be shipped, with its vectors."""

    encoder: OnnxEncoder
    bytes: int
    changes: list[str]
    queries: NDArray[np.float32]
    names: NDArray[np.float32]
    nearest: NDArray[np.int64]
    """Row of the nearest name of each query."""


def variants(
    *, layers: Sequence[tuple[int, ...]], dims: Sequence[int], vocabulary: Sequence[str], axes_of: Sequence[str]
) -> list[Variant]:
    """Return the whole network twice, each cut alone, and the first of each kind together.

    Args:
        layers: Choices of layers to keep.
        dims: Choices of numbers to keep, once along principal axes and once the first ones.
        vocabulary: Texts whose tokens are kept.
        axes_of: Texts on which principal axes are fitted.
    """
    found = [Variant(WHOLE, "fp32"), Variant("whole, int8"), Variant("vocabulary", cut=Cut(vocabulary=vocabulary))]
    found += [Variant(f"layers {','.join(map(str, chosen))}", cut=Cut(layers=chosen)) for chosen in layers]
    for dim in dims:
        found.append(Variant(f"{dim} numbers, axes", cut=Cut(dim=dim, axes_of=axes_of)))
        found.append(Variant(f"{dim} numbers, first", cut=Cut(dim=dim)))
    together = Cut(
        layers=layers[0] if layers else (), vocabulary=vocabulary, dim=dims[0] if dims else 0, axes_of=axes_of
    )
    return [*found, Variant("together", cut=together)]


def shrink_report(
    model: str | Path,
    chosen: Sequence[Variant],
    names: DevNames,
    *,
    pooling: Pooling,
    max_length: int,
    runs: int = 3,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> list[dict[str, Any]]:
    """Return one row a variant; accuracy and changes in percent, sizes in millions of bytes.

    A ratio of speeds is the median over `runs` rounds in which every variant encodes the same names in turn, so that
    whatever else the machine does falls on all of them. Names per second belong to the machine and the hour.

    Args:
        model: As for `export`.
        chosen: The first one is what the others are compared with.
        names: What is asked for, and what is found.
        pooling: As for `export`.
        max_length: As for `export`.
        runs: Rounds.
        progress: Told the stage, how much of it is done and how much there is.

    Raises:
        EncoderError: As `export` raises it: a variant that fails the gates ends the report.
    """
    made: dict[str, _Made] = {}
    with TemporaryDirectory() as scratch:
        for place, variant in enumerate(chosen):
            directory = Path(scratch) / str(place)
            written = export(
                model, directory, pooling=pooling, max_length=max_length, weights=variant.weights, cut=variant.cut
            )
            made[variant.name] = _ask(directory, written.bytes, names)
            progress("encoding", place + 1, len(chosen))
    timed = names.names[:_TIMED]
    seconds = _race({name: one.encoder for name, one in made.items()}, timed, runs, progress)
    whole = chosen[0].name
    rows = []
    for name, one in made.items():
        ratios = [slow / fast for slow, fast in zip(seconds[whole], seconds[name], strict=True)]
        timing = {
            "peer": whole,
            "ratio": round(median(ratios), 2),
            "value": round(len(timed) / median(seconds[name]), 1),
            "unit": "names/s",
            "names": len(timed),
            "runs": runs,
        }
        rows.append({"case": "shrink", "system": name, **_quality(one, made[whole], names), **timing})
    return rows


def _ask(directory: Path, size: int, names: DevNames) -> _Made:
    encoder = OnnxEncoder.load(directory)
    queries, found = encoder.encode(names.queries).vectors, encoder.encode(names.names).vectors
    changes = read_manifest(directory)["base"].get("changes", [])
    parts = np.array_split(queries, len(queries) // 256 + 1)
    nearest = np.concatenate([(part @ found.T).argmax(axis=1) for part in parts])
    return _Made(encoder, size, changes, queries, found, nearest)


def _quality(variant: _Made, whole: _Made, names: DevNames) -> dict[str, Any]:
    right = [
        float(concept in names.name_concepts[place])
        for concept, place in zip(names.query_concepts, variant.nearest.tolist(), strict=True)
    ]
    low, high = bootstrap_interval(right)
    # Another name as near as the nearest one is a tie and no change.
    cosines = [(whole.queries * whole.names[each.nearest]).sum(axis=1) for each in (whole, variant)]
    changed = cosines[0] - cosines[1] > MOST_DIFFERENCE
    return {
        "changes": variant.changes,
        "dim": variant.encoder.dim,
        "megabytes": round(variant.bytes / 1e6, 2),
        "n": len(right),
        "among": len(names.names),
        "acc@1": _percent(float(np.mean(right))),
        "ci95": [_percent(low), _percent(high)],
        "changed": _percent(float(changed.mean())),
    }


def _race(
    encoders: Mapping[str, OnnxEncoder], texts: Sequence[str], runs: int, progress: Callable[[str, int, int], None]
) -> dict[str, list[float]]:
    """Return the seconds that each encoder took in each round."""
    seconds: dict[str, list[float]] = {name: [] for name in encoders}
    for run in range(runs):
        for name, encoder in encoders.items():
            began = perf_counter()
            encoder.encode(texts)
            seconds[name].append(perf_counter() - began)
        progress("timing", run + 1, runs)
    return seconds


def _percent(share: float) -> float:
    return round(100 * share, 2)
