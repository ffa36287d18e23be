"""Trees as they are stored say what LightGBM says, and come out the same every time."""

import json

import lightgbm
import numpy as np
import pytest

from medlink.linking.trees import Trees
from training.boosting import Boosting, probability_trees, rank_trees

BOOSTING = Boosting(trees=30, leaves=7, learning_rate=0.1, least_rows=5, columns=0.7)


def data(seed: int, mentions: int = 60, candidates: int = 8):
    rng = np.random.default_rng(seed)
    rows = np.round(rng.normal(size=(mentions * candidates, 5)), 4)
    rows[:, 3] = rng.integers(0, 3, len(rows))
    rows[:, 4] *= rng.random(len(rows)) < 0.3
    right = rows[:, 0] + rows[:, 3] + rng.normal(size=len(rows)) > 1.5
    return rows, right, [candidates] * mentions


@pytest.fixture
def boosters(monkeypatch):
    """What LightGBM trains while a test runs."""
    train, trained = lightgbm.train, []

    def watched(*args, **options):
        trained.append(train(*args, **options))
        return trained[-1]

    monkeypatch.setattr(lightgbm, "train", watched)
    return trained


@pytest.mark.parametrize("seed", range(3))
def test_trees_that_rank_predict_what_lightgbm_predicts(boosters, seed):
    rows, right, sizes = data(seed)
    others = data(seed + 100)[0]

    trees = rank_trees(rows, right, sizes, BOOSTING)

    for asked in (rows, others):
        expected = boosters[0].predict(asked, raw_score=True)
        assert Trees.of_nodes(trees).predict(asked) == pytest.approx(expected, abs=1e-5)
    assert len(trees) == BOOSTING.trees


@pytest.mark.parametrize("weighted", [False, True])
def test_trees_that_judge_predict_what_lightgbm_predicts(boosters, weighted):
    rows, right, _ = data(7)
    weights = np.random.default_rng(1).integers(1, 9, len(rows)).astype(float) if weighted else None

    trees = probability_trees(rows, right, BOOSTING, rising=(0,), weights=weights)

    logits = Trees.of_nodes(trees).predict(rows)
    assert logits == pytest.approx(boosters[0].predict(rows, raw_score=True), abs=1e-5)
    assert 1 / (1 + np.exp(-logits)) == pytest.approx(boosters[0].predict(rows), abs=1e-5)


def test_the_same_rows_grow_the_same_trees_to_the_byte():
    rows, right, sizes = data(3)

    assert json.dumps(rank_trees(rows, right, sizes, BOOSTING)) == json.dumps(rank_trees(rows, right, sizes, BOOSTING))
    judged = [json.dumps(probability_trees(rows, right, BOOSTING, rising=(0, 1))) for _ in range(2)]
    assert judged[0] == judged[1]


def test_stored_trees_read_back_the_same():
    rows, right, sizes = data(4)
    trees = rank_trees(rows, right, sizes, BOOSTING)

    read = Trees.of_nodes(json.loads(json.dumps(trees)))

    assert read.predict(rows).tolist() == Trees.of_nodes(trees).predict(rows).tolist()


def test_trees_that_rank_put_right_candidates_first():
    rows, right, sizes = data(5)
    orders = Trees.of_nodes(rank_trees(rows, right, sizes, BOOSTING)).predict(rows)

    assert orders[right].mean() > orders[~right].mean() + 1


def test_a_rising_feature_never_lowers_what_is_stated():
    rows, right, _ = data(6)
    # The second feature speaks against being right.
    right &= rows[:, 1] < 0.5
    raised = rows.copy()
    raised[:, 1] += 2

    free = Trees.of_nodes(probability_trees(rows, right, BOOSTING))
    rising = Trees.of_nodes(probability_trees(rows, right, BOOSTING, rising=(1,)))

    assert (free.predict(raised) < free.predict(rows)).any()
    assert (rising.predict(raised) >= rising.predict(rows)).all()


def test_a_weight_counts_as_often_as_the_row_came():
    rows, right, _ = data(8, mentions=20)
    rows = np.round(rows)
    counts = np.random.default_rng(2).integers(1, 4, len(rows))
    one_leaf = Boosting(trees=1, leaves=2, learning_rate=1.0, least_rows=1)

    weighted = probability_trees(rows, right, one_leaf, weights=counts.astype(float))
    repeated = probability_trees(np.repeat(rows, counts, axis=0), np.repeat(right, counts), one_leaf)

    assert Trees.of_nodes(weighted).predict(rows) == pytest.approx(Trees.of_nodes(repeated).predict(rows))


def test_no_tree_is_deeper_or_wider_than_asked_for():
    rows, right, sizes = data(9)

    trees = rank_trees(rows, right, sizes, Boosting(3, leaves=64, learning_rate=0.1, least_rows=1, depth=3))

    assert Trees.of_nodes(trees).depth == 3
    assert max(sum(len(node) == 1 for node in nodes) for nodes in trees) <= 8
