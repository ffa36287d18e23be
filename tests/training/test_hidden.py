"""Concepts are hidden from a build by its curation, the same ones every time."""

from datetime import UTC, datetime

import pytest

from medlink.kb.curation import CurationState, Entry
from medlink.types import CHANNELS, LinkOptions, Mention
from training.hidden import choose, concepts_of, with_successors, without

ATTACK, ITCHING = "C0027051", "MONDO:0099999"


def best(build, text: str, *channels: str) -> list[str]:
    (result,) = build.linker.link([Mention(text)], LinkOptions(channels=channels))
    return [candidate.concept.id for candidate in result.candidates]


def test_a_concept_is_found_by_its_own_id_and_by_any_of_its_codes(build):
    assert concepts_of(build, ["UMLS:C0027051"]) == concepts_of(build, ["ICD10CM:I21"]) == {ATTACK}
    assert concepts_of(build, ["MESH:D009203"]) == {ATTACK, ITCHING}
    assert concepts_of(build, ["MESH:D001249", "MONDO:0005087"]) == {"C0004096", "MONDO:0005087"}
    assert concepts_of(build, ["MESH:D000000", "-1"]) == set()


def test_gold_of_a_retired_id_is_gold_of_its_successor_too(build):
    gold = (("UMLS:C0155626", "MESH:D000000"), ("UMLS:C0999999",), ())

    assert with_successors(build, gold) == (
        ("UMLS:C0155626", "MESH:D000000", "UMLS:C0027051"),
        ("UMLS:C0999999",),
        (),
    )


def test_the_same_share_is_chosen_in_whatever_order_concepts_come():
    concepts = [f"C{number:03}" for number in range(200)]

    chosen = choose(concepts, 0.3, seed=0)

    assert chosen == choose(set(reversed(concepts)), 0.3, seed=0)
    assert len(chosen) == 60
    assert set(chosen) != set(choose(concepts, 0.3, seed=1))
    assert choose(concepts, 1.0, seed=0) == concepts


@pytest.mark.parametrize("channel", CHANNELS)
def test_no_name_of_a_hidden_concept_is_left_in_any_channel(build, channel):
    hidden = without(build, CurationState(), [ATTACK])

    for name in ("Myocardial infarction", "heart attack", "Hartinfarct", "hart attack"):
        assert ATTACK not in best(hidden, name, channel)
    assert best(build, "heart attack", channel)[0] == ATTACK
    left = [id_ for id_ in best(build, "asthma", channel) if id_ != ATTACK]
    assert best(hidden, "asthma", channel)[: len(left)] == left
    assert concepts_of(hidden, ["MESH:D009203"]) == {ITCHING}


def test_corrections_in_force_stay_so_and_a_hidden_concept_loses_those_that_were_its_own(build):
    entries = [
        Entry(n, "add_synonym", text, concept, "ann", "says so", datetime.now(UTC))
        for n, text, concept in ((1, "the big one", ATTACK), (2, "ants under it", ITCHING))
    ]
    corrections = CurationState(2, tuple(entries))

    hidden = without(build.curated(corrections), corrections, [ATTACK])

    assert best(hidden, "ants under it", "exact") == [ITCHING]
    assert best(hidden, "the big one", "exact") == []
    assert without(hidden, corrections, []).linker.link([Mention("the big one")], LinkOptions())[0].candidates


@pytest.mark.parametrize("channel", ["exact", "lexical"])
def test_a_name_that_a_hidden_concept_shares_can_be_taken_from_the_others_too(build, channel):
    kept, gone = (without(build, CurationState(), ["HP:0000001"], homonyms=homonyms) for homonyms in (False, True))

    assert build.linker.link([Mention("cold")], LinkOptions())[0].ties == ("HP:0000001", "MESH:D003139")
    assert best(kept, "cold", channel) == ["MESH:D003139"]
    assert "cold" not in {c.name.text for c in gone.linker.link([Mention("cold")], LinkOptions())[0].candidates}
    assert best(gone, "common cold", channel)[0] == "MESH:D003139"
