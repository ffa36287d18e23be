"""On a full disk a load or a build ends with a message, what was there stays, and the next one works."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from index.store import BuildStore
from medlink.encoders.hashing import HashingEncoder
from medlink.kb.database import open_engine
from medlink.kb.repository import Repository

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of five megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    try:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=5m", "tmpfs", str(disk)], capture_output=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no program to mount with")
    if made.returncode:
        pytest.skip("only root may mount a small disk, and not in every container")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.fixture
def medlink(small_disk: Path, tmp_path: Path) -> Run:
    """Runs a command as from a shell, with its store and its builds on the small disk."""
    HashingEncoder(dim=32).save(tmp_path / "encoder")
    (tmp_path / "models").mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEDLINK_")} | {
        "MEDLINK_DATA_DIR": str(small_disk / "var"),
        "MEDLINK_ENCODER_DIR": str(tmp_path / "encoder"),
        "MEDLINK_MODELS_DIR": str(tmp_path / "models"),
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "medlink.cli", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def table(tmp_path: Path) -> Callable[[int], str]:
    """Writes a table of so many names and returns its path."""

    def write(names: int) -> str:
        path = tmp_path / f"{names}.csv"
        path.write_text("id,name,sab\n" + "".join(f"C{n:07},name {n},OURS\n" for n in range(names)))
        return str(path)

    return write


def test_a_load_that_does_not_fit_is_undone_and_a_later_one_works(medlink, small_disk, table):
    assert medlink("kb", "load", table(2), "--name", "ours").returncode == 0

    failed = medlink("kb", "load", table(60_000), "--name", "ours")
    held = _names(small_disk)
    again = medlink("kb", "load", table(3), "--name", "ours")

    assert failed.returncode == 1
    assert "medlink: load failed and was undone: database or disk is full" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert (held, again.returncode, _names(small_disk)) == (2, 0, 3)


def _names(disk: Path) -> int:
    engine = open_engine(f"sqlite:///{disk / 'var' / 'medlink.sqlite'}")
    count = Repository(engine).concept_count()
    engine.dispose()
    return count


def test_a_build_that_does_not_fit_leaves_nothing_and_a_later_one_works(medlink, small_disk, table):
    medlink("kb", "load", table(2), "--name", "ours")
    filling = small_disk / "others"
    filling.write_bytes(bytes(2_000_000))

    failed = medlink("index", "build")
    builds = small_disk / "var" / "builds"
    left = list(builds.iterdir())
    filling.unlink()
    again = medlink("index", "build")

    assert failed.returncode == 1
    assert "disk full?" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert left == []
    assert again.returncode == 0, again.stderr
    (build_id,) = BuildStore(builds).ids()
    assert BuildStore(builds).open(build_id).id == build_id


def test_a_load_that_fits_and_leaves_no_room_to_tidy_up_is_loaded(medlink, small_disk, table):
    # What is written goes to the log first, from there to the file: for a moment it takes up twice its room.
    names = 26_000

    loaded = medlink("kb", "load", table(names), "--name", "ours")

    assert (loaded.returncode, _names(small_disk)) == (0, names), loaded.stderr
