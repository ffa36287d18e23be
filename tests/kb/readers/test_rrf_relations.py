import pytest

from medlink.errors import SourceError
from medlink.kb.readers.rrf import RrfReader
from medlink.kb.records import (
    BroaderRecord,
    DefinitionRecord,
    NameRecord,
    RetiredRecord,
    TradeNameRecord,
)

HEART_ATTACK, HEART_DISEASE, BLACK_LUNG, QUILLADINE, NORTIVA = (
    "C9000001", "C9000002", "C9000003", "C9000011", "C9000012",
)  # fmt: skip


def rel(cui1, rel, cui2, rela="", suppress="N"):
    return f"{cui1}|A1|AUI|{rel}|{cui2}|A2|AUI|{rela}|R1||AAA|AAA||N|{suppress}||"


def related(reader, *kinds):
    return [record for record in reader.records() if isinstance(record, kinds)]


def test_heart_disease_is_broader_than_heart_attack_from_either_end(tiny_release):
    broader = related(RrfReader(tiny_release), BroaderRecord)

    # Stated as PAR and RB of the one and as CHD of the other.
    assert broader.count(BroaderRecord(HEART_ATTACK, HEART_DISEASE, "AAA")) == 2
    assert BroaderRecord(BLACK_LUNG, HEART_DISEASE, "BBB") in broader
    assert all(record.concept_id != HEART_DISEASE for record in broader)


def test_the_generic_drug_has_the_trade_name_from_either_end(tiny_release):
    trade_names = related(RrfReader(tiny_release), TradeNameRecord)

    assert set(trade_names) == {TradeNameRecord(generic_id=QUILLADINE, trade_id=NORTIVA)}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (rel("C1", "PAR", "C2"), BroaderRecord("C1", "C2", "AAA")),
        (rel("C1", "RB", "C2"), BroaderRecord("C1", "C2", "AAA")),
        (rel("C1", "CHD", "C2"), BroaderRecord("C2", "C1", "AAA")),
        (rel("C1", "RN", "C2"), BroaderRecord("C2", "C1", "AAA")),
        (rel("C1", "RO", "C2", "has_tradename"), TradeNameRecord("C2", "C1")),
        (rel("C1", "RO", "C2", "tradename_of"), TradeNameRecord("C1", "C2")),
    ],
)
def test_a_relation_says_what_the_second_concept_is_to_the_first(row, expected, write, conso):
    write("MRCONSO.RRF", conso())
    release = write("MRREL.RRF", row)

    assert related(RrfReader(release), BroaderRecord, TradeNameRecord) == [expected]


def test_relations_of_no_use_are_counted_with_the_reason(tiny_release):
    reader = RrfReader(tiny_release)

    list(reader.records())

    left_out = {reason: n for (file, reason), n in reader.report.skipped.items() if file == "MRREL.RRF"}
    assert left_out == {"relation not used": 2, "self relation": 1, "suppressed (O)": 1}


def test_a_relation_stated_by_several_atoms_comes_once(write, conso):
    write("MRCONSO.RRF", conso())
    release = write("MRREL.RRF", *[rel("C1", "PAR", "C2")] * 3)

    assert related(RrfReader(release), BroaderRecord) == [BroaderRecord("C1", "C2", "AAA")]


def test_definitions_follow_the_rules_of_names(tiny_release):
    plain = related(RrfReader(tiny_release), DefinitionRecord)
    all_of_them = related(RrfReader(tiny_release, languages=None, include_suppressed=True), DefinitionRecord)

    assert [(d.concept_id, d.sab) for d in plain] == [(HEART_ATTACK, "AAA")]
    assert [(d.concept_id, d.sab) for d in all_of_them] == [
        (HEART_ATTACK, "AAA"),
        (HEART_ATTACK, "ESP"),
        (HEART_DISEASE, "BBB"),
    ]


def test_retired_cuis_keep_every_successor_and_the_release(tiny_release):
    reader = RrfReader(tiny_release)

    retired = related(reader, RetiredRecord)

    assert retired == [
        RetiredRecord("C9000091", HEART_ATTACK, "SY", "2024AA"),
        RetiredRecord("C9000092", HEART_DISEASE, "RB", "2023AB"),
        RetiredRecord("C9000092", BLACK_LUNG, "RO", "2023AB"),
        RetiredRecord("C9000093", None, "DEL", "2022AA"),
        RetiredRecord("C9000095", BLACK_LUNG, "SY"),
        RetiredRecord("C9000096", None, "DEL"),
    ]
    assert reader.report.skipped["MRCUI.RRF", "relation SUBX"] == 1


def test_names_come_before_what_refers_to_their_concept(tiny_release):
    records = list(RrfReader(tiny_release).records())

    last_name = max(i for i, record in enumerate(records) if isinstance(record, NameRecord))
    first_relation = min(i for i, r in enumerate(records) if isinstance(r, BroaderRecord | DefinitionRecord))
    assert last_name < first_relation


@pytest.mark.parametrize(
    ("file", "row"),
    [
        ("MRSTY.RRF", "C1|T047|B2|Disease or Syndrome|"),
        ("MRDEF.RRF", "C1|A1|AT1||AAA|one|two|N||"),
        ("MRREL.RRF", "C1|PAR|C2|"),
        ("MRREL.RRF", rel("C1", "PAR", "C2", suppress="?")),
        ("MRREL.RRF", rel("", "PAR", "C2")),
        ("MRSAB.RRF", "AAA|"),
        ("MRRANK.RRF", "high|AAA|PT|N|"),
        ("MRCUI.RRF", "C1|2024AA|DEL|"),
        ("MERGEDCUI.RRF", "C1|C2"),
        ("DELETEDCUI.RRF", "C1|a|b|"),
    ],
)
def test_a_bad_row_of_any_file_names_file_and_line(file, row, write, conso):
    write("MRCONSO.RRF", conso())
    release = write(f"CHANGE/{file}", row)

    with pytest.raises(SourceError, match=rf"^CHANGE/{file}:1: "):
        list(RrfReader(release).records())
