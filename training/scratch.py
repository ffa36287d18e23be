"""Index builds of a release that serve evaluation alone: made as for the service, and kept for the next run."""

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from heapq import merge
from pathlib import Path

from index.build import Content, Progress, build_index, is_current
from index.store import FORMAT, TEXT_VERSIONS, BuildStore, IndexBuild
from medlink.corpora.ids import candidate_ids, spellings
from medlink.encoders import load_encoder
from medlink.kb.database import migrate, open_engine
from medlink.kb.load import fingerprint as fingerprint_of_release
from medlink.kb.load import load
from medlink.kb.readers import open_reader
from medlink.kb.records import SourceRecord
from medlink.kb.repository import Repository
from medlink.manifest import fingerprint
from medlink.types import Channel, Concept, Name
from training.channels import ChannelSource, of_build
from training.systems import System

ADDED_SAB = "TRAIN"
"""Source of names that an evaluation adds."""

# Exhaustive, so that figures do not hang on a graph, and exact, so that builds can share their vectors.
_RECIPE = "flat"
_ADDED_SOURCE = SourceRecord(ADDED_SAB, "mentions of the splits before the one that is scored", "")
_DIGITS = 16


class ScratchBuilds:
    """Makes index builds of one release, each once, and has their vectors in common.

    The folder has a store for each release and the builds beside it; whatever is in it may be deleted at any time.

    Args:
        release: What `medlink kb load` reads.
        folder: Where stores and builds are kept.
        encoder_dir: The encoder of the builds.
        threads: Of the encoder and of the search; the cores that this process may use when left out.
        models: Directory of the models that rank and judge candidates; none if left out.
        progress: Told how far a build is.
    """

    def __init__(
        self,
        release: Path,
        folder: Path,
        encoder_dir: Path,
        *,
        threads: int | None = None,
        models: Path | None = None,
        progress: Progress = lambda stage, done, total: None,
    ) -> None:
        self._models = models
        self._release = release
        self._made_of = fingerprint_of_release(release, {})
        self._folder = folder / self._made_of[:_DIGITS]
        self._encoder_dir = encoder_dir
        self._encoder = load_encoder(encoder_dir, threads=1).fingerprint
        self._threads = threads
        self._progress = progress

    def open(self, added: Mapping[str, frozenset[str]] | None = None) -> IndexBuild:
        """Return the build of the release with some more names, ready to answer.

        Args:
            added: Names with the ids that each stands for, as `with_names` adds them.

        Raises:
            SourceError: The release cannot be read.
            StoreError: It has nothing to index.
        """
        with self._loaded() as repository:
            content = _content(repository, added or {})
            store = BuildStore(self._directory(content.loads))
            current = [build for build in store.ids() if is_current(store, build, content, self._encoder_dir)]
            build_id = current[-1] if current else self._build(content, store)
        build = store.open(build_id, threads=self._threads)
        # Not part of the builds kept, so that other models cost no new one.
        return build.with_models(self._models) if self._models else build

    def _directory(self, loads: Mapping[str, str]) -> Path:
        made_of = {"loads": dict(loads), "encoder": self._encoder, "format": FORMAT, "text": TEXT_VERSIONS}
        return self._folder / fingerprint(made_of)[:_DIGITS]

    def _build(self, content: Content, store: BuildStore) -> str:
        stale = [store.path(build_id) for build_id in store.ids()]
        kept = sorted(self._folder.glob("*/*Z/manifest.json"), key=lambda path: path.parent.name, reverse=True)
        build_id = build_index(
            content,
            self._encoder_dir,
            store,
            recipe=_RECIPE,
            threads=self._threads,
            reuse=[path.parent for path in kept],
            progress=self._progress,
        )
        for directory in stale:
            shutil.rmtree(directory)
        return build_id

    @contextmanager
    def _loaded(self) -> Iterator[Repository]:
        engine = open_engine(f"sqlite:///{self._folder / 'store.sqlite'}")
        try:
            migrate(engine)
            load(engine, open_reader(self._release), name="release", fingerprint=self._made_of)
            yield Repository(engine)
        finally:
            engine.dispose()


def _content(repository: Repository, added: Mapping[str, frozenset[str]]) -> Content:
    content = Content(
        concepts=repository.concepts(),
        retirements=repository.retirements(),
        sources=repository.sources(),
        loads=repository.fingerprints(),
        total=repository.concept_count(),
    )
    if not added:
        return content
    facts = {name: sorted(ids) for name, ids in added.items()}
    return replace(
        content,
        concepts=with_names(repository.concepts, added),
        sources=[*content.sources, _ADDED_SOURCE],
        loads={**content.loads, ADDED_SAB: fingerprint(facts)},
    )


class ScratchSource:
    """Channels of index builds of one release, with names added to the release where the protocol has it so.

    Args:
        builds: Makes the builds.
        chosen: The channels of each system to run, by what rows call it.
        longest_context: Most characters of context that the linker is given.
        label: What rows call the release.
        encoder: What rows call the encoder; its fingerprint if empty.
    """

    def __init__(
        self,
        builds: ScratchBuilds,
        chosen: Mapping[str, Sequence[Channel]],
        *,
        longest_context: int,
        label: str,
        encoder: str = "",
    ) -> None:
        def source(build: IndexBuild) -> ChannelSource:
            return of_build(build, chosen, longest_context=longest_context, label=label, encoder=encoder)

        self.label = label
        self._builds = builds
        self._source = source
        self._plain = source(builds.open())

    def exact(self, texts: Sequence[str], k: int) -> list[list[frozenset[str]]]:
        """Answer a text that is a name of the release, and no other."""
        return self._plain.exact(texts, k)

    def known(self, ids: Collection[str]) -> Collection[str]:
        """Return those ids that the release has."""
        return self._plain.known(ids)

    def systems(self, protocol: str, added: Mapping[str, frozenset[str]]) -> Iterator[System]:
        """Yield one system after another.

        Args:
            protocol: How it is to be asked.
            added: Names that the release has beside its own, with what they stand for.
        """
        source = self._source(self._builds.open(added)) if added else self._plain
        yield from source.systems(protocol, {})


def with_names(concepts: Callable[[], Iterable[Concept]], added: Mapping[str, frozenset[str]]) -> Iterator[Concept]:
    """Yield concepts with names added to those that go by their ids.

    A name is added for each of its ids to every concept of that id or code. An id that no concept goes by becomes a
    concept itself.

    Args:
        concepts: Gives all concepts in ascending order of id; called twice.
        added: Names with their ids in the form of `normal_id`.
    """
    names: dict[str, list[str]] = {}
    for name in sorted(added):
        for id_ in added[name]:
            names.setdefault(id_, []).append(name)
    absent = names.keys() - {id_ for concept in concepts() for id_ in _ids(concept)}
    new = (Concept(spellings(id_)[0], names[id_][0], _names(names[id_])) for id_ in absent)
    old = (
        replace(concept, names=(*concept.names, *_names(name for id_ in _ids(concept) for name in names.get(id_, ()))))
        for concept in concepts()
    )
    yield from merge(old, sorted(new, key=_id), key=_id)


def _ids(concept: Concept) -> frozenset[str]:
    return candidate_ids(concept.id, concept.codes)


def _id(concept: Concept) -> str:
    return concept.id


def _names(texts: Iterable[str]) -> tuple[Name, ...]:
    return tuple(Name(text, ADDED_SAB) for text in sorted(set(texts)))
