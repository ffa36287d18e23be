"""Files of mentions, CSV, TSV or JSON Lines, read and written in bounded memory."""

import csv
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from medlink.cli.progress import progress
from medlink.errors import SourceError, UnknownValueError

Row = dict[str, Any]
Answer = dict[str, Any]
Answers = Callable[[Sequence[str]], list[Answer]]

_CHUNK = 1000
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_FORMATS = [*_DELIMITERS, ".jsonl"]
_ADDED = ["cui", "curie", "preferred_name", "matched_name", "score", "probability", "status", "reason"]
# A cell may hold a whole note.
_LARGEST_CELL = 1 << 27


def link_file(source: Path, target: Path, column: str, answers: Answers) -> None:
    """Answer each row of a file into another one, which appears only when it is complete.

    Raises:
        UnknownValueError: An ending that names no format, or a column that the file lacks.
        SourceError: The file is missing or a line is not what the format says.
    """
    for path in (source, target):
        if path.suffix not in _FORMATS:
            raise UnknownValueError("file format", path.suffix, _FORMATS)
    if not source.is_file():
        raise SourceError("no such file", file=str(source))
    with _replacing(target) as handle, progress("mentions") as advance:
        columns, rows = _read(source)
        if column not in columns and source.suffix in _DELIMITERS:
            raise UnknownValueError("column", column, columns)
        write = _writer(handle, target.suffix, columns)
        done = 0
        while chunk := list(islice(rows, _CHUNK)):
            for row, answer in zip(chunk, answers([_text(row, column, source) for row in chunk]), strict=True):
                write(row, answer)
            done += len(chunk)
            advance("link", done, 0)
        advance("link", done, done)


def _read(path: Path) -> tuple[list[str], Iterator[Row]]:
    """Return the columns of a table (those of the first object of JSON Lines) and its rows."""
    if path.suffix in _DELIMITERS:
        rows = _table_rows(path)
        return list(next(rows)), rows
    objects = _json_rows(path)
    first = next(objects, None)
    return list(first or ()), chain([first] if first is not None else [], objects)


def _table_rows(path: Path) -> Iterator[Row]:
    """Yield the header as a row of its own, then the rows."""
    csv.field_size_limit(_LARGEST_CELL)
    with path.open(encoding="utf-8-sig", newline="") as handle:
        reader = csv.reader(handle, delimiter=_DELIMITERS[path.suffix])
        try:
            header = next(reader, [])
            yield dict.fromkeys(header)
            for cells in reader:
                if len(cells) != len(header):
                    message = f"{len(cells)} columns, the header has {len(header)}"
                    raise SourceError(message, file=str(path), line=reader.line_num)
                yield dict(zip(header, cells, strict=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise SourceError(
                f"not readable as UTF-8 {path.suffix}", file=str(path), line=reader.line_num + 1
            ) from error


def _json_rows(path: Path) -> Iterator[Row]:
    with path.open("rb") as handle:
        for number, line in enumerate(handle, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise SourceError("not JSON", file=str(path), line=number) from error
            if not isinstance(row, dict):
                raise SourceError("not a JSON object", file=str(path), line=number)
            yield row


def _text(row: Row, column: str, path: Path) -> str:
    value = row.get(column)
    if not isinstance(value, str):
        raise SourceError(f"an object has no text under {column!r}; name another --column", file=str(path))
    return value


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
        with unfinished.open("w", encoding="utf-8", newline="") as handle:
            yield handle
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
