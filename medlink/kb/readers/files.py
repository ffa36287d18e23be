"""The files of a terminology release, plain, compressed or zipped, as streams of lines."""

import gzip
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import zstandard

from medlink.errors import SourceError
from medlink.kb.readers.report import ReadReport

_BLOCK = 1 << 18
# zstd can unfold a block several hundred times, so it gets smaller bites.
_ZSTD_BLOCK = 1 << 14
_CODECS = (".gz", ".zst")
_DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError, zipfile.BadZipFile)
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class _File:
    """One file on disk or inside a zip (`member`); `size` is what it takes on disk, `shown` its name in errors."""

    shown: str
    path: Path
    size: int
    member: str | None = None
    offset: int = 0

    @property
    def codec(self) -> str:
        """The suffix of its compression, or nothing."""
        suffix = Path(self.shown).suffix
        return suffix if suffix in _CODECS else ""


class Release:
    r"""Files by base name, at any depth of a directory or zip, with `.gz` and `.zst` looked through.

    Lines end at `\n` only, so a name may hold any other separator that Unicode knows.
    """

    def __init__(self, path: str | Path, report: ReadReport) -> None:
        self.path = Path(path)
        self._report = report
        self._files: dict[str, list[_File]] = {}
        for file in self._list():
            name = Path(file.shown).name.removesuffix(file.codec)
            self._files.setdefault(name, []).append(file)

    @property
    def names(self) -> list[str]:
        """Base names of all files, without the suffix of a compression."""
        return sorted(self._files)

    def find(self, name: str) -> bool:
        """Say whether there is such a file.

        Raises:
            SourceError: There are several, and nothing says which one is meant.
        """
        found = self._files.get(name, [])
        if len(found) > 1:
            places = ", ".join(file.shown for file in found)
            raise SourceError(f"found more than once ({places}); point at one release", file=name)
        return bool(found)

    def only(self, *suffixes: str) -> str:
        """Return the name of the one file with such a suffix; a path to a single file is taken as it is.

        Raises:
            SourceError: There is none, or more than one.
        """
        found = [name for name in self.names if name.lower().endswith(suffixes)]
        if self.path.is_file() and len(self._files) == 1:
            found = self.names
        if len(found) != 1:
            raise SourceError(
                f"{len(found)} files end in {' or '.join(suffixes)}; point at the one to read", file=str(self.path)
            )
        self.find(found[0])
        return found[0]

    def size(self, name: str) -> int:
        """Return the bytes that a file takes on disk, 0 if there is no such file."""
        return self._files[name][0].size if self.find(name) else 0

    def error(self, name: str, message: str, line: int | None = None) -> SourceError:
        """Return the error to raise about a file, under the name that the user knows it by."""
        return SourceError(message, file=self._files[name][0].shown, line=line)

    def lines(self, name: str) -> Iterator[tuple[int, str]]:
        """Yield (line number from 1, line without its end) of a file.

        Raises:
            SourceError: There is no such file, it is damaged or cut short, or a line is not UTF-8 or holds a NUL.
        """
        number = 1
        for block in self._blocks(name):
            try:
                text = block.decode("utf-8")
            except UnicodeDecodeError as error:
                line = number + block.count(b"\n", 0, error.start)
                raise self.error(name, "not valid UTF-8; convert the file", line) from error
            if "\0" in text:
                line = number + text.count("\n", 0, text.index("\0"))
                raise self.error(name, "holds a NUL character; the file is damaged", line)
            if number == 1:
                text = text.removeprefix(_BOM)
            lines = text.replace("\r\n", "\n")[:-1].split("\n")
            yield from enumerate(lines, number)
            number += len(lines)

    def _blocks(self, name: str) -> Iterator[bytes]:
        """Yield the content in pieces that end where a line ends, and count the bytes read on disk."""
        if not self.find(name):
            raise SourceError(f"not found in {self.path}", file=name)
        file = self._files[name][0]
        before, rest, line = self._report.bytes_read, b"", 1
        try:
            with self._open(file) as (raw, blocks):
                for block in blocks:
                    self._report.bytes_read = before + min(max(raw.tell() - file.offset, 0), file.size)
                    whole, end, tail = block.rpartition(b"\n")
                    if end:
                        line += whole.count(b"\n") + 1
                        yield rest + whole + end
                        rest = tail
                    else:
                        rest += tail
        except _DAMAGED as error:
            raise self.error(name, f"damaged or cut short ({error}); fetch it again", line) from error
        except NotImplementedError as error:
            raise self.error(name, "packed in a way that cannot be read here; unpack the zip") from error
        self._report.bytes_read = before + file.size
        if rest:
            yield rest + b"\n"

    @contextmanager
    def _open(self, file: _File) -> Iterator[tuple[IO[bytes], Iterator[bytes]]]:
        """Open the handle on disk, for its position, and the unpacked content above it."""
        with ExitStack() as stack:
            raw = stack.enter_context(file.path.open("rb"))
            source: IO[bytes] = raw
            if file.member is not None:
                archive = stack.enter_context(zipfile.ZipFile(raw))
                source = stack.enter_context(archive.open(file.member))
            if file.codec == ".zst":
                yield raw, _unzstd(source)
            else:
                plain = stack.enter_context(gzip.open(source)) if file.codec == ".gz" else source
                yield raw, iter(partial(plain.read, _BLOCK), b"")

    def _list(self) -> Iterator[_File]:
        if self.path.is_dir():
            for folder, folders, names in os.walk(self.path):
                folders.sort()
                for path in filter(Path.is_file, (Path(folder) / name for name in sorted(names))):
                    yield _File(path.relative_to(self.path).as_posix(), path, path.stat().st_size)
        elif not self.path.is_file():
            raise SourceError("no such file or directory", file=str(self.path))
        elif self.path.suffix.lower() == ".zip":
            yield from self._list_zip()
        else:
            yield _File(self.path.name, self.path, self.path.stat().st_size)

    def _list_zip(self) -> Iterator[_File]:
        try:
            with zipfile.ZipFile(self.path) as archive:
                members = [info for info in archive.infolist() if not info.is_dir()]
        except _DAMAGED as error:
            raise SourceError(f"not a zip that can be read ({error})", file=str(self.path)) from error
        for info in members:
            if info.flag_bits & 1:
                raise SourceError("the zip asks for a password; unpack it first", file=str(self.path))
            shown = f"{self.path.name}/{info.filename}"
            yield _File(shown, self.path, info.compress_size, info.filename, info.header_offset)


def _unzstd(source: IO[bytes]) -> Iterator[bytes]:
    """Unpack zstd frames; the library's own stream reader takes a truncated frame for the end of the file."""
    frame = None
    while packed := source.read(_ZSTD_BLOCK):
        while packed:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            yield frame.decompress(packed)
            packed = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError("the last zstd frame is not complete")
