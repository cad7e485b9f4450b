"""SELECT by permute-and-flip: in random order, take the first candidate whose coin is heads.

McKenna and Sheldon (2020), arXiv:2010.12603, algorithm 1. The coin of r is heads with probability
p_r = exp(ε (s_r − s*) / 2Δ), and s* is the best score, so that somebody's coin always is. ε-DP, but not
of bounded range, so it costs ε²/2 and not ε²/8 in zCDP (spec 2.5).

Where we differ: the coins do not depend on the order, so we flip all of them first and then take one of
the heads uniformly: the first head in a uniformly random order is any of the heads, equally likely. Each
coin is exact (`coins`), on the grid of `grid`.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sidelight.privacy import event
from sidelight.privacy.coins import below, flip, uniform
from sidelight.privacy.noise import NoiseSource
from sidelight.select.grid import Gaps

_BITS = 32
"""Random bits for each coin; one coin in 2³² needs more."""


def permute_and_flip(noise: NoiseSource, scores: NDArray[np.float64], event: event.PermuteAndFlip) -> int:
    """The index of one candidate; the higher its score, the likelier. −∞ is never chosen.

    >>> from sidelight.privacy.budget import Epsilon
    >>> from sidelight.testing import SeededNoise
    >>> paid = event.PermuteAndFlip.at(
    ...     Epsilon(Fraction(20)), what="3 candidates", sensitivity=Fraction(1), candidates=3
    ... )
    >>> permute_and_flip(SeededNoise(7), np.array([0.0, 50.0, -np.inf]), paid)
    1
    """
    grid = Gaps.of(scores, epsilon=event.epsilon, sensitivity=event.sensitivity)
    count = grid.gaps.size
    first = noise.words((count + 1) // 2).view(np.uint32)[:count]
    scaled = grid.chances()
    scaled *= 2.0**_BITS
    is_heads, undecided = flip(first.astype(np.float64), _BITS, scaled)
    for i in undecided:
        is_heads[i] = below(noise, int(first[i]), _BITS, Fraction(1), grid.exponent(int(i)))
    heads = np.flatnonzero(is_heads)
    return grid.candidate(int(heads[uniform(noise, heads.size)]))
