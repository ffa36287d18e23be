import gzip
from collections import Counter

import pytest

from medlink.errors import SourceError
from medlink.kb.readers.obo import OboReader
from medlink.kb.records import (
    BroaderRecord,
    CodeRecord,
    DefinitionRecord,
    NameRecord,
    RetiredRecord,
    SourceRecord,
)

HEADER = """format-version: 1.4
data-version: tst/releases/2026-05-01
ontology: tst.obo
property_value: dc:title "A Test Ontology" xsd:string
property_value: terms:license http://creativecommons.org/licenses/by/4.0/
"""


@pytest.fixture
def read(tmp_path):
    """Read an ontology made of our header and some frames, giving records by kind and the report."""

    def read_frames(*frames, header=HEADER, **options):
        path = tmp_path / "tst.obo"
        path.write_text("\n".join((header, *frames)), encoding="utf-8", newline="\n")
        reader = OboReader(path, **options)
        kinds = {}
        for record in reader.records():
            kinds.setdefault(type(record), []).append(record)
        return kinds, reader.report

    return read_frames


COUGH = """[Term]
id: TST:0000001
name: cough
alt_id: TST:0000008
alt_id: TST:0000009
def: "A sudden breath, \\"out\\", with noise." [TST:lead]
synonym: "tussis | a \\"cough\\"" EXACT []
synonym: "dry cough" NARROW layperson []
synonym: "airway sign" BROAD []
synonym: "cold" RELATED [TST:abc]
synonym: "hoast" EXACT obsolete_synonym []
xref: UMLS_CUI:C9000001
xref: UMLS:C9000001
xref: MSH:D900001 "with a description"
xref: SNOMEDCT_US_2023_03_01:900001
xref: ICD10CM:R05.9
xref: https://example.org/cough
is_a: TST:0000002 ! respiratory sign
"""


def test_names_come_with_the_scope_of_the_synonym_as_tty(read):
    kinds, _ = read(COUGH)

    assert [(n.text, n.tty, n.suppress, n.rank) for n in kinds[NameRecord]] == [
        ("cough", "PT", "N", 0),
        ('tussis | a "cough"', "EXACT", "N", 1),
        ("dry cough", "NARROW", "N", 2),
        ("airway sign", "BROAD", "N", 3),
        ("cold", "RELATED", "N", 4),
        ("hoast", "EXACT", "O", 5),
    ]
    assert {(n.concept_id, n.sab, n.code, n.language) for n in kinds[NameRecord]} == {
        ("TST:0000001", "TST", "TST:0000001", "ENG")
    }


def test_definition_broader_term_and_alternative_ids_are_kept(read):
    kinds, _ = read(COUGH)

    assert kinds[DefinitionRecord] == [DefinitionRecord("TST:0000001", "TST", 'A sudden breath, "out", with noise.')]
    assert kinds[BroaderRecord] == [BroaderRecord("TST:0000001", "TST:0000002", "TST")]
    assert kinds[RetiredRecord] == [
        RetiredRecord("TST:0000008", "TST:0000001", "SY"),
        RetiredRecord("TST:0000009", "TST:0000001", "SY"),
    ]


def test_references_become_codes_under_one_spelling_of_their_source(read):
    kinds, report = read(COUGH)

    assert [(c.sab, c.code) for c in kinds[CodeRecord]] == [
        ("UMLS", "C9000001"),
        ("MESH", "D900001"),
        ("SNOMEDCT_US", "900001"),
        ("ICD10CM", "R05.9"),
    ]
    assert report.skipped["tst.obo", "reference without a namespace"] == 1


def test_the_header_gives_the_source(read):
    kinds, _ = read()

    assert kinds[SourceRecord] == [
        SourceRecord(
            "TST",
            "A Test Ontology",
            "tst/releases/2026-05-01",
            "http://creativecommons.org/licenses/by/4.0/",
            licence_level=0,
        )
    ]


@pytest.mark.parametrize("licence", ["https://example.org/ask-us", "http://creativecommons.org/licenses/by-nc/4.0/"])
def test_any_other_licence_counts_as_the_most_restricted(licence, read):
    kinds, _ = read(header=f"ontology: doid/subsets/small\nproperty_value: terms:license {licence}\n")

    assert [(s.sab, s.licence_level) for s in kinds[SourceRecord]] == [("DOID", 9)]


