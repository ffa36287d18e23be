import gzip
import io
import json
import zipfile

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from medlink.errors import SourceError
from medlink.kb.readers.jsonl import JsonlReader, write_jsonl
from medlink.kb.records import (
    BroaderRecord,
    CodeRecord,
    DefinitionRecord,
    NameRecord,
    RetiredRecord,
    SemanticTypeRecord,
    SourceRecord,
    TradeNameRecord,
)

SOURCE = '{"source":{"sab":"AAA","name":"A Vocabulary","version":"1","licence_level":3}}'
CONCEPT = (
    '{"id":"C1","names":[{"text":"cough","sab":"AAA"},'
    '{"text":"tussis","sab":"AAA","tty":"SY","language":"LAT","code":"7","suppress":"O"}],'
    '"semantic_types":[{"tui":"T184","name":"Sign or Symptom"}],"codes":[{"sab":"MESH","code":"D9"}],'
    '"definitions":[{"sab":"AAA","text":"A noise."}],"broader":[{"id":"C2","sab":"AAA"}],"trade_names":["C3"]}'
)
RECORDS = [
    SourceRecord("AAA", "A Vocabulary", "1", licence_level=3),
    NameRecord("C1", "cough", "AAA", rank=0),
    NameRecord("C1", "tussis", "AAA", "SY", "LAT", "7", "O", 1),
    SemanticTypeRecord("C1", "T184", "Sign or Symptom"),
    CodeRecord("C1", "MESH", "D9"),
    DefinitionRecord("C1", "AAA", "A noise."),
    BroaderRecord("C1", "C2", "AAA"),
    TradeNameRecord("C1", "C3"),
    RetiredRecord("C8", "C1", "RB", "2026"),
    RetiredRecord("C9", None, "DEL"),
]
RETIRED = '{"retired":"C8","successor":"C1","relation":"RB","release":"2026"}\n{"retired":"C9","successor":null}'


@pytest.fixture
def reader(tmp_path):
    """Open lines as a reader."""

    def open_lines(*lines):
        path = tmp_path / "kb.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        return JsonlReader(path)

    return open_lines


def test_every_kind_of_line_is_read(reader):
    opened = reader(SOURCE, CONCEPT, RETIRED)

    assert list(opened.records()) == RECORDS
    assert opened.report.rows == {"kb.jsonl": 4}
    assert not opened.report.skipped


def test_a_second_pass_gives_the_same(reader):
    opened = reader(CONCEPT)

    assert list(opened.records()) == list(opened.records())


@pytest.mark.parametrize("form", ["gz", "zst", "zip"])
def test_compressed_files_are_read(form, tmp_path):
    content = "\n".join((SOURCE, CONCEPT, RETIRED)).encode()
    path = tmp_path / f"kb.jsonl.{form}"
    if form == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("pack/kb.jsonl", content)
    else:
        path.write_bytes(gzip.compress(content) if form == "gz" else zstandard.compress(content))

    assert list(JsonlReader(path).records()) == RECORDS


def test_retired_ids_default_to_same_with_a_successor_and_to_gone_without(reader):
    opened = reader('{"retired":"C1","successor":"C2"}', '{"retired":"C3"}', '{"retired":"C4","successor":null}')

    assert list(opened.records()) == [
        RetiredRecord("C1", "C2", "SY"),
        RetiredRecord("C3", None, "DEL"),
        RetiredRecord("C4", None, "DEL"),
    ]


def test_a_source_that_no_line_describes_counts_as_the_most_restricted(reader):
    records = list(reader(CONCEPT).records())

    assert records[-1] == SourceRecord("AAA", "AAA", "", licence_level=9)


def test_blank_names_and_concepts_left_without_one_are_counted(reader):
    opened = reader(
        '{"id":"C1","names":[{"text":"","sab":"AAA"},{"text":"cough","sab":"AAA"}]}',
        '{"id":"C2","names":[{"text":" \\t","sab":"AAA"}],"codes":[{"sab":"MESH","code":"D9"}]}',
        '{"id":"C3","names":[]}',
    )

    names = [r for r in opened.records() if not isinstance(r, SourceRecord)]

    assert names == [NameRecord("C1", "cough", "AAA", rank=1)]
    assert opened.report.skipped == {("kb.jsonl", "blank name"): 2, ("kb.jsonl", "concept without a name"): 2}


@pytest.mark.parametrize("text", ["left|right", "left||right", '"quoted', "a\u2028b", "tab\there", "emoji 🫁"])
def test_a_name_with_odd_characters_is_kept(text, reader):
    line = json.dumps({"id": "C1", "names": [{"text": text, "sab": "AAA"}]})

    assert [r.text for r in reader(line).records() if isinstance(r, NameRecord)] == [text]


def concept(**changes):
    return json.dumps({"id": "C1", "names": [{"text": "secret", "sab": "AAA"}], **changes})


