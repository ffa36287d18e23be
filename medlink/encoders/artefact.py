"""An encoder directory: what its manifest must say, and that nothing in it has changed since it was written."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from medlink.errors import EncoderError
from medlink.manifest import find_damage, read_manifest

FORMAT = 1
_EVERY_KIND: dict[str, type] = {"format": int, "kind": str, "files": dict}


def read_kind(directory: Path) -> str:
    """Return the kind of encoder that a directory says it holds; its files are not looked at.

    Raises:
        EncoderError: The manifest is missing, broken or of another format.
    """
    return str(_read(directory)["kind"])


def read_facts(directory: Path, kind: str, fields: Mapping[str, type]) -> dict[str, Any]:
    """Return the manifest of an encoder directory after comparing every file with it.

    Args:
        directory: The encoder directory.
        kind: What the manifest's `kind` must be.
        fields: The keys that a manifest of this kind has beyond those of every encoder, with their types.

    Raises:
        EncoderError: The manifest is missing, broken, of another format or kind, or a file differs from it.
    """
    facts = _read(directory)
    if facts["kind"] != kind:
        raise damaged(directory, f"its kind is {facts['kind']!r}, not {kind!r}")
    check_fields(directory, facts, {**_EVERY_KIND, **fields}, "manifest")
    for name, expected in facts["files"].items():
        check_fields(directory, expected, {"sha256": str, "bytes": int}, f"file {name}")
    problems = find_damage(directory, facts["files"])
    if problems:
        raise damaged(directory, "; ".join(problems))
    return facts


def check_fields(directory: Path, found: object, expected: Mapping[str, type], where: str) -> None:
    """Refuse a JSON object that lacks a key, has one more, or holds another type than expected.

    Raises:
        EncoderError: It does; the text names the keys.
    """
    if not isinstance(found, Mapping):
        raise damaged(directory, f"its {where} is not an object")
    wrong = sorted(set(found) ^ set(expected)) + sorted(
        key for key in set(found) & set(expected) if not _is(found[key], expected[key])
    )
    if wrong:
        raise damaged(directory, f"missing, unknown or mistyped in its {where}: {', '.join(wrong)}")


def damaged(directory: Path, problem: str) -> EncoderError:
    """Return the error for a directory that cannot be used as an encoder."""
    return EncoderError(f"encoder {directory}: {problem}; restore it or run `medlink train export` again")


@contextmanager
def new_directory(output: Path) -> Iterator[Path]:
    """Give a temporary directory that becomes `output` if the block ends well, and vanishes if it does not.

    Raises:
        EncoderError: `output` exists and is not an empty directory.
    """
    if output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise EncoderError(f"{output} exists; remove it or choose another directory")
    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    try:
        yield unfinished
        unfinished.chmod(0o755)  # mkdtemp gives 0o700, and the server may run as somebody else
        for path in (*unfinished.iterdir(), unfinished):
            _sync(path)
        unfinished.rename(output)
        _sync(output.parent)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _read(directory: Path) -> dict[str, Any]:
    try:
        facts = read_manifest(directory)
    except ValueError as error:
        raise damaged(directory, str(error)) from None
    except OSError as error:
        raise damaged(directory, f"its manifest cannot be read ({error.strerror})") from None
    for key, kind in _EVERY_KIND.items():
        if not _is(facts.get(key), kind):
            raise damaged(directory, f"its manifest has no valid {key!r}")
    if facts["format"] != FORMAT:
        raise damaged(directory, f"its format is {facts['format']}, this version reads {FORMAT}")
    return facts


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is(value: object, kind: type) -> bool:
    # JSON true is an int to Python.
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
