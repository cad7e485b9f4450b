"""The personalised exponential mechanism for quantiles, drawn exactly (Jorgensen et al. 2015; spec 8.5).

    h(o)   = the least total ε of people who must change their values so that o has the target rank
    Pr[o]  ∝ exp(−h(o)/2)                              o on the public grid of `quantile`

With j values at or below o, g = ⌈|j − qn| − ½⌉₊ people must cross o, from the heavy side: the cheapest
g there, so h is the sum of the g smallest ε. When person i changes, h moves by at most ε_i, hence
ε_i-DP for everyone, by the usual argument. A public value cannot be changed: its ε is infinite, and
outputs that private people alone cannot reach are never drawn (where all are such, those with the fewest
public values to cross are left); which ones these are depends on public values and on sizes only.

Each ε is rounded down to a multiple of 2⁻³⁰, so that h is a whole number of them and the law is exact;
less ε is more privacy. The cost is O(n) for each different ε.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sidelight.errors import TooLargeError
from sidelight.privacy.coins import uniform
from sidelight.privacy.noise import NoiseSource
from sidelight.statistics.grid import Whole
from sidelight.statistics.quantile import draw_stretch, stretches

_STEP_BITS = 30
_MOST_WORK = 2 * 10**9


def check_work(people: int, epsilons: Sequence[Fraction]) -> None:
    """Refuse, before anything is paid, what would take too long or overflow."""
    if people * len(set(epsilons)) > _MOST_WORK or people * max(epsilons) >= 2**31:
        raise TooLargeError(
            "there are too many different epsilons, or too large ones, for the personalised quantile. "
            "Round them down to fewer, smaller ones. Nothing was charged."
        )


def personalised_quantile_place(
    noise: NoiseSource,
    private: Sequence[Whole],
    epsilons: Sequence[Fraction],
    public: Sequence[Whole],
    quantile: Fraction,
    *,
    bits: int,
) -> int:
    """The j of one candidate o_j = lo + (j + ½)γ, given each group's places on the grid."""
    edges, lengths, steps = personalised_stretches(private, epsilons, public, quantile, bits=bits)
    chosen = draw_stretch(
        noise,
        lengths,
        np.ldexp(steps.astype(np.float64), -(_STEP_BITS + 1)),
        lambda i: Fraction(int(steps[i]), 2 ** (_STEP_BITS + 1)),
    )
    return int(edges[chosen]) + uniform(noise, int(lengths[chosen]))


def personalised_stretches(
    private: Sequence[Whole],
    epsilons: Sequence[Fraction],
    public: Sequence[Whole],
    quantile: Fraction,
    *,
    bits: int,
) -> tuple[Whole, Whole, Whole]:
    """Where each stretch starts, its length (0 if it cannot be reached), and h − min h in steps of 2⁻³⁰."""
    prices = [int(epsilon * 2**_STEP_BITS) for epsilon in epsilons]
    places = np.concatenate([*private, *public])
    price_of = np.repeat(
        np.array([*prices, *([-1] * len(public))], dtype=np.int64),
        [part.size for part in (*private, *public)],
    )
    price_of = price_of[np.argsort(places, kind="stable")]
    edges, lengths = stretches(places, bits=bits)
    rank = np.arange(lengths.size, dtype=np.int64)
    target = quantile * places.size
    # ⌈|j − t| − ½⌉ in whole numbers: with 2t = a/d, it is ⌈(|2dj − a| − d) / 2d⌉.
    a, d = (2 * target).numerator, (2 * target).denominator
    if 4 * d * places.size < 2**62:
        crossing = np.maximum(-((d - np.abs(2 * d * rank - a)) // (2 * d)), 0)
    else:
        # A share with many digits: exact integers, one by one.
        crossing = np.array(
            [max(0, -((d - abs(2 * d * int(j) - a)) // (2 * d))) for j in rank], dtype=np.int64
        )
    is_heavy_below = rank > float(target)
    cost = np.zeros_like(rank)
    for price in sorted(set(prices)):
        below = np.concatenate([[0], np.cumsum(price_of == price)])
        on_heavy_side = np.where(is_heavy_below, below, below[-1] - below)
        taken = np.minimum(crossing, on_heavy_side)
        cost += taken * price
        crossing = crossing - taken
    # What is still to cross are public values. How many depends on public values and sizes alone, so the
    # outputs with the fewest, mostly none, are known to everybody; the others are never drawn.
    lengths = np.where(crossing > crossing[lengths > 0].min(), 0, lengths)
    reachable = lengths > 0
    return edges, lengths, np.where(reachable, cost - cost[reachable].min(), 0)
