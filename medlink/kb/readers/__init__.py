"""Readers of terminology releases: each format in, the records of `medlink.kb.records` out."""

from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from medlink.errors import SourceError, UnknownValueError
from medlink.kb.readers.files import Release
from medlink.kb.readers.jsonl import JsonlReader
from medlink.kb.readers.obo import OboReader
from medlink.kb.readers.report import Reader, ReadReport
from medlink.kb.readers.rrf import RrfReader
from medlink.kb.readers.table import TableReader


def _csv_reader(path: str | Path, *, sab: str | None = None) -> TableReader:
    return TableReader(path, "csv", sab=sab)


def _tsv_reader(path: str | Path, *, sab: str | None = None) -> TableReader:
    return TableReader(path, "tsv", sab=sab)


_READERS: dict[str, Callable[..., Reader]] = {
    "csv": _csv_reader,
    "jsonl": JsonlReader,
    "obo": OboReader,
    "rrf": RrfReader,
    "tsv": _tsv_reader,
}
_FORMAT_OF = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".obo": "obo", ".rrf": "rrf", ".tsv": "tsv"}


def open_reader(path: str | Path, *, format: str | None = None, **options: Any) -> Reader:  # noqa: ANN401 - per format
    """Return the reader of a release.

    Args:
        path: Directory, zip or file, plain or compressed.
        format: One of rrf, obo, jsonl, csv, tsv; guessed from the names of the files when None.
        options: Keyword options of that reader, e.g. `languages` of `RrfReader`.

    Raises:
        SourceError: There is nothing at the path, or nothing that says which format it is.
        UnknownValueError: No such format, or no such option of this format.
    """
    chosen = format or _guess(Path(path))
    if chosen not in _READERS:
        raise UnknownValueError("format", chosen, sorted(_READERS))
    reader = _READERS[chosen]
    valid = [p.name for p in signature(reader).parameters.values() if p.kind is Parameter.KEYWORD_ONLY]
    for option in options:
        if option not in valid:
            raise UnknownValueError(f"option of format {chosen}", option, valid)
    return reader(path, **options)


def _guess(path: Path) -> str:
    release = Release(path, ReadReport())
    if "MRCONSO.RRF" in release.names:
        return "rrf"
    found = {_FORMAT_OF[suffix] for name in release.names if (suffix := Path(name).suffix.lower()) in _FORMAT_OF}
    if len(found) != 1:
        known = ", ".join(_FORMAT_OF)
        raise SourceError(f"cannot tell the format from the file names ({known}); say which", file=str(path))
    return found.pop()
