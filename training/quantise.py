"""Weights stored as signed bytes with fp32 scales, to be multiplied out again before anything is computed."""

import numpy as np
from numpy.typing import NDArray

_BLOCK = 64


def quantise_blocks(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32], int]:
    """Quantise a matrix (inputs, outputs) with one scale for each block of inputs of each output.

    Returns:
        Bytes, shape (inputs, outputs); scales, shape (inputs / block, outputs); and the block, 64 or the largest
        number below it that divides the inputs.
    """
    inputs, outputs = matrix.shape
    block = next(size for size in range(min(_BLOCK, inputs), 0, -1) if inputs % size == 0)
    blocks = matrix.reshape(inputs // block, block, outputs)
    scales = _scales(blocks, axis=1)
    return _round(blocks, scales[:, None]).reshape(inputs, outputs), scales, block


def quantise_rows(table: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantise a table with one scale a row; returns bytes, shape of the table, and scales, shape (rows,)."""
    scales = _scales(table, axis=1)
    return _round(table, scales[:, None]), scales


def _scales(values: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    scales: NDArray[np.float32] = (np.abs(values).max(axis=axis) / np.float32(127)).astype(np.float32)
    scales[scales == 0] = 1
    return scales


def _round(values: NDArray[np.float32], scales: NDArray[np.float32]) -> NDArray[np.int8]:
    bytes_: NDArray[np.int8] = np.clip(np.rint(values / scales), -127, 127).astype(np.int8)
    return bytes_
