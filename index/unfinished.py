"""Where a build is written until it is whole: locked by its builder, cleared away when the builder is gone."""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

_PREFIX = ".tmp-"
_LOCK = ".lock"
# Earlier versions named the builder's process instead of holding a lock.
_OF_EARLIER_VERSIONS = re.compile(r"\.tmp-\d{8}T\d{9}Z-\d+")


@contextmanager
def unfinished(store: Path, build_id: str) -> Iterator[Path]:
    """Give a new directory for a build; what is still there at the end is removed.

    The lock beside it tells other builders, in other containers too, that this one is alive: the kernel gives it up
    with the process, however that ends, and a process id means nothing in another container.
    """
    store.mkdir(parents=True, exist_ok=True)
    sweep(store)
    # The letter tells it from the directories of earlier versions, which end in a number.
    directory = store / f"{_PREFIX}{build_id}-x{token_hex(4)}"
    lock = directory.with_name(directory.name + _LOCK)
    with _locked(lock):
        try:
            directory.mkdir()
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            lock.unlink(missing_ok=True)


def sweep(store: Path) -> list[str]:
    """Remove what builders that are gone left in a store, and return the names of the directories."""
    swept = []
    for lock in sorted(store.glob(f"{_PREFIX}*{_LOCK}")):
        directory = lock.with_name(lock.name.removesuffix(_LOCK))
        with _taken_over(lock) as abandoned:
            if abandoned:
                # A builder that has made the file and not yet locked it has no directory either, and is alive.
                swept += [directory.name] if directory.is_dir() else []
                shutil.rmtree(directory, ignore_errors=True)
                # Last: a directory without its lock would be found by nobody.
                lock.unlink(missing_ok=True)
    for directory in sorted(store.glob(f"{_PREFIX}*")):
        has_lock = directory.with_name(directory.name + _LOCK).exists()
        if directory.is_dir() and not has_lock and _OF_EARLIER_VERSIONS.fullmatch(directory.name):
            shutil.rmtree(directory, ignore_errors=True)
            swept.append(directory.name)
    return swept


def is_being_written(store: Path) -> bool:
    """Say whether a builder is at work, once what dead ones left is swept."""
    return any(store.glob(f"{_PREFIX}*{_LOCK}"))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    while True:
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if _is_at(handle, path):
            break
        os.close(handle)  # swept between the two calls
    try:
        yield
    finally:
        os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def _taken_over(lock: Path) -> Iterator[bool]:
    """Say whether a builder is gone, and keep others from taking its lock meanwhile."""
    try:
        handle = os.open(lock, os.O_RDWR)
    except OSError:  # gone by now, or not ours to remove
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        yield False
        return
    try:
        yield True
    finally:
        os.close(handle)
