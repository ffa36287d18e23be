"""Index builds on disk: immutable directories that are published whole and loaded only if undamaged."""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from index import snapshot
from index.arrays import NameArrays
from index.concepts import CuratedConcepts
from index.dense import DenseRetriever
from index.exact import ExactRetriever
from index.facts import Facts
from index.kept import KeptVectors
from index.lexical import LexicalRetriever
from index.licences import Licence
from index.models import Models, describe_models, read_models
from index.overlay import CurableRetriever, Overlay, lay_over
from index.recipes import Recipe
from index.snapshot import Snapshot
from index.unfinished import is_being_written, sweep, unfinished
from index.words import Words
from medlink.encoders import load_encoder
from medlink.encoders.onnx import available_cores
from medlink.errors import EncoderError, IndexMismatchError, UnknownValueError
from medlink.kb.curation import CurationState
from medlink.linking.linker import Linker
from medlink.linking.ranking import Ranking
from medlink.loose_key import LOOSE_KEY_VERSION
from medlink.manifest import find_damage, read_manifest
from medlink.protocols import Encoder
from medlink.text import ENCODER_TEXT_VERSION, MATCH_KEY_VERSION
from medlink.types import Channel, LinkOptions

FORMAT = 3
ENCODER = "encoder"
TEXT_VERSIONS = {"encoder_text": ENCODER_TEXT_VERSION, "match_key": MATCH_KEY_VERSION, "loose_key": LOOSE_KEY_VERSION}
_PROBED: tuple[Channel, ...] = ("dense", "lexical")
# Another processor may compute a cosine a little differently, and a step of its rounding more.
_PROBE_TOLERANCE = 0.0015


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """A loaded build under one revision of curation: everything that an answer reads."""

    id: str
    manifest: dict[str, Any]
    encoder: Encoder
    snapshot: Snapshot
    arrays: NameArrays
    dense: DenseRetriever
    retrievers: Mapping[Channel, CurableRetriever]
    """The channels as they were built."""
    overlay: Overlay
    concepts: CuratedConcepts
    """What the build knows of its concepts, under the overlay."""
    linker: Linker
    """Answers under the overlay."""
    models: Models
    """What ranks and judges candidates."""

    def curated(self, state: CurationState) -> "IndexBuild":
        """Return the same build under these corrections instead of the present ones; both can be used side by side."""
        overlay = lay_over(state, self.snapshot, self.arrays, self.encoder, before=self.overlay)
        return replace(self, **_under(overlay, self.concepts.under(overlay), self.retrievers, self.models))

    def within(self, licence_level: int) -> "IndexBuild":
        """Return the same build, which finds what it found and shows no names of sources above a licence level."""
        concepts = self.concepts.within(Licence.up_to(licence_level, self.manifest["sources"]))
        return replace(self, **_under(self.overlay, concepts, self.retrievers, self.models))

    def with_models(self, directory: Path) -> "IndexBuild":
        """Return the same build with the models of a directory instead of its own.

        Raises:
            IndexMismatchError: A model cannot be used.
        """
        models = read_models(directory)
        kept = {key: fact for key, fact in self.manifest.items() if key not in ("fusion", "calibration")}
        manifest = {**kept, **describe_models(directory)}
        under = _under(self.overlay, self.concepts, self.retrievers, models)
        return replace(self, manifest=manifest, models=models, **under)


def _under(
    overlay: Overlay, concepts: CuratedConcepts, retrievers: Mapping[Channel, CurableRetriever], models: Models
) -> dict[str, Any]:
    curated = {channel: retriever.under(overlay) for channel, retriever in retrievers.items()}
    fusion, calibration = models
    ranking = Ranking(concepts, fusion, calibration) if fusion else None
    linker = Linker(curated, concepts, overlay.pins, ranking, show=concepts.show)
    return {"overlay": overlay, "concepts": concepts, "linker": linker}


def open_build(directory: Path, *, threads: int | None = None) -> IndexBuild:
    """Check a build against its manifest, load it, and ask its probe mentions.

    Raises:
        IndexMismatchError: A file is damaged or missing, the encoder is not the one the vectors were made
            with, the text versions differ from this code's, or a probe is answered differently.
    """
    facts = checked_manifest(directory)
    encoder = _own_encoder(directory, facts, threads)
    shot = Snapshot(directory / snapshot.FILE)
    arrays = NameArrays(directory)
    dense = DenseRetriever(
        directory,
        Recipe(**facts["recipe"]),
        encoder=encoder,
        arrays=arrays,
        snapshot=shot,
        threads=threads or available_cores(),
    )
    retrievers: dict[Channel, CurableRetriever] = {
        "exact": ExactRetriever(arrays=arrays, snapshot=shot),
        "dense": dense,
        "lexical": LexicalRetriever(directory, arrays=arrays, snapshot=shot),
    }
    overlay = lay_over(CurationState(), shot, arrays, encoder)
    concepts = CuratedConcepts(shot, Facts(directory), Words(directory), overlay)
    models = read_models(directory)
    build = IndexBuild(
        id=directory.name,
        manifest=facts,
        encoder=encoder,
        snapshot=shot,
        arrays=arrays,
        dense=dense,
        retrievers=retrievers,
        models=models,
        **_under(overlay, concepts, retrievers, models),
    )
    _check_probes(build)
    return build


