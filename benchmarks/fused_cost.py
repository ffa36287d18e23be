"""Times what the other channels cost beside the dense one alone: a file of mentions, linked over the active build.

    python benchmarks/fused_cost.py --data corpora

The mentions are the distinct ones of the train splits of open corpora, filled up with small variations of them, which
a fixed seed makes. The file is read, linked in batches and written as `medlink link --input` does it. Both ways get a
warm-up and take turns; the ratio is of their median seconds. `linker` is the time inside the linker alone, where
reading, checking and writing, the same for both, do not make the ratio smaller. `cpu_ratio` is of processor seconds,
which other work on the machine disturbs less.
"""

import argparse
import csv
import json
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from app.answers import ErrorOut, ResultOut
from app.mentions import check_each
from app.schemas import Options
from app.serving import load_active_build
from app.settings import Settings
from index.store import IndexBuild
from medlink.cli.mention_files import link_file
from medlink.corpora.catalogue import read_split
from medlink.types import CHANNELS, Channel, LinkOptions, Mention
from training.evaluate import write_results

ROOT = Path(__file__).resolve().parents[1]
CORPORA = ("ncbi-disease", "bc5cdr-disease", "bc5cdr-chemical", "biored-disease", "biored-chemical")
WAYS: dict[str, tuple[Channel, ...]] = {"dense": ("dense",), "fused": CHANNELS}
_WARM_UP = 200


def mentions(data: Path, count: int, seed: int = 0) -> list[str]:
    """Return distinct mention texts in an order of the seed: those of the corpora, then varied ones as far as needed.

    Args:
        data: Folder of the corpora.
        count: How many.
        seed: Of the draw and of the variations.
    """
    documents = (document for name in CORPORA for document in read_split(name, "train", data))
    known = sorted({mention.text for document in documents for mention in document.mentions})
    rng = random.Random(seed)
    drawn = rng.sample(known, min(count, len(known)))
    texts = dict.fromkeys(drawn)
    while len(texts) < count:
        texts.setdefault(varied(rng.choice(drawn), rng))
    return list(texts)


def varied(text: str, rng: random.Random) -> str:
    """Return a mention as somebody else might have written it: a letter lost or doubled, two swapped, a word more."""
    at = rng.randrange(len(text))
    return rng.choice(
        (
            text[:at] + text[at + 1 :] or text,
            text[: at + 1] + text[at:],
            text[:at] + text[at : at + 2][::-1] + text[at + 2 :],
            f"{rng.choice(('severe', 'chronic', 'acute', 'early', 'familial'))} {text}",
            f"{text} {rng.choice(('type 2', 'syndrome', 'of childhood', 'i', 'NOS'))}",
        )
    )


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds of one pass over the file, those of them inside the linker, and the processor's for each."""

    file: float
    linker: float
    file_cpu: float
    linker_cpu: float


def timed(build: IndexBuild, source: Path, channels: Sequence[Channel], settings: Settings) -> Run:
    """Link a file as the command line does, and say how long it took."""
    options = LinkOptions(channels=tuple(channels))
    inside = inside_cpu = 0.0

    def answers(texts: Sequence[object]) -> list[dict[str, Any]]:
        nonlocal inside, inside_cpu
        checked = check_each(texts, settings)
        begun, begun_cpu = time.perf_counter(), time.process_time()
        results = iter(build.linker.link([m for m in checked if isinstance(m, Mention)], options))
        inside += time.perf_counter() - begun
        inside_cpu += time.process_time() - begun_cpu
        shown = [m if isinstance(m, ErrorOut) else ResultOut.of(next(results), Options()) for m in checked]
        return [answer.model_dump(mode="json", exclude_unset=True) for answer in shown]

    started, started_cpu = time.perf_counter(), time.process_time()
    link_file(source, source.with_name("linked.jsonl"), "text", answers)
    return Run(time.perf_counter() - started, inside, time.process_time() - started_cpu, inside_cpu)


def write_file(path: Path, texts: Sequence[str]) -> Path:
    """Write mentions as a table of one column."""
    with path.open("w", encoding="utf-8", newline="") as handle:
        csv.writer(handle).writerows([["text"], *([text] for text in texts)])
    return path


def measure(build: IndexBuild, texts: Sequence[str], rounds: int, settings: Settings) -> list[dict[str, Any]]:
    """Return a row for the whole file and one for the linker alone."""
    taken: dict[str, list[Run]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="medlink-cost-") as folder:
        source = write_file(Path(folder) / "mentions.csv", texts)
        few = write_file(Path(folder) / "few.csv", texts[:_WARM_UP])
        for channels in WAYS.values():
            timed(build, few, channels, settings)
        for number in range(rounds):
            # Whoever is second may find a warmer machine.
            for way in list(WAYS)[:: 1 if number % 2 == 0 else -1]:
                taken[way].append(timed(build, source, WAYS[way], settings))
                print(f"round {number + 1}, {way}: {taken[way][-1].file:.1f} s", flush=True)
    return [_row(case, taken, len(texts), build.manifest["counts"]["names"]) for case in ("file", "linker")]


def _row(case: str, taken: dict[str, list[Run]], count: int, names: int) -> dict[str, Any]:
    seconds = {way: [getattr(run, case) for run in runs] for way, runs in taken.items()}
    fused, dense = median(seconds["fused"]), median(seconds["dense"])
    cpu = {way: median(getattr(run, f"{case}_cpu") for run in runs) for way, runs in taken.items()}
    return {
        "case": f"{count:,} mentions, {case}",
        "system": "fused",
        "peer": "dense",
        "ratio": round(fused / dense, 2),
        "cpu_ratio": round(cpu["fused"] / cpu["dense"], 2),
        "value": round(count / fused, 1),
        "peer_value": round(count / dense, 1),
        "unit": "mentions/s",
        "names": names,
        "runs": len(seconds["fused"]),
        "seconds": {way: [round(spent, 1) for spent in all_of] for way, all_of in seconds.items()},
    }


def main() -> None:
    """Measure over the active build and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--mentions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/fused-cost.json")
    arguments = parser.parse_args()
    settings = Settings()
    build = load_active_build(settings)
    rows = measure(build, mentions(arguments.data, arguments.mentions), arguments.rounds, settings)
    print(json.dumps(rows, indent=1))
    command = ["python", "benchmarks/fused_cost.py", "--data", str(arguments.data)]
    command += ["--mentions", str(arguments.mentions), "--rounds", str(arguments.rounds)]
    write_results(arguments.output, rows, command=command, final=False)


if __name__ == "__main__":
    main()
