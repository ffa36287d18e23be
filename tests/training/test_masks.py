import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from medlink.ragged import Ragged
from training.masks import ancestors, pair_masks, spare_ancestors

pytestmark = pytest.mark.torch

CONCEPTS = st.integers(0, 12)
ROWS = st.lists(st.tuples(CONCEPTS, st.lists(CONCEPTS, max_size=4)), max_size=12)


def masks_of(rows: list[tuple[int, list[int]]]):
    return pair_masks(
        torch.tensor([label for label, _ in rows], dtype=torch.long),
        torch.tensor([concept for _, related in rows for concept in related], dtype=torch.long),
        torch.tensor([len(related) for _, related in rows], dtype=torch.long),
    )


@settings(max_examples=80, deadline=None)
@given(ROWS)
def test_agrees_with_sets_compared_pair_by_pair(rows):
    positive, negative = masks_of(rows)

    sets = [{label, *related} for label, related in rows]
    numbers = range(len(rows))
    assert positive.tolist() == [[i != j and rows[i][0] == rows[j][0] for j in numbers] for i in numbers]
    assert negative.tolist() == [[sets[i].isdisjoint(sets[j]) for j in numbers] for i in numbers]


def test_one_string_of_two_concepts_is_neither_positive_nor_negative_to_itself():
    cold_the_disease, cold_the_sensation, fever = 1, 2, 3
    both = [cold_the_disease, cold_the_sensation]

    positive, negative = masks_of([(cold_the_disease, both), (cold_the_sensation, both), (fever, [fever])])

    assert not positive.any()
    assert negative.tolist() == [[False, False, True], [False, False, True], [True, True, False]]


def test_a_trade_name_is_not_pushed_from_its_substance():
    substance, brand, other = 1, 2, 3

    positive, negative = masks_of([(substance, [substance, brand]), (brand, [brand]), (other, [other])])

    assert not positive.any()
    assert not negative[0, 1]
    assert negative[0, 2]
    assert negative[1, 2]


def test_a_row_belongs_to_its_concept_even_when_its_set_leaves_that_out():
    positive, negative = masks_of([(1, []), (1, []), (2, [1])])

    assert positive[0, 1]
    assert not negative.any()


def test_widths_of_integers_may_differ():
    labels, related, sizes = torch.tensor([1, 2, 3]), torch.tensor([2, 2, 3]), torch.tensor([1, 1, 1])

    found = pair_masks(labels.int(), related, sizes)
    other = pair_masks(labels, related.int(), sizes.int())

    for mask, same in zip(found, other, strict=True):
        assert torch.equal(mask, same)
    assert found[1].tolist() == [[False, False, True], [False, False, True], [True, True, False]]


def test_sets_that_do_not_fit_the_rows_are_refused():
    with pytest.raises(ValueError, match=r"2 labels, 2 sizes with the sum 2, 3 related"):
        pair_masks(torch.tensor([1, 2]), torch.tensor([1, 2, 3]), torch.tensor([1, 1]))
    with pytest.raises(ValueError, match="2 labels, 1 sizes"):
        pair_masks(torch.tensor([1, 2]), torch.tensor([1]), torch.tensor([1]))


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_ancestors_are_those_that_a_walk_up_the_hierarchy_meets(levels):
    rng = np.random.default_rng(levels)
    parents = [set(rng.integers(0, 30, rng.integers(0, 3)).tolist()) for _ in range(30)]  # with circles
    links = np.array([(c, p) for c, ps in enumerate(parents) for p in sorted(ps)], np.int32)

    found = ancestors(Ragged.of_sorted(links[:, 0], links[:, 1], 30), levels)

    for concept in range(30):
        met, at = set(), {concept}
        for _ in range(levels):
            at = {p for c in at for p in parents[c]}
            met |= at
        assert found.row(concept).tolist() == sorted(met - {concept})


def test_a_concept_and_those_above_it_are_no_negatives():
    labels = [4, 2, 4, 7, 9]
    above = {4: [2, 5], 2: [], 7: [2, 4], 9: [1]}
    rows = [above[label] for label in labels]

    kept = spare_ancestors(
        torch.ones(5, 5, dtype=torch.bool),
        torch.tensor(labels),
        torch.tensor([concept for row in rows for concept in row]),
        torch.tensor([len(row) for row in rows]),
    )

    for i, one in enumerate(labels):
        for j, other in enumerate(labels):
            assert kept[i, j] == (other not in above[one] and one not in above[other])
