"""Probabilities of a list, and what makes a candidate broader than the mention."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from medlink.linking.calibration import (
    CALIBRATION_FEATURES,
    JUDGED,
    OWN_FEATURES,
    Calibration,
    PlainWords,
    calibration_features,
    covers_part,
    fits,
    is_broader,
    probabilities,
)
from medlink.linking.evidence import words
from medlink.linking.features import FEATURES, Asked
from medlink.linking.fusion import Fused, FusionModel
from medlink.types import Name

PLAIN = PlainWords({"with": 90, "patient": 40, "severe": 2}, texts=100)


def fused(concept: str = "X:1", text: str = "asthma", order: float = 0.0, **features: float) -> Fused:
    row = tuple(({"lexical": order} | features).get(feature, 0.0) for feature in FEATURES)
    return Fused(concept, Name(text, "T"), 0.5, (), order=order, features=row, words=words(text))


class ByLexical(FusionModel):
    """Sorts by one feature, so that a test can say how well a candidate fits."""

    def __init__(self) -> None:
        pass

    def orders(self, features):
        return features[:, FEATURES.index("lexical")]


MODEL = ByLexical()


@pytest.fixture
def stored(models) -> dict:
    return json.loads((models / "calibration.json").read_text())


@given(hnp.arrays(np.float64, st.integers(0, 12), elements=st.floats(-30, 30)))
def test_probabilities_fall_along_a_list_and_come_to_at_most_one(logits):
    stated = probabilities(logits)

    assert len(stated) == len(logits)
    assert stated == sorted(stated, reverse=True)
    assert all(0 <= p <= 1 for p in stated)
    assert sum(stated) <= 1 + 1e-9


@given(st.floats(-30, 30), hnp.arrays(np.float64, st.integers(0, 11), elements=st.floats(-30, 30)))
def test_what_the_first_says_of_itself_stands(first, others):
    assert probabilities(np.array([first, *others]))[0] == round(float(1 / (1 + np.exp(-first))), 4)


def test_no_rounding_makes_more_than_one_of_ten():
    assert sum(probabilities(np.array([np.log(0.40005 / 0.59995)] * 10))) <= 1


@pytest.mark.parametrize("concepts", [0, 1, JUDGED + 5])
def test_every_candidate_has_a_probability_and_those_that_are_not_judged_none_worth_naming(stored, concepts):
    candidates = [fused(f"X:{at}", order=5.0 - at) for at in range(concepts)]

    (judged,) = Calibration(stored).judge([Asked.of("asthma")], [candidates], MODEL)

    assert [f.concept_id for f in judged] == [f.concept_id for f in candidates]
    assert all(0 < f.probability < 1 for f in judged[:1])
    assert all(f.probability == 0 for f in judged[JUDGED:])


def test_a_list_is_judged_alike_whatever_else_is(stored):
    calibration = Calibration(stored)
    lists = [[fused(order=3.0), fused("X:2", order=1.0)], [], [fused(order=-6.0)]]
    asked = [Asked.of("asthma"), Asked.of("cold"), Asked.of("gout")]

    together = calibration.judge(asked, lists, MODEL)

    alone = [calibration.judge([one], [candidates], MODEL)[0] for one, candidates in zip(asked, lists, strict=True)]
    assert together == alone
    assert together[0][0].probability > together[2][0].probability


WITHIN = {"name_words_in_mention": 1.0, "mention_words_in_name": 0.5}


@pytest.mark.parametrize(
    ("mention", "candidate", "expected"),
    [
        pytest.param("severe asthma", fused(**WITHIN), True, id="a word is left over"),
        pytest.param("patient with asthma", fused(**WITHIN), False, id="words are left over that say nothing"),
        pytest.param("patient with severe asthma", fused(**WITHIN), True, id="some of those left over say something"),
        pytest.param("asthma", fused(name_words_in_mention=1, mention_words_in_name=1), False, id="the whole of it"),
        pytest.param("severe asthma", fused(exact=1.0, **WITHIN), False, id="the mention's own name"),
        pytest.param("severe asthma", fused(is_above=1.0), True, id="there for what is below it"),
        pytest.param("severe asthma", fused(text="asthma attack", mention_words_in_name=0.5), False, id="more words"),
        pytest.param(
            "severe asthma",
            fused(text="asthma attack", preferred_words_in_mention=1, mention_words_in_name=0.5),
            True,
            id="its preferred name is a part",
        ),
    ],
)
def test_a_candidate_covers_a_part_if_it_leaves_words_over_that_mean_something(mention, candidate, expected):
    assert covers_part(Asked.of(mention), candidate, PLAIN) is expected


def test_what_covers_a_part_is_broader_unless_it_is_probably_meant():
    assert [is_broader(True, p) for p in (0.0, 0.1, 0.95)] == [True, True, False]
    assert not any(is_broader(False, p) for p in (0.0, 0.5, 1.0))


def test_relation_and_probability_go_together(stored):
    severe = [Asked.of("severe asthma")], [[fused(**WITHIN)]]
    sure = Calibration(stored | {"trees": [[[9.0]]]}).judge(*severe, MODEL)[0][0]
    unsure = Calibration(stored | {"trees": [[[-9.0]]]}).judge(*severe, MODEL)[0][0]

    assert (sure.relation, sure.probability > 0.99) == ("exact", True)
    assert (unsure.relation, unsure.probability < 0.01) == ("broader", True)


def test_words_are_plain_that_stand_in_many_texts():
    words_ = ("with", "patient", "severe", "asthma")

    assert [PLAIN.is_plain(word) for word in words_] == [True, True, False, False]
    stated = [PLAIN.plainness(word) for word in words_]
    assert stated == sorted(stated, reverse=True)
    assert (stated[0], stated[-1]) == (pytest.approx(np.log(901)), 0)
    assert PlainWords({}, 0).plainness("with") == 0


def test_what_calibration_looks_at_is_the_fit_and_how_far_ahead_of_the_others():
    candidates = [fused(order=3.0, dense=0.9), fused("X:2", "ALS", order=2.5), fused("X:3", order=1.0)]

    rows = calibration_features(Asked.of("als with"), candidates, [True, False, False], [3.0, 2.5, 1.0], PLAIN)

    named = [dict(zip(CALIBRATION_FEATURES, row, strict=True)) for row in rows.tolist()]
    assert [r["fit"] for r in named] == [3.0, 2.5, 1.0]
    assert [r["ahead_of_others"] for r in named] == [0.5, -0.5, -2.0]
    assert [(r["case_mismatch"], r["covers_part"]) for r in named] == [(0, 1), (1, 0), (0, 0)]
    assert [r["dense"] for r in named] == [0.9, 0, 0]
    assert named[0]["plainest_word"] == 0
    assert named[0]["plainness"] == pytest.approx(np.log(901) / 2)


def test_a_candidate_without_rivals_is_far_ahead_and_no_candidates_have_no_rows():
    alone = calibration_features(Asked.of(""), [fused(order=1.0)], [False], [1.0], PLAIN)

    assert alone[0, OWN_FEATURES.index("ahead_of_others")] == 10
    assert calibration_features(Asked.of("asthma"), [], [], [], PLAIN).shape == (0, len(CALIBRATION_FEATURES))


def test_what_the_vocabulary_of_a_concept_is_worth_does_not_decide_how_well_it_fits(ranked_build):
    model = ranked_build.models[0]
    bare, known = fused(dense=0.75), fused(dense=0.75, literature_source=1.0)

    assert fits([[bare], [known], []], model) == [[fits([[bare]], model)[0][0]], [fits([[bare]], model)[0][0]], []]
    assert fits([[bare]], model) != fits([[fused(dense=0.1)]], model)


@pytest.mark.parametrize("missing", ["format", "fusion", "features", "threshold", "texts", "plain_words", "trees"])
def test_a_calibration_that_lacks_something_is_refused(stored, missing):
    with pytest.raises(ValueError, match=r"calibration|model"):
        Calibration({key: value for key, value in stored.items() if key != missing})


@pytest.mark.parametrize("content", ["", "[]", "1", "null", '{"format": 1}'])
def test_a_file_that_is_no_calibration_is_refused(tmp_path, content):
    (tmp_path / "calibration.json").write_text(content)

    with pytest.raises(ValueError, match=r"calibration|Expecting"):
        Calibration.read(tmp_path / "calibration.json")


def test_a_calibration_of_other_features_says_how_to_make_one(stored):
    with pytest.raises(ValueError, match="run `medlink train calibrate`"):
        Calibration(stored | {"features": list(CALIBRATION_FEATURES[::-1])})
