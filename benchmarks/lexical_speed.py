"""Times the lexical channel on names of the pack `open-plus`, beside two ways that look at more of them.

    python benchmarks/lexical_speed.py --names 50000 300000 1000000

Mentions are names with a letter dropped, asked for one at a time on one thread. `sklearn` is scikit-learn's TF-IDF with
a sparse product over all names, `postings` adds up the whole list of every trigram; both stop at the names, where
`lexical` goes on to concepts and reads the names back. All three get a warm-up and take turns, mention by mention.
"""

import argparse
import json
import os
import platform
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

from index.arrays import NameArrays, NameArraysWriter
from index.lexical import LexicalRetriever, LexicalWriter, lexical_text
from index.snapshot import FILE, Snapshot, SnapshotWriter
from index.trigrams import Trigrams
from medlink.kb.readers import open_reader
from medlink.kb.records import NameRecord
from medlink.types import Concept, LinkOptions, Name

_ROOT = Path(__file__).resolve().parents[1]
_PACK = _ROOT / "artefacts/kb/open-plus.jsonl.zst"
_RESULT = _ROOT / "benchmarks/results/lexical-speed.json"
_TOP_K = 5


def read_concepts(pack: Path) -> list[Concept]:
    """Return the concepts of a pack with their names and nothing else, in the order of their ids."""
    names: dict[str, dict[str, Name]] = {}
    for record in open_reader(pack).records():
        if isinstance(record, NameRecord) and record.suppress == "N":
            names.setdefault(record.concept_id, {}).setdefault(record.text, Name(record.text, record.sab))
    return [Concept(id_, next(iter(named)), tuple(named.values())) for id_, named in sorted(names.items())]


def sample(concepts: Sequence[Concept], names: int) -> list[Concept]:
    """Return whole concepts, drawn with a fixed seed, that have about so many names."""
    drawn = list(concepts)
    random.Random(0).shuffle(drawn)
    total = np.cumsum([len(concept.names) for concept in drawn])
    return sorted(drawn[: int(np.searchsorted(total, names)) + 1], key=lambda concept: concept.id)


def write_index(directory: Path, concepts: Sequence[Concept]) -> dict[str, Any]:
    """Write the lexical part of an index build and say what it took."""
    snapshot, arrays, writer = SnapshotWriter(directory / FILE), NameArraysWriter(), LexicalWriter()
    for concept in concepts:
        snapshot.add(concept)
        arrays.add(concept)
    snapshot.close()
    arrays.save(directory)
    started = time.perf_counter()
    rows = [writer.row(name.text) for concept in concepts for name in concept.names]
    writer.save(directory, np.array(rows, np.int32))
    seconds = time.perf_counter() - started
    size = sum(path.stat().st_size for path in directory.glob("lexical_*"))
    return {"names": len(rows), "build_seconds": round(seconds, 1), "mib": round(size / 2**20, 1)}


def misspelt(concepts: Sequence[Concept], count: int) -> list[str]:
    """Return names with one letter dropped, the same for the same concepts."""
    rng = random.Random(1)
    names = [rng.choice(concept.names).text for concept in rng.choices(concepts, k=count)]
    return [name[: (at := rng.randrange(len(name)))] + name[at + 1 :] for name in names]


class Product:
    """scikit-learn's cosine with every name."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3))
        self._vectors = self._vectorizer.fit_transform(texts).T.tocsr()

    def search(self, mention: str) -> NDArray[np.int64]:
        """Return the rows of the nearest names."""
        scores = (self._vectorizer.transform([lexical_text(mention)]) @ self._vectors).toarray()[0]
        return np.argpartition(scores, -_TOP_K)[-_TOP_K:]


class Postings:
    """The arrays of the lexical channel, read from end to end."""

    def __init__(self, directory: Path) -> None:
        self._trigrams = Trigrams(directory)

    def search(self, mention: str) -> NDArray[np.int64]:
        """Return the rows of the nearest names."""
        (weighed,) = self._trigrams.weigh([lexical_text(mention)])
        scores = np.zeros(len(self._trigrams), np.float32)
        for rows, add in self._trigrams.texts_with(weighed):
            np.add.at(scores, rows, add)
        scores *= self._trigrams.scales
        return np.argpartition(scores, -_TOP_K)[-_TOP_K:]


def measure(directory: Path, concepts: Sequence[Concept], mentions: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each of the three ways."""
    facts = write_index(directory, concepts)
    texts = list(dict.fromkeys(lexical_text(name.text) for concept in concepts for name in concept.names))
    lexical = LexicalRetriever(directory, arrays=NameArrays(directory), snapshot=Snapshot(directory / FILE))
    options = LinkOptions(top_k=_TOP_K)
    ways: dict[str, Callable[[str], object]] = {
        "lexical": lambda mention: lexical.search([mention], options),
        "postings": Postings(directory).search,
        "sklearn": Product(texts).search,
    }
    taken = _in_turns(ways, mentions)
    median = {name: float(np.median(milliseconds)) for name, milliseconds in taken.items()}
    return [
        {
            "case": "one mention, a letter dropped",
            "system": "lexical",
            "peer": name,
            "ratio": round(median[name] / median["lexical"], 2),
            "value": round(median["lexical"], 3),
            "peer_value": round(median[name], 3),
            "p95": round(float(np.percentile(taken["lexical"], 95)), 3),
            "peer_p95": round(float(np.percentile(taken[name], 95)), 3),
            "unit": "ms/mention",
            "distinct_texts": len(texts),
            "runs": len(mentions),
            **facts,
        }
        for name in ("postings", "sklearn")
    ]


def _in_turns(ways: dict[str, Callable[[str], object]], mentions: Sequence[str]) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for mention in mentions[:20]:
        for search in ways.values():
            search(mention)
    for mention in mentions:
        for name, search in ways.items():
            started = time.perf_counter()
            search(mention)
            taken[name].append(1000 * (time.perf_counter() - started))
    return taken


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.machine()}, Python {platform.python_version()}"


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=_ROOT)
    return found.stdout.strip() if found.returncode == 0 else ""


def main() -> None:
    """Measure every size and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", type=int, nargs="+", default=[50_000, 300_000, 1_000_000])
    parser.add_argument("--mentions", type=int, default=200)
    parser.add_argument("--pack", type=Path, default=_PACK)
    parser.add_argument("--output", type=Path, default=_RESULT)
    arguments = parser.parse_args()
    concepts = read_concepts(arguments.pack)
    rows = []
    for names in arguments.names:
        some = sample(concepts, names)
        with tempfile.TemporaryDirectory(prefix="medlink-lexical-") as folder:
            rows += measure(Path(folder), some, misspelt(some, arguments.mentions))
        print(json.dumps(rows[-2:], indent=1), flush=True)
    facts = {
        "command": f"python benchmarks/lexical_speed.py --names {' '.join(map(str, arguments.names))}",
        "commit": _commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": _machine(),
        "rows": rows,
    }
    arguments.output.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
