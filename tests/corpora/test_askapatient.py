import pytest

from medlink.corpora.askapatient import read_askapatient
from medlink.corpora.records import CorpusReport
from medlink.errors import SourceError


def test_phrases_are_latin_1_and_their_ids_are_of_snomed_ct(tmp_path):
    path = tmp_path / "AskAPatient.fold-3.test.txt"
    path.write_bytes(b"84229001\tFatigue\tfelt bl\xe9h\x85all day\r\n\r\n21999011000036104\tPainaway\tthe blue pill\n")
    report = CorpusReport()

    first, second = read_askapatient(path, report=report)

    assert (first.id, first.text) == ("AskAPatient.fold-3.test:1", "felt bléh\x85all day")
    assert first.mentions[0].text == first.text
    assert [d.mentions[0].gold for d in (first, second)] == [
        (("SNOMEDCT_US:84229001",),),
        (("SNOMEDCT_US:21999011000036104",),),
    ]
    assert (report.documents, report.mentions, report.mismatches) == (2, 2, 0)


def test_a_phrase_without_text_is_left_out_and_counted(tmp_path):
    path = tmp_path / "fold.txt"
    path.write_text("84229001\tFatigue\t \n84229001\tFatigue\ttired\n")
    report = CorpusReport()

    documents = list(read_askapatient(path, report=report))

    assert [d.text for d in documents] == ["tired"]
    assert (report.blank, report.mentions) == (1, 1)


@pytest.mark.parametrize("line", ["84229001\ttired", "84229001\tFatigue\tvery\ttired"])
def test_a_line_of_another_form_is_named_without_its_content(tmp_path, line):
    path = tmp_path / "fold.txt"
    path.write_text(f"84229001\tFatigue\tweary\n{line}\n")

    with pytest.raises(SourceError, match=":2:") as caught:
        list(read_askapatient(path))

    assert "tired" not in str(caught.value)
