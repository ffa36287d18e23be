"""Makes training pairs: two names of one concept, at most so many a concept, drawn by number.

Names are sorted on disk. In memory there are, beside 64 MiB of SQLite's, some 50 bytes for each distinct (concept,
name) and the links between concepts, never a text or all combinations of a concept's names.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from medlink.encoders.artefact import new_directory
from medlink.errors import SourceError, UnknownValueError
from medlink.kb.records import BroaderRecord, NameRecord, SourceRecord, TradeNameRecord
from medlink.manifest import describe_files, write_manifest
from medlink.ragged import Ragged
from medlink.text import ENCODER_TEXT_VERSION
from training.draw import draw
from training.heldout import HeldOut, split_hash
from training.names import NameRule, Terminology
from training.pairset import FORMAT, KIND, PairSetWriter
from training.staging import Staging

_MADE_BY = {
    "format": FORMAT,
    "kind": KIND,
    "text": {"encoder_text": ENCODER_TEXT_VERSION},
    "written_by": f"pyarrow {pa.__version__}",  # another version may write the same rows as other bytes
}
_EVERY = 100_000

Progress = Callable[[str, int, int], None]
"""Called with the stage, how much of it is done and how much there is (0: not known)."""


@dataclass(frozen=True, slots=True)
class PairRecipe:
    """What decides the pairs of a terminology."""

    rule: NameRule = field(default_factory=NameRule)
    max_pairs: int = 50
    """Most pairs of one concept."""
    held_out_percent: float = 0.0
    """Names hidden for the held-out-synonym test; the encoder that ships is trained with 5."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.max_pairs < 1:
            raise ValueError("max_pairs must be at least 1")


@dataclass(frozen=True, slots=True)
class PairReport:
    """What was made and what was left out, as the manifest has it."""

    counts: dict[str, int]
    skipped: dict[str, int]


def make_pairs(
    terminology: Terminology,
    output: Path,
    recipe: PairRecipe,
    *,
    progress: Progress = lambda stage, done, total: None,
) -> PairReport:
    """Write a directory of pairs; all of it, or nothing. See `read_pairs`.

    The names of the concepts that a trade-name link leads to, whichever way, join those of the concept: for pairs,
    and for which texts may never be negatives of each other.

    Args:
        terminology: The names.
        output: Must not exist, or be an empty directory.
        recipe: What decides the pairs.
        progress: Told how far it is.

    Raises:
        SourceError: No concept has two names.
        UnknownValueError: A language that no name has was asked for.
    """
    with (
        new_directory(output) as directory,
        TemporaryDirectory(dir=output.parent, prefix=".names.") as scratch,
        closing(Staging(Path(scratch) / "names.sqlite")) as staging,
    ):
        intake = _take_in(terminology, staging, recipe.rule, progress)
        progress("sort", 0, 0)
        staging.sort()
        names = _Names.read(staging, recipe, progress)
        written = _write(directory, staging, names, recipe, progress)
        duplicates = intake.used - written["distinct_names"]
        counts = {"names_read": intake.read, "names_used": intake.used, "duplicates": duplicates, **written}
        if not counts["pairs"]:
            raise SourceError("no concept has two names to make a pair of", file=str(terminology.facts()["kind"]))
        facts = {
            "recipe": asdict(recipe),
            "held_out": names.held_out.facts(),
            "terminology": dict(terminology.facts()),
            **intake.facts(),
            "counts": counts,
            "files": describe_files(directory),
        }
        write_manifest(directory, {**_MADE_BY, **facts})
    return PairReport(counts, dict(intake.skipped))


@dataclass(slots=True)
class _Intake:
    """What came in, before it is sorted."""

    read: int = 0
    used: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    by_sab: Counter[str] = field(default_factory=Counter)
    sources: set[SourceRecord] = field(default_factory=set)

    def facts(self) -> dict[str, Any]:
        return {
            "vocabularies": [asdict(source) for source in sorted(self.sources, key=astuple)],
            "names_by_sab": dict(self.by_sab),
            "skipped": dict(self.skipped),
        }


def _take_in(terminology: Terminology, staging: Staging, rule: NameRule, progress: Progress) -> _Intake:
    intake = _Intake()
    languages: set[str] = set()
    for record in terminology.records():
        if isinstance(record, NameRecord):
            intake.read += 1
            if intake.read % _EVERY == 0:
                progress("read", intake.read, 0)
            languages.add(record.language)
            form, reason = rule.form(record.text, record.language, suppressed=record.suppress != "N")
            if reason:
                intake.skipped[reason] += 1
                continue
            intake.used += 1
            intake.by_sab[record.sab] += 1
            staging.add(record.concept_id, form)
        elif isinstance(record, TradeNameRecord):
            staging.link(record.generic_id, record.trade_id)
        elif isinstance(record, BroaderRecord):
            staging.broaden(record.concept_id, record.broader_id)
        elif isinstance(record, SourceRecord):
            intake.sources.add(record)
    for language in rule.languages or ():
        if language not in languages:
            raise UnknownValueError("language", language, sorted(languages))
    return intake


