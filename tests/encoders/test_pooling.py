import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink.encoders.pooling import normalise, pool


def slowly(hidden, mask, pooling):
    rows = []
    for text, kept in zip(hidden, mask, strict=True):
        tokens = [token for token, keep in zip(text, kept, strict=True) if keep]
        mean = [sum(float(token[d]) for token in tokens) / len(tokens) for d in range(hidden.shape[2])]
        vector = mean if pooling == "mean" else [float(x) for x in text[0]]
        length = sum(x * x for x in vector) ** 0.5
        rows.append([x / length for x in vector])
    return np.array(rows)


@given(seed=st.integers(0, 2**16), lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6))
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_agrees_with_a_loop_over_texts_and_tokens(pooling, seed, lengths):
    hidden = np.random.default_rng(seed).normal(size=(len(lengths), max(lengths), 5)).astype(np.float32)
    mask = np.array([[int(t < length) for t in range(max(lengths))] for length in lengths])

    found = pool(hidden, mask, pooling)

    assert found.dtype == np.float32
    np.testing.assert_allclose(found, slowly(hidden, mask, pooling), atol=1e-5)


def test_padding_does_not_count_and_special_tokens_do():
    hidden = np.array([[[3, 0], [0, 3], [900, 900]]], dtype=np.float32)

    found = pool(hidden, np.array([[1, 1, 0]]), "mean")

    np.testing.assert_allclose(found, [[0.5**0.5, 0.5**0.5]], atol=1e-6)


def test_a_row_of_zeros_stays_zero():
    assert normalise(np.zeros((1, 3), dtype=np.float32)).tolist() == [[0, 0, 0]]
