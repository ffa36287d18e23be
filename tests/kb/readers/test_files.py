import gzip
import os
import zipfile
import zlib
from pathlib import Path

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from medlink.errors import SourceError
from medlink.kb.readers import files
from medlink.kb.readers.files import Release
from medlink.kb.readers.report import ReadReport

NAME = "MRCONSO.RRF"


def pack(folder: Path, form: str, content: bytes) -> Path:
    """Lay the content down in one of the forms that a release comes in, and return the release's path."""
    folder.mkdir(parents=True, exist_ok=True)
    if form == "plain":
        (folder / NAME).write_bytes(content)
    elif form == "gz":
        (folder / f"{NAME}.gz").write_bytes(gzip.compress(content))
    elif form == "zst":
        (folder / f"{NAME}.zst").write_bytes(zstandard.compress(content))
    elif form == "deep":
        (folder / "2026AA" / "META").mkdir(parents=True)
        (folder / "2026AA" / "META" / NAME).write_bytes(content)
    else:
        path = folder / "release.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            inner = {"zip": content, "zip-gz": gzip.compress(content), "zip-zst": zstandard.compress(content)}[form]
            archive.writestr(f"2026AA/META/{NAME}{form.removeprefix('zip').replace('-', '.')}", inner)
        return path
    return folder


FORMS = ["plain", "gz", "zst", "deep", "zip", "zip-gz", "zip-zst"]


def read(path: Path) -> list[tuple[int, str]]:
    return list(Release(path, ReadReport()).lines(NAME))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_lines(form, tmp_path):
    path = pack(tmp_path, form, "\ufeffeins\r\nzwei €\n\nlast".encode())

    assert read(path) == [(1, "eins"), (2, "zwei €"), (3, ""), (4, "last")]


@pytest.mark.parametrize("form", FORMS)
def test_the_bytes_read_grow_to_the_bytes_on_disk(form, tmp_path):
    path = pack(tmp_path, form, b"".join(os.urandom(500).hex().encode() + b"\n" for _ in range(4000)))
    report = ReadReport()
    release = Release(path, report)
    report.start(release.size(NAME))

    positions = [report.bytes_read for _ in release.lines(NAME)]

    assert report.bytes_read == report.bytes_total > 0
    assert positions == sorted(positions)
    assert len(set(positions)) > 2
    assert 0 < positions[0] < positions[-1] <= report.bytes_total


@settings(max_examples=50)
@given(
    lines=st.lists(st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), max_size=12)),
    size=st.integers(1, 9),
)
@example(lines=["one", "\ufefftwo"], size=1)
def test_lines_do_not_depend_on_where_a_block_ends(lines, size, tmp_path_factory):
    path = tmp_path_factory.mktemp("blocks") / NAME
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_BLOCK", size)
        found = [line for _, line in Release(path, ReadReport()).lines(NAME)]

    expected = [line.removesuffix("\r") for line in lines]
    assert found == [line.removeprefix("\ufeff") if i == 0 else line for i, line in enumerate(expected)]


def test_a_line_ends_at_a_line_feed_only(tmp_path):
    path = pack(tmp_path, "plain", "a\u2028b\x85c\x0bd\x1ce\rf\n".encode())

    assert read(path) == [(1, "a\u2028b\x85c\x0bd\x1ce\rf")]


def test_a_zip_may_end_in_capitals(tmp_path):
    path = pack(tmp_path, "zip", b"eins\n").rename(tmp_path / "RELEASE.ZIP")

    assert read(path) == [(1, "eins")]


def test_several_zstd_frames_are_one_file(tmp_path):
    (tmp_path / f"{NAME}.zst").write_bytes(zstandard.compress(b"one\n") + zstandard.compress(b"two\n"))

    assert read(tmp_path) == [(1, "one"), (2, "two")]


@pytest.mark.parametrize("form", ["gz", "zst", "zip-gz", "zip-zst"])
def test_a_truncated_file_is_an_error(form, tmp_path):
    whole = os.urandom(200_000).hex().encode() + b"\n"
    codec = form.removeprefix("zip-")
    packed = gzip.compress(whole) if codec == "gz" else zstandard.compress(whole)
    cut = packed[: len(packed) // 2]
    path = tmp_path / f"{NAME}.{codec}"
    if form.startswith("zip"):
        path = tmp_path / "release.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{NAME}.{codec}", cut)
    else:
        path.write_bytes(cut)

    with pytest.raises(SourceError, match=rf"{NAME}\.{codec}.*damaged or cut short"):
        read(path)


def test_a_truncated_zip_is_an_error(tmp_path):
    path = pack(tmp_path, "zip", b"one\n" * 1000)
    path.write_bytes(path.read_bytes()[:-30])

    with pytest.raises(SourceError, match=r"release\.zip: not a zip"):
        Release(path, ReadReport())


def test_a_damaged_zip_member_is_an_error(tmp_path):
    path = pack(tmp_path, "zip", os.urandom(2000).hex().encode())
    content = bytearray(path.read_bytes())
    content[500:520] = bytes(20)
    path.write_bytes(content)

    with pytest.raises(SourceError, match=r"release\.zip/2026AA/META/MRCONSO\.RRF"):
        read(path)


@pytest.mark.parametrize(
    "content", [b"not gzip at all\n", gzip.compress(b"x\n", mtime=0)[:-8] + zlib.compress(b"rubbish")]
)
def test_a_file_that_is_no_gzip_is_an_error(content, tmp_path):
    (tmp_path / f"{NAME}.gz").write_bytes(content)

    with pytest.raises(SourceError, match="damaged or cut short"):
        read(tmp_path)


@pytest.mark.parametrize(("bad", "problem"), [(b"caf\xe9 au lait", "UTF-8"), (b"caf\0", "NUL")])
def test_bytes_that_are_no_text_name_file_and_line_but_not_content(bad, problem, tmp_path):
    path = pack(tmp_path, "gz", b"one\n" * 70_000 + bad + b"\nend\n")

    with pytest.raises(SourceError, match=problem) as caught:
        read(path)

    assert (caught.value.file, caught.value.line) == ("MRCONSO.RRF.gz", 70_001)
    assert "caf" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    release = Release(tmp_path, ReadReport())

    assert not release.find(NAME)
    with pytest.raises(SourceError, match=rf"{NAME}: not found"):
        list(release.lines(NAME))


def test_a_path_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(SourceError, match="no such file or directory"):
        Release(tmp_path / "nothing.zip", ReadReport())


def test_two_releases_in_one_folder_are_not_mixed_up(tmp_path):
    pack(tmp_path / "2025AB", "plain", b"old\n")
    pack(tmp_path / "2026AA", "gz", b"new\n")

    with pytest.raises(SourceError, match=r"2025AB/MRCONSO\.RRF, 2026AA/MRCONSO\.RRF\.gz"):
        read(tmp_path)


def test_the_only_file_of_a_kind_is_found_and_more_than_one_is_an_error(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"{}\n"))
    (tmp_path / "notes.txt").write_text("x")
    assert Release(tmp_path, ReadReport()).only(".jsonl") == "a.jsonl"
    assert Release(tmp_path / "notes.txt", ReadReport()).only(".jsonl") == "notes.txt"

    (tmp_path / "b.jsonl").write_text("{}")
    with pytest.raises(SourceError, match="2 files end in"):
        Release(tmp_path, ReadReport()).only(".jsonl")
