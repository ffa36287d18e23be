"""The public corpora by name: which file holds which split, and which mention types count."""

from dataclasses import dataclass
from pathlib import Path

from medlink.errors import UnknownValueError

_NCBI = {
    "train": "ncbi-disease/NCBItrainset_corpus.txt",
    "dev": "ncbi-disease/NCBIdevelopset_corpus.txt",
    "test": "ncbi-disease/NCBItestset_corpus.txt",
}
_BC5CDR = {
    "train": "bc5cdr/CDR_TrainingSet.PubTator.txt",
    "dev": "bc5cdr/CDR_DevelopmentSet.PubTator.txt",
    "test": "bc5cdr/CDR_TestSet.PubTator.txt",
}
_BIORED = {
    "train": "biored/Train.PubTator",
    "dev": "biored/Dev.PubTator",
    "test": "biored/Test.PubTator",
}


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus: files of its splits relative to a data folder, and the mention types that belong to it.

    `types` is None where all types do.
    """

    name: str
    files: dict[str, str]
    types: frozenset[str] | None = None

    def file(self, split: str, data: Path) -> Path:
        """Return the file of a split under `data`.

        Raises:
            UnknownValueError: The corpus has no such split.
        """
        if split not in self.files:
            raise UnknownValueError(f"split of {self.name}", split, sorted(self.files))
        return data / self.files[split]


_CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus("ncbi-disease", _NCBI),
        Corpus("bc5cdr-disease", _BC5CDR, frozenset({"Disease"})),
        Corpus("bc5cdr-chemical", _BC5CDR, frozenset({"Chemical"})),
        Corpus("biored-disease", _BIORED, frozenset({"DiseaseOrPhenotypicFeature"})),
        Corpus("biored-chemical", _BIORED, frozenset({"ChemicalEntity"})),
    )
}


def corpus(name: str) -> Corpus:
    """Return the corpus of that name.

    Raises:
        UnknownValueError: There is none; the text lists those there are.
    """
    if name not in _CORPORA:
        raise UnknownValueError("corpus", name, sorted(_CORPORA))
    return _CORPORA[name]
