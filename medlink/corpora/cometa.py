"""Reads COMETA (Basaldella 2020): lay terms in sentences of Reddit, each with two concepts of SNOMED CT."""

import csv
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Literal

from medlink.corpora.ids import snomed_gold
from medlink.corpora.lines import read_lines
from medlink.corpora.records import CorpusReport, LabeledDocument, LabeledMention
from medlink.errors import SourceError

Level = Literal["general", "specific"]

_GOLD_COLUMNS: dict[Level, str] = {"general": "General SNOMED ID", "specific": "Specific SNOMED ID"}


def read_cometa(path: Path, level: Level, *, report: CorpusReport | None = None) -> Iterator[LabeledDocument]:
    """Stream the rows of a COMETA split, each a document: the example sentence with the term in it.

    The columns are found by the names in the header, separated by tabs (as published, although the files are called
    `.csv`) or commas, with the usual double quotes. The term is looked for in the example as a whole word first and
    whatever its case; where the example lacks it, it stands at 0 with no length and counts as a mismatch.

    Args:
        path: The file, UTF-8.
        level: Which concept is the right one: what the term means by itself, or what it means in the example.
        report: Filled while the file is read.

    Raises:
        SourceError: The file is missing, a column is, or a row is damaged; names the file and the line.
    """
    counts = report if report is not None else CorpusReport()
    for row in _rows(path, ("ID", "Term", "Example", _GOLD_COLUMNS[level])):
        term = row["Term"].strip()
        if not term:
            counts.blank += 1
            continue
        id_ = f"cometa:{row['ID'].strip()}"
        start, end = _place(term, row["Example"])
        mention = LabeledMention(id_, start, end, term, "", snomed_gold(row[_GOLD_COLUMNS[level]]))
        document = LabeledDocument(id_, row["Example"], (mention,))
        counts.count(document)
        yield document


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Yield the cells of each row by column."""
    lines = (f"{line}\n" for _, line in read_lines(path))
    header = next(lines, "")
    reader = csv.reader(chain([header], lines), delimiter="\t" if "\t" in header else ",", strict=True)
    try:
        names = next(reader, [])
        for column in columns:
            if column not in names:
                raise SourceError(f"the header has no column {column!r}", file=str(path), line=1)
        for row in reader:
            if len(row) != len(names):
                message = f"expected {len(names)} columns, found {len(row)}"
                raise SourceError(message, file=str(path), line=reader.line_num)
            yield dict(zip(names, row, strict=True))
    except csv.Error:
        raise SourceError("not a table", file=str(path), line=reader.line_num) from None


def _place(term: str, example: str) -> tuple[int, int]:
    exact = re.escape(term)
    word = rf"(?<!\w){exact}(?!\w)"
    for pattern, flags in ((word, re.NOFLAG), (word, re.IGNORECASE), (exact, re.IGNORECASE)):
        if found := re.search(pattern, example, flags):
            return found.span()
    return 0, 0
