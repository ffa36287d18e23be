"""Corrections: checked against the store, counted, undone, never lost by a load; on both databases."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from sqlalchemy import insert, select

from medlink.errors import CurationError, UnknownConceptError, UnknownValueError
from medlink.kb import orm
from medlink.kb.curation import Curations, CurationState, curated_key
from medlink.kb.database import writing
from medlink.kb.records import NameRecord, RetiredRecord

BY = {"who": "ann", "why": "as our cardiologists say it"}
RELEASE = (
    NameRecord("C0027051", "Myocardial infarction", "S"),
    NameRecord("C0027051", "heart attack", "S"),
    NameRecord("MONDO:1", "Cold", "S"),
    RetiredRecord("C0155626", "C0027051", "SY"),
)


@pytest.fixture
def curations(store, load_records):
    load_records(*RELEASE)
    return Curations(store)


def test_a_correction_says_who_when_and_why(curations):
    before = datetime.now(UTC)

    entry = curations.add_synonym("C0027051", "coronary", **BY)

    assert (entry.action, entry.concept_id, entry.text) == ("add_synonym", "C0027051", "coronary")
    assert (entry.who, entry.why) == ("ann", "as our cardiologists say it")
    assert before <= entry.created_at <= datetime.now(UTC)
    assert curations.in_force() == CurationState(1, (entry,))


def test_every_change_counts_and_what_is_undone_is_kept(curations):
    assert curations.in_force() == CurationState(0, ())
    added = curations.add_synonym("C0027051", "coronary", **BY)
    blocked = curations.block_name("heart attack", concept="C0027051", **BY)
    pinned = curations.pin("the big one", "C0027051", **BY)
    hidden = curations.block_concept("MONDO:1", **BY)

    revision = curations.undo(blocked.id, who="bob")

    assert revision == curations.revision() == 5
    assert curations.in_force() == CurationState(5, (added, pinned, hidden))
    undone = curations.entries()[1]
    assert (undone.id, undone.revoked_by) == (blocked.id, "bob")
    assert undone.revoked_at >= undone.created_at
    with pytest.raises(UnknownValueError, match=f"valid: {added.id}, {pinned.id}, {hidden.id}$"):
        curations.undo(blocked.id, who="bob")


def test_what_was_undone_can_be_said_again(curations):
    first = curations.block_concept("MONDO:1", **BY)
    curations.undo(first.id, who="ann")

    second = curations.block_concept("MONDO:1", **BY)

    assert curations.in_force() == CurationState(3, (second,))


@pytest.mark.parametrize("identifier", ["C0027051", "umls:C0027051"])
def test_a_concept_may_be_given_as_curie(curations, identifier):
    assert curations.pin("the big one", identifier, **BY).concept_id == "C0027051"
    assert curations.block_concept("Mondo:1", **BY).concept_id == "MONDO:1"


@pytest.mark.parametrize("identifier", ["orphanet:558a", "ORPHANET:558a", "Orphanet:558a"])
def test_the_prefix_of_an_id_may_be_in_any_case_and_nothing_else(store, curations, identifier):
    with writing(store) as connection:
        connection.execute(insert(orm.Concept).values(id="Orphanet:558a", preferred_name="Marfan syndrome"))

    assert curations.block_concept(identifier, **BY).concept_id == "Orphanet:558a"
    with pytest.raises(UnknownConceptError):
        curations.block_concept(identifier.removesuffix("a") + "A", **BY)


def test_a_concept_that_is_not_there_is_refused_and_nothing_is_counted(curations):
    with pytest.raises(UnknownConceptError, match="no concept of this id"):
        curations.add_synonym("C9999999", "coronary", **BY)
    with pytest.raises(UnknownConceptError, match="C0155626 is retired; its successor is C0027051"):
        curations.pin("the big one", "C0155626", **BY)

    assert curations.in_force() == CurationState(0, ())


def test_mixed_up_arguments_do_not_repeat_the_mention(curations):
    with pytest.raises(UnknownConceptError) as caught:
        curations.pin("C0027051", "what the patient said", **BY)

    assert "patient" not in str(caught.value)


def test_a_name_to_block_must_be_one(curations):
    assert curations.block_name("HEART-attack", concept="C0027051", **BY).text == "HEART-attack"
    assert curations.block_name("Cold", **BY).concept_id is None

    with pytest.raises(CurationError, match="C0027051 has no such name; it has: Myocardial infarction; heart attack"):
        curations.block_name("Cold", concept="C0027051", **BY)
    with pytest.raises(CurationError, match="spelled exactly so"):
        curations.block_name("no such name", **BY)


@pytest.mark.parametrize("text", ["", " ", "#", "a\0b", "a\ud800b"])
def test_a_text_that_nothing_could_match_is_refused(curations, text):
    with pytest.raises(CurationError):
        curations.add_synonym("C0027051", text, **BY)
    with pytest.raises(CurationError):
        curations.pin(text, "C0027051", **BY)


@pytest.mark.parametrize("blank", [{"who": " "}, {"why": ""}, {"why": "\0"}])
def test_who_and_why_are_needed(curations, blank):
    with pytest.raises(CurationError):
        curations.block_concept("MONDO:1", **{**BY, **blank})


def test_nothing_is_said_twice_or_against_another_entry(curations):
    pinned = curations.pin("big one", "C0027051", **BY)
    with pytest.raises(CurationError, match=f"entry {pinned.id} says so already"):
        curations.pin("Big-One", "C0027051", **BY)
    with pytest.raises(CurationError, match=f"entry {pinned.id} pins the mention to C0027051"):
        curations.pin("big one", "MONDO:1", **BY)

    blocked = curations.block_concept("MONDO:1", **BY)
    with pytest.raises(CurationError, match=f"entry {blocked.id} blocks MONDO:1"):
        curations.add_synonym("MONDO:1", "the sniffles", **BY)

    assert curations.revision() == 2


def test_short_capitals_are_another_text_than_small_letters(curations):
    curations.pin("MI", "C0027051", **BY)
    curations.pin("mi", "MONDO:1", **BY)

    assert curated_key("Mi") == curated_key("mi") != curated_key("MI") == curated_key("MI.")
    assert curated_key("ASTHMA") == curated_key("asthma")
    with pytest.raises(CurationError, match="says so already"):
        curations.pin("Mi", "MONDO:1", **BY)


def test_corrections_survive_loads_and_dangle_while_their_concept_or_name_is_gone(curations, load_records):
    kept = curations.add_synonym("C0027051", "coronary", **BY)
    concept_gone = curations.pin("sniffles", "MONDO:1", **BY)
    name_gone = curations.block_name("heart attack", concept="C0027051", **BY)
    everywhere = curations.block_name("Cold", **BY)
    assert curations.dangling() == {}

    load_records(NameRecord("C0027051", "Myocardial infarction", "S"), RetiredRecord("MONDO:1", "C0027051", "RB"))

    assert curations.in_force() == CurationState(4, (kept, concept_gone, name_gone, everywhere))
    assert curations.dangling() == {
        concept_gone.id: "retired, successor C0027051",
        name_gone.id: "no such name",
        everywhere.id: "no such name",
    }
    load_records(*RELEASE)
    assert curations.dangling() == {}


def test_a_correction_of_a_blocked_concept_is_said_to_have_no_effect(curations):
    pinned = curations.pin("sniffles", "MONDO:1", **BY)
    blocked = curations.block_concept("MONDO:1", **BY)
    assert curations.dangling() == {pinned.id: f"entry {blocked.id} blocks the concept"}

    curations.undo(blocked.id, who="ann")

    assert curations.dangling() == {}


def test_two_writers_lose_no_change(curations, store):
    def write(writer: int) -> list[int]:
        own = Curations(store)
        ids = [own.add_synonym("C0027051", f"name {writer} {i}", **BY).id for i in range(8)]
        own.undo(ids[0], who="ann")
        return ids

    with ThreadPoolExecutor(3) as pool:
        ids = [entry for written in pool.map(write, range(3)) for entry in written]

    assert len(set(ids)) == 24
    assert curations.revision() == 27
    assert len(curations.in_force().entries) == 21


def test_of_two_writers_that_contradict_each_other_one_wins(curations, store):
    def pin(concept: str) -> bool:
        try:
            Curations(store).pin("the big one", concept, **BY)
        except CurationError:
            return False
        return True

    for round_number in range(1, 6):
        with ThreadPoolExecutor(2) as pool:
            won = list(pool.map(pin, ["C0027051", "MONDO:1"]))
        (entry,) = curations.in_force().entries

        assert sorted(won) == [False, True]
        assert curations.undo(entry.id, who="ann") == 2 * round_number


def test_texts_are_not_shown_where_entries_are_printed(curations):
    entry = curations.pin("what the patient said", "C0027051", who="ann", why="said by the patient")

    assert "patient" not in repr(entry)


def test_the_count_is_one_row(curations, store):
    curations.block_concept("MONDO:1", **BY)

    with store.connect() as connection:
        assert list(connection.execute(select(orm.CurationRevision.id, orm.CurationRevision.revision))) == [(1, 1)]
