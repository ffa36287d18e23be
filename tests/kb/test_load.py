"""A load is all or nothing, and replaces what was loaded under its name."""

from pathlib import Path

import pytest
from sqlalchemy import text

from medlink.errors import SourceError, UnknownValueError
from medlink.kb import bulk
from medlink.kb.load import fingerprint, load, remove
from medlink.kb.readers.report import ReadReport
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
from medlink.kb.repository import Repository

ROOT = Path(__file__).resolve().parents[2]
CONTENT = (
    SourceRecord("VOC", "A vocabulary", "2026", "CC-BY-4.0"),
    NameRecord("C1", "fever", "VOC", "PT", rank=1),
    NameRecord("C1", "pyrexia", "VOC", "SY", rank=2),
    NameRecord("C2", "sign", "VOC", "PT"),
    CodeRecord("C1", "VOC", "V1"),
    SemanticTypeRecord("C1", "T184", "Sign or Symptom"),
    DefinitionRecord("C1", "VOC", "A raised temperature."),
    BroaderRecord("C1", "C2", "VOC"),
    TradeNameRecord("C1", "C2"),
    RetiredRecord("C0", "C1", "SY", "2020AA"),
)


@pytest.fixture
def repository(store):
    return Repository(store)


def content(repository: Repository):
    lists = (repository.sources(), list(repository.trade_names()), list(repository.retirements()))
    return list(repository.concepts()), *lists, repository.stats().rows


def test_every_kind_of_record_is_stored_and_counted(load_records, repository):
    report = load_records(*CONTENT)

    once = dict.fromkeys(["broader", "code", "definition", "retired", "semantic_type", "source", "trade_name"], 1)
    assert report.rows == {"name": 3, **once}
    assert (report.orphans, report.duplicates, report.skipped) == ({}, {}, {})
    assert report.read == {"memory": len(CONTENT)}
    stored = {table: count for table, count in report.rows.items() if table != "source"}
    assert repository.stats().rows == {"concept": 2, **stored}


def test_a_load_under_the_same_name_replaces_the_last_one(load_records, repository):
    load_records(*CONTENT)

    load_records(NameRecord("C2", "indication", "VOC"), NameRecord("C3", "cough", "VOC"))

    assert [concept.id for concept in repository.concepts()] == ["C2", "C3"]
    assert repository.concept("C2").preferred_name == "indication"
    assert list(repository.retirements()) == []
    assert repository.sources() == []


def test_the_same_input_twice_gives_the_same_content(load_records, repository):
    first_report = load_records(*CONTENT)
    first = content(repository)

    second_report = load_records(*CONTENT)

    assert content(repository) == first
    assert second_report.rows == first_report.rows


def test_an_input_that_is_loaded_already_is_left_alone(load_records, repository):
    load_records(*CONTENT, fingerprint="abc")

    again = load_records(SourceError("must not be read", file="any"), fingerprint="abc")
    other = load_records(NameRecord("C1", "cold", "VOC"), fingerprint="def")

    assert again.already_loaded
    assert repository.fingerprints() == {"first": "def"}
    assert not other.already_loaded
    assert repository.concept("C1").preferred_name == "cold"


def test_an_input_that_is_loaded_already_is_loaded_again_by_force(load_records, repository):
    load_records(*CONTENT, fingerprint="abc")

    report = load_records(NameRecord("C1", "cold", "VOC"), fingerprint="abc", force=True)

    assert not report.already_loaded
    assert repository.concept_count() == 1


def test_two_loads_may_name_the_same_concept(load_records, repository):
    load_records(NameRecord("C1", "fever", "A", rank=5), CodeRecord("C1", "A", "1"), name="a")
    load_records(NameRecord("C1", "hot", "B", rank=1), CodeRecord("C1", "B", "2"), name="b")

    both = repository.concept("C1")
    load_records(NameRecord("C9", "other", "B"), name="b")
    left = repository.concept("C1")

    assert [name.text for name in both.names] == ["fever", "hot"]
    assert [code.sab for code in both.codes] == ["A", "B"]
    assert [name.text for name in left.names] == ["fever"]
    assert preferred(repository) == {"C1": "fever", "C9": "other"}


def preferred(repository: Repository) -> dict[str, str]:
    """Preferred names as the table of concepts has them."""
    with repository._engine.connect() as connection:
        rows = connection.execute(text("SELECT id, preferred_name FROM concept"))
        return {concept_id: name for concept_id, name in rows}


def test_what_refers_to_a_concept_without_a_name_is_dropped_and_counted(load_records, repository):
    report = load_records(
        NameRecord("C1", "fever", "VOC"),
        CodeRecord("C7", "VOC", "V1"),
        SemanticTypeRecord("C7", "T1", "Type"),
        DefinitionRecord("C7", "VOC", "Text."),
        BroaderRecord("C1", "C7", "VOC"),
        BroaderRecord("C7", "C1", "VOC"),
        TradeNameRecord("C1", "C7"),
        RetiredRecord("C7", "C8", "SY"),
    )

    assert report.orphans == {"code": 1, "semantic_type": 1, "definition": 1, "broader": 2, "trade_name": 1}
    assert report.rows["broader"] == 0
    rows = {table: count for table, count in repository.stats().rows.items() if count}
    assert rows == {"concept": 1, "name": 1, "retired": 1}


def test_a_load_may_say_more_about_the_concepts_of_another_until_they_go(load_records, repository):
    load_records(NameRecord("C1", "fever", "A"), NameRecord("C2", "cough", "A"), name="a")
    load_records(DefinitionRecord("C1", "B", "Hot."), DefinitionRecord("C2", "B", "Loud."), name="b")

    report = load_records(NameRecord("C2", "cough", "A"), name="a")

    assert report.orphans_elsewhere == 1
    assert report.orphans == {}
    assert [definition.text for definition in repository.concept("C2").definitions] == ["Loud."]
    assert repository.stats().rows["definition"] == 1


