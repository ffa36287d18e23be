"""Corpus files, plain or gzipped, as streams of lines."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from medlink.errors import SourceError


def present(path: Path) -> Path:
    """Return the path, or that of its gzipped copy where only that is there."""
    gzipped = path.with_name(f"{path.name}.gz")
    return gzipped if gzipped.exists() and not path.exists() else path


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line without its end); only line feeds end a line, so that offsets stay right.

    Args:
        path: The file; a name in `.gz` is unpacked.
        encoding: How the file is encoded; a byte order mark of UTF-8 is dropped.

    Raises:
        SourceError: The file is missing, damaged or of another encoding; names the file and the line.
    """
    number = 0
    try:
        with _open(path) as file:
            for number, raw in enumerate(file, 1):
                line = raw.decode("utf-8-sig" if number == 1 and encoding == "utf-8" else encoding)
                yield number, line.removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise SourceError(f"not {encoding.upper()}", file=str(path), line=number) from None
    except (EOFError, zlib.error) as error:
        raise SourceError("damaged or cut short; fetch it again", file=str(path), line=number) from error
    except OSError as error:
        raise SourceError(error.strerror or "cannot be read", file=str(path)) from error


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")
