import gzip
import zipfile

import pytest

from medlink.errors import SourceError, UnknownValueError
from medlink.kb.readers import open_reader
from medlink.kb.readers.jsonl import JsonlReader
from medlink.kb.readers.obo import OboReader
from medlink.kb.readers.rrf import RrfReader
from medlink.kb.readers.table import TableReader


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("META/MRCONSO.RRF", RrfReader),
        ("MRCONSO.RRF.gz", RrfReader),
        ("hp.obo", OboReader),
        ("hp.OBO.gz", OboReader),
        ("kb.jsonl", JsonlReader),
        ("kb.ndjson.zst", JsonlReader),
        ("kb.csv.gz", TableReader),
        ("kb.tsv", TableReader),
    ],
)
def test_the_format_is_guessed_from_the_name(name, kind, tmp_path):
    path = tmp_path / "release" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    archive = tmp_path / "release.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(name, b"")

    assert {type(open_reader(place)) for place in (path, tmp_path / "release", archive)} == {kind}


def test_options_reach_the_reader(tiny_release):
    names = {
        record.text for record in open_reader(tiny_release, languages=["SPA"]).records() if hasattr(record, "rank")
    }

    assert names == {"Ataque al corazón"}


def test_a_told_format_outweighs_the_name(tmp_path):
    path = tmp_path / "kb.csv"
    path.write_text("id\tname\nC1\tcough, dry\n")

    records = list(open_reader(path, format="tsv", sab="MINE").records())

    assert records[0].text == "cough, dry"


def test_an_unknown_format_lists_the_valid_ones(tiny_release):
    with pytest.raises(UnknownValueError, match="unknown format 'umls'; valid: csv, jsonl, obo, rrf, tsv"):
        open_reader(tiny_release, format="umls")


@pytest.mark.parametrize(
    ("format", "option", "valid"),
    [
        ("rrf", "language", "languages, sabs, include_suppressed"),
        ("obo", "languages", "sab"),
        ("csv", "format_", "sab"),
        ("jsonl", "sab", "none"),
    ],
)
def test_an_unknown_option_lists_the_valid_ones(format, option, valid, tiny_release):
    with pytest.raises(UnknownValueError, match=rf"unknown option of format {format} '{option}'; valid: {valid}$"):
        open_reader(tiny_release, format=format, **{option: "x"})


@pytest.mark.parametrize("format", [None, "rrf", "obo", "jsonl", "csv", "tsv"])
def test_a_path_that_does_not_exist_is_an_error(format, tmp_path):
    with pytest.raises(SourceError, match=r"nothing\.obo: no such file or directory"):
        open_reader(tmp_path / "nothing.obo", format=format)


@pytest.mark.parametrize("names", [[], ["notes.txt"], ["a.obo", "b.csv"]])
def test_a_folder_that_does_not_tell_its_format_is_an_error(names, tmp_path):
    for name in names:
        (tmp_path / name).write_text("")

    with pytest.raises(SourceError, match="cannot tell the format"):
        open_reader(tmp_path)