def test_relations_and_codes_that_come_twice_are_stored_once_however_far_apart(load_records, repository, monkeypatch):
    monkeypatch.setattr(bulk, "_BATCH", 3)
    twice = (
        CodeRecord("C1", "VOC", "V1"),
        SemanticTypeRecord("C1", "T1", "Type"),
        BroaderRecord("C1", "C2", "VOC"),
        TradeNameRecord("C1", "C2"),
        RetiredRecord("C0", "C1", "SY"),
    )
    fill = [CodeRecord("C2", "VOC", f"V{n}") for n in range(10)]

    report = load_records(NameRecord("C1", "a", "VOC"), NameRecord("C2", "b", "VOC"), *twice, *twice, *fill, *twice)

    tables = ("code", "semantic_type", "broader", "trade_name", "retired")
    assert report.duplicates == dict.fromkeys(tables, 2)
    assert [repository.stats().rows[table] for table in tables] == [11, 1, 1, 1, 1]


@pytest.mark.parametrize("text", ["nul \0 inside", "lone surrogate \ud800"])
def test_a_character_that_no_store_holds_costs_its_row_only(load_records, repository, text):
    report = load_records(
        NameRecord("C1", "fever", "VOC"),
        NameRecord("C1", text, "VOC"),
        DefinitionRecord("C1", "VOC", text),
        SourceRecord("VOC", text, ""),
        NameRecord("C1", "µ emoji 🤒 עברית", "VOC"),
    )

    reason = "character that no store holds"
    assert report.skipped == {(table, reason): 1 for table in ("name", "definition", "source")}
    assert [name.text for name in repository.concept("C1").names] == ["fever", "µ emoji 🤒 עברית"]


@pytest.mark.parametrize("text", [r"back\slash \N \.", "tab\tand\nline", '"quoted", commas | pipes', "'; DROP"])
def test_names_come_back_as_they_went_in(load_records, repository, text):
    load_records(NameRecord("C1", text, "VOC", code=r"\N"))

    name = repository.concept("C1").names[0]
    assert (name.text, name.code) == (text, r"\N")


def test_the_preferred_name_is_the_first_by_suppression_rank_and_text(load_records, repository):
    load_records(
        NameRecord("C1", "obsolete", "VOC", suppress="O", rank=0),
        NameRecord("C1", "zeta", "VOC", rank=1),
        NameRecord("C1", "alpha", "VOC", rank=1),
        NameRecord("C1", "aaa", "VOC", rank=2),
        NameRecord("C2", "gone", "VOC", suppress="Y"),
    )

    assert preferred(repository) == {"C1": "alpha", "C2": "gone"}
    first = repository.concept("C1")
    assert [name.text for name in first.names] == ["alpha", "zeta", "aaa", "obsolete"]
    assert [name.suppressed for name in first.names] == [False, False, False, True]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_replacing_load_plans_with_the_concepts_that_are_there(store, load_records):
    # A plan for an empty table of concepts ran for minutes where the right one takes a second.
    load_records(*CONTENT)

    load_records(*CONTENT, NameRecord("C3", "cough", "VOC"))

    with store.connect() as connection:
        assert connection.scalar(text("SELECT reltuples FROM pg_class WHERE relname = 'concept'")) == 3


def test_progress_goes_up_to_the_end(store, monkeypatch):
    monkeypatch.setattr(bulk, "_BATCH", 4)
    seen = []

    class Files:
        report = ReadReport(bytes_total=100)

        def records(self):
            for number in range(1, 11):
                self.report.bytes_read = number * 10
                yield NameRecord("C1", f"name {number}", "VOC")

    load(store, Files(), name="first", progress=lambda *state: seen.append(state))

    assert seen == [(40, 100, 4), (80, 100, 8), (100, 100, 10)]


def test_the_fingerprint_tells_content_and_options_apart(tmp_path):
    first, second, unread = tmp_path / "MRCONSO.RRF", tmp_path / "MRSTY.RRF", tmp_path / "MRHIER.RRF"
    for path in (first, second, unread):
        path.write_text(path.name)
    same = fingerprint(tmp_path, {"languages": ["ENG"]})

    unread.write_text("not read, not hashed")
    assert fingerprint(tmp_path, {"languages": ["ENG"]}) == same
    assert fingerprint(tmp_path, {"languages": ["DUT"]}) != same
    assert fingerprint(first, {"languages": ["ENG"]}) != same
    second.write_text("another")
    assert fingerprint(tmp_path, {"languages": ["ENG"]}) != same


def test_the_columns_of_each_table_are_the_fields_of_its_record():
    for target in bulk.TARGETS:
        assert [column.name for column in target.table.columns] == ["id", "load_id", *target.columns]
        assert set(target.refers) <= set(target.columns)


def test_a_load_that_is_removed_takes_what_only_it_said(store, load_records, repository):
    load_records(NameRecord("C1", "fever", "A"), NameRecord("C2", "cough", "A"), name="first")
    load_records(NameRecord("C1", "pyrexia", "B"), SemanticTypeRecord("C2", "T184", "Sign"), name="second")

    remove(store, "first")

    (left,) = repository.concepts()
    assert (left.id, left.preferred_name) == ("C1", "pyrexia")
    assert repository.stats().rows["semantic_type"] == 0
    assert list(repository.fingerprints()) == ["second"]
    with pytest.raises(UnknownValueError, match="unknown load 'first'; valid: second"):
        remove(store, "first")
