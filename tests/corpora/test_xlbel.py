import pytest

from medlink.corpora.records import CorpusReport
from medlink.corpora.xlbel import read_xlbel
from medlink.errors import SourceError


def test_a_line_without_a_sentence_is_a_document_of_its_own(tmp_path):
    path = tmp_path / "de_query.txt"
    path.write_text("C0018099||Gicht\nC0018099|CL000001||Gichtanfall\n", "utf-8")

    first, second = read_xlbel(path)

    assert (first.id, first.text, first.mentions[0].text) == ("de_query:1", "Gicht", "Gicht")
    assert first.mentions[0].gold == (("UMLS:C0018099",),)
    assert second.mentions[0].gold == (("UMLS:C0018099", "UMLS:CL000001"),)


def test_a_sentence_loses_its_tags_and_nothing_else(tmp_path):
    sentence = " Er litt an\u00a0 <tgt>Gicht</tgt> ||  und Fieber . "
    (tmp_path / "q.txt").write_text(f"C0018099||Gicht||{sentence}\nC0018099||Gicht||Nur <tgt></tgt>Gicht\n", "utf-8")
    report = CorpusReport()

    first, empty = read_xlbel(tmp_path / "q.txt", report=report)

    assert first.text == sentence.replace("<tgt>", "").replace("</tgt>", "")
    assert first.text[first.mentions[0].start : first.mentions[0].end] == "Gicht"
    assert (empty.mentions[0].start, empty.mentions[0].end, empty.mentions[0].text) == (4, 4, "Gicht")
    assert (report.documents, report.mentions, report.mismatches) == (2, 2, 1)


@pytest.mark.parametrize("line", ["C0018099|Gicht", "||Gicht", "C0018099|| ", "C0018099||Gicht||ohne Ziel"])
def test_a_line_of_another_form_is_named_without_its_content(tmp_path, line):
    (tmp_path / "q.txt").write_text(f"C0015967||Fieber\n{line}\n", "utf-8")

    with pytest.raises(SourceError, match=":2:") as caught:
        list(read_xlbel(tmp_path / "q.txt"))

    assert "Gicht" not in str(caught.value)
