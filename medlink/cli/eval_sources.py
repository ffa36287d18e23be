"""What `medlink eval` can score: systems by name, and opening what they need."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medlink.errors import UnknownValueError
from medlink.types import Channel
from training.baselines import BASELINES
from training.protocols import PROTOCOLS

if TYPE_CHECKING:
    from training.baselines import Dictionary
    from training.channels import ChannelSource
    from training.dense import EncodedNames
    from training.scratch import ScratchBuilds, ScratchSource
    from training.systems import DictionarySource, Source

CHANNELS: dict[str, tuple[Channel, ...]] = {
    "exact": ("exact",),
    "dense": ("dense",),
    "lexical": ("lexical",),
    "exact+dense": ("exact", "dense"),
    "fused": ("exact", "dense", "lexical"),
}
"""Systems of an index build, by the channels that they use."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The systems to score: channels of index builds, baselines and encoders over names."""

    channels: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    encoders: Mapping[str, Path] = field(default_factory=dict)

    @classmethod
    def of_options(
        cls, protocol: str, system: Sequence[str] | None, names: str, url: str, encoder_dirs: Sequence[str]
    ) -> "Selection":
        """Return what the options ask for.

        Without `system` that is all that they make possible, except that encoders over names need no index build
        beside them.

        Raises:
            UnknownValueError: There is no such protocol or system.
            typer.BadParameter: The options do not go together.
        """
        if protocol not in PROTOCOLS:
            raise UnknownValueError("protocol", protocol, list(PROTOCOLS))
        encoders = encoders_by_label(encoder_dirs)
        if not names and (encoders or not set(system or ()).isdisjoint(BASELINES)):
            raise typer.BadParameter("baselines and encoders read the dictionary from a file: add --names")
        if protocol == "paper" and (url or not names):
            raise typer.BadParameter(
                "under --protocol paper names are added, which neither a service nor the active index build takes:"
                " give the dictionary as --names, and no --url"
            )
        channels = () if encoders and not url else tuple(CHANNELS)
        chosen = tuple(dict.fromkeys(system or (*channels, *(runnable_baselines() if names else ()))))
        check_systems(chosen, [*CHANNELS, *BASELINES])
        return cls(
            tuple(name for name in chosen if name in CHANNELS),
            tuple(name for name in chosen if name in BASELINES),
            encoders,
        )


def runnable_baselines() -> list[str]:
    """Return the baselines that this install can run: serving needs no scikit-learn, and one of them does."""
    return [name for name in BASELINES if name != "baseline-tfidf" or find_spec("sklearn") is not None]


def check_systems(chosen: Collection[str], valid: list[str]) -> None:
    """Refuse systems that are not, or that cannot run here.

    Raises:
        UnknownValueError: There is no such system.
        typer.BadParameter: It needs a package that is not installed.
    """
    for name in chosen:
        if name not in valid:
            raise UnknownValueError("system", name, valid)
        if name in BASELINES and name not in runnable_baselines():
            raise typer.BadParameter(f"{name} needs scikit-learn: pip install scikit-learn, or leave it out")


def encoders_by_label(options: Sequence[str]) -> dict[str, Path]:
    """Read `LABEL=DIR` options.

    Raises:
        typer.BadParameter: One is of another form, or two have one label.
    """
    encoders: dict[str, Path] = {}
    for option in options:
        label, _, directory = option.partition("=")
        if not label or not directory:
            raise typer.BadParameter("--encoder-dir takes LABEL=DIR, the label being what rows call the encoder")
        if label in encoders:
            raise typer.BadParameter(f"two encoders are called {label}; rows must tell them apart")
        encoders[label] = Path(directory)
    return encoders


