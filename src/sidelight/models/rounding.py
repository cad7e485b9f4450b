"""Real weights to whole counts, with no more randomness than rounding needs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def round_to(weights: NDArray[Any], total: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Whole counts that sum to ``total``, each within 1 of what its weight makes us expect, and unbiased.

    Systematic rounding: cut points at u, u + 1, u + 2, … along the cumulated expected counts,
    in a random order of the cells. A cell of which s are expected gets ⌊s⌋ or ⌈s⌉.

    >>> round_to(np.array([1.0, 1.0, 2.0]), 8, np.random.default_rng(0))
    array([2, 2, 4])
    """
    expected = np.asarray(weights, dtype=np.float64)
    counts = np.zeros(expected.size, dtype=np.int64)
    order = rng.permutation(expected.size)
    if total == 0 or expected.size == 0:
        return counts
    # In their place, as far as can be: there may be as many as a model has records.
    ends = expected[order]
    np.cumsum(ends, out=ends)
    # The last end is the total itself, so the counts always sum to it; and a cell of weight 0 stays empty.
    is_end = ends == ends[-1]
    ends *= total / ends[-1]
    ends[is_end] = total
    ends -= rng.random()
    np.ceil(ends, out=ends)
    np.maximum.accumulate(ends, out=ends)
    np.clip(ends, 0, total, out=ends)
    ends[-1] = total
    counts[order[0]] = ends[0]
    counts[order[1:]] = np.diff(ends)
    return counts
