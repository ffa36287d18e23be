import tracemalloc
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink.errors import SourceError, UnknownValueError
from medlink.kb.readers.rrf import RrfReader
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

CONSO = "MRCONSO.RRF"


def of(kind, records):
    return [record for record in records if isinstance(record, kind)]


def texts(reader):
    return [name.text for name in of(NameRecord, reader.records())]


def preferred(records, cui):
    names = [n for n in of(NameRecord, records) if n.concept_id == cui and n.suppress == "N"]
    return min(names, key=lambda name: name.rank).text


def test_the_tiny_release_is_read_whole(tiny_release):
    reader = RrfReader(tiny_release)

    kinds = Counter(type(record) for record in reader.records())

    assert kinds == {
        SourceRecord: 5, NameRecord: 10, CodeRecord: 6, SemanticTypeRecord: 3, DefinitionRecord: 1,
        BroaderRecord: 5, TradeNameRecord: 2, RetiredRecord: 6,
    }  # fmt: skip
    assert reader.report.missing == []
    assert reader.report.bytes_read == reader.report.bytes_total


def test_rows_read_are_the_lines_of_each_file(tiny_release):
    reader = RrfReader(tiny_release)

    list(reader.records())

    lines = {path.name: path.read_bytes().count(b"\n") for path in tiny_release.rglob("*.RRF")}
    assert reader.report.rows == lines


def test_every_row_of_mrconso_is_a_name_or_is_counted_as_left_out(tiny_release):
    reader = RrfReader(tiny_release)

    names = texts(reader)

    left_out = {reason: n for (file, reason), n in reader.report.skipped.items() if file == CONSO}
    assert left_out == {
        "language": 1, "suppressed (O)": 1, "suppressed (Y)": 1, "suppressed (E)": 1, "blank name": 1,
        "same name, source and term type": 1,
    }  # fmt: skip
    assert len(names) + sum(left_out.values()) == reader.report.rows[CONSO]


def test_a_name_that_begins_with_a_quote_swallows_no_row(write, conso):
    release = write(CONSO, conso('2"-deoxy'), conso('"open'), conso('"whole"'), conso("after"))

    assert texts(RrfReader(release)) == ['2"-deoxy', '"open', '"whole"', "after"]


def test_separators_of_unicode_stay_in_the_name(tiny_release):
    assert "Lung\u2028black\x85" in texts(RrfReader(tiny_release))


@given(text=st.text(st.characters(exclude_characters="\n\r|\0", exclude_categories=["Cs"]), min_size=1))
def test_any_other_name_is_kept_as_it_is_or_counted_as_blank(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    row = f"C1|ENG|P|L|PF|S|Y|A||||AAA|PT|1|{text}|0|N||\n"
    (folder / CONSO).write_text(row, encoding="utf-8", newline="\n")
    reader = RrfReader(folder)

    found = texts(reader)

    assert found == ([text] if text.strip() else [])
    assert reader.report.skipped.total() == (0 if text.strip() else 1)


@pytest.mark.parametrize("text", ["left|right", "left||right"])
def test_a_pipe_in_a_name_is_an_error_that_names_file_and_line(text, write, conso):
    release = write(CONSO, conso(), conso(text))

    with pytest.raises(SourceError, match=r"^MRCONSO\.RRF:2: expected 18 columns") as caught:
        list(RrfReader(release).records())

    assert "left" not in str(caught.value)


@pytest.mark.parametrize("end", ["", "C9000001|ENG|", "|"])
def test_a_row_with_other_columns_is_an_error(end, write, conso):
    release = write(CONSO, conso(), conso() + end if end == "|" else end)

    with pytest.raises(SourceError, match=r"^MRCONSO\.RRF:2:"):
        list(RrfReader(release).records())


@pytest.mark.parametrize("columns", [{"CUI": ""}, {"SUPPRESS": "X"}, {"SUPPRESS": ""}])
def test_a_row_without_cui_or_with_an_unknown_suppress_is_an_error(columns, write, conso):
    release = write(CONSO, conso(), conso(**columns))

    with pytest.raises(SourceError, match=r"^MRCONSO\.RRF:2:"):
        list(RrfReader(release).records())


def test_suppressed_names_come_in_when_asked_for(tiny_release):
    names = of(NameRecord, RrfReader(tiny_release, include_suppressed=True).records())

    assert {n.text: n.suppress for n in names if n.suppress != "N"} == {
        "Stroke of the heart": "O",
        "HA": "Y",
        "Heart seizure": "E",
    }


def test_a_string_that_is_both_suppressed_and_not_is_two_names(write, conso):
    release = write(CONSO, conso(SUPPRESS="Y"), conso(SUPPRESS="N"))

    assert [n.suppress for n in of(NameRecord, RrfReader(release, include_suppressed=True).records())] == ["Y", "N"]
    assert [n.suppress for n in of(NameRecord, RrfReader(release).records())] == ["N"]


def test_all_languages_come_in_when_none_is_named(tiny_release):
    assert {n.language for n in of(NameRecord, RrfReader(tiny_release, languages=None).records())} == {"ENG", "SPA"}


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        (("ENG",), "Infarct of the heart"),
        (("SPA", "ENG"), "Ataque al corazón"),
        (("ENG", "SPA"), "Infarct of the heart"),
        (None, "Infarct of the heart"),
    ],
)
def test_the_first_language_gives_the_preferred_name(languages, expected, tiny_release):
    assert preferred(RrfReader(tiny_release, languages=languages).records(), "C9000001") == expected


