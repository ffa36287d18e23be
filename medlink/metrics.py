"""How good answers are: accuracy, reciprocal rank, intervals, NIL and calibration, as pure functions.

A rank is the place of the first right answer, from 1; 0 says that there was none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_RESAMPLES_AT_ONCE = 100


def accuracy_at(ranks: Sequence[int], k: int) -> float:
    """Return the fraction of mentions with a right answer among the first k; 0.0 of no mentions.

    >>> accuracy_at([1, 3, 0, 2], 1), accuracy_at([1, 3, 0, 2], 2)
    (0.25, 0.5)
    """
    return _mean([1 <= rank <= k for rank in ranks])


def mean_reciprocal_rank(ranks: Sequence[int]) -> float:
    """Return the mean of 1 / rank, where no right answer counts 0; 0.0 of no mentions.

    >>> mean_reciprocal_rank([1, 2, 0, 4])
    0.4375
    """
    return _mean([1 / rank if rank else 0.0 for rank in ranks])


def coverage(answerable: Sequence[bool]) -> float:
    """Return the fraction of mentions that the dictionary could answer, the ceiling of any accuracy.

    >>> coverage([True, True, False, True])
    0.75
    """
    return _mean(answerable)


def bootstrap_interval(
    values: Sequence[float], *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Return the percentile interval of the mean over resampled mentions; the same for the same seed.

    >>> low, high = bootstrap_interval([1.0] * 80 + [0.0] * 20)
    >>> 0.71 <= low <= 0.74, 0.86 <= high <= 0.89
    (True, True)
    >>> bootstrap_interval([])
    (0.0, 0.0)
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, not {level}")
    if not len(values):
        return 0.0, 0.0
    rng = np.random.default_rng(seed)
    array = np.asarray(values, dtype=np.float64)
    means = [
        array[rng.integers(0, len(array), (min(_RESAMPLES_AT_ONCE, resamples - done), len(array)))].mean(axis=1)
        for done in range(0, resamples, _RESAMPLES_AT_ONCE)
    ]
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def nil_precision_recall(said_nil: Sequence[bool], is_nil: Sequence[bool]) -> tuple[float | None, float | None]:
    """Return precision and recall with NIL as the positive class; None where nothing was said or there to find.

    >>> nil_precision_recall([True, True, False, False], [True, False, True, False])
    (0.5, 0.5)
    >>> nil_precision_recall([False, False], [True, False])
    (None, 0.0)
    """
    right = sum(said and truth for said, truth in zip(said_nil, is_nil, strict=True))
    said, truth = sum(said_nil), sum(is_nil)
    return (right / said if said else None, right / truth if truth else None)


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers of about the same stated probability: its mean, how many of them were right, and how many there are."""

    probability: float
    accuracy: float
    count: int


def reliability(
    probabilities: Sequence[float] | NDArray[np.float64], correct: Sequence[bool], *, bins: int = 10
) -> list[Bin]:
    """Return answers by stated probability, the lowest first, in bins of equal numbers of answers.

    Args:
        probabilities: Of each top answer, within [0, 1].
        correct: Whether that answer was right.
        bins: How many; fewer where there are not as many answers.

    >>> reliability([0.75, 0.25, 0.75, 0.25], [True, False, True, True], bins=2)
    [Bin(probability=0.25, accuracy=0.5, count=2), Bin(probability=0.75, accuracy=1.0, count=2)]
    """
    stated, right = np.asarray(probabilities, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if stated.shape != right.shape:
        raise ValueError(f"{len(stated)} probabilities for {len(right)} answers")
    if bins < 1 or not np.all((stated >= 0) & (stated <= 1)):
        raise ValueError("bins must be at least 1 and probabilities within [0, 1]")
    if not len(stated):
        return []
    # Equal probabilities on both sides of an edge stay in the order given.
    order = np.argsort(stated, kind="stable")
    parts = np.array_split(order, min(bins, len(order)))
    return [Bin(float(stated[rows].mean()), float(right[rows].mean()), len(rows)) for rows in parts]


def expected_calibration_error(
    probabilities: Sequence[float] | NDArray[np.float64], correct: Sequence[bool], *, bins: int = 10
) -> float:
    """Return the mean distance between stated probability and accuracy, over the bins of `reliability`.

    >>> expected_calibration_error([0.9] * 10, [True] * 9 + [False], bins=1) < 1e-12
    True
    >>> expected_calibration_error([0.2, 0.2, 0.8, 0.8], [False, False, True, True], bins=2)
    0.2
    """
    gaps = [
        abs(part.probability - part.accuracy) * part.count for part in reliability(probabilities, correct, bins=bins)
    ]
    return round(sum(gaps) / len(probabilities), 12) if gaps else 0.0


def _mean(values: Sequence[float] | Sequence[bool]) -> float:
    return float(sum(values) / len(values)) if len(values) else 0.0