def _own_encoder(directory: Path, facts: Mapping[str, Any], threads: int | None) -> Encoder:
    try:
        encoder = load_encoder(directory / ENCODER, threads=threads)
    except (EncoderError, UnknownValueError) as error:
        # Clients of the service see this text; where builds lie is not their business.
        reason = str(error).replace(str(directory / ENCODER), ENCODER)
        raise IndexMismatchError(f"index build {directory.name}: {reason}") from error
    if encoder.fingerprint != facts["encoder"]["fingerprint"]:
        raise IndexMismatchError(
            f"index build {directory.name} was made with encoder {facts['encoder']['fingerprint'][:12]} and holds"
            f" encoder {encoder.fingerprint[:12]}; run `medlink index build`"
        )
    return encoder


def checked_manifest(directory: Path) -> dict[str, Any]:
    """Return the manifest of a build after comparing every file with it.

    Raises:
        IndexMismatchError: A file is damaged or missing, or another version of this program made the build.
    """
    what = f"index build {directory.name}"
    if not directory.is_dir():
        raise IndexMismatchError(f"{what} is not there; run `medlink index build`")
    try:
        facts = read_manifest(directory)
        damage = find_damage(directory, facts.get("files", {}))
    except ValueError as error:
        raise IndexMismatchError(f"{what}: {error}; run `medlink index build`") from error
    except OSError as error:
        raise IndexMismatchError(f"{what} cannot be read ({error.strerror}); check its permissions") from error
    if facts.get("format") != FORMAT or facts.get("text") != TEXT_VERSIONS:
        raise IndexMismatchError(f"{what} was made by another version of medlink; run `medlink index build`")
    if damage:
        raise IndexMismatchError(f"{what} is damaged: {'; '.join(damage[:5])}; activate another build")
    return facts


def probe_scores(build: IndexBuild, texts: Sequence[str]) -> list[dict[Channel, float]]:
    """Return the best score of each text, by channel; texts are names of the build."""
    options = LinkOptions(top_k=1, include_suppressed=True)
    found = {channel: build.retrievers[channel].search(texts, options) for channel in _PROBED}
    return [
        {channel: retrievals[i].found[0].score if retrievals[i].found else 0.0 for channel, retrievals in found.items()}
        for i in range(len(texts))
    ]


def _check_probes(build: IndexBuild) -> None:
    probes = build.manifest["probes"]
    scores = probe_scores(build, [probe["text"] for probe in probes])
    changed = sum(
        any(abs(score - probe[channel]) > _PROBE_TOLERANCE for channel, score in by_channel.items())
        for by_channel, probe in zip(scores, probes, strict=True)
    )
    if changed:
        raise IndexMismatchError(
            f"index build {build.id} answers {changed} of {len(probes)} probes otherwise than when it was made;"
            " run `medlink index build`"
        )


class BuildStore:
    """The directory that holds index builds and nothing else."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def ids(self) -> list[str]:
        """Return the ids of all builds, oldest first."""
        if not self._directory.is_dir():
            return []
        return sorted(p.name for p in self._directory.iterdir() if p.is_dir() and not p.name.startswith("."))

    def path(self, build_id: str) -> Path:
        """Return the directory of a build.

        Raises:
            UnknownValueError: There is no such build.
        """
        if build_id not in self.ids():
            raise UnknownValueError("index build", build_id, self.ids())
        return self._directory / build_id

    def open(self, build_id: str, *, threads: int | None = None) -> IndexBuild:
        """Load a build, as `open_build` does."""
        return open_build(self._directory / build_id, threads=threads)

    def writing(self, build_id: str) -> AbstractContextManager[Path]:
        """Give the directory that a build is written in until it is whole; clear what dead builders left."""
        return unfinished(self._directory, build_id)

    def sweep(self) -> list[str]:
        """Clear what dead builders left, and return the names of those directories."""
        return sweep(self._directory)

    def is_being_written(self) -> bool:
        """Say whether anybody writes a build, or has written one and not told of it yet."""
        return is_being_written(self._directory)

    def kept_vectors(self, encoder: Encoder, *, anew: bool = False) -> KeptVectors:
        """Return the vectors that unpublished builds left; none, and none are left, with `anew`."""
        kept = KeptVectors(self._directory, encoder)
        if not anew:
            return kept
        kept.clear()
        return KeptVectors(self._directory, encoder)

    def free_bytes(self) -> int:
        """Return how much room there is for builds."""
        self._directory.mkdir(parents=True, exist_ok=True)
        return shutil.disk_usage(self._directory).free

    def publish(self, written: Path, build_id: str) -> None:
        """Make a written build durable and give it its name, in one step."""
        for path in sorted(written.rglob("*"), reverse=True):
            _sync(path)
        _sync(written)
        written.rename(self._directory / build_id)
        _sync(self._directory)

    def discard(self, build_id: str) -> None:
        """Remove a published build, if it is there; whoever has it open keeps what it has.

        It goes out of sight in one step, so that one that is removed in part is opened by nobody; if this process
        dies meanwhile, the next sweep does the rest.
        """
        with self.writing(build_id) as hidden, suppress(FileNotFoundError):
            (self._directory / build_id).rename(hidden / build_id)
            _sync(self._directory)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