def name(**changes):
    return concept(names=[{"text": "secret", "sab": "AAA", **changes}])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("secret", "not JSON"),
        ("", "not JSON"),
        ('{"id":"secret"', "not JSON"),
        ("[" * 100_000, "recursion"),
        ("[]", "not an object"),
        ("NaN", "not an object"),
        ("{}", "lacks id"),
        ('{"id":"secret"}', "lacks names"),
        (concept(synonyms=[]), "unknown key 'synonyms'"),
        (concept(id=""), "id in the line is blank"),
        (concept(id=7), "id in the line has the wrong type"),
        (concept(names="secret"), "names in the line has the wrong type"),
        (concept(names=["secret"]), "names is not an object"),
        (concept(codes=[{"sab": "MESH"}]), "codes lacks code"),
        (concept(codes=[{"sab": "MESH", "code": ""}]), "code in codes is blank"),
        (concept(semantic_types=[{"tui": "T1", "name": None}]), "name in semantic_types has the wrong type"),
        (concept(broader=[{"id": "C2", "sab": "AAA", "rela": "isa"}]), "unknown key 'rela' in broader"),
        (concept(trade_names=[1]), "trade_names must be a list of ids"),
        (concept(trade_names=[""]), "trade_names must be a list of ids"),
        (name(lang="ENG"), "unknown key 'lang' in names"),
        (name(text=None), "text in names has the wrong type"),
        (name(sab=" "), "sab in names is blank"),
        (name(suppress="secret"), "suppress in names must be one of N, O, Y, E"),
        (name(text="secret\ud800"), "surrogate"),
        (name(text="secret\0"), "NUL"),
        ('{"source":{}}', "source lacks sab"),
        ('{"source":{"sab":"A","licence_level":true}}', "licence_level in source has the wrong type"),
        ('{"source":{"sab":"A"},"id":"C1"}', "source must be the only key"),
        ('{"source":{"sab":"A"}}\n{"source":{"sab":"A"}}', "described on an earlier line"),
        ('{"retired":""}', "retired in the line is blank"),
        ('{"retired":"C1","successor":""}', "successor in the line is blank"),
        ('{"retired":"C1","successor":"C2","relation":"DEL"}', "relation must be"),
        ('{"retired":"C1","relation":"SY"}', "relation must be"),
    ],
)
def test_a_bad_line_names_file_and_line_but_not_content(line, message, reader):
    opened = reader(CONCEPT, line)

    with pytest.raises(SourceError, match=message) as caught:
        list(opened.records())

    assert caught.value.file == "kb.jsonl"
    assert caught.value.line == 2 + line.count("\n")
    assert "secret" not in str(caught.value)


def test_the_writer_leaves_defaults_out_and_orders_names_by_rank():
    handle = io.StringIO()

    write_jsonl(
        handle, [NameRecord("C1", "b", "AAA", rank=5), NameRecord("C1", "ä", "AAA", "PT", rank=2), *RECORDS[-1:]]
    )

    assert handle.getvalue() == (
        '{"id":"C1","names":[{"sab":"AAA","text":"ä","tty":"PT"},{"sab":"AAA","text":"b"}]}\n'
        '{"relation":"DEL","retired":"C9","successor":null}\n'
    )


def test_the_writer_refuses_a_concept_whose_names_are_elsewhere():
    with pytest.raises(ValueError, match="no name of C1"):
        write_jsonl(io.StringIO(), [CodeRecord("C1", "MESH", "D9")])


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
word = text.filter(str.strip)
suppress = st.sampled_from("NOYE")


@st.composite
def concepts(draw, concept_id):
    rows = draw(st.lists(st.tuples(word, word, text, word, text, suppress), min_size=1, max_size=3))
    records = [NameRecord(concept_id, *row, rank=rank) for rank, row in enumerate(rows)]
    for kind in (SemanticTypeRecord, CodeRecord, DefinitionRecord, BroaderRecord):
        pairs = draw(st.lists(st.tuples(word, word), max_size=2))
        records += [kind(concept_id, *pair) for pair in pairs]
    return records + [TradeNameRecord(concept_id, other) for other in draw(st.lists(word, max_size=2))]


@st.composite
def knowledge_bases(draw):
    ids = draw(st.lists(word, max_size=4, unique=True))
    records = [record for concept_id in ids for record in draw(concepts(concept_id))]
    sabs = sorted({record.sab for record in records if isinstance(record, NameRecord)})
    sources = [SourceRecord(sab, draw(text), draw(text), licence_level=draw(st.integers(0, 9))) for sab in sabs]
    gone = [RetiredRecord(draw(word), *draw(st.sampled_from([(None, "DEL"), ("C1", "SY"), ("C1", "RO")])), draw(text))]
    return sources + records + gone


@given(records=knowledge_bases())
def test_what_is_written_is_read_back_and_written_the_same(records, tmp_path_factory):
    path = tmp_path_factory.mktemp("pack") / "kb.jsonl"
    with path.open("w", encoding="utf-8", newline="\n") as handle:
        write_jsonl(handle, records)

    found = list(JsonlReader(path).records())
    again = io.StringIO()
    write_jsonl(again, found)

    assert found == records
    assert again.getvalue().encode() == path.read_bytes()
