"""What a dead builder left is cleared away; what a living one writes is left alone, whichever process looks."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from index.store import BuildStore
from index.unfinished import sweep, unfinished

_BUILDER = """
import sys, time
from pathlib import Path
from index.unfinished import unfinished

with unfinished(Path(sys.argv[1]), "b1") as directory:
    (directory / "half").write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def builder(tmp_path):
    """Another process that writes a build."""
    process = subprocess.Popen([sys.executable, "-c", _BUILDER, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"writing\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def _write_and_fail(directory: Path) -> None:
    (directory / "file").write_text("content")
    raise RuntimeError


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_living_builder_is_left_alone_and_a_killed_one_cleared_away(builder, tmp_path):
    assert sweep(tmp_path) == []
    assert len(names(tmp_path)) == 2

    os.kill(builder.pid, signal.SIGKILL)
    builder.wait()

    (swept,) = sweep(tmp_path)
    assert swept.startswith(".tmp-b1-")
    assert names(tmp_path) == []


def test_nothing_is_left_whether_a_build_succeeds_or_fails(tmp_path):
    store = BuildStore(tmp_path)

    with store.writing("good") as directory:
        (directory / "file").write_text("content")
        store.publish(directory, "good")
    with pytest.raises(RuntimeError), store.writing("bad") as directory:
        _write_and_fail(directory)

    assert names(tmp_path) == ["good"]


@pytest.mark.parametrize("letter", ["x", ""])
def test_a_living_builder_is_left_alone_whatever_chance_has_named_its_directory(letter, tmp_path, monkeypatch):
    monkeypatch.setattr("index.unfinished.token_hex", lambda size: "12345678")
    with unfinished(tmp_path, "20261130T120000000Z") as directory:
        if not letter:  # as builders of the last version do
            lock = directory.with_name(directory.name + ".lock")
            lock.rename(tmp_path / lock.name.replace("-x", "-"))
            directory = directory.rename(tmp_path / directory.name.replace("-x", "-"))

        assert sweep(tmp_path) == []
        assert directory.is_dir()


def test_two_builders_write_side_by_side(tmp_path):
    with unfinished(tmp_path, "b1") as first, unfinished(tmp_path, "b1") as second:
        assert first != second
        assert (first.is_dir(), second.is_dir()) == (True, True)


def test_a_lock_that_was_swept_while_it_was_taken_is_taken_again(tmp_path, monkeypatch):
    taken = []
    flock = unfinished.__wrapped__.__globals__["fcntl"].flock

    def swept_first(handle: int, how: int) -> None:
        if not taken:
            for lock in tmp_path.glob("*.lock"):
                lock.unlink()
        taken.append(handle)
        flock(handle, how)

    monkeypatch.setattr("index.unfinished.fcntl.flock", swept_first)

    with unfinished(tmp_path, "b1") as directory:
        assert directory.with_name(directory.name + ".lock").is_file()
    assert len(taken) == 2


def test_a_builder_that_is_about_to_lock_is_not_reported_dead(tmp_path):
    (tmp_path / ".tmp-b1-0000.lock").touch()

    assert sweep(tmp_path) == []
    assert names(tmp_path) == []


def test_a_published_build_that_nobody_was_told_of_is_discarded(tmp_path):
    store = BuildStore(tmp_path)
    (tmp_path / "b1").mkdir()
    (tmp_path / "b1" / "file").write_text("content")

    store.discard("b1")

    assert names(tmp_path) == []
