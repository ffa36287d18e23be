"""Reads GSC+ (Groza 2015, Lobo 2017): abstracts with phenotypes of the Human Phenotype Ontology."""

from collections.abc import Iterator
from pathlib import Path

from medlink.corpora.ids import normal_id
from medlink.corpora.lines import read_lines
from medlink.corpora.records import CorpusReport, LabeledDocument, LabeledMention
from medlink.errors import SourceError

_COLUMNS = 4


def read_gsc(path: Path, *, report: CorpusReport | None = None) -> Iterator[LabeledDocument]:
    """Stream the abstracts of a GSC+ file: blocks of a PMID, a line of text and one line a mention.

    A blank line ends a block. Mentions may lie inside others. Ids are as annotated, so some are alternative ids of
    today's ontology: see `medlink.corpora.successors`.

    Args:
        path: The file, UTF-8.
        report: Filled while the file is read.

    Raises:
        SourceError: The file is missing or a block is of another form; names the file and the line.
    """
    counts = report if report is not None else CorpusReport()
    for block in _blocks(path):
        (number, id_), *rest = block
        if not rest or not id_.isdecimal():
            raise SourceError("a block begins with a PMID and a line of text", file=str(path), line=number)
        mentions = tuple(_mention(id_, line, path, number) for number, line in rest[1:])
        document = LabeledDocument(id_, rest[0][1], mentions)
        counts.count(document)
        yield document


def _blocks(path: Path) -> Iterator[list[tuple[int, str]]]:
    """Yield the numbered lines between blank lines."""
    block: list[tuple[int, str]] = []
    for number, line in read_lines(path):
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _mention(document_id: str, line: str, path: Path, number: int) -> LabeledMention:
    columns = line.split("\t")
    if len(columns) != _COLUMNS or not (columns[0].isdecimal() and columns[1].isdecimal()):
        message = f"a mention has {_COLUMNS} columns: start, end, text, id"
        raise SourceError(message, file=str(path), line=number)
    start, end, text, id_ = columns
    return LabeledMention(document_id, int(start), int(end), text, "", ((normal_id(id_),),))
