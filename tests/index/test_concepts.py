"""Concepts as curation leaves them: what they are called, and which of their names may answer."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from medlink.kb.curation import CurationState, Entry
from medlink.types import Concept, LinkOptions, Mention, Name, SemanticType

ATTACK, COLD, ITCHING = "C0027051", "HP:0000001", "MONDO:0099999"


def curated(build, *corrections):
    entries = [
        Entry(i, action, text, concept, who="ann", why="says so", created_at=datetime.now(UTC))
        for i, (action, concept, text) in enumerate(corrections, start=1)
    ]
    return build.curated(CurationState(1, tuple(entries)))


def link(build, text: str, **options):
    (result,) = build.linker.link([Mention(text)], LinkOptions(**options))
    return result


@pytest.mark.parametrize("concept", [ATTACK, None])
def test_a_concept_goes_by_its_first_name_that_is_not_blocked(build, concept):
    after = curated(build, ("block_name", concept, "myocardial infarction"))

    assert after.concepts.concepts([ATTACK])[ATTACK].preferred_name == "heart attack"
    whole = after.concepts.concept(ATTACK)
    assert (whole.preferred_name, [n.text for n in whole.names]) == ("heart attack", ["heart attack", "Hartinfarct"])
    assert link(after, "heart attack").candidates[0].concept.preferred_name == "heart attack"


def test_other_blocks_leave_the_preferred_name(build):
    after = curated(build, ("block_name", ATTACK, "heart attack"), ("add_synonym", ATTACK, "coronary"))

    assert after.concepts.concepts([ATTACK])[ATTACK].preferred_name == "Myocardial infarction"


def test_a_concept_goes_by_an_added_name_before_a_suppressed_one(build):
    block = ("block_name", ITCHING, "itching")

    with_added = curated(build, block, ("add_synonym", ITCHING, "itch"))
    without = curated(build, block)

    assert with_added.concepts.concept(ITCHING).preferred_name == "itch"
    assert without.concepts.concept(ITCHING).preferred_name == "scratchy skin"


def test_a_concept_with_no_name_left_goes_by_its_id_and_does_not_answer(build):
    after = curated(build, ("block_name", COLD, "cold"))

    concept = after.concepts.concept(COLD)
    assert (concept.preferred_name, concept.names) == (COLD, ())
    result = link(after, COLD)
    assert (result.status, result.reason) == ("nil", "no_candidate")


def test_a_concept_answers_to_its_id_though_its_preferred_name_is_blocked(build):
    after = curated(build, ("block_name", ATTACK, "Myocardial infarction"))

    for asked in (ATTACK, f"umls:{ATTACK}", "C0155626"):
        (best,) = link(after, asked).candidates
        assert (best.concept.id, best.concept.preferred_name, best.name.text) == (
            ATTACK,
            "heart attack",
            "heart attack",
        )
        assert (best.score, best.channels) == (1.0, (("exact", 1.0),))


def test_a_concept_answers_to_its_id_by_an_added_name_if_no_other_may(build):
    after = curated(build, ("block_name", COLD, "cold"), ("add_synonym", COLD, "chill"))

    assert [c.name.text for c in link(after, COLD).candidates] == ["chill"]
    assert link(after, COLD, semantic_types=frozenset({"T184"})).reason == "filtered_out"


def test_a_concept_whose_names_have_no_match_key_answers_to_its_id(make_build, tmp_path):
    build = make_build(tmp_path, [Concept("X:1", "#", (Name("#", "T"),)), Concept("X:2", "gout", (Name("gout", "T"),))])

    assert [c.concept.id for c in link(build, "X:1").candidates] == ["X:1"]


def test_a_pin_shows_the_name_that_its_concept_goes_by(build):
    after = curated(build, ("block_name", ATTACK, "Myocardial infarction"), ("pin_mention", ATTACK, "coronary"))

    best = link(after, "coronary", channels=("exact",)).candidates[0]

    assert (best.concept.id, best.name.text, best.pin.name.text) == (ATTACK, "heart attack", "heart attack")


def test_a_name_that_may_answer_is_the_first_that_passes_the_filters(build):
    after = curated(build, ("block_name", ATTACK, "Myocardial infarction"), ("block_concept", "C0004096", None))
    ids = [ITCHING, ATTACK, "C0004096", COLD, "C9999999"]

    def answering(**options) -> dict[str, str]:
        found = after.concepts.answering(ids, LinkOptions(**options))
        return {id_: name.text for id_, name in found.items()}

    assert answering() == {ATTACK: "heart attack", COLD: "Cold", ITCHING: "Itching"}
    assert answering(semantic_types=frozenset({"T184"})) == {ITCHING: "Itching"}
    assert answering(sabs=frozenset({"ICD10CM"})) == {ATTACK: "heart attack"}


def test_a_suppressed_name_may_answer_where_it_is_asked_for(make_build, tmp_path):
    kind = SemanticType("T047", "Disease or Syndrome")
    build = make_build(tmp_path, [Concept("X:1", "old", (Name("old", "T", suppressed=True),), (kind,))])

    assert build.concepts.answering(["X:1"], LinkOptions()) == {}
    assert link(build, "X:1").reason == "filtered_out"
    assert [c.name.text for c in link(build, "X:1", include_suppressed=True).candidates] == ["old"]


def test_facts_and_rarities_stay_as_built_but_a_blocked_concept_has_none(build):
    before = build.concepts
    after = curated(build, ("add_synonym", ATTACK, "coronary"), ("block_concept", "C0004096", None)).concepts

    ids = [ATTACK, COLD, "C0004096", "MONDO:0005087"]
    assert after.facts(ids) == {id_: f for id_, f in before.facts(ids).items() if id_ != "C0004096"}
    assert after.rarity(["cold", "coronary"]).tolist() == before.rarity(["cold", "coronary"]).tolist()


def test_facts_have_the_preferred_name_that_curation_leaves(build):
    before = build.concepts.facts([ATTACK])[ATTACK]
    after = curated(build, ("block_name", ATTACK, "myocardial infarction")).concepts.facts([ATTACK])[ATTACK]

    assert (after.concept.preferred_name, after.words) == ("heart attack", ("attack", "heart"))
    assert replace(after, concept=before.concept, words=before.words) == before
