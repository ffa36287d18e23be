"""What an answer is worth, by what its candidates are worth."""

import pytest

from medlink.linking.fusion import Fused
from medlink.linking.verdict import tied, verdict
from medlink.types import Name, Pin

EXACT = (("exact", 1.0), ("dense", 1.0))


def fused(concept: str, probability: float | None = None, text: str = "", **other) -> Fused:
    return Fused(concept, Name(text or f"name of {concept}", "T"), 0.5, **{"channels": (("dense", 0.9),)} | other,
                 probability=probability)  # fmt: skip


def test_nothing_found_is_nil_without_a_nearest():
    judged = verdict([], [], 0.5)

    assert (judged.status, judged.reason, judged.answers, judged.nearest) == ("nil", "no_candidate", (), [])
    assert judged.shown(5) == []


def test_what_only_filters_took_away_is_nil_with_the_nearest_beyond_them():
    beyond = [fused("X:1"), fused("X:2")]

    judged = verdict([], beyond, 0.5)

    assert (judged.status, judged.reason, judged.nearest) == ("nil", "filtered_out", beyond[:1])
    assert judged.shown(5) == beyond[:1]


def test_a_best_candidate_below_the_threshold_is_no_answer_but_the_nearest():
    candidates = [fused("X:1", 0.49), fused("X:2", 0.1)]

    judged = verdict(candidates, [], 0.5)

    assert (judged.status, judged.reason, judged.answers, judged.ties) == ("nil", "below_threshold", (), ())
    assert judged.nearest == candidates[:1]


def test_a_candidate_at_the_threshold_is_linked():
    judged = verdict([fused("X:1", 0.5), fused("X:2", 0.1)], [], 0.5)

    assert (judged.status, judged.reason, judged.nearest) == ("linked", None, ())
    assert [f.concept_id for f in judged.shown(1)] == ["X:1"]


def test_without_probabilities_nothing_is_below_a_threshold():
    assert verdict([fused("X:1")], [], 0.5).status == "linked"


@pytest.mark.parametrize(
    ("second", "status"), [(0.5, "ambiguous"), (0.45, "ambiguous"), (0.3, "linked"), (None, "linked")]
)
def test_a_second_that_is_about_as_probable_makes_it_ambiguous(second, status):
    judged = verdict([fused("X:1", 0.5), fused("X:2", second)], [], 0.1)

    assert (judged.status, judged.ties) == (status, ())


def test_a_third_that_is_about_as_probable_changes_nothing():
    candidates = [fused("X:1", 0.5), fused("X:2", 0.3), fused("X:3", 0.45)]

    assert verdict(candidates, [], 0.1).status == "linked"


def test_concepts_of_one_name_are_a_tie_however_probable_each_is():
    candidates = [
        fused("X:2", 0.8, "Cold", channels=EXACT),
        fused("X:1", 0.1, "cold", channels=EXACT),
        fused("X:3", 0.0),
    ]

    judged = verdict(candidates, [], 0.1)

    assert (judged.status, judged.ties) == ("ambiguous", ("X:2", "X:1"))


def test_a_short_form_and_a_word_are_two_names_and_so_are_a_whole_and_a_part():
    short, word = fused("X:1", text="AIDS", channels=EXACT), fused("X:2", text="aids", channels=EXACT)
    part = fused("X:3", text="aids", channels=())

    assert tied([short, word]) == tied([word, part]) == tied([short]) == tied([]) == ()


def test_a_mention_that_is_the_name_of_another_concept_than_the_first_is_ambiguous():
    passed_over = fused("X:2", 0.1, channels=EXACT)

    assert verdict([fused("X:1", 0.8), passed_over], [], 0.1).status == "ambiguous"
    variant = fused("X:2", 0.1, channels=(("exact", 0.95),))
    assert verdict([fused("X:1", 0.8), variant], [], 0.1).status == "linked"
    in_capitals = fused("X:2", 0.1, channels=EXACT, case_mismatch=True)
    assert verdict([fused("X:1", 0.8), in_capitals], [], 0.1).status == "linked"


def test_what_is_pinned_is_linked_whatever_else_is_found():
    pinned = fused("X:1", text="cold", channels=EXACT, pin=Pin("X:1", Name("cold", "T"), 1, "decided"))

    judged = verdict([pinned, fused("X:2", 0.9, "cold", channels=EXACT)], [], 0.5)

    assert (judged.status, judged.ties, len(judged.answers)) == ("linked", (), 2)
