"""A directory of pairs gives back what was written, in however many pieces, or says what is wrong with it."""

from pathlib import Path

import numpy as np
import pytest

from medlink.errors import SourceError
from medlink.manifest import describe_files, write_manifest
from medlink.ragged import Ragged
from training.pairset import BROADER, CONCEPTS, FORMAT, KIND, MEMBERSHIPS, PAIRS, TEXTS, PairSetWriter, read_pairs

PIECE = 1 << 18


def write(directory: Path, texts: int, **facts: object) -> Ragged:
    """Write texts in two concepts, and a pair of each text with the next."""
    directory.mkdir()
    writer = PairSetWriter(directory)
    memberships = Ragged.of_sorted(
        np.repeat(np.arange(texts, dtype=np.int32), np.arange(texts) % 3),
        np.concatenate([[0, 1, 0]] * texts, dtype=np.int32)[: (np.arange(texts) % 3).sum()],
        texts,
    )
    numbers = np.arange(texts, dtype=np.int32)
    writer.texts(f"text {n}" for n in range(texts))
    writer.concepts(["C1", "C2"])
    writer.memberships(memberships)
    writer.broader(Ragged.of_sorted(np.array([1], np.int32), np.array([0], np.int32), 2))
    assert writer.pairs([(0, numbers[:5], numbers[1:6]), (1, numbers[5:-1], numbers[6:])]) == texts - 1
    made_by = {"format": FORMAT, "kind": KIND, "files": describe_files(directory)}
    write_manifest(directory, {**made_by, **facts})
    return memberships


@pytest.mark.parametrize("texts", [10, PIECE, PIECE + 7])
def test_what_was_written_is_read_back(tmp_path, texts):
    memberships = write(tmp_path / "out", texts)

    found = read_pairs(tmp_path / "out")

    assert found.text_count == texts
    assert found.concepts == ["C1", "C2"]
    assert found.texts(np.array([texts - 1, 0, 0])) == [f"text {texts - 1}", "text 0", "text 0"]
    assert np.array_equal(found.memberships.offsets, memberships.offsets)
    assert np.array_equal(found.memberships.values, memberships.values)
    assert [found.broader.row(concept).tolist() for concept in range(2)] == [[], [0]]
    assert found.pairs.concept.tolist() == [0] * 5 + [1] * (texts - 6)
    assert np.array_equal(found.pairs.left, np.arange(texts - 1))
    assert np.array_equal(found.pairs.right, np.arange(1, texts))


@pytest.mark.parametrize("name", [PAIRS, TEXTS, CONCEPTS, MEMBERSHIPS, BROADER, "manifest.json"])
def test_damaged_pairs_are_refused(tmp_path, name):
    write(tmp_path / "out", 10)
    path = tmp_path / "out" / name
    path.write_bytes(path.read_bytes()[:-8] + b"12345678")

    with pytest.raises(SourceError, match="medlink train pairs"):
        read_pairs(tmp_path / "out")


@pytest.mark.parametrize("facts", [{"format": FORMAT + 1}, {"kind": "encoder"}])
def test_another_kind_of_directory_is_refused(tmp_path, facts):
    write(tmp_path / "out", 10, **facts)

    with pytest.raises(SourceError, match="not pairs of this format"):
        read_pairs(tmp_path / "out")
