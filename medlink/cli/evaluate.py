"""`medlink eval`: accuracy on labeled corpora, of the active index build, a running service, and the baselines."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from medlink.types import Channel

if TYPE_CHECKING:
    from medlink.client import Client
    from training.evaluate import Ranker, Task
    from training.protocols import Question

_PROTOCOLS = ("dictionary",)
_CHANNELS: dict[str, tuple[Channel, ...]] = {
    "exact": ("exact",),
    "dense": ("dense",),
    "exact+dense": ("exact", "dense"),
}
_BASELINES = ("baseline-exact", "baseline-tfidf")
# Piped into a file, a table of eleven columns would be cut to the 80 that rich assumes.
_console = Console(width=None if sys.stdout.isatty() else 160)


@dataclass(frozen=True, slots=True)
class _Source:
    """Systems over one dictionary: what rows say about it, its systems by name, its exact names and its ids."""

    dictionary: str
    encoder: str | None
    systems: Mapping[str, "Ranker"]
    exact: "Ranker"
    known: Callable[[Collection[str]], Collection[str]]


def evaluate(
    corpus: Annotated[list[str], typer.Option(help="A corpus of the catalogue; may be given several times.")],
    data: Annotated[Path, typer.Option(help="Folder that holds the corpora.")],
    split: Annotated[str, typer.Option(help="train, dev or test; test asks for --final.")] = "dev",
    protocol: Annotated[str, typer.Option(help="How mentions are asked and answers are scored.")] = "dictionary",
    system: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(_CHANNELS)}, {', '.join(_BASELINES)}; all that can run by default."),
    ] = None,
    url: Annotated[str, typer.Option(help="Ask this service; the active index build by default.")] = "",
    names: Annotated[Path | None, typer.Option(help="CSV of the dictionary, for the baselines.")] = None,
    typos: Annotated[
        Path | None, typer.Option(help="File of `typo||correction` lines; mentions are corrected by it.")
    ] = None,
    dictionary: Annotated[str, typer.Option(help="What rows call the dictionary; its sources by default.")] = "",
    encoder: Annotated[str, typer.Option(help="What rows call the encoder; its fingerprint by default.")] = "",
    top_k: Annotated[int, typer.Option(min=5, max=100, help="How far down an answer is read.")] = 20,
    final: Annotated[bool, typer.Option("--final", help="Score a test split; choices are made on dev.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the rows as JSON, e.g. to benchmarks/results/.")] = None,
) -> None:
    """Score systems on labeled mentions and print a table; rows hold figures only, never mention text."""
    from medlink.client import ServiceError
    from medlink.errors import UnknownValueError
    from training.evaluate import Task, read_split, write_results
    from training.protocols import questions, read_typos

    if protocol not in _PROTOCOLS:
        raise UnknownValueError("protocol", protocol, list(_PROTOCOLS))
    if split == "test" and not final:
        raise typer.BadParameter("a test split is scored once, at the end: add --final, or use --split dev")
    chosen = _chosen(system, names)
    corrections = read_typos(typos) if typos else None
    # Read before any index is opened, so that a misspelt corpus fails at once.
    asked = {name: list(questions(read_split(name, split, data), corrections)) for name in corpus}
    rows: list[dict[str, Any]] = []
    try:
        with _sources(chosen, url, names, dictionary, encoder) as sources:
            for name, of_corpus in asked.items():
                for source in sources:
                    rows += _rows(Task(name, split, source.dictionary, protocol), of_corpus, source, data, top_k)
    except ServiceError as error:
        sys.stderr.write(f"medlink: {error}\n")
        raise typer.Exit(1) from None
    _console.print(_table(rows))
    if output:
        write_results(output, rows, command=["medlink", *sys.argv[1:]], final=split == "test")


def _chosen(system: Sequence[str] | None, names: Path | None) -> list[str]:
    from medlink.errors import UnknownValueError

    valid = [*_CHANNELS, *_BASELINES]
    for name in system or ():
        if name not in valid:
            raise UnknownValueError("system", name, valid)
    if names is None and system and not set(system).isdisjoint(_BASELINES):
        raise typer.BadParameter("the baselines read the dictionary from a file: add --names")
    # Serving needs no scikit-learn, and only this baseline does.
    able = find_spec("sklearn") is not None
    if system and "baseline-tfidf" in system and not able:
        raise typer.BadParameter("baseline-tfidf needs scikit-learn: pip install scikit-learn, or leave it out")
    baselines = [name for name in _BASELINES if names and (able or name != "baseline-tfidf")]
    return list(dict.fromkeys(system or ["exact", "dense", "exact+dense", *baselines]))


@contextmanager
def _sources(
    chosen: Sequence[str], url: str, names: Path | None, dictionary: str, encoder: str
) -> Iterator[list[_Source]]:
    """Open what the chosen systems need, and nothing else."""
    from medlink.client import Client

    baselines = [name for name in chosen if name in _BASELINES]
    channels = {name: _CHANNELS[name] for name in chosen if name in _CHANNELS}
    sources = [_of_file(names, baselines, dictionary)] if names and baselines else []
    if channels and url:
        with Client(url, timeout=300) as client:
            yield [*sources, _of_service(client, channels, dictionary, encoder)]
    else:
        yield [*sources, *([_of_build(channels, dictionary, encoder)] if channels else [])]


def _of_file(file: Path, chosen: Sequence[str], label: str) -> _Source:
    from medlink.kb.readers import open_reader
    from training.baselines import Dictionary, Trigrams

    names = Dictionary.read(open_reader(file).records())
    systems = {name: Trigrams(names).answer if name == "baseline-tfidf" else names.exact for name in chosen}
    return _Source(label or file.name.split(".")[0], None, systems, names.exact, lambda ids: names.ids & set(ids))


def _of_build(channels: dict[str, tuple[Channel, ...]], label: str, encoder: str) -> _Source:
    """Answer in this process from the active index build."""
    from app.serving import load_active_build
    from app.settings import Settings
    from medlink.corpora.ids import candidate_ids, spellings
    from medlink.types import LinkOptions, Mention
    from training.protocols import CandidateIds, as_names

    build = load_active_build(Settings())

    def ranker(chosen: tuple[Channel, ...]) -> "Ranker":
        def rank(texts: Sequence[str], k: int) -> list[list[frozenset[str]]]:
            results = build.linker.link([Mention(t) for t in texts], LinkOptions(top_k=k, channels=chosen))
            return [
                as_names(
                    CandidateIds(c.name.text, c.score, candidate_ids(c.concept.id, c.concept.codes))
                    for c in result.candidates
                )
                for result in results
            ]

        return rank

    def known(ids: Collection[str]) -> set[str]:
        def there(id_: str) -> bool:
            spelt = spellings(id_)
            codes = (s.split(":", 1) for s in spelt if ":" in s)
            return bool(build.snapshot.concepts(spelt)) or any(build.snapshot.coded(*code) for code in codes)

        return {id_ for id_ in ids if there(id_)}

    return _source(build.manifest, channels, ranker, known, label, encoder)


def _of_service(client: "Client", channels: dict[str, tuple[Channel, ...]], label: str, encoder: str) -> _Source:
    """Answer over HTTP, as any other client would be answered."""
    from medlink.corpora.ids import candidate_ids, spellings
    from medlink.types import Code
    from training.protocols import CandidateIds, as_names

    def ranker(chosen: tuple[Channel, ...]) -> "Ranker":
        def rank(texts: Sequence[str], k: int) -> list[list[frozenset[str]]]:
            # The protocol has split the composites itself.
            options = {"channels": list(chosen), "include": ["codes"], "composites": False}
            reply = client.link_bulk(texts, top_k=k, **options)
            return [
                as_names(
                    CandidateIds(
                        c["matched_name"], c["score"], candidate_ids(c["cui"], [Code(**i) for i in c["codes"]])
                    )
                    for c in result.get("candidates", ())
                )
                for result in reply["results"]
            ]

        return rank

    def known(ids: Collection[str]) -> set[str]:
        def there(id_: str) -> bool:
            concepts = (client.concept(spelt) for spelt in spellings(id_))
            # A retired id is answered too, but without a name.
            return any(concept is not None and concept["preferred_name"] for concept in concepts)

        return {id_ for id_ in ids if there(id_)}

    return _source(client.info()["index"], channels, ranker, known, label, encoder)


def _source(
    manifest: dict[str, Any],
    channels: dict[str, tuple[Channel, ...]],
    ranker: Callable[[tuple[Channel, ...]], "Ranker"],
    known: Callable[[Collection[str]], Collection[str]],
    label: str,
    encoder: str,
) -> _Source:
    return _Source(
        dictionary=label or "+".join(source["sab"] for source in manifest["sources"]),
        encoder=encoder or str(manifest["encoder"]["fingerprint"])[:12],
        systems={name: ranker(chosen) for name, chosen in channels.items()},
        exact=ranker(("exact",)),
        known=known,
    )


def _rows(task: "Task", asked: "Sequence[Question]", source: _Source, data: Path, top_k: int) -> list[dict[str, Any]]:
    """Score every system of a source on one corpus."""
    from training.evaluate import answerable, rank_all, score, subsets

    present = answerable(asked, source.known)
    members = subsets(asked, task, data, source.exact)
    rows: list[dict[str, Any]] = []
    for name, ranker in source.systems.items():
        encoder = source.encoder if "dense" in _CHANNELS.get(name, ()) else None
        rows += score(task, name, encoder, rank_all(asked, ranker, top_k), present, members)
    return rows


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table("corpus", "split", "dictionary", "subset", "system", title="accuracy, %")
    for column in ("n", "coverage", "acc@1", "95 %", "acc@5", "mrr"):
        table.add_column(column, justify="right")
    for row in rows:
        labels = [row[key] for key in ("corpus", "split", "dictionary", "subset", "system")]
        low, high = row["ci95"]
        figures = [f"{row['coverage']:.1f}", f"{row['acc@1']:.1f}", f"{low:.1f}-{high:.1f}"]
        table.add_row(*labels, str(row["n"]), *figures, f"{row['acc@5']:.1f}", f"{row['mrr']:.1f}")
    return table
