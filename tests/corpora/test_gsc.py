import pytest

from medlink.corpora.gsc import read_gsc
from medlink.corpora.records import CorpusReport
from medlink.errors import SourceError

CONTENT = (
    "501\r\n"
    "A boy with short fingers and severe hearing loss in both ears. \r\n"
    "11\t24\tshort fingers\tHP:0001156\r\n"
    "29\t61\tsevere hearing loss in both ears\tHP:0008625\r\n"
    "36\t48\thearing loss\tHP:0000365\r\n"
    "\r\n"
    "502\r\n"
    "Nothing was found.\r\n"
)


def test_blocks_end_at_blank_lines_and_mentions_may_lie_inside_others(tmp_path):
    path = tmp_path / "gsc.tsv"
    path.write_bytes(CONTENT.encode())
    report = CorpusReport()

    first, second = read_gsc(path, report=report)

    assert [first.text[m.start : m.end] for m in first.mentions] == [m.text for m in first.mentions]
    assert [m.gold for m in first.mentions] == [(("HP:0001156",),), (("HP:0008625",),), (("HP:0000365",),)]
    assert first.text.endswith("ears. ")
    assert (second.id, second.text, second.mentions) == ("502", "Nothing was found.", ())
    assert (report.documents, report.mentions, report.mismatches) == (2, 3, 0)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("501\n\n502\nText.\n", 1),
        ("Text first.\n501\n", 1),
        ("501\nGout.\n0\t4\tGout\n", 3),
        ("501\nGout.\nx\t4\tGout\tHP:0001997\n", 3),
    ],
)
def test_a_block_of_another_form_is_named_without_its_content(tmp_path, content, line):
    path = tmp_path / "gsc.tsv"
    path.write_text(content)

    with pytest.raises(SourceError) as caught:
        list(read_gsc(path))

    assert caught.value.line == line
    assert "Gout" not in str(caught.value)
