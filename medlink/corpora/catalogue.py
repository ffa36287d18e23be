"""The public corpora by name: which file holds which split, who reads it, and which mention types count."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from medlink.corpora.askapatient import FOLDS, read_askapatient
from medlink.corpora.cometa import read_cometa
from medlink.corpora.gsc import read_gsc
from medlink.corpora.lines import present
from medlink.corpora.medmentions import read_medmentions, read_pmids
from medlink.corpora.pubtator import read_pubtator
from medlink.corpora.records import CorpusReport, LabeledDocument
from medlink.corpora.xlbel import LANGUAGES, read_xlbel
from medlink.errors import UnknownValueError

_BEFORE = {"train": (), "dev": ("train",), "test": ("train", "dev")}
_MEDMENTIONS_PMIDS = {"train": "trng", "dev": "dev", "test": "test"}


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus: files of its splits relative to a data folder, and the mention types that belong to it.

    `types` is None where all types do. Corpora of one `collection` are mentions of the same documents.
    """

    name: str
    files: dict[str, str]
    read: "Reader"
    types: frozenset[str] | None = None
    collection: str = ""

    def file(self, split: str, data: Path) -> Path:
        """Return the file of a split under `data`, or its gzipped copy if only that is there.

        Raises:
            UnknownValueError: The corpus has no such split.
        """
        self._check(split)
        return present(data / self.files[split])

    def before(self, split: str) -> tuple[str, ...]:
        """Return the splits of the corpus that one may learn from when this one is scored.

        Raises:
            UnknownValueError: The corpus has no such split.
        """
        self._check(split)
        return tuple(earlier for earlier in _BEFORE[split] if earlier in self.files)

    def _check(self, split: str) -> None:
        if split not in self.files:
            raise UnknownValueError(f"split of {self.name}", split, sorted(self.files))


Reader = Callable[[Corpus, str, Path, CorpusReport | None], Iterator[LabeledDocument]]
"""Streams a split of a corpus from a data folder and fills the report."""


class _ReadsFile(Protocol):
    """A reader whose split is one file and that file has nothing else."""

    def __call__(self, path: Path, *, report: CorpusReport | None) -> Iterator[LabeledDocument]: ...


def corpora() -> list[Corpus]:
    """Return every corpus."""
    return list(_CORPORA.values())


def corpus(name: str) -> Corpus:
    """Return the corpus of that name.

    Raises:
        UnknownValueError: There is none; the text lists those there are.
    """
    if name not in _CORPORA:
        raise UnknownValueError("corpus", name, sorted(_CORPORA))
    return _CORPORA[name]


def read_split(name: str, split: str, data: Path, report: CorpusReport | None = None) -> list[LabeledDocument]:
    """Read a split of a corpus.

    Args:
        name: A corpus of the catalogue.
        split: train, dev or test, of those the corpus has.
        data: Folder of the corpora.
        report: Filled with the counts of the split.

    Raises:
        UnknownValueError: There is no such corpus or split.
        SourceError: A file is missing or damaged.
    """
    chosen = corpus(name)
    return list(chosen.read(chosen, split, data, report))


def _of_one_file(read: _ReadsFile) -> Reader:
    def read_file(chosen: Corpus, split: str, data: Path, report: CorpusReport | None) -> Iterator[LabeledDocument]:
        return read(chosen.file(split, data), report=report)

    return read_file


def _pubtator(chosen: Corpus, split: str, data: Path, report: CorpusReport | None) -> Iterator[LabeledDocument]:
    return read_pubtator(chosen.file(split, data), types=chosen.types, report=report)


def _medmentions(chosen: Corpus, split: str, data: Path, report: CorpusReport | None) -> Iterator[LabeledDocument]:
    file = chosen.file(split, data)
    contexts = file.with_name(f"st21pv_context_{split}.tar.gz")
    return read_medmentions(file, split, contexts if contexts.exists() else None, report=report)


def _medmentions_pubtator(
    chosen: Corpus, split: str, data: Path, report: CorpusReport | None
) -> Iterator[LabeledDocument]:
    file = chosen.file(split, data)
    pmids = read_pmids(file.with_name(f"corpus_pubtator_pmids_{_MEDMENTIONS_PMIDS[split]}.txt"))
    return read_pubtator(file, ids=pmids, report=report)


def _splits(pattern: str, **parts: str) -> dict[str, str]:
    """Return the file of train, dev and test; `{}` is what the corpus calls the split."""
    return {split: pattern.format(parts.get(split, split)) for split in _BEFORE}


_NCBI = _splits("ncbi-disease/NCBI{}set_corpus.txt", dev="develop")
_BC5CDR = _splits("bc5cdr/CDR_{}Set.PubTator.txt", train="Training", dev="Development", test="Test")
_BIORED = _splits("biored/{}.PubTator", train="Train", dev="Dev", test="Test")
_GSC_PLUS = {split: f"gsc/GSCplus_{split}_gold.tsv" for split in ("dev", "test")}

_GENERAL = _of_one_file(partial(read_cometa, level="general"))
_SPECIFIC = _of_one_file(partial(read_cometa, level="specific"))

_CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus("ncbi-disease", _NCBI, _pubtator),
        Corpus("bc5cdr-disease", _BC5CDR, _pubtator, frozenset({"Disease"}), "bc5cdr"),
        Corpus("bc5cdr-chemical", _BC5CDR, _pubtator, frozenset({"Chemical"}), "bc5cdr"),
        Corpus("biored-disease", _BIORED, _pubtator, frozenset({"DiseaseOrPhenotypicFeature"}), "biored"),
        Corpus("biored-chemical", _BIORED, _pubtator, frozenset({"ChemicalEntity"}), "biored"),
        Corpus("medmentions", _splits("medmentions/st21pv_mentions.tsv"), _medmentions),
        Corpus("medmentions-pubtator", _splits("medmentions/corpus_pubtator.txt"), _medmentions_pubtator),
        Corpus("gsc-plus", _GSC_PLUS, _of_one_file(read_gsc)),
        *(
            Corpus(
                f"xl-bel-{code}",
                {"test": f"xlbel/v1.0/{code}_1k_test_query_with_context.txt"},
                _of_one_file(read_xlbel),
            )
            for code in LANGUAGES
        ),
        *(
            Corpus(f"xl-bel-v0.0-{code}", {"test": f"xlbel/v0.0/{code}_1k_test_query.txt"}, _of_one_file(read_xlbel))
            for code in LANGUAGES
        ),
        Corpus("cometa-general", _splits("cometa/splits/stratified_general/{}.csv"), _GENERAL),
        Corpus("cometa-specific", _splits("cometa/splits/stratified_specific/{}.csv"), _SPECIFIC),
        Corpus("cometa-general-zeroshot", _splits("cometa/splits/zeroshot_general/{}.csv"), _GENERAL),
        Corpus("cometa-specific-zeroshot", _splits("cometa/splits/zeroshot_specific/{}.csv"), _SPECIFIC),
        *(
            Corpus(
                f"askapatient-fold-{fold}",
                _splits(f"askapatient/AskAPatient.fold-{fold}.{{}}.txt", dev="validation"),
                _of_one_file(read_askapatient),
            )
            for fold in FOLDS
        ),
    )
}
