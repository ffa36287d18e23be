import gzip

import pytest

from medlink.corpora.lines import present, read_lines
from medlink.errors import SourceError


@pytest.mark.parametrize("name", ["notes.txt", "notes.txt.gz"])
def test_only_line_feeds_end_a_line_whether_or_not_the_file_is_gzipped(tmp_path, name):
    content = "\ufefffirst\u2028still\x85first\r\n\nthird\rhere".encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)

    assert list(read_lines(path)) == [(1, "first\u2028still\x85first"), (2, ""), (3, "third\rhere")]


def test_the_gzipped_copy_is_taken_only_where_the_file_itself_is_not_there(tmp_path):
    plain, gzipped = tmp_path / "a.txt", tmp_path / "a.txt.gz"

    assert present(plain) == plain
    gzipped.touch()
    assert present(plain) == gzipped
    plain.touch()
    assert present(plain) == plain


def test_a_file_cut_short_missing_or_not_what_its_name_says_is_an_error(tmp_path):
    whole = gzip.compress(b"gout\n" * 5000)
    for name, content in {"cut.gz": whole[:-9], "plain.gz": b"gout\n"}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError, match=name):
            list(read_lines(tmp_path / name))
    with pytest.raises(SourceError, match=r"absent\.txt"):
        list(read_lines(tmp_path / "absent.txt"))


def test_another_encoding_is_read_and_a_wrong_one_named_with_its_line(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes(b"ok\nna\xefve\n")

    assert [line for _, line in read_lines(path, "latin-1")] == ["ok", "naïve"]
    with pytest.raises(SourceError, match=":2: not UTF-8"):
        list(read_lines(path))
