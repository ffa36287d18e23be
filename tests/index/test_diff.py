"""What two builds answer differently is listed with the reason, once a mention, and nothing else is."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from index.build import Content, build_index
from index.diff import compare_builds
from index.store import BuildStore
from medlink.kb.curation import CurationState, Entry
from medlink.types import Concept, LinkOptions, Mention, Name, Retirement

ASTHMA = Concept("C1", "asthma", (Name("asthma", "A"), Name("wheezing disease", "A")))
COLD = Concept("C2", "cold", (Name("cold", "A"),))
FEVER = Concept("C3", "fever", (Name("fever", "A"), Name("pyrexia", "A")))
EXACT = LinkOptions(top_k=1, channels=("exact",))


@pytest.fixture(scope="module")
def make(encoder_dir, tmp_path_factory):
    def of(*concepts: Concept, retired: tuple[Retirement, ...] = ()):
        store = BuildStore(tmp_path_factory.mktemp("diff"))
        return store.open(build_index(Content(concepts, retired, (), {}, 3), encoder_dir, store, recipe="flat"))

    return of


@pytest.fixture(scope="module")
def before(make):
    return make(ASTHMA, COLD, FEVER)


def changes(earlier, later, *texts: str):
    return list(compare_builds(earlier, later, [Mention(text) for text in texts], EXACT))


def test_equal_builds_answer_alike(before, make):
    assert changes(before, make(ASTHMA, COLD, FEVER), "asthma", "cold", "pyrexia", "nothing") == []


def test_a_retired_concept_is_named_with_its_successors(before, make):
    after = make(ASTHMA, FEVER, retired=(Retirement("C2", ("C3",), "SY"),))

    (change,) = changes(before, after, "asthma", "cold")

    assert (change.item, change.why, change.successors) == (1, "concept_retired", ("C3",))
    assert (change.before.status, change.before.concept_id) == ("linked", "C2")
    assert (change.after.status, change.after.concept_id, change.after.reason) == ("nil", None, "no_candidate")


def test_a_concept_that_is_gone_or_new_says_so(before, make):
    without = make(ASTHMA, FEVER)

    assert [change.why for change in changes(before, without, "cold")] == ["concept_gone"]
    assert [change.why for change in changes(without, before, "cold")] == ["concept_new"]


def test_a_name_that_is_gone_or_new_says_so(before, make):
    without = make(replace(ASTHMA, names=ASTHMA.names[:1]), COLD, FEVER)

    assert [change.why for change in changes(before, without, "wheezing disease")] == ["name_gone"]
    assert [change.why for change in changes(without, before, "wheezing disease")] == ["name_new"]


def test_a_pin_is_neither_a_name_nor_a_concept(before):
    pin = Entry(1, "pin_mention", "cold", "C3", "ann", "ours", datetime.now(UTC))

    (change,) = changes(before, before.curated(CurationState(1, (pin,))), "cold")

    assert (change.why, change.after.concept_id) == ("score", "C3")


def test_the_parts_of_a_mention_are_compared_too(before, make):
    moved = make(ASTHMA, replace(COLD, id="C4"), FEVER)

    found = changes(before, moved, "fever", "asthma and cold")

    assert [(change.item, change.part, change.why) for change in found] == [(1, 1, "concept_gone")]


def test_a_mention_that_only_one_build_answers_in_parts_is_one_change(before, make):
    found = changes(before, make(ASTHMA, FEVER), "asthma and cold")

    assert [(change.item, change.part, change.why) for change in found] == [(0, None, "parts")]


def test_no_text_is_kept(before, make):
    found = changes(before, make(ASTHMA, FEVER), "cold", "cold and fever")

    assert "cold" not in repr(found)
