"""Files of mentions, CSV, TSV or JSON Lines, read and written in bounded memory."""

import csv
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from medlink.cli.progress import progress
from medlink.errors import SourceError, UnknownValueError

Row = dict[str, Any]
Answer = dict[str, Any]
Answers = Callable[[Sequence[object]], list[Answer]]

_CHUNK = 1000
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_FORMATS = [*_DELIMITERS, ".jsonl"]
_ADDED = ["cui", "curie", "preferred_name", "matched_name", "score", "probability", "status", "reason"]
# A cell may hold a whole note.
_LARGEST_CELL = 1 << 27
# What `surrogateescape` makes of bytes that are not UTF-8.
_UNDECODED = re.compile("[\udc80-\udcff]")


def link_file(source: Path, target: Path, column: str, answers: Answers) -> None:
    """Answer each row of a file into another one, which appears only when it is complete.

    Raises:
        UnknownValueError: An ending that names no format.
        SourceError: The file is missing or a line is not what the format says.
    """
    _check_source(source)
    if target.suffix.lower() not in _FORMATS:
        raise UnknownValueError("file format", target.suffix, _FORMATS)
    if target.is_dir() or not target.parent.is_dir():
        raise SourceError("cannot be written; name a file in a directory that exists", file=str(target))
    with _replacing(target) as handle, progress("mentions") as advance:
        columns, rows = _read(source)
        _check_column(column, columns, source)
        write = _writer(handle, target.suffix.lower(), columns)
        done = 0
        advance("link", done, 0)
        while chunk := list(islice(rows, _CHUNK)):
            for row, answer in zip(chunk, answers([_mention(row, column, source) for row in chunk]), strict=True):
                # `item` counts within what was asked at once.
                write(row, {**answer, "item": answer["item"] + done} if "item" in answer else answer)
            done += len(chunk)
            advance("link", done, 0)
        advance("link", done, done)


def read_mentions(source: Path, column: str) -> Iterator[tuple[str | None, object]]:
    """Yield the id, if there is a column of that name, and the text of each row of a file.

    Raises:
        UnknownValueError: An ending that names no format.
        SourceError: The file is missing or a line is not what the format says.
    """
    _check_source(source)
    columns, rows = _read(source)
    _check_column(column, columns, source)
    for row in rows:
        yield (str(row["id"]) if row.get("id") is not None else None), _mention(row, column, source)


def _check_source(source: Path) -> None:
    if source.suffix.lower() not in _FORMATS:
        raise UnknownValueError("file format", source.suffix, _FORMATS)
    if not source.is_file():
        raise SourceError("no such file", file=str(source))


def _check_column(column: str, columns: Sequence[str], source: Path) -> None:
    if column not in columns and source.suffix.lower() in _DELIMITERS:
        # Without a header the first row is a mention, so the columns are counted and not named.
        raise SourceError(f"none of the {len(columns)} columns is called {column!r}; see --column", file=str(source))


def _read(path: Path) -> tuple[list[str], Iterator[Row]]:
    """Return the columns of a table (those of the first object of JSON Lines) and its rows."""
    if path.suffix.lower() in _DELIMITERS:
        rows = _table_rows(path)
        return list(next(rows)), rows
    objects = _json_rows(path)
    first = next(objects, None)
    return list(first or ()), chain([first] if first is not None else [], objects)


def _table_rows(path: Path) -> Iterator[Row]:
    """Yield the header as a row of its own, then the rows; blank lines are none."""
    csv.field_size_limit(_LARGEST_CELL)
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as handle:
        # A quote that is never closed would else take in all lines that follow.
        reader = csv.reader(_decoded(handle, path), delimiter=_DELIMITERS[path.suffix.lower()], strict=True)
        begins = 1
        try:
            header = next(reader, [])
            if len(set(header)) < len(header):
                raise SourceError("two columns have the same name; rename one", file=str(path), line=1)
            yield dict.fromkeys(header)
            begins = reader.line_num + 1
            for cells in filter(None, reader):
                if len(cells) != len(header):
                    message = f"{len(cells)} columns, the header has {len(header)}"
                    raise SourceError(message, file=str(path), line=reader.line_num)
                yield dict(zip(header, cells, strict=True))
                begins = reader.line_num + 1
        except csv.Error as error:
            message = "a quote that does not end, or text after one that does, begins here or below"
            raise SourceError(message, file=str(path), line=begins) from error


def _decoded(handle: TextIO, path: Path) -> Iterator[str]:
    for number, line in enumerate(handle, start=1):
        if _UNDECODED.search(line):
            raise SourceError("not UTF-8", file=str(path), line=number)
        yield line


def _json_rows(path: Path) -> Iterator[Row]:
    with path.open("rb") as handle:
        for number, line in enumerate(handle, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise SourceError("not JSON", file=str(path), line=number) from error
            if not isinstance(row, dict):
                raise SourceError("not a JSON object", file=str(path), line=number)
            yield row


def _mention(row: Row, column: str, path: Path) -> object:
    if column not in row:
        raise SourceError(f"an object has no text under {column!r}; name another --column", file=str(path))
    return row[column]


def _writer(handle: TextIO, suffix: str, columns: Sequence[str]) -> Callable[[Row, Answer], None]:
    if suffix == ".jsonl":

        def write_line(row: Row, answer: Answer) -> None:
            handle.write(json.dumps({**row, "result": answer}, ensure_ascii=False) + "\n")

        return write_line
    # A column of the user's own that bears one of our names is kept under its name; ours gets a prefix.
    added = {name: f"medlink_{name}" if name in columns else name for name in _ADDED}
    table = csv.DictWriter(handle, [*columns, *added.values()], delimiter=_DELIMITERS[suffix], extrasaction="ignore")
    table.writeheader()

    def write(row: Row, answer: Answer) -> None:
        best: Answer = next(iter(answer.get("candidates", ())), {})
        facts = {**best, "status": answer.get("status", "error")}
        facts["reason"] = answer.get("reason") or answer.get("error", {}).get("detail")
        table.writerow({**row, **{ours: facts.get(name) for name, ours in added.items()}})

    return write


@contextmanager
def _replacing(target: Path) -> Iterator[TextIO]:
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        # Half of a character, which JSON can spell and UTF-8 cannot, is written as JSON spells it.
        with unfinished.open("w", encoding="utf-8", errors="backslashreplace", newline="") as handle:
            yield handle
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
