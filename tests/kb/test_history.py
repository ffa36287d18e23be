"""Retired ids are followed to ids that are in use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink.kb.history import resolve
from medlink.kb.records import NameRecord, RetiredRecord
from medlink.kb.repository import Repository
from medlink.types import Retirement

IDS = st.sampled_from([f"C{n}" for n in range(7)])
ORDER = ["SY", "RB", "RN", "RO"]


def fates(*records: RetiredRecord) -> dict[str, tuple[tuple[str, ...], str]]:
    """Resolve records whose ids need not be in order, all of them at hand."""
    links: dict[str, list[RetiredRecord]] = {}
    for record in sorted(records, key=lambda record: record.concept_id):
        links.setdefault(record.concept_id, []).append(record)
    ordered = [record for group in links.values() for record in group]
    return {fate.id: (fate.successors, fate.reason) for fate in resolve(ordered, links)}


def step(old: str, new: str | None, relation: str = "SY", release: str = "") -> RetiredRecord:
    return RetiredRecord(old, new, relation, release)


def test_a_chain_is_followed_to_its_end():
    found = fates(step("A", "B"), step("B", "C"), step("C", "D"))

    assert found == dict.fromkeys("ABC", (("D",), "SY"))


def test_a_chain_that_ends_in_a_deleted_id_has_no_successor():
    found = fates(step("A", "B"), step("B", None, "DEL"))

    assert found == {"A": ((), "DEL"), "B": ((), "DEL")}


def test_a_cycle_is_cut():
    found = fates(step("A", "B"), step("B", "A"), step("C", "C"), step("D", "A"), step("A", "E", "RO"))

    assert found == {"A": (("E",), "RO"), "B": (("E",), "RO"), "C": ((), "DEL"), "D": (("E",), "RO")}


def test_nearer_relations_win_and_equal_ones_are_all_kept():
    found = fates(step("A", "X", "RO"), step("A", "Z", "RB"), step("A", "Y", "RB"), step("A", "W", "RN"))

    assert found == {"A": (("Y", "Z"), "RB")}


def test_a_chain_is_as_good_as_its_weakest_step():
    found = fates(step("A", "B"), step("B", "C", "RO"), step("A", "D", "RN"))

    assert found["A"] == (("D",), "RN")
    assert found["B"] == (("C",), "RO")


def test_a_real_successor_outweighs_a_deletion():
    assert fates(step("A", None, "DEL"), step("A", "B")) == {"A": (("B",), "SY")}


@given(st.lists(st.builds(RetiredRecord, IDS, IDS, st.sampled_from(ORDER)), max_size=14))
def test_agrees_with_trying_every_path(records):
    assert fates(*records) == slow_fates(records)


def slow_fates(records: list[RetiredRecord]) -> dict[str, tuple[tuple[str, ...], str]]:
    """Walk every path without a repeated id; the worst step of the best path decides."""
    retired = {record.concept_id for record in records}

    def ends(at: str, path: tuple[str, ...]) -> list[tuple[int, str]]:
        if at not in retired:
            return [(0, at)]
        return [
            (max(ORDER.index(record.relation), worst), end)
            for record in records
            if record.concept_id == at and record.successor_id not in (None, *path, at)
            for worst, end in ends(str(record.successor_id), (*path, at))
        ]

    answer = {}
    for old in retired:
        found = ends(old, ())
        best = min((worst for worst, _ in found), default=None)
        successors = tuple(sorted({end for worst, end in found if worst == best}))
        answer[old] = (successors, ORDER[best] if best is not None else "DEL")
    return answer


def test_the_store_resolves_chains_across_loads_and_orders_by_id(store, load_records):
    load_records(NameRecord("C9", "in use", "VOC"), NameRecord("C5", "back again", "VOC"), name="names")
    load_records(step("C1", "C2", "SY", "2019AB"), step("C4", None, "DEL", "2001AA"), name="old")
    load_records(
        step("C2", "C9", "SY", "2021AA"),
        step("C1", "C2", "SY"),
        step("C3", "C4"),
        step("C5", None, "DEL"),
        step("C6", "C5", "RO"),
        name="new",
    )

    assert list(Repository(store).retirements()) == [
        Retirement("C1", ("C9",), "SY", "2019AB"),
        Retirement("C2", ("C9",), "SY", "2021AA"),
        Retirement("C3", (), "DEL"),
        Retirement("C4", (), "DEL", "2001AA"),
        Retirement("C6", ("C5",), "RO"),
    ]


@pytest.mark.parametrize("relation", ["SUBX", ""])
def test_other_relations_lead_nowhere(relation):
    assert fates(step("A", "B", relation)) == {"A": ((), "DEL")}
