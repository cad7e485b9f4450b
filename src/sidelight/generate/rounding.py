"""Real weights to whole counts, with no more randomness than rounding needs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def round_to(weights: NDArray[Any], total: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Whole counts that sum to ``total``, each within 1 of its share, with the right mean.

    Systematic rounding: cut points at u, u + 1, u + 2, … along the cumulated shares, in a
    random order of the cells. A cell of share s gets ⌊s⌋ or ⌈s⌉.

    >>> round_to(np.array([1.0, 1.0, 2.0]), 8, np.random.default_rng(0))
    array([2, 2, 4])
    """
    shares = np.asarray(weights, dtype=np.float64)
    order = rng.permutation(shares.size)
    ends = np.cumsum(shares[order])
    if total == 0 or ends.size == 0:
        return np.zeros(shares.size, dtype=np.int64)
    # The last end is the total itself, so the counts always sum to it; and a cell of share 0 stays empty.
    is_end = ends == ends[-1]
    ends *= total / ends[-1]
    ends[is_end] = total
    cuts = np.ceil(ends - rng.random()).astype(np.int64)
    cuts = np.clip(np.maximum.accumulate(cuts), 0, total)
    cuts[-1] = total
    counts = np.empty(shares.size, dtype=np.int64)
    counts[order] = np.diff(cuts, prepend=0)
    return counts
