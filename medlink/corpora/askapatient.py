"""Reads AskAPatient (Limsopatham 2016): phrases of patients with concepts of SNOMED CT and AMT, in ten folds."""

from collections.abc import Iterator
from pathlib import Path

from medlink.corpora.ids import snomed_gold
from medlink.corpora.lines import read_lines
from medlink.corpora.records import CorpusReport, LabeledDocument
from medlink.errors import SourceError

FOLDS = range(10)

_COLUMNS = 3


def read_askapatient(path: Path, *, report: CorpusReport | None = None) -> Iterator[LabeledDocument]:
    """Stream the phrases of a file of a fold, each in a document of its own.

    A line has three columns, separated by tabs and without a header: concept id, concept name, phrase.

    Args:
        path: The file, Latin-1.
        report: Filled while the file is read.

    Raises:
        SourceError: The file is missing or a line is of another form; names the file and the line.
    """
    counts = report if report is not None else CorpusReport()
    for number, line in read_lines(path, "latin-1"):
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) != _COLUMNS:
            message = f"a line has {_COLUMNS} columns: concept id, concept name, phrase"
            raise SourceError(message, file=str(path), line=number)
        id_, _, phrase = columns
        if not phrase:
            counts.blank += 1
            continue
        document = LabeledDocument.of_mention(f"{path.stem}:{number}", phrase, snomed_gold(id_))
        counts.count(document)
        yield document
