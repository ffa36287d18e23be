from pathlib import Path

import pytest

from medlink.corpora.pubtator import read_pubtator
from medlink.corpora.records import CorpusReport, LabeledDocument
from medlink.errors import SourceError


def read(tmp_path: Path, content: str, **options) -> list[LabeledDocument]:
    path = tmp_path / "corpus.txt"
    path.write_bytes(content.encode())
    return list(read_pubtator(path, **options))


def test_a_file_may_begin_with_an_empty_line_and_mentions_know_their_place(tmp_path):
    content = (
        "\n"
        "11|t|Gout in a family.\n"
        "11|a|Gout was severe.\n"
        "11\t0\t4\tGout\tSpecificDisease\t D006073\n"
        "11\t18\t22\tGout\tDiseaseClass\tOMIM:138900+D006073\n"
        "\n"
        "12|t|Nothing here\n"
        "12|a|\n"
    )

    first, second = read(tmp_path, content)

    assert [first.text[m.start : m.end] for m in first.mentions] == ["Gout", "Gout"]
    assert [m.gold for m in first.mentions] == [(("MESH:D006073",),), (("OMIM:138900", "MESH:D006073"),)]
    assert (second.id, second.text, second.mentions) == ("12", "Nothing here\n", ())


def test_text_keeps_bars_of_its_own_and_offsets_count_code_points(tmp_path):
    content = "7|t|A 😀|b|c\u2028 rash\n7|a|x|a|y\n7\t9\t13\trash\tDisease\tD005076\n"
    report = CorpusReport()

    (document,) = read(tmp_path, content, report=report)

    assert document.text == "A 😀|b|c\u2028 rash\nx|a|y"
    assert document.text[9:13] == document.mentions[0].text == "rash"
    assert report.mismatches == 0


def test_composites_have_parts_and_the_corpus_may_spell_them_out(tmp_path):
    content = (
        "3|t|eye and ear toxicity\n3|a|\n"
        "3\t0\t20\teye and ear toxicity\tDisease\tD014786|D006311\teye toxicity|ear toxicity\n"
        "3\t0\t20\teye and ear toxicity\tDisease\tD014786,-1\n"
    )

    ((spelt_out, partly_known),) = (d.mentions for d in read(tmp_path, content))

    assert spelt_out.gold == (("MESH:D014786",), ("MESH:D006311",))
    assert spelt_out.part_texts == ("eye toxicity", "ear toxicity")
    assert spelt_out.gold_ids == {"MESH:D014786", "MESH:D006311"}
    assert partly_known.gold == (("MESH:D014786",), ())


@pytest.mark.parametrize("field", ["-1", "-", " -1 "])
def test_a_mention_without_a_concept_has_no_gold(tmp_path, field):
    content = f"3|t|malaise\n3|a|\n3\t0\t7\tmalaise\tDisease\t{field}\n"

    (document,) = read(tmp_path, content)

    assert document.mentions[0].gold == ()


def test_relations_and_other_types_are_left_out_and_counted(tmp_path):
    content = (
        "3|t|gout after aspirin\r\n3|a|\r\n"
        "3\t0\t4\tgout\tDisease\tD006073\r\n"
        "3\t11\t18\taspirin\tChemical\tD001241\r\n"
        "3\tCID\tD001241\tD006073\r\n"
        "3\tAssociation\tc|DEL|13_14|\tD006073\tNovel\r\n"
    )
    report = CorpusReport()

    (document,) = read(tmp_path, content, types={"Disease"}, report=report)

    assert [m.text for m in document.mentions] == ["gout"]
    assert (report.relations, report.other_types, report.mentions) == (2, 1, 1)


def test_trailing_blanks_of_a_mention_are_cut_off_and_a_mention_elsewhere_is_counted(tmp_path):
    content = "3|t|severe gout\n3|a|\n3\t7\t13\tgout  \tDisease\tD006073\n3\t0\t4\tgout\tDisease\tD006073\n"
    report = CorpusReport()

    (document,) = read(tmp_path, content, report=report)

    assert [(m.text, m.start, m.end) for m in document.mentions] == [("gout", 7, 11), ("gout", 0, 4)]
    assert (report.trimmed, report.mismatches, report.mentions) == (1, 1, 2)


def test_a_repeated_document_is_yielded_again_and_named(tmp_path):
    block = "3|t|gout\n3|a|\n3\t0\t4\tgout\tDisease\tD006073\n\n"
    report = CorpusReport()

    documents = read(tmp_path, block + block, report=report)

    assert [d.id for d in documents] == ["3", "3"]
    assert (report.documents, report.repeated_documents) == (2, ["3"])


def test_medmentions_types_are_kept_as_written(tmp_path):
    content = "3|t|DCTN4\n3|a|\n3\t0\t5\tDCTN4\tT116,T123\tUMLS:C4308010\n3\t0\t5\tDCTN4\tT103\tC4308010\n"

    (document,) = read(tmp_path, content)

    assert [m.type for m in document.mentions] == ["T116,T123", "T103"]
    assert {m.gold for m in document.mentions} == {(("UMLS:C4308010",),)}


def test_only_the_documents_asked_for_are_kept_and_counted(tmp_path):
    block = "{0}|t|gout\n{0}|a|\n{0}\t0\t4\tgout \tDisease\tD006073\n{0}\tCID\tD1\tD2\n\n"
    report = CorpusReport()

    documents = read(tmp_path, block.format(3) + block.format(4) * 2 + block.format(5), ids={"5", "3"}, report=report)

    assert [d.id for d in documents] == ["3", "5"]
    assert report == CorpusReport(documents=2, mentions=2, relations=2, trimmed=2)


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("4\t0\t4\tgout\tDisease\tD006073", 3),
        ("3\t0\t4\tgout\tDisease", 3),
        ("3\t0\tx\tgout\tDisease\tD006073", 3),
        ("3\t4\t0\tgout\tDisease\tD006073", 3),
        ("not PubTator at all", 3),
    ],
)
def test_a_malformed_line_is_named_without_its_content(tmp_path, line, number):
    content = f"3|t|gout\n3|a|\n{line}\n"

    with pytest.raises(SourceError) as caught:
        read(tmp_path, content)

    assert caught.value.line == number
    assert "gout" not in str(caught.value).replace(str(tmp_path), "")


def test_what_is_before_the_first_title_not_utf8_or_missing_is_an_error(tmp_path):
    with pytest.raises(SourceError, match=":1: this line comes before"):
        read(tmp_path, "3\t0\t4\tgout\tDisease\tD006073\n")
    (tmp_path / "latin.txt").write_bytes(b"3|t|gout\n3|a|caf\xe9\n")
    with pytest.raises(SourceError, match=r":2: not UTF-8"):
        list(read_pubtator(tmp_path / "latin.txt"))
    with pytest.raises(SourceError):
        list(read_pubtator(tmp_path / "absent.txt"))
