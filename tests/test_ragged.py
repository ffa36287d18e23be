"""Rows of different lengths come back as they went in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from medlink.ragged import Ragged

ROWS = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=8)


def ragged(rows: list[list[int]]) -> Ragged:
    owners = np.repeat(np.arange(len(rows), dtype=np.int32), [len(row) for row in rows])
    return Ragged.of_sorted(owners, np.array([v for row in rows for v in row], np.int32), len(rows))


@given(rows=ROWS)
def test_each_row_holds_its_values(rows):
    found = ragged(rows)

    assert len(found) == len(rows)
    assert [found.row(i).tolist() for i in range(len(found))] == rows
    assert found.lengths.tolist() == [len(row) for row in rows]


@given(rows=ROWS, data=st.data())
def test_taken_rows_come_in_the_order_asked_for(rows, data):
    asked = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=12))

    taken = ragged(rows).take(np.array(asked, np.int64))

    assert [taken.row(i).tolist() for i in range(len(taken))] == [rows[i] for i in asked]
    assert taken.values.dtype == np.int32