@contextmanager
def open_sources(chosen: Selection, *, url: str, names: str, dictionary: str, encoder: str) -> Iterator["list[Source]"]:
    """Open what the chosen systems need, and nothing else.

    Args:
        chosen: The systems.
        url: Service whose channels are asked.
        names: Release that baselines and encoders read the dictionary from, and channels where there is no service;
            without either they are those of the active index build.
        dictionary: What rows call the dictionary; its sources or the file if empty.
        encoder: What rows call the encoder of the index build; its fingerprint if empty.
    """
    from medlink.client import Client

    sources: list[Source] = []
    if names and (chosen.baselines or chosen.encoders):
        sources.append(_of_release(names, chosen, dictionary))
    if not chosen.channels:
        yield sources
    elif url:
        from training.channels import of_service

        with Client(url, timeout=300) as client:
            yield [*sources, of_service(client, _channels(chosen), label=dictionary, encoder=encoder)]
    elif names:
        yield [*sources, _of_scratch_builds(names, chosen, dictionary, encoder)]
    else:
        yield [*sources, _of_active_build(chosen, dictionary, encoder)]


def _of_release(names: str, chosen: Selection, label: str) -> "DictionarySource":
    from app.settings import Settings
    from medlink.cli.kb import find_release
    from medlink.kb.readers import open_reader
    from training.baselines import Dictionary

    release, name = find_release(names, Settings().packs_dir)
    return over_names(Dictionary.read(open_reader(release).records()), chosen, label or name)


def over_names(dictionary: "Dictionary", chosen: Selection, label: str) -> "DictionarySource":
    """Return the chosen baselines and encoders over names."""
    from training.systems import DictionarySource

    encoded = {name: _open_encoder(name, directory) for name, directory in chosen.encoders.items()}
    return DictionarySource(dictionary, label, chosen.baselines, encoded)


def _open_encoder(label: str, directory: Path) -> "EncodedNames":
    from app.settings import Settings
    from medlink.encoders import load_encoder
    from training.dense import EncodedNames

    return EncodedNames(load_encoder(directory, threads=Settings().threads), _saying(label))


def _saying(label: str) -> Callable[[int, int], None]:
    """Return what says on stderr how far an encoder is."""
    from rich.console import Console

    from medlink.cli.progress import Lines

    lines = Lines(Console(stderr=True), "names")
    return lambda done, total: lines(f"names encoded by {label}", done, total)


def _of_active_build(chosen: Selection, label: str, encoder: str) -> "ChannelSource":
    from app.serving import load_active_build
    from app.settings import Settings
    from training.channels import of_build

    settings = Settings()
    build = load_active_build(settings)
    longest = settings.max_context_chars
    return of_build(build, _channels(chosen), longest_context=longest, label=label, encoder=encoder)


def _of_scratch_builds(names: str, chosen: Selection, label: str, encoder: str) -> "ScratchSource":
    from app.settings import Settings
    from training.scratch import ScratchSource

    settings = Settings()
    builds, name = scratch_builds(names, models=settings.models)
    longest = settings.max_context_chars
    return ScratchSource(builds, _channels(chosen), longest_context=longest, label=label or name, encoder=encoder)


def scratch_builds(names: str, *, models: Path | None) -> tuple["ScratchBuilds", str]:
    """Return what makes index builds of a release for evaluation, and what the release is called.

    Args:
        names: A release, `open` or `open-plus`.
        models: Directory of the models that rank candidates; none if left out.
    """
    from rich.console import Console

    from app.settings import Settings
    from medlink.cli.kb import find_release
    from medlink.cli.progress import Lines
    from training.scratch import ScratchBuilds

    settings = Settings()
    release, name = find_release(names, settings.packs_dir)
    saying = Lines(Console(stderr=True), "items")
    folder = settings.data_dir / "eval"
    builds = ScratchBuilds(release, folder, settings.encoder, threads=settings.threads, models=models, progress=saying)
    return builds, name


def _channels(chosen: Selection) -> dict[str, tuple[Channel, ...]]:
    return {name: CHANNELS[name] for name in chosen.channels}