def test_the_caller_may_name_the_source(read):
    kinds, _ = read(COUGH, header="format-version: 1.4\n", sab="MINE")

    assert {n.sab for n in kinds[NameRecord]} == {kinds[SourceRecord][0].sab} == {"MINE"}


def test_a_header_that_names_no_ontology_is_an_error(read):
    with pytest.raises(SourceError, match=r"tst\.obo: the header has no `ontology:` line"):
        read(COUGH, header="format-version: 1.4\n")


def test_obsolete_terms_are_retired_and_have_no_names(read):
    kinds, report = read(
        "[Term]\nid: TST:1\nname: obsolete one\nis_obsolete: true\nreplaced_by: TST:9\n",
        "[Term]\nid: TST:2\nname: obsolete two\nis_obsolete: true\nconsider: TST:8\nconsider: TST:9\n",
        "[Term]\nid: TST:3\nname: obsolete three\nxref: UMLS:C1\nis_obsolete: true\n",
        "[Term]\nid: TST:4\nname: live\nis_obsolete: false\n",
    )

    assert kinds[RetiredRecord] == [
        RetiredRecord("TST:1", "TST:9", "SY"),
        RetiredRecord("TST:2", "TST:8", "RO"),
        RetiredRecord("TST:2", "TST:9", "RO"),
        RetiredRecord("TST:3", None, "DEL"),
    ]
    assert [n.text for n in kinds[NameRecord]] == ["live"]
    assert report.skipped["tst.obo", "obsolete term"] == 3
    assert report.rows["tst.obo"] == 4


def test_what_is_no_term_or_has_no_name_is_counted(read):
    kinds, report = read(
        "[Typedef]\nid: part_of\nname: part of\n",
        "[Term]\nid: TST:1\n",
        "[Term]\nid: TST:2\nname: \n",
        '[Term]\nid: TST:3\nname: sneeze\nsynonym: " " EXACT []\n',
    )

    assert [n.text for n in kinds[NameRecord]] == ["sneeze"]
    assert report.skipped == Counter(
        {
            ("tst.obo", "not a term"): 1,
            ("tst.obo", "term without a name"): 2,
            ("tst.obo", "blank name"): 2,
        }
    )


def test_a_citation_that_is_not_obo_costs_the_citation_only(read):
    kinds, report = read('[Term]\nid: TST:1\nname: cough\ndef: "Noise [loud]." [Book:by A Writer, TST:2] {a="b"}\n')

    assert kinds[DefinitionRecord] == [DefinitionRecord("TST:1", "TST", "Noise [loud].")]
    assert report.skipped["tst.obo", "citation that is not OBO"] == 1


@pytest.mark.parametrize(
    ("frame", "line"),
    [
        ("[Term]\nid: TST:1\nbogus\n", 9),
        ('[Term]\nid: TST:1\nname: a\nsynonym: "unclosed EXACT []\n', 10),
        ("[Term]\nname: no id\n", 8),
        ("[Strange]\nid: TST:1\n", 7),
    ],
)
def test_what_is_not_obo_names_file_and_line(frame, line, read):
    with pytest.raises(SourceError, match="not OBO") as caught:
        read(frame)

    assert (caught.value.file, caught.value.line) == ("tst.obo", line)


def test_a_line_that_is_not_utf8_is_named(tmp_path):
    path = tmp_path / "tst.obo.gz"
    path.write_bytes(gzip.compress(HEADER.encode() + b"\n[Term]\nid: TST:1\nname: caf\xe9\n"))

    with pytest.raises(SourceError, match="UTF-8") as caught:
        list(OboReader(path).records())

    assert (caught.value.file, caught.value.line) == ("tst.obo.gz", 9)


def test_windows_line_ends_and_odd_separators_change_nothing(tmp_path, read):
    expected, _ = read(COUGH.replace("cold", "cold\u2028\x85"))
    path = tmp_path / "windows.obo"
    text = HEADER + "\n" + COUGH.replace("cold", "cold\u2028\x85")
    path.write_text(text.replace("\n", "\r\n"), encoding="utf-8", newline="")

    found = list(OboReader(path).records())

    assert [r for r in found if isinstance(r, NameRecord)] == expected[NameRecord]
    assert "cold\u2028\x85" in {n.text for n in expected[NameRecord]}
