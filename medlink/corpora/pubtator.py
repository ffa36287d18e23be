"""Reads annotated documents in PubTator format: NCBI disease, BC5CDR, BioRED and MedMentions all come in it."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from medlink.corpora.ids import gold_parts
from medlink.corpora.lines import read_lines
from medlink.corpora.records import CorpusReport, LabeledDocument, LabeledMention
from medlink.errors import SourceError

_RELATION_COLUMNS = 4
_MENTION_COLUMNS = 6


@dataclass(slots=True)
class _Block:
    """The document that is being read."""

    id: str
    passages: list[str]
    mentions: list[LabeledMention] = field(default_factory=list)
    relations: int = 0
    other_types: int = 0
    trimmed: int = 0

    def finish(self) -> LabeledDocument:
        return LabeledDocument(self.id, "\n".join(self.passages), tuple(self.mentions))


def read_pubtator(
    path: Path,
    *,
    types: Collection[str] | None = None,
    ids: Collection[str] | None = None,
    report: CorpusReport | None = None,
) -> Iterator[LabeledDocument]:
    """Stream the documents of a PubTator file in its order.

    The text of a document is its title, a line break and its abstract. Relation lines are left out and counted. A
    document that the file repeats is yielded each time.

    Args:
        path: The file, UTF-8, plain or gzipped.
        types: Keep only mentions of these types; all by default.
        ids: Keep and count only these documents; all by default.
        report: Filled while the file is read.

    Raises:
        SourceError: The file is missing or a line is not PubTator; names the file and the line.
    """
    counts = report if report is not None else CorpusReport()
    seen: set[str] = set()
    for block in _blocks(path, types):
        if ids is not None and block.id not in ids:
            continue
        if block.id in seen:
            counts.repeated_documents.append(block.id)
        seen.add(block.id)
        counts.relations += block.relations
        counts.other_types += block.other_types
        counts.trimmed += block.trimmed
        document = block.finish()
        counts.count(document)
        yield document


def _blocks(path: Path, types: Collection[str] | None) -> Iterator[_Block]:
    block: _Block | None = None
    for number, line in read_lines(path):
        passage = _passage(line)
        if passage and passage[1] == "t":
            if block:
                yield block
            block = _Block(passage[0], [passage[2]])
        elif line.strip():
            if block is None:
                raise SourceError("this line comes before the title of a document", file=str(path), line=number)
            try:
                _extend(block, passage, line, types)
            except ValueError as error:
                raise SourceError(str(error), file=str(path), line=number) from None
    if block:
        yield block


def _passage(line: str) -> tuple[str, str, str] | None:
    """Split `PMID|t|text`; the text may hold bars of its own."""
    document_id, _, rest = line.partition("|")
    kind, bar, text = rest.partition("|")
    return (document_id, kind, text) if bar and kind in {"t", "a"} and "\t" not in document_id else None


def _extend(block: _Block, passage: tuple[str, str, str] | None, line: str, types: Collection[str] | None) -> None:
    """Add one line to the document; a ValueError says what is wrong with it."""
    columns = line.split("\t")
    if (passage[0] if passage else columns[0]) != block.id:
        raise ValueError("this line belongs to another document than the title above it")
    if passage:
        if block.mentions:
            raise ValueError("text after the mentions of its document")
        block.passages.append(passage[2])
        return
    if len(columns) >= _RELATION_COLUMNS and not _is_offset(columns[1]):
        block.relations += 1
        return
    mention = _mention(block, columns)
    if types is not None and mention.type not in types:
        block.other_types += 1
        return
    block.mentions.append(mention)


def _is_offset(column: str) -> bool:
    return column.isascii() and column.isdigit()


def _mention(block: _Block, columns: list[str]) -> LabeledMention:
    if len(columns) < _MENTION_COLUMNS or not _is_offset(columns[2]):
        raise ValueError(f"a mention needs {_MENTION_COLUMNS} columns: document, start, end, text, type, ids")
    start, end, text = int(columns[1]), int(columns[2]), columns[3]
    if start > end:
        raise ValueError("a mention ends before it starts")
    stripped = text.rstrip()
    if stripped != text:
        block.trimmed += 1
        end = min(end, start + len(stripped))
    parts = columns[_MENTION_COLUMNS] if len(columns) > _MENTION_COLUMNS else ""
    return LabeledMention(
        document_id=block.id,
        start=start,
        end=end,
        text=stripped,
        type=columns[4],
        gold=gold_parts(columns[5]),
        part_texts=tuple(part.strip() for part in parts.split("|")) if parts.strip() else (),
    )
