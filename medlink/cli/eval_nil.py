"""`medlink eval nil`: what the active index build refuses when concepts are not there, and how true it is of itself."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medlink.cli.eval_tables import print_nil_table

if TYPE_CHECKING:
    from app.settings import Settings
    from index.store import IndexBuild
    from medlink.corpora.records import LabeledDocument
    from medlink.kb.curation import CurationState


def nil(
    corpus: Annotated[list[str], typer.Option(help="A corpus of the catalogue; may be given several times.")],
    data: Annotated[Path, typer.Option(help="Folder that holds the corpora.")],
    split: Annotated[str, typer.Option(help="train, dev or test; test asks for --final.")] = "dev",
    protocol: Annotated[
        str, typer.Option(help="strict: a mention as written, in its document; dictionary: its plain text.")
    ] = "strict",
    hide_share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the gold concepts to hide; 0 where the gold is absent anyway.")
    ] = 0.3,
    seed: Annotated[int, typer.Option(min=0, help="Which concepts are hidden.")] = 0,
    hide_homonyms: Annotated[
        bool, typer.Option("--hide-homonyms", help="Take the names of hidden concepts from all other concepts too.")
    ] = False,
    threshold: Annotated[
        list[float] | None,
        typer.Option(min=0, max=1, help="Refuse below this probability; may be given several times, else the build's."),
    ] = None,
    dictionary: Annotated[str, typer.Option(help="What rows call the dictionary; its sources by default.")] = "",
    encoder: Annotated[str, typer.Option(help="What rows call the build's encoder; its fingerprint by default.")] = "",
    final: Annotated[bool, typer.Option("--final", help="Score a test split; choices are made on dev.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the rows as JSON, e.g. to benchmarks/results/.")] = None,
) -> None:
    """Link a split with all concepts of the active build, and again with some of the gold concepts hidden.

    NIL is the positive class: a mention whose concept is hidden, was never there, or which has none; `n_nil_named`
    of them are still a name of another concept, which no linker can tell from the hidden one. `kept` is the
    accuracy on the other mentions beside that of the same answers with nothing refused. The calibration error is over
    ten bins of equal numbers of best candidates, refused ones among them; `medlink plot calibration` draws the bins.
    Mentions whose gold is a CUI are left out where they are the name of a concept without one.
    """
    from app.settings import Settings
    from medlink.corpora.catalogue import read_split
    from training.evaluate import write_results

    if split == "test" and not final:
        raise typer.BadParameter("a test split is scored once, at the end: add --final, or use --split dev")
    # Read before the build is opened, so that a misspelt corpus fails at once.
    documents = {name: read_split(name, split, data) for name in corpus}
    settings = Settings()
    build, corrections = _opened(settings)
    label = dictionary or "+".join(source["sab"] for source in build.manifest["sources"])
    tests = _Tests(build, corrections, settings.max_context_chars, protocol, hide_share, seed, hide_homonyms)
    rows: list[dict[str, Any]] = []
    for name, read in documents.items():
        about = {"corpus": name, "split": split, "dictionary": label, "protocol": protocol, "system": "fused"}
        about["encoder"] = encoder or str(build.manifest["encoder"]["fingerprint"])[:12]
        rows += [{**about, **row} for row in tests.rows(name, read, threshold or [None])]
    print_nil_table(rows)
    if output:
        write_results(output, rows, command=["medlink", *sys.argv[1:]], final=split == "test")


def _opened(settings: "Settings") -> "tuple[IndexBuild, CurationState]":
    from app.serving import load_active_build
    from medlink.kb.curation import Curations
    from medlink.kb.database import open_engine

    build = load_active_build(settings)
    engine = open_engine(settings.database_url)
    corrections = Curations(engine).in_force()
    engine.dispose()
    return build, corrections


@dataclass(frozen=True, slots=True)
class _Tests:
    """Runs the test of a split over a build, whole and with concepts hidden."""

    build: "IndexBuild"
    corrections: "CurationState"
    longest_context: int
    protocol: str
    share: float
    seed: int
    homonyms: bool

    def rows(
        self, name: str, documents: "Sequence[LabeledDocument]", thresholds: Sequence[float | None]
    ) -> list[dict[str, Any]]:
        """Return the rows of a split."""
        from medlink.cli.progress import progress
        from training import nil
        from training.hidden import choose, concepts_of, without

        asked = nil.questions_of(documents, self.protocol, self.build)
        gold = concepts_of(self.build, {id_ for question in asked for id_ in question.mention.gold_ids})
        hidden = choose(gold, self.share, self.seed)
        builds = {0.0: (self.build, 0)}
        if self.share:
            left = without(self.build, self.corrections, hidden, homonyms=self.homonyms)
            builds[self.share] = left, len(hidden)
        rows: list[dict[str, Any]] = []
        with progress("mentions") as advance:
            for share, (build, count) in builds.items():
                advanced = partial(advance, f"{name}, {share:.0%} hidden")
                test = nil.run(build, asked, self.protocol, longest_context=self.longest_context, advance=advanced)
                about = {"hidden": round(100 * share, 2), "seed": self.seed, "hidden_concepts": count}
                about["hidden_homonyms"] = self.homonyms and share > 0
                rows += [{**about, **row} for row in nil.rows(test, thresholds)]
        return rows