def test_the_rank_goes_by_ts_then_stt_then_ispref_then_mrrank(write, conso):
    rows = [
        conso(f"{ts} {stt} {isp} {tty}", TS=ts, STT=stt, ISPREF=isp, TTY=tty)
        for tty, isp, stt, ts in product(["SY", "XX", "PT"], "NY", ["VC", "PF"], "SP")
    ]
    write(CONSO, *rows)
    release = write("MRRANK.RRF", "0400|AAA|PT|N|", "0399|AAA|SY|N|", "0999|AAA|PT|Y|")

    names = sorted(of(NameRecord, RrfReader(release).records()), key=lambda name: name.rank)

    expected = [" ".join(p) for p in product("PS", ["PF", "VC"], "YN", ["PT", "SY", "XX"])]
    assert [name.text for name in names] == expected
    assert len({name.rank for name in names}) == len(names)
    assert all(0 <= name.rank < 2**31 for name in names)


def test_of_equal_names_the_best_rank_is_kept(write, conso):
    release = write(CONSO, conso("coughing", ISPREF="N"), conso("cough", ISPREF="N"), conso("cough", AUI="A2"))

    records = list(RrfReader(release).records())

    assert preferred(records, "C9000001") == "cough"
    assert len(of(NameRecord, records)) == 2


def test_codes_come_once_a_concept_and_one_code_may_have_several_concepts(tiny_release):
    codes = of(CodeRecord, RrfReader(tiny_release).records())

    assert codes.count(CodeRecord("C9000001", "AAA", "A1")) == 1
    assert "NOCODE" not in {code.code for code in codes}


def test_a_code_of_two_concepts_is_kept_for_both(write, conso):
    release = write(CONSO, conso(CODE="7"), conso(CODE="7", CUI="C9000002"))

    codes = of(CodeRecord, RrfReader(release).records())

    assert codes == [CodeRecord("C9000001", "AAA", "7"), CodeRecord("C9000002", "AAA", "7")]


def test_sources_say_under_which_terms_they_come(tiny_release):
    sources = {s.sab: s for s in of(SourceRecord, RrfReader(tiny_release).records())}

    assert (sources["AAA"].version, sources["AAA"].licence_level) == ("2026_01", 0)
    assert sources["AAA"].attribution == "A Free Vocabulary, made up for tests."
    assert sources["BBB"].licence_level == 3
    assert (sources["DDD"].version, sources["DDD"].licence_level) == ("", 2)


@pytest.mark.parametrize("levels", [("0", ""), ("", "0"), ("9", "0")])
def test_a_source_without_one_clear_level_counts_as_the_most_restricted(levels, write, conso):
    release = write(CONSO, *(conso(SRL=level) for level in levels))

    assert [s.licence_level for s in of(SourceRecord, RrfReader(release).records())] == [9]


def test_sources_can_be_chosen(tiny_release):
    reader = RrfReader(tiny_release, sabs=["BBB"])

    records = list(reader.records())

    assert {record.sab for record in records if hasattr(record, "sab")} == {"BBB"}
    assert reader.report.skipped[CONSO, "source"] == 12
    assert reader.report.skipped["MRREL.RRF", "source"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"languages": ["ENG", "GRE"]}, "unknown language 'GRE'; valid: ENG, SPA"),
        ({"sabs": ["AAA", "SNOWMED"]}, "unknown source .* 'SNOWMED'; valid: AAA, BBB, DDD, EEE, ESP"),
    ],
)
def test_a_misspelt_choice_lists_the_valid_ones(options, message, tiny_release):
    with pytest.raises(UnknownValueError, match=message):
        list(RrfReader(tiny_release, **options).records())


@pytest.mark.parametrize("options", [{"languages": "ENG"}, {"languages": []}, {"sabs": "AAA"}, {"sabs": []}])
def test_a_choice_is_a_list_with_something_in_it(options, tiny_release):
    with pytest.raises(ValueError, match="non-empty sequence"):
        RrfReader(tiny_release, **options)


def test_mrconso_alone_is_enough_and_what_is_absent_is_said(write, conso):
    release = write(CONSO, conso())
    reader = RrfReader(release / CONSO)

    assert texts(reader) == ["cough"]
    assert set(reader.report.missing) == {
        "MRSAB.RRF", "MRRANK.RRF", "MRSTY.RRF", "MRDEF.RRF", "MRREL.RRF", "MRCUI.RRF", "MERGEDCUI.RRF",
        "DELETEDCUI.RRF",
    }  # fmt: skip


def test_a_release_without_mrconso_is_an_error(write):
    release = write("MRSTY.RRF", "C1|T047|B|Disease or Syndrome|AT1||")

    with pytest.raises(SourceError, match=r"MRCONSO\.RRF: not found"):
        list(RrfReader(release).records())


def test_the_same_release_gives_the_same_records(tiny_release):
    reader = RrfReader(tiny_release, languages=None, include_suppressed=True)

    first, report = list(reader.records()), str(reader.report)

    assert list(reader.records()) == first
    assert str(reader.report) == report
    assert list(RrfReader(tiny_release, languages=None, include_suppressed=True).records()) == first


def test_a_concept_with_2000_names_and_a_long_file_stream_in_flat_memory(write, conso):
    many = [conso(f"name {i} of one concept", CODE=str(i)) for i in range(2_000)]
    rest = [conso(f"name {i}", CUI=f"C{i:07d}") for i in range(30_000)]
    release = write(CONSO, *many, *rest)

    tracemalloc.start()
    count = sum(isinstance(record, NameRecord) for record in RrfReader(release).records())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert count == 32_000
    assert peak < 5_000_000  # a block of lines; kept in a list, the records take more than 9 MB
