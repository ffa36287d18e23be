"""`medlink eval held-out`: names that training never saw, asked for among all the others."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medlink.cli.eval_sources import Selection, check_systems, encoders_by_label, over_names, runnable_baselines
from medlink.cli.eval_tables import print_tables
from training.baselines import BASELINES

if TYPE_CHECKING:
    from training.pairset import PairSet
    from training.synonyms import SynonymTest


def held_out(
    pairs: Annotated[Path, typer.Argument(help="Directory of `medlink train pairs --held-out-percent`.")],
    source: Annotated[
        str, typer.Option(help="Terminology: a release, `open` or `open-plus`; the store if left out.")
    ] = "",
    sabs: Annotated[
        str, typer.Option(help="Ask for names of these sources only, e.g. MONDO,CL, among all names of their concepts.")
    ] = "",
    queries_per_source: Annotated[int, typer.Option(min=1, help="Most names to ask for.")] = 1000,
    encoder_dir: Annotated[
        list[str] | None, typer.Option(metavar="LABEL=DIR", help="Encoder to run; may be given several times.")
    ] = None,
    system: Annotated[list[str] | None, typer.Option(help=f"{', '.join(BASELINES)}; both by default.")] = None,
    dictionary: Annotated[str, typer.Option(help="What rows call the names; the source by default.")] = "",
    top_k: Annotated[int, typer.Option(min=5, max=100, help="How far down an answer is read.")] = 20,
    output: Annotated[Path | None, typer.Option(help="Write the rows as JSON, e.g. to benchmarks/results/.")] = None,
) -> None:
    """Ask encoders and baselines for the names that pairs hid from training, by source.

    All systems find the same names: those of the terminology that are not hidden. A hidden name is answered right by
    any name of a concept that bears it. Encoders are to be trained on these pairs, or on none.
    """
    from training.evaluate import write_results

    chosen = tuple(dict.fromkeys(runnable_baselines() if system is None else system))
    check_systems(chosen, list(BASELINES))
    selection = Selection(baselines=chosen, encoders=encoders_by_label(encoder_dir or []))
    test = _test(_read(pairs), source, sabs, queries_per_source)
    label = dictionary or Path(source or "store").name.split(".")[0] + (f":{sabs}" if sabs else "")
    rows = _rows(test, selection, label, top_k)
    print_tables(rows)
    if output:
        write_results(output, rows, command=["medlink", *sys.argv[1:]], final=False)


def _read(pairs: Path) -> "PairSet":
    from medlink.errors import EncoderError

    try:
        from training.pairset import read_pairs
    except ModuleNotFoundError as error:
        raise EncoderError(f"{error.name} is not installed; install medlink with its `train` extra") from None
    return read_pairs(pairs)


def _test(pairs: "PairSet", source: str, sabs: str, count: int) -> "SynonymTest":
    import numpy as np

    from medlink.cli.kb import split_list
    from medlink.cli.train import open_terminology
    from training.names import NameRule
    from training.synonyms import concepts_of_records, split_of_pairs, synonym_test

    of = pairs.manifest["recipe"]["rule"]
    rule = NameRule(**{**of, "languages": of["languages"] and tuple(of["languages"])})
    with open_terminology(source, rule) as terminology:
        concepts = concepts_of_records(terminology.records())
    split = split_of_pairs(pairs.manifest, lambda: pairs.texts(np.arange(pairs.text_count)), concepts, rule)
    if split.fingerprint != pairs.manifest["held_out"]["fingerprint"]:
        typer.echo("not the terminology of the pairs: only names that the pairs do not show are asked for", err=True)
    vocabularies = split_list("--sabs", sabs) if sabs else []
    return synonym_test(concepts, split, rule, vocabularies=vocabularies, per_vocabulary=count)


def _rows(test: "SynonymTest", chosen: Selection, label: str, top_k: int) -> list[dict[str, Any]]:
    from training.evaluate import Task, answerable, score

    source = over_names(test.dictionary, chosen, label)
    rows: list[dict[str, Any]] = []
    for system in source.systems("dictionary", {}):
        for vocabulary, asked in test.questions.items():
            task = Task(f"heldout-synonyms:{vocabulary}", "held-out", label, "held-out")
            ranks = system.ranks(asked, top_k)
            present = answerable(asked, source.known)
            rows += score(task, system.name, system.encoder, ranks, present, {"all": [True] * len(asked)})
    return sorted(rows, key=lambda row: str(row["corpus"]))
