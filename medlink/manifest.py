"""What built an artefact: a JSON file beside it that names every other file by hash and size."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
_CHUNK = 1 << 20


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def fingerprint(facts: Mapping[str, Any]) -> str:
    """Return the SHA-256 of JSON facts in canonical form, in hex."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def describe_files(directory: Path) -> dict[str, dict[str, Any]]:
    """Return sha256 and bytes of every file under a directory except its own manifest, by relative path."""
    paths = sorted(p for p in directory.rglob("*") if p.is_file() and p != directory / MANIFEST)
    return {p.relative_to(directory).as_posix(): {"sha256": sha256(p), "bytes": p.stat().st_size} for p in paths}


def find_damage(directory: Path, files: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what differs from the manifest's file list, one sentence a file; empty when nothing does."""
    problems = []
    for name, expected in files.items():
        path = directory / name
        if not path.is_file() or path.is_symlink():
            problems.append(f"{name} is missing")
        elif path.stat().st_size != expected["bytes"]:
            problems.append(f"{name} has {path.stat().st_size} bytes, the manifest says {expected['bytes']}")
        elif sha256(path) != expected["sha256"]:
            problems.append(f"{name} differs from its hash in the manifest")
    present = {p.relative_to(directory).as_posix() for p in directory.rglob("*") if p.is_file()}
    problems += [f"{name} is not in the manifest" for name in sorted(present - set(files) - {MANIFEST})]
    return problems


def write_manifest(directory: Path, facts: Mapping[str, Any]) -> None:
    """Write the manifest with a seal over its own content, and make it durable."""
    with (directory / MANIFEST).open("wb") as handle:
        handle.write(_sealed(facts))
        handle.flush()
        os.fsync(handle.fileno())


def read_manifest(directory: Path) -> dict[str, Any]:
    """Read the manifest.

    Raises:
        ValueError: It is missing, is not JSON, or its seal does not fit; the text says which.
    """
    try:
        content = (directory / MANIFEST).read_bytes()
        facts = json.loads(content.decode("utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{MANIFEST} is missing") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ValueError(f"{MANIFEST} is not JSON") from None
    if not isinstance(facts, dict) or facts.pop("seal", None) is None or _sealed(facts) != content:
        raise ValueError(f"{MANIFEST} does not fit its own seal")
    return facts


def _sealed(facts: Mapping[str, Any]) -> bytes:
    sealed = {**facts, "seal": fingerprint(facts)}
    return (json.dumps(sealed, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
