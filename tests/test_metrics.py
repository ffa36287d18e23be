import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink import metrics

RANKS = st.lists(st.integers(0, 30), min_size=1, max_size=60)


@given(RANKS)
def test_accuracy_grows_with_k_and_reciprocal_rank_lies_between_first_and_any(ranks):
    at_1, at_5, at_all = (metrics.accuracy_at(ranks, k) for k in (1, 5, 30))

    assert at_1 <= at_5 <= at_all
    assert at_1 <= metrics.mean_reciprocal_rank(ranks) <= at_all


def test_nothing_to_score_scores_nothing():
    assert metrics.accuracy_at([], 1) == metrics.mean_reciprocal_rank([]) == metrics.coverage([]) == 0.0
    assert metrics.expected_calibration_error([], []) == 0.0


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(0, 5))
def test_an_interval_holds_the_mean_and_depends_on_the_seed_only(values, seed):
    low, high = metrics.bootstrap_interval(values, seed=seed, resamples=500)

    assert 0 <= low <= sum(values) / len(values) <= high <= 1
    assert metrics.bootstrap_interval(values, seed=seed, resamples=500) == (low, high)


def test_an_interval_is_as_wide_as_theory_says():
    values = [1.0] * 300 + [0.0] * 700

    low, high = metrics.bootstrap_interval(values, resamples=4000)

    expected = 1.96 * (0.3 * 0.7 / 1000) ** 0.5
    assert (high - low) / 2 == pytest.approx(expected, rel=0.1)


def test_nil_counts_what_was_said_and_what_there_was():
    said = [True, True, True, False]
    truth = [True, False, True, True]

    assert metrics.nil_precision_recall(said, truth) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert metrics.nil_precision_recall([], []) == (None, None)


def test_calibration_bins_hold_equal_numbers_of_answers():
    # With bins of equal width, 0.5 to 0.6, all of these would fall into one and their errors cancel out.
    probabilities = [0.50] * 10 + [0.59] * 10
    correct = [True] * 10 + [False] * 10

    error = metrics.expected_calibration_error(probabilities, correct, bins=2)

    assert error == pytest.approx((0.5 + 0.59) / 2)


def test_a_perfect_model_is_calibrated_up_to_chance():
    rng = np.random.default_rng(0)
    probabilities = rng.random(20_000)

    assert metrics.expected_calibration_error(probabilities, rng.random(20_000) < probabilities) < 0.02


@pytest.mark.parametrize(
    ("probabilities", "correct", "bins"), [([1.1], [True], 10), ([0.5], [], 10), ([0.5], [True], 0)]
)
def test_nonsense_is_refused(probabilities, correct, bins):
    with pytest.raises(ValueError, match=r"bins|probabilities"):
        metrics.expected_calibration_error(probabilities, correct, bins=bins)
