"""Trees as arrays say what a walk from node to node says, and refuse what is not trees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink.linking import trees as module
from medlink.linking.trees import Trees, read_trees

FEATURES = 3
_values = st.floats(-4, 4).map(lambda x: round(x, 1))


@st.composite
def one_tree(draw):
    nodes = [[draw(_values)]]
    for _ in range(draw(st.integers(0, 6))):
        leaves = [at for at, node in enumerate(nodes) if len(node) == 1]
        at = draw(st.sampled_from(leaves))
        nodes[at] = [draw(st.integers(0, FEATURES - 1)), draw(_values), len(nodes)]
        nodes += [[draw(_values)], [draw(_values)]]
    return nodes


def walk(nodes, row, at=0):
    if len(nodes[at]) == 1:
        return nodes[at][0]
    feature, threshold, left = nodes[at]
    return walk(nodes, row, left if row[feature] <= threshold else left + 1)


@given(
    st.lists(one_tree(), max_size=5),
    st.lists(st.lists(_values, min_size=FEATURES, max_size=FEATURES), max_size=7),
    st.integers(1, 20),
)
def test_a_prediction_is_the_sum_of_the_leaves_that_a_walk_comes_to(trees, rows, together):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_TOGETHER", together)
        found = Trees.of_nodes(trees).predict(np.array(rows, np.float64).reshape(-1, FEATURES))

    assert found.tolist() == pytest.approx([sum(walk(nodes, row) for nodes in trees) for row in rows])


def test_a_value_at_the_threshold_goes_left():
    trees = Trees.of_nodes([[[0, 0.5, 1], [1.0], [2.0]]])

    assert trees.predict(np.array([[0.5], [0.5000001], [np.inf], [-np.inf]])).tolist() == [1.0, 2.0, 2.0, 1.0]


def test_no_trees_say_nothing():
    assert Trees.of_nodes([]).predict(np.ones((2, 3))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "trees",
    [
        pytest.param([[[0, 0.5, 1, 2], [1.0], [2.0]]], id="a node of four numbers"),
        pytest.param([[[0, 0.5], [1.0], [2.0]]], id="a node of two"),
        pytest.param([[[]]], id="a node of none"),
        pytest.param([[[0, 0.5, 0], [1.0], [2.0]]], id="a child that is its own parent"),
        pytest.param([[[0, 0.5, -1], [1.0], [2.0]]], id="a child before all others"),
        pytest.param([[[0, 0.5, 2], [1.0], [2.0]]], id="a right child that is not there"),
        pytest.param([[[0, 0.5, 1], [0, 0.2, 0], [2.0]]], id="a way back"),
        pytest.param([[[3, 0.5, 1], [1.0], [2.0]]], id="a feature too many"),
        pytest.param([[[-1, 0.5, 1], [1.0], [2.0]]], id="a feature before the first"),
        pytest.param([[["0", "a", 1], [1.0], [2.0]]], id="words for numbers"),
        pytest.param([[[0, None, 1], [1.0], [2.0]]], id="nothing for a number"),
        pytest.param([[[0, float("nan"), 1], [1.0], [2.0]]], id="a threshold that is no number"),
        pytest.param([[[float("nan")]]], id="a leaf that is no number"),
        pytest.param([[]], id="a tree without nodes"),
        pytest.param([1], id="a number for a tree"),
        pytest.param(1, id="a number for trees"),
        pytest.param(None, id="nothing for trees"),
        pytest.param({"a": 1}, id="an object for trees"),
    ],
)
def test_what_is_not_trees_over_the_features_is_refused(trees):
    with pytest.raises(ValueError, match=r"tree|float"):
        read_trees({"trees": trees}, FEATURES)


def test_a_model_without_trees_is_refused():
    with pytest.raises(ValueError, match="no trees"):
        read_trees({}, FEATURES)
