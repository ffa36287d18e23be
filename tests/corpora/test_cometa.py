import csv

import pytest

from medlink.corpora.cometa import read_cometa
from medlink.corpora.records import CorpusReport
from medlink.errors import SourceError

HEADER = [
    "",
    "ID",
    "Term",
    "General SNOMED Label",
    "General SNOMED ID",
    "Specific SNOMED Label",
    "Specific SNOMED ID",
    "Example",
]


def write(path, *rows, delimiter="\t", header=HEADER):
    """Write (term, general id, specific id, example) as the corpus does, with the usual quotes."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(header)
        for number, (term, general, specific, example) in enumerate(rows, 70):
            writer.writerow([number, number, term, "a", general, "b", specific, example])


@pytest.mark.parametrize("delimiter", ["\t", ","])
def test_a_row_is_a_sentence_with_its_term_at_the_level_asked_for(tmp_path, delimiter):
    path = tmp_path / "dev.csv"
    write(path, ("shakes", "26079004", "9748009", 'My "shakes", again'), delimiter=delimiter)

    (general,), (specific,) = (list(read_cometa(path, level)) for level in ("general", "specific"))

    assert (general.id, general.text) == ("cometa:70", 'My "shakes", again')
    assert general.text[general.mentions[0].start : general.mentions[0].end] == "shakes"
    assert general.mentions[0].gold == (("SNOMEDCT_US:26079004",),)
    assert specific.mentions[0].gold == (("SNOMEDCT_US:9748009",),)


@pytest.mark.parametrize(
    ("term", "example", "place"),
    [
        ("rash", "rashes and a rash", (13, 17)),
        ("Rash", "Rashes and a rash", (13, 17)),
        ("rash", "Rash, then rash", (11, 15)),
        ("rash", "only Rashes", (5, 9)),
        ("c++", "all c++ here", (4, 7)),
        ("rash", "nothing", (0, 0)),
    ],
)
def test_a_term_is_looked_for_as_a_whole_word_first_and_then_in_any_case(tmp_path, term, example, place):
    write(tmp_path / "dev.csv", (term, "1", "1", example))
    report = CorpusReport()

    (document,) = read_cometa(tmp_path / "dev.csv", "general", report=report)

    (mention,) = document.mentions
    assert ((mention.start, mention.end), mention.text) == (place, term)
    assert report.mismatches == (example[slice(*place)] != term)


def test_a_row_without_term_is_counted_and_one_without_id_has_no_gold(tmp_path):
    write(tmp_path / "dev.csv", ("  ", "1", "1", "nothing"), ("meh", "", "1", "feeling\nmeh"))
    report = CorpusReport()

    (document,) = read_cometa(tmp_path / "dev.csv", "general", report=report)

    assert (document.text, document.mentions[0].gold) == ("feeling\nmeh", ())
    assert (report.blank, report.mentions) == (1, 1)


def test_a_missing_column_a_short_row_or_an_open_quote_is_an_error_without_content(tmp_path):
    path = tmp_path / "dev.csv"

    write(path, header=HEADER[:-1])
    with pytest.raises(SourceError, match=":1: the header has no column 'Example'"):
        list(read_cometa(path, "general"))
    for row in ("70\t70\trash", '70\t70\t"rash'):
        path.write_text("\t".join(HEADER) + f"\n{row}\n")
        with pytest.raises(SourceError, match=":2:") as caught:
            list(read_cometa(path, "general"))
        assert "rash" not in str(caught.value)
    path.write_text("")
    with pytest.raises(SourceError, match="no column 'ID'"):
        list(read_cometa(path, "general"))
