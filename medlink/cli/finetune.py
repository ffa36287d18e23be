"""`medlink train finetune`: an encoder learns from the mentions of annotated corpora; needs the train extra."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from medlink.corpora.records import LabeledDocument
    from training.finetune_recipe import FinetuneRecipe
    from training.mentions import Mentions, Names


def finetune(
    recipe: Annotated[Path, typer.Argument(help="A TOML file as training/recipes/finetune.toml.")],
    checkpoint: Annotated[str, typer.Argument(help="Local Hugging Face directory, or 'minilm' for the packaged one.")],
    output: Annotated[Path, typer.Argument(help="Directory of the run; a run that was stopped there goes on.")],
    corpus: Annotated[list[str], typer.Option(help="What to learn from, as corpus:split; several times for several.")],
    data: Annotated[Path, typer.Option(help="Folder that holds the corpora.")],
    names: Annotated[
        str, typer.Option(help="The terminology: a release, `open` or `open-plus`; `store` for the SQL store.")
    ] = "store",
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="A split that will be scored: its documents are dropped. All dev and test files by default."),
    ] = None,
    dev: Annotated[str, typer.Option(help="Measure on this split after each epoch, as corpus:split.")] = "",
    typos: Annotated[
        Path | None, typer.Option(help="File of `typo||correction` lines; mentions are corrected by it.")
    ] = None,
    languages: Annotated[str, typer.Option(help="Languages of the names: ENG,DUT or all.")] = "ENG",
) -> None:
    """Fine-tune an encoder on mentions, each with names of its concept and the names easiest to take for them."""
    from medlink.cli.train import train_extra

    with train_extra():
        from training.finetune import FinetuneData
        from training.finetune import finetune as run
    from medlink.cli.progress import training_progress
    from training.checkpoint import read_checkpoint
    from training.finetune_recipe import read_finetune_recipe
    from training.mentions import scored_splits
    from training.protocols import read_typos

    chosen = read_finetune_recipe(recipe)
    corrections = read_typos(typos) if typos else {}
    documents = _read(corpus, data)
    measured = _read([dev], data) if dev else []
    scored = scored_splits(data) if exclude is None else [split_of(text) for text in exclude]
    # What is measured must not be learnt from, whatever else is scored.
    scored += [split_of(dev)] if dev and split_of(dev) not in scored else []
    kept, dropped = _without(scored, documents, data)
    base = read_checkpoint(checkpoint, chosen.max_length)
    found, terminology = _names(names, languages, base.uncased, chosen)
    sources = {"corpora": corpus, "scored": scored, "dropped": dropped, "terminology": terminology}
    learnt = _mentions("learn from", kept, found, corrections)
    asked = _mentions("measure on", measured, found, corrections) if dev else None
    with training_progress(chosen.batch_mentions, stage="finetune", unit="mentions") as advance:
        done = run(chosen, base, FinetuneData(found, learnt, asked, sources), output, progress=advance)
    typer.echo(f"{done} is done; `medlink train export {done} DIRECTORY --pooling {chosen.pooling}` exports it")


def _without(
    scored: Sequence[tuple[str, str]], documents: "Sequence[LabeledDocument]", data: Path
) -> "tuple[list[LabeledDocument], int]":
    """Return the documents that no scored split holds, and how many others there were; say so, too."""
    from medlink.corpora.leakage import LeakageReport, drop_documents, split_ids

    report = LeakageReport()
    kept = list(drop_documents(documents, split_ids(scored, data), report=report))
    typer.echo(f"{report.documents:>12,}  documents")
    typer.echo(f"{report.dropped:>12,}  dropped: in one of {len(scored)} scored splits")
    for name, count in report.by_split.items():
        if count:
            typer.echo(f"{count:>12,}  dropped: in {name}")
    return kept, report.dropped


def _names(source: str, languages: str, lowercase: bool, recipe: "FinetuneRecipe") -> "tuple[Names, Mapping[str, Any]]":
    """Return the names of a terminology, and what it was made of."""
    from medlink.cli.kb import split_list
    from medlink.cli.train import open_terminology
    from training.mentions import Names
    from training.names import NameRule

    chosen = None if languages == "all" else tuple(split_list("--languages", languages))
    rule = NameRule(chosen, lowercase=lowercase)
    with open_terminology("" if source == "store" else source, rule) as terminology:
        names = Names.read(
            terminology.records(), rule, held_out_percent=recipe.held_out_percent, seed=recipe.held_out_seed
        )
        typer.echo(f"{len(names):>12,}  names to find")
        return names, dict(terminology.facts())


def _mentions(
    what: str, documents: "Sequence[LabeledDocument]", names: "Names", typos: Mapping[str, str]
) -> "Mentions":
    """Return what mentions teach, and say which were left out."""
    from training.mentions import MentionReport, Mentions

    report = MentionReport()
    mentions = Mentions.read(documents, names, typos=typos, report=report)
    typer.echo(f"{report.mentions:>12,}  mentions to {what}")
    typer.echo(f"{report.texts:>12,}  distinct texts of those that serve")
    for reason, count in (
        ("labeled with no concept", report.without_concept),
        ("composite", report.composite),
        (f"of concepts that the terminology lacks ({len(report.unknown_ids):,} ids)", report.unknown),
        ("blank", report.blank),
        ("held out", report.held_out),
    ):
        typer.echo(f"{count:>12,}  left out: {reason}")
    return mentions


def _read(splits: Sequence[str], data: Path) -> "list[LabeledDocument]":
    from medlink.corpora.catalogue import read_split

    return [document for text in splits for document in read_split(*split_of(text), data)]


def split_of(text: str) -> tuple[str, str]:
    """Return the corpus and the split that `corpus:split` names.

    Raises:
        typer.BadParameter: It is of another form.
    """
    name, _, split = text.partition(":")
    if not name or not split:
        raise typer.BadParameter(f"{text!r} is not of the form corpus:split, e.g. ncbi-disease:train")
    return name, split
