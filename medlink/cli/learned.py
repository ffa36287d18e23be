"""`medlink train fusion | calibrate`: the models that rank candidates and judge them; needs the train extra."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from index.store import IndexBuild
    from medlink.linking.fusion import FusionModel
    from training.fusion import Lesson
    from training.measured import Measuring, Sample

_TRAIN = ("ncbi-disease:train", "bc5cdr-disease:train", "biored-disease:train")
_DEV = ("ncbi-disease:dev", "bc5cdr-disease:dev", "biored-disease:dev")

Data = Annotated[Path, typer.Option(help="Folder that holds the corpora.")]
Names = Annotated[
    str, typer.Option(help="Dictionary: a release, `open` or `open-plus`; the active index build if left out.")
]
Typos = Annotated[
    Path | None, typer.Option(help="File of `typo||correction` lines; mentions of ncbi-disease are corrected by it.")
]


def fusion(
    data: Data,
    corpus: Annotated[
        list[str] | None,
        typer.Option(help="What to learn from, as corpus:split, or corpus:split@NAMES over another dictionary."),
    ] = None,
    dev: Annotated[list[str] | None, typer.Option(help="What to report on, in the same form.")] = None,
    names: Names = "",
    typos: Typos = None,
    output: Annotated[Path | None, typer.Option(help="Model file to write; as shipped if left out.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the figures on dev as JSON.")] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also train on each corpus alone, and without each kind of feature.")
    ] = False,
) -> None:
    """Learn from annotated mentions which candidate is meant; documents of dev and test splits are left out."""
    from app.settings import Settings
    from medlink.linking.fusion import FILE, FusionModel
    from training.fusion import annotated_by, fit

    lessons = _lessons(corpus or _TRAIN, data, names, typos)
    annotated, _ = annotated_by(lessons)
    dictionaries = _Dictionaries(annotated)
    _say("measuring candidates")
    samples = dictionaries.samples(lessons)
    facts = {
        "dictionaries": sorted({dictionaries.label(lesson.names) for lesson in lessons}),
        "corpora": [lesson.corpus for lesson in lessons],
    }
    stored = fit(samples, annotated, facts)
    path = output or Settings().models / FILE
    _write(path, stored)
    _say(f"{path} is written: learnt from {stored['trained_on']['queries']:,} queries")
    if report:
        models = {"fused": (FusionModel(stored), dictionaries)}
        if compare:
            models |= _compared(dictionaries, lessons, facts)
        _report(report, models, _lessons(dev or _DEV, data, names, typos, leave_out=False), data)


class _Dictionaries:
    """Index builds by the names that they are made of, and what measures mentions over them.

    Args:
        annotated: How often annotators chose a concept, by its ids.
    """

    def __init__(self, annotated: Mapping[str, int]) -> None:
        self._annotated = annotated
        self._builds: dict[str, IndexBuild] = {}
        self._measuring: dict[str, Measuring] = {}

    def build(self, names: str) -> "IndexBuild":
        if names not in self._builds:
            self._builds[names] = _build(names)
        return self._builds[names]

    def measuring(self, names: str) -> "Measuring":
        from training.measured import Measuring

        if names not in self._measuring:
            self._measuring[names] = Measuring(self.build(names), self._annotated)
        return self._measuring[names]

    def label(self, names: str) -> str:
        return "+".join(source["sab"] for source in self.build(names).manifest["sources"])

    def recounted(self, annotated: Mapping[str, int]) -> "_Dictionaries":
        other = _Dictionaries(annotated)
        other._builds = self._builds
        other._measuring = {names: measuring.recounted(annotated) for names, measuring in self._measuring.items()}
        return other

    def samples(self, lessons: "Sequence[Lesson]") -> "list[Sample]":
        from training.fusion import annotated_by, samples_of

        _, own = annotated_by(lessons)
        return [s for lesson in lessons for s in samples_of(self.measuring(lesson.names), [lesson], own)]


def calibrate(
    data: Data,
    corpus: Annotated[
        list[str] | None, typer.Option(help="What to fit on, as corpus:split; concepts of it are hidden in turn.")
    ] = None,
    outside: Annotated[
        list[str] | None, typer.Option(help="Mentions of all kinds, mostly of concepts that the build lacks.")
    ] = None,
    texts: Annotated[
        list[str] | None, typer.Option(help="Texts that say how common words are, as corpus:split.")
    ] = None,
    names: Names = "",
    typos: Typos = None,
    models: Annotated[Path | None, typer.Option(help="Directory of the fusion model; as shipped if left out.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the cross-fitted figures as JSON.")] = None,
) -> None:
    """Learn how probable it is that a candidate is right; a part of the concepts is hidden, so that some are not."""
    from app.settings import Settings
    from medlink.linking.calibration import FILE as CALIBRATION
    from medlink.linking.fusion import FILE, FusionModel
    from training.calibrate import fit, gather_judged, plain_words
    from training.evaluate import write_results

    directory = models or Settings().models
    model = FusionModel.read(directory / FILE)
    build = _build(names)
    plain = plain_words(d for lesson in _lessons(texts or _TRAIN, data) for d in lesson.documents)
    fitted = _lessons(corpus or _DEV, data, names, typos, leave_out=False)
    beside = _lessons(outside if outside is not None else ("medmentions:train",), data, names, leave_out=False)
    _say("measuring candidates, with and without a part of the concepts")
    judged = gather_judged(build, model, plain, fitted, beside)
    facts = {
        "dictionary": "+".join(source["sab"] for source in build.manifest["sources"]),
        "corpora": [lesson.corpus for lesson in (*fitted, *beside)],
    }
    stored, rows = fit(judged, plain, model.fingerprint, facts)
    _write(directory / CALIBRATION, stored)
    for row in rows:
        _say("  ".join(f"{key} {value}" for key, value in row.items()))
    _say(f"{directory / CALIBRATION} is written; below {stored['threshold']} a mention is NIL")
    if report:
        write_results(report, rows, command=["medlink", *sys.argv[1:]], final=False)


def _build(names: str) -> "IndexBuild":
    from app.serving import load_active_build
    from app.settings import Settings

    if not names:
        return load_active_build(Settings())
    from medlink.cli.eval_sources import scratch_builds

    return scratch_builds(names, models=None)[0].open()


def _lessons(
    splits: Sequence[str], data: Path, names: str = "", typos: Path | None = None, *, leave_out: bool = True
) -> "list[Lesson]":
    from medlink.cli.finetune import split_of
    from medlink.corpora.catalogue import read_split
    from medlink.corpora.leakage import drop_documents, split_ids
    from training.fusion import Lesson
    from training.mentions import scored_splits
    from training.protocols import read_typos

    scored = split_ids(scored_splits(data), data) if leave_out else {}
    corrections = read_typos(typos) if typos else None
    lessons = []
    for text in splits:
        what, _, other = text.partition("@")
        name, split = split_of(what)
        documents = list(drop_documents(read_split(name, split, data), scored))
        lessons.append(Lesson(what, documents, corrections if name == "ncbi-disease" else None, other or names))
        _say(f"{len(documents):>8,}  documents of {what}")
    return lessons


def _compared(
    whole: _Dictionaries, lessons: "Sequence[Lesson]", facts: Mapping[str, Any]
) -> "dict[str, tuple[FusionModel, _Dictionaries]]":
    """Return models of each corpus alone, and models that do not look at one kind of feature."""
    from medlink.linking.fusion import FusionModel
    from training.fusion import FEATURE_GROUPS, annotated_by, fit

    models = {}
    for lesson in lessons:
        _say(f"learning from {lesson.corpus} alone")
        annotated, _ = annotated_by([lesson])
        alone = whole.recounted(annotated)
        model = FusionModel(fit(alone.samples([lesson]), annotated, facts))
        models[f"fused, learnt from {lesson.corpus.partition(':')[0]}"] = model, alone
    annotated, _ = annotated_by(lessons)
    samples = whole.samples(lessons)
    for group, features in FEATURE_GROUPS.items():
        _say(f"learning without {group}")
        models[f"fused without {group}"] = FusionModel(fit(samples, annotated, facts, without=features)), whole
    return models


def _report(
    path: Path,
    models: "Mapping[str, tuple[FusionModel, _Dictionaries]]",
    lessons: "Sequence[Lesson]",
    data: Path,
) -> None:
    from medlink.cli.eval_tables import print_tables
    from medlink.cli.finetune import split_of
    from training.evaluate import Task, write_results
    from training.fusion_report import FusionSource, Variant
    from training.scoring import corpus_test, score_systems

    rows: list[dict[str, Any]] = []
    for lesson in lessons:
        name, split = split_of(lesson.corpus)
        test = corpus_test(Task(name, split, ""), data, lesson.typos)
        variants = [Variant(label, model, known.measuring(lesson.names)) for label, (model, known) in models.items()]
        dictionaries = models["fused"][1]
        source = FusionSource(dictionaries.build(lesson.names), variants, dictionaries.label(lesson.names))
        rows += score_systems(test, source, 20)
    print_tables(rows)
    write_results(path, rows, command=["medlink", *sys.argv[1:]], final=False)


def _write(path: Path, stored: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(stored, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


def _say(line: str) -> None:
    typer.echo(line)
