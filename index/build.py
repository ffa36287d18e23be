"""Builds an index: names out of the store, vectors out of the encoder, one immutable directory with a manifest."""

import shutil
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index import snapshot
from index.arrays import NameArraysWriter
from index.dense import DenseWriter
from index.facts import FactsWriter
from index.lexical import LexicalWriter
from index.models import copy_models, describe_models
from index.recipes import choose_recipe
from index.reuse import KnownVectors
from index.snapshot import Snapshot, SnapshotWriter
from index.store import ENCODER, FORMAT, TEXT_VERSIONS, BuildStore, checked_manifest, open_build, probe_scores
from index.words import write_words
from medlink.encoders import load_encoder
from medlink.errors import IndexMismatchError, StoreError
from medlink.kb.records import SourceRecord
from medlink.manifest import describe_files, write_manifest
from medlink.protocols import Encoder
from medlink.text import encoder_text
from medlink.types import Concept, Retirement

# Large enough that names of every length fill whole batches.
_ENCODE_TOGETHER = 4_096
_RECALL_SAMPLE = 100
_PROBES = 16

Progress = Callable[[str, int, int], None]
"""Called with the stage, how much of it is done and how much there is (0: not known)."""


@dataclass(frozen=True, slots=True)
class Content:
    """What goes into an index: streams of concepts in ascending id order and of retired ids."""

    concepts: Iterable[Concept]
    retirements: Iterable[Retirement]
    sources: Sequence[SourceRecord]
    loads: Mapping[str, str]
    """Fingerprint of every load of the store, by its name."""
    total: int


