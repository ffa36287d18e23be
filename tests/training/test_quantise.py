import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.quantise import quantise_blocks, quantise_rows


def matrix(seed, inputs, outputs):
    return np.random.default_rng(seed).normal(size=(inputs, outputs)).astype(np.float32)


@given(seed=st.integers(0, 99), inputs=st.sampled_from([1, 32, 64, 67, 96, 312, 384]), outputs=st.integers(1, 5))
def test_a_weight_moves_by_half_a_step_of_its_own_block_at_most(seed, inputs, outputs):
    weights = matrix(seed, inputs, outputs)

    stored, scales, block = quantise_blocks(weights)

    assert stored.dtype == np.int8
    assert inputs % block == 0
    assert block <= 64
    assert scales.shape == (inputs // block, outputs)
    for row in range(inputs):
        for column in range(outputs):
            own = np.abs(weights[row // block * block :][:block, column]).max() / 127
            assert scales[row // block, column] == pytest.approx(own)
            assert abs(stored[row, column] * own - weights[row, column]) <= own * 0.501


@given(seed=st.integers(0, 99), rows=st.integers(1, 6))
def test_a_row_of_a_table_has_a_step_of_its_own(seed, rows):
    table = matrix(seed, rows, 24)

    stored, scales = quantise_rows(table)

    assert np.abs(stored).max(axis=1).tolist() == [127] * rows
    assert (np.abs(stored * scales[:, None] - table) <= scales[:, None] * 0.501).all()


def test_weights_that_are_zero_stay_zero():
    stored, scales, _ = quantise_blocks(np.zeros((64, 2), dtype=np.float32))

    assert not stored.any()
    assert np.isfinite(scales).all()
