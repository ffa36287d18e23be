import gzip
import tracemalloc

import pytest

from medlink.errors import SourceError
from medlink.kb.readers import table
from medlink.kb.readers.table import TableReader
from medlink.kb.records import (
    BroaderRecord,
    CodeRecord,
    DefinitionRecord,
    NameRecord,
    SemanticTypeRecord,
    SourceRecord,
)


@pytest.fixture
def reader(tmp_path):
    """Open lines as a CSV or TSV."""

    def open_lines(*lines, name="kb.csv", **options):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        return TableReader(tmp_path / name, **options)

    return open_lines


def names(opened):
    return [record for record in opened.records() if isinstance(record, NameRecord)]


def test_a_row_is_a_name_and_what_is_said_of_its_concept(reader):
    opened = reader(
        "id,name,sab,tty,language,code,suppress,semantic_types,codes,definition,broader",
        "C1,cough,AAA,PT,ENG,7,N,T184:Sign or Symptom;T033:Finding: any,MESH:D9;OMIM:22:2,A noise.,C2; C3",
        'C1,"tussis, dry",AAA,,LAT,,O,T184:Sign or Symptom,,,C2',
    )

    assert list(opened.records()) == [
        NameRecord("C1", "cough", "AAA", "PT", "ENG", "7", "N", 0),
        SemanticTypeRecord("C1", "T184", "Sign or Symptom"),
        SemanticTypeRecord("C1", "T033", "Finding: any"),
        CodeRecord("C1", "MESH", "D9"),
        CodeRecord("C1", "OMIM", "22:2"),
        DefinitionRecord("C1", "AAA", "A noise."),
        BroaderRecord("C1", "C2", "AAA"),
        BroaderRecord("C1", "C3", "AAA"),
        NameRecord("C1", "tussis, dry", "AAA", "", "LAT", "", "O", 1),
        SourceRecord("AAA", "AAA", "", licence_level=9),
    ]
    assert opened.report.rows == {"kb.csv": 2}


def test_two_columns_and_a_source_are_enough(reader):
    assert names(reader("name,id", "cough,C1", sab="MINE")) == [NameRecord("C1", "cough", "MINE")]


def test_a_concept_may_go_on_later_and_its_first_row_stays_preferred(reader):
    found = names(reader("id,name", "C1,cough", "C2,cold", "C1,tussis", sab="MINE"))

    ranks = {name.text: name.rank for name in found}
    assert ranks["cough"] < ranks["tussis"]


def test_ranks_stop_at_what_a_database_integer_holds(reader, monkeypatch):
    assert table._LAST_RANK == 2**31 - 1
    monkeypatch.setattr(table, "_LAST_RANK", 1)

    assert [n.rank for n in names(reader("id,name", "C1,a", "C1,b", "C1,c", sab="MINE"))] == [0, 1, 1]


def test_a_tsv_has_no_quoting(reader):
    found = names(reader("id\tname", 'C1\t"open', 'C1\t2"-deoxy, sugar', "C1\tafter", name="kb.tsv", sab="MINE"))

    assert [name.text for name in found] == ['"open', '2"-deoxy, sugar', "after"]


def test_a_csv_cell_may_hold_quotes_commas_and_in_a_definition_a_line_end(reader):
    lines = ('C1,"""open",', 'C1,"a, b","two', 'lines"', "C1,a|b||c,")
    opened = reader("id,name,definition", *lines, sab="MINE")

    found = list(opened.records())

    assert [r.text for r in found if isinstance(r, NameRecord)] == ['"open', "a, b", "a|b||c"]
    assert [r.text for r in found if isinstance(r, DefinitionRecord)] == ["two\nlines"]


def test_quotes_that_join_two_rows_into_one_name_are_an_error(reader):
    opened = reader("id,name,sab", 'C1,"cough', 'C2,cold",AAA')

    with pytest.raises(SourceError, match=r"^kb\.csv:3: a name on two lines"):
        list(opened.records())


def test_blanks_around_ids_and_sources_are_no_part_of_them(reader):
    opened = reader("id,name,sab,broader,codes", " C1 , cough ,AAA , C2 ,MESH:D9", "C1,tussis,AAA,C2,")

    assert list(opened.records()) == [
        NameRecord("C1", " cough ", "AAA", rank=0),
        CodeRecord("C1", "MESH", "D9"),
        BroaderRecord("C1", "C2", "AAA"),
        NameRecord("C1", "tussis", "AAA", rank=1),
        SourceRecord("AAA", "AAA", "", licence_level=9),
    ]


def test_a_compressed_table_is_read_and_its_bytes_counted(tmp_path):
    path = tmp_path / "kb.tsv.gz"
    path.write_bytes(gzip.compress(b"id\tname\r\nC1\tcough\r\n"))
    opened = TableReader(path, sab="MINE")

    assert [name.text for name in names(opened)] == ["cough"]
    assert opened.report.bytes_read == opened.report.bytes_total == path.stat().st_size


def test_the_format_may_be_told(reader):
    assert names(reader("id\tname", "C1\tcough", name="kb.txt", format="tsv", sab="MINE"))[0].text == "cough"


def test_blank_names_and_blank_lines_are_counted(reader):
    opened = reader("id,name", "C1,", "C1, ", "", "C1,cough", "", sab="MINE")

    assert [name.text for name in names(opened)] == ["cough"]
    assert opened.report.skipped == {("kb.csv", "blank name"): 2, ("kb.csv", "blank line"): 2}
    assert opened.report.rows == {"kb.csv": 3}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("id,name,synonyms", "unknown column 'synonyms'; valid: id, name, sab"),
        ("id,sab", "no column 'name'"),
        ("", "no column 'id'"),
        ("id,name,name", "a column twice"),
    ],
)
def test_a_bad_header_says_what_is_valid(header, message, reader):
    with pytest.raises(SourceError, match=rf"^kb\.csv:1: .*{message}"):
        list(reader(header, "C1,x,y").records())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("C1,secret", "expected 6 columns, found 2"),
        ("C1,secret,AAA,,,,", "expected 6 columns, found 7"),
        (",secret,AAA,,,", "blank id"),
        ("C1,secret,,,,", "no source"),
        ("C1,secret,AAA,X,,", "suppress must be"),
        ("C1,secret,AAA,,T047,", "a part of semantic_types"),
        ("C1,secret,AAA,,,MESH:", "a part of codes"),
        ('C1,"secret', "not a table"),
        ('C1,"sec"ret,AAA,,,', "not a table"),
        ("C1," + "secret" * 30_000 + ",AAA,,,", "not a table"),
    ],
)
def test_a_bad_row_names_file_and_line_but_not_content(row, message, reader):
    opened = reader("id,name,sab,suppress,semantic_types,codes", "C1,cough,AAA,,,", row)

    with pytest.raises(SourceError, match=message) as caught:
        list(opened.records())

    assert (caught.value.file, caught.value.line) == ("kb.csv", 3)
    assert "secret" not in str(caught.value)


def test_a_long_table_streams_in_flat_memory(reader):
    opened = reader("id,name,codes", *(f"C{i},name number {i},MESH:{i}" for i in range(15_000)), sab="MINE")

    tracemalloc.start()
    count = sum(1 for _ in opened.records())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert count == 30_001
    assert peak < 5_000_000  # a block of lines; kept in a list, the records take more than 9 MB