@dataclass(frozen=True, slots=True)
class _Names:
    """Every distinct (text, concept) that is not hidden, by text; indices are those of the files."""

    text: NDArray[np.int32]
    concept: NDArray[np.int32]
    hidden_texts: NDArray[np.bool_]
    """Of every text of the staging database, in its order."""
    hidden_names: int
    place: NDArray[np.int32]
    """Index of each concept by its number in the staging database."""
    held_out: HeldOut

    @classmethod
    def read(cls, staging: Staging, recipe: PairRecipe, progress: Progress) -> "_Names":
        numbers = np.fromiter((number for number, _ in staging.concepts()), np.int64)
        place = np.full(len(numbers) + 1, -1, np.int32)
        place[numbers] = np.arange(len(numbers), dtype=np.int32)
        texts, owners, hashes = array("i"), array("i"), array("Q")
        for index, (name, concepts) in enumerate(staging.names()):
            if recipe.held_out_percent:
                hashes.append(split_hash(name, recipe.seed))
            for number in concepts:
                texts.append(index)
                owners.append(number)
            if index % _EVERY == 0:
                progress("texts", index, 0)
        text, concept = np.asarray(texts, np.int32), place[np.asarray(owners, np.int32)]
        count = int(text[-1]) + 1 if len(text) else 0
        held_out, hidden = _hide(np.asarray(hashes, np.uint64), text, concept, count, recipe)
        renumbered = (np.cumsum(~hidden) - 1).astype(np.int32)
        visible = ~hidden[text]
        hidden_names = int(np.count_nonzero(~visible))
        return cls(renumbered[text[visible]], concept[visible], hidden, hidden_names, place, held_out)


def _hide(
    hashes: NDArray[np.uint64],
    text: NDArray[np.int32],
    concept: NDArray[np.int32],
    count: int,
    recipe: PairRecipe,
) -> tuple[HeldOut, NDArray[np.bool_]]:
    """Return the split, and whether it hides each text."""
    if not recipe.held_out_percent:
        return HeldOut(0.0, recipe.seed), np.zeros(count, np.bool_)
    largest = np.zeros(int(concept.max(initial=-1)) + 1, np.uint64)
    np.maximum.at(largest, concept, hashes[text])
    held_out = HeldOut.choose(map(int, largest), percent=recipe.held_out_percent, seed=recipe.seed)
    low = np.flatnonzero(hashes < np.uint64(held_out.limit))
    hidden = np.zeros(count, np.bool_)
    hidden[[i for i in low if held_out.hides(int(hashes[i]))]] = True
    return held_out, hidden


def _write(directory: Path, staging: Staging, names: _Names, recipe: PairRecipe, progress: Progress) -> dict[str, int]:
    """Write the files and return the counts of each step."""
    writer = PairSetWriter(directory)
    texts = (text for (text, _), hidden in zip(staging.names(), names.hidden_texts, strict=True) if not hidden)
    writer.texts(texts)
    concepts = len(names.place) - 1
    text_count = int(np.count_nonzero(~names.hidden_texts))
    one, other, dropped = _links(staging, names.place)
    owner, text = _with_partners(names, one, other, concepts, text_count)
    by_text = np.argsort(text, kind="stable")
    writer.memberships(Ragged.of_sorted(text[by_text], owner[by_text], text_count))
    pools = Ragged.of_sorted(owner, text, concepts)
    writer.concepts(id_ for _, id_ in staging.concepts())
    child, parent = _hierarchy(staging, names.place)
    writer.broader(Ragged.of_sorted(child, parent, concepts))
    pairs = writer.pairs(_draw_all(staging, pools, recipe, progress))
    sizes = pools.lengths
    combinations = sizes * (sizes - 1) // 2
    return {
        "distinct_names": len(names.text) + names.hidden_names,
        "held_out_names": names.hidden_names,
        "texts": text_count,
        "held_out_texts": len(names.hidden_texts) - text_count,
        "concepts": concepts,
        "concepts_with_one_name": int(np.count_nonzero(sizes == 1)),
        "concepts_capped": int(np.count_nonzero(combinations > recipe.max_pairs)),
        "broader_links": len(child),
        "trade_name_links": len(one) // 2,
        "trade_name_links_without_names": dropped,
        "pairs_possible": int(combinations.sum()),
        "pairs": pairs,
    }


def _links(staging: Staging, place: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """Return the concepts of each trade-name link, both ways, and how many links lead to no name."""
    numbers = np.array(list(staging.links()), np.int64).reshape(-1, 2)
    named = numbers[(numbers > 0).all(axis=1)]
    ends = place[named]
    both = np.unique(np.concatenate([ends, ends[:, ::-1]]), axis=0)
    both = both[both[:, 0] != both[:, 1]]
    return both[:, 0], both[:, 1], len(numbers) - len(named)


def _hierarchy(staging: Staging, place: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return each concept and one directly above it, in order."""
    links = np.array(list(staging.broader()), np.int64).reshape(-1, 2)
    ordered = np.unique(place[links].reshape(-1, 2), axis=0)
    return ordered[:, 0], ordered[:, 1]


def _with_partners(
    names: _Names, one: NDArray[np.int32], other: NDArray[np.int32], concepts: int, texts: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return every (concept, text) once, in order, a linked concept's names among the concept's own."""
    keys = names.concept.astype(np.int64) * texts + names.text
    keys.sort()
    if len(one):
        lent = Ragged.of_sorted(*_split(keys, texts), concepts).take(other)
        borrowed = np.unique(np.repeat(one, lent.lengths).astype(np.int64) * texts + lent.values)
        own = keys[np.minimum(np.searchsorted(keys, borrowed), len(keys) - 1)] == borrowed
        keys = np.concatenate([keys, borrowed[~own]])
        keys.sort()
    return _split(keys, texts)


def _split(keys: NDArray[np.int64], texts: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    return (keys // texts).astype(np.int32), (keys % texts).astype(np.int32)


def _draw_all(
    staging: Staging, pools: Ragged, recipe: PairRecipe, progress: Progress
) -> Iterator[tuple[int, NDArray[np.int32], NDArray[np.int32]]]:
    for index, (_, id_) in enumerate(staging.concepts()):
        if index % _EVERY == 0:
            progress("pairs", index, len(pools))
        pool = pools.row(index)
        if len(pool) > 1:
            left, right = draw(len(pool), recipe.max_pairs, f"{recipe.seed} {id_}")
            yield index, pool[left], pool[right]