def build_index(
    content: Content,
    encoder_dir: Path,
    store: BuildStore,
    *,
    recipe: str = "auto",
    threads: int | None = None,
    reuse: Sequence[Path] | None = (),
    models: Path | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> str:
    """Write, verify and publish an index build, and return its id; a failure leaves nothing published.

    Args:
        content: What goes into it.
        encoder_dir: The encoder, which is copied into the build.
        store: Where the build goes.
        recipe: How vectors are laid out, or `auto`.
        threads: Of the encoder and of the search; the cores that this process may use when left out.
        reuse: Directories of earlier builds, the likeliest first. Texts that they have are not encoded again where
            `index.reuse` finds the vectors to be the same, nor are those that a build encoded which was never
            published; the build is what it would be without. None: everything is encoded anew.
        models: Directory of the fusion model and its calibration, which are copied into the build; none if left out.
        progress: Told how far it is.

    Raises:
        StoreError: There is no name to index.
        IndexMismatchError: The build does not pass its own checks, or a model cannot be used.
    """
    choose_recipe(recipe, 0)  # a misspelt name fails before the work
    describe_models(models)  # and so does a model of another version
    encoder = load_encoder(encoder_dir, threads=threads)
    started = datetime.now(UTC)
    build_id = f"{started:%Y%m%dT%H%M%S}{started.microsecond // 1000:03d}Z"
    kept = store.kept_vectors(encoder, anew=reuse is None)
    with store.writing(build_id) as unfinished:
        texts = _write_concepts(content, unfinished, encoder, progress)
        chosen = choose_recipe(recipe, len(texts.distinct))
        known = KnownVectors(reuse or (), encoder, texts.row_of_text, encode=kept.vectors)
        _write_vectors(texts, unfinished, DenseWriter(chosen, encoder.dim), known, progress)
        shutil.copytree(encoder_dir, unfinished / ENCODER)
        facts = {
            "format": FORMAT,
            "id": build_id,
            "created_at": started.isoformat(timespec="seconds"),
            "loads": dict(content.loads),
            "sources": [asdict(source) for source in content.sources],
            "counts": texts.counts,
            "reused_vectors": len(known) + kept.found,
            "encoder": {"fingerprint": encoder.fingerprint, "dim": encoder.dim, "lowercase": encoder.lowercase},
            "text": TEXT_VERSIONS,
            "recipe": asdict(chosen),
            "metric": "cosine",
            **copy_models(models, unfinished),
        }
        progress("verify", 0, 0)
        _seal(unfinished, facts, texts.distinct, encoder, threads)
        progress("publish", 0, 0)
        store.publish(unfinished, build_id)
    if chosen.lossless:
        # Else the next build cannot take them from this one.
        kept.clear()
    kept.tidy()
    return build_id


def is_current(
    store: BuildStore, build_id: str, content: Content, encoder_dir: Path, models: Path | None = None
) -> bool:
    """Say whether a build is sound, and of the same loads, encoder, models and text versions as a new one would be."""
    if build_id not in store.ids():
        return False
    try:
        facts = checked_manifest(store.path(build_id))
    except IndexMismatchError:
        return False
    made_of = (facts["loads"], facts["encoder"]["fingerprint"], _fingerprints(facts))
    new = (dict(content.loads), load_encoder(encoder_dir).fingerprint, _fingerprints(describe_models(models)))
    return made_of == new


def _fingerprints(facts: Mapping[str, Any]) -> list[str]:
    return [facts[model]["fingerprint"] for model in ("fusion", "calibration") if model in facts]


@dataclass(frozen=True, slots=True)
class _Texts:
    distinct: list[str]
    row_of_text: dict[str, int]
    row_of_name: NDArray[np.int32]
    counts: dict[str, int]


def _write_concepts(content: Content, directory: Path, encoder: Encoder, progress: Progress) -> _Texts:
    """Write all but the vectors, the concepts read in one pass, and give each distinct encoder text a row."""
    writer = SnapshotWriter(directory / snapshot.FILE)
    arrays = NameArraysWriter()
    facts = FactsWriter()
    lexical = LexicalWriter()
    rows: dict[str, int] = {}
    row_of_name, lexical_row_of_name = array("i"), array("i")
    for concept in content.concepts:
        writer.add(concept)
        arrays.add(concept)
        facts.add(concept)
        for name in concept.names:
            text = encoder_text(name.text, lowercase=encoder.lowercase)
            row_of_name.append(rows.setdefault(text, len(rows)))
            lexical_row_of_name.append(lexical.row(name.text))
        if writer.concepts % 1000 == 0:
            progress("read", writer.concepts, content.total)
    for retirement in content.retirements:
        writer.retire(retirement)
    writer.close()
    if not rows:
        raise StoreError("the store holds no names; run `medlink kb load` first")
    arrays.save(directory)
    lexical.save(directory, np.array(lexical_row_of_name, np.int32))
    written = Snapshot(directory / snapshot.FILE)
    facts.save(directory, np.array(written.name_counts(), np.int32))
    write_words(directory, written.distinct_loose_keys())
    progress("read", writer.concepts, writer.concepts)
    counts = {"concepts": writer.concepts, "names": writer.names, "distinct_texts": len(rows)}
    return _Texts(list(rows), rows, np.array(row_of_name, np.int32), counts)


def _write_vectors(
    texts: _Texts, directory: Path, writer: DenseWriter, known: KnownVectors, progress: Progress
) -> None:
    total = len(texts.distinct)
    progress("encode", 0, total)
    for start in range(0, total, _ENCODE_TOGETHER):
        writer.add(known.vectors(texts.distinct[start : start + _ENCODE_TOGETHER], start))
        progress("encode", min(start + _ENCODE_TOGETHER, total), total)
    writer.save(directory, texts.row_of_name)


def _seal(directory: Path, facts: dict[str, Any], texts: Sequence[str], encoder: Encoder, threads: int | None) -> None:
    """Write the manifest once the build finds its own names, near enough to exact search."""
    files = describe_files(directory)
    write_manifest(directory, {**facts, "probes": [], "files": files})
    build = open_build(directory, threads=threads)
    some = np.random.default_rng(0).permutation(len(texts))[:_RECALL_SAMPLE]
    shortened = [texts[i][: len(texts[i]) // 2] + texts[i][len(texts[i]) // 2 + 1 :] for i in some]
    recall = build.dense.recall(encoder.encode(shortened).vectors)
    if recall < facts["recipe"]["recall"]:
        raise IndexMismatchError(f"recipe {facts['recipe']['name']} finds {recall:.1%} of the nearest names only")
    probes = [texts[i] for i in some[:_PROBES]]
    answered = [{"text": t, **scores} for t, scores in zip(probes, probe_scores(build, probes), strict=True)]
    write_manifest(directory, {**facts, "measured_recall": round(recall, 4), "probes": answered, "files": files})
