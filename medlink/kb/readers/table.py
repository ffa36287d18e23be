"""A terminology as a CSV or TSV table, one name a row."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, cast

from medlink.kb.readers.files import Release
from medlink.kb.readers.report import ReadReport, undeclared_sources
from medlink.kb.records import (
    BroaderRecord,
    CodeRecord,
    DefinitionRecord,
    NameRecord,
    Record,
    SemanticTypeRecord,
    Suppress,
)

_REQUIRED = ("id", "name")
_OPTIONAL = (
    "sab",
    "tty",
    "language",
    "code",
    "suppress",
    "semantic_types",
    "codes",
    "definition",
    "broader",
)
_SUPPRESS = ("N", "O", "Y", "E")
_LARGEST_CELL = 131_072
_LAST_RANK = 2**31 - 1


class TableReader:
    """Reads `.csv` or `.tsv` with a header row, plain or compressed.

    A CSV has the usual double quotes; a TSV has none, so that a name may begin with one. An id or a name on two
    lines is an error: a quote that nobody closed would else swallow rows. Names are ranked as they come: the first
    row of a concept that is not suppressed is preferred. A table says nothing of its sources, so they come last,
    under the unknown licence level.

    Args:
        path: The file, or a directory or zip that holds one.
        format: csv or tsv; by default what the file's name ends in.
        sab: Source of rows that name none.
    """

    def __init__(
        self, path: str | Path, format: Literal["csv", "tsv"] | None = None, *, sab: str | None = None
    ) -> None:
        self.report = ReadReport()
        self._release = Release(path, self.report)
        self._name = self._release.only(".csv", ".tsv")
        self._tabs = self._name.lower().endswith(".tsv") if format is None else format == "tsv"
        self._sab = sab or ""

    def records(self) -> Iterator[Record]:
        """Yield row by row the name, then what else the row says that the row before did not.

        Raises:
            SourceError: The file is damaged, or a row is not what the header says; names file and line.
            UnknownValueError: The header has a column that is not known.
        """
        self.report.start(self._release.size(self._name))
        sabs: set[str] = set()
        concept_id = ""
        said: set[Record] = set()
        for rank, (line, row) in enumerate(self._rows()):
            if row["id"] != concept_id:
                concept_id, said = row["id"], set()
            if not row["name"].strip():
                self.report.skip(self._name, "blank name")
                continue
            name = self._name_record(row, line, min(rank, _LAST_RANK))
            sabs.add(name.sab)
            yield name
            for record in self._facts(row, name.sab, line):
                if record not in said:
                    said.add(record)
                    yield record
        yield from undeclared_sources(sabs, ())

    def _rows(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield (line that the row ends on, cells by column)."""
        # The limit belongs to the whole process, and a file of mentions may need another one.
        csv.field_size_limit(_LARGEST_CELL)
        text = (f"{line}\n" for _, line in self._release.lines(self._name))
        if self._tabs:
            reader = csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
        else:
            reader = csv.reader(text, strict=True)
        try:
            header = next(reader, [])
            self._check_header(header)
            for row in reader:
                if not row:
                    self.report.skip(self._name, "blank line")
                    continue
                if len(row) != len(header):
                    message = f"expected {len(header)} columns, found {len(row)}"
                    raise self._release.error(self._name, message, reader.line_num)
                self.report.rows[self._name] += 1
                yield (
                    reader.line_num,
                    {c: cell if c == "name" else cell.strip() for c, cell in zip(header, row, strict=True)},
                )
        except csv.Error as error:
            raise self._release.error(self._name, f"not a table: {error}", reader.line_num) from error

    def _check_header(self, header: list[str]) -> None:
        for column in header:
            if column not in (*_REQUIRED, *_OPTIONAL):
                valid = ", ".join((*_REQUIRED, *_OPTIONAL))
                raise self._release.error(self._name, f"unknown column {column!r}; valid: {valid}", 1)
        for column in _REQUIRED:
            if column not in header:
                raise self._release.error(self._name, f"the header has no column {column!r}", 1)
        if len(set(header)) != len(header):
            raise self._release.error(self._name, "the header names a column twice", 1)

    def _name_record(self, row: dict[str, str], line: int, rank: int) -> NameRecord:
        sab = row.get("sab") or self._sab
        language = row.get("language") or "ENG"
        suppress = row.get("suppress") or "N"
        if not row["id"]:
            raise self._release.error(self._name, "blank id", line)
        if "\n" in row["id"] or "\n" in row["name"]:
            raise self._release.error(self._name, "a name on two lines; close or double the quote before it", line)
        if not sab.strip():
            raise self._release.error(self._name, "no source: fill the column sab, or say which it is", line)
        if suppress not in _SUPPRESS:
            raise self._release.error(self._name, "suppress must be N, O, Y or E", line)
        return NameRecord(
            row["id"],
            row["name"],
            sab,
            row.get("tty", ""),
            language,
            row.get("code", ""),
            cast(Suppress, suppress),
            rank,
        )

    def _facts(self, row: dict[str, str], sab: str, line: int) -> Iterator[Record]:
        concept_id = row["id"]
        for tui, name in self._pairs(row, "semantic_types", line):
            yield SemanticTypeRecord(concept_id, tui, name)
        for code_sab, code in self._pairs(row, "codes", line):
            yield CodeRecord(concept_id, code_sab, code)
        if definition := row.get("definition", ""):
            yield DefinitionRecord(concept_id, sab, definition)
        for broader_id in filter(None, map(str.strip, row.get("broader", "").split(";"))):
            yield BroaderRecord(concept_id, broader_id, sab)

    def _pairs(self, row: dict[str, str], column: str, line: int) -> Iterator[tuple[str, str]]:
        """Yield the two halves, split at the first colon, of each part of a cell."""
        for part in filter(None, map(str.strip, row.get(column, "").split(";"))):
            left, _, right = map(str.strip, part.partition(":"))
            if not left or not right:
                raise self._release.error(self._name, f"a part of {column} is not two halves and a colon", line)
            yield left, right
