"""How many rounds to spend what is left of the budget on.

    value(K) = Σ_c h_c(K) · Pr[c is among K selections],    selected with chances ∝ exp(ε_K h_c / 2Δ)

h_c(K) is what measuring marginal c is expected to gain with the noise that a K-th of the budget buys:
its spread s at the quartiles of the predictive distribution, in place of the error that only selection
may see. Selections are as good as without repetition: a marginal once measured has little left to
gain. Then c is among K of them with probability 1 − exp(−τ exp(ε_K h_c / 2Δ)), where τ makes these
probabilities add up to K (Rosén 1972). spec/aperture 5, where K times the first selection is counted.

How much of the budget goes beyond the tree follows from the same forecast: of the gain that measuring among
all candidates promises, the share that a tree within its size, with its fewer rounds, cannot have. Little
budget tells a few marginals, which a tree holds; much of it tells more than a tree can hold.

How much of the model's size the public part may take follows from the same forecast: the share of its
variance that measuring would leave, by the expected errors C Σ_i (1/(s v_i) + 1/σ²)^(−½) after it and
C Σ_i (s v_i)^(½) before. Little budget leaves all of it; much budget can buy a better answer to whatever
it measures, and needs the room: edges that only public data ask for keep out those that are measured.

PRIVACY: functions of the model, of noisy answers and of the budget; post-processing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sidelight.data.count_source import ManyCountSource
from sidelight.data.domain import Attrs
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.mechanisms.candidates import marginal_stddev
from sidelight.privacy.budget import Cost
from sidelight.privacy.unit import Unit
from sidelight.select.improvement import Prospect

Array = NDArray[np.float64]

_LOOK_AT = 150
"""Candidates by which it is judged what measuring promises."""


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What measuring promises, before anything more is measured."""

    prospects: Mapping[Attrs, Prospect]
    spreads: Mapping[int, Array]
    """The likely spreads of one-way marginals (1) and of all others (2)."""
    remaining: Cost
    select_share: float
    unit: Unit
    each: float = 1.0
    """How many candidates a prospect stands for, where only some were looked at."""

    @classmethod
    def of(
        cls,
        beliefs: Beliefs,
        model: ManyCountSource,
        candidates: Sequence[Attrs],
        weights: Mapping[Attrs, float],
        *,
        remaining: Cost,
        select_share: float,
        unit: Unit,
    ) -> "Forecast":
        """What measuring candidates promises by these beliefs; of many, an even part is looked at."""
        looked_at = candidates[:: max(1, len(candidates) // _LOOK_AT)]
        return cls(
            prospects=beliefs.prospects(model, looked_at, weights),
            spreads={order: pooled.quartiles for order, pooled in beliefs.pooled().items()},
            remaining=remaining,
            select_share=select_share,
            unit=unit,
            each=len(candidates) / len(looked_at),
        )

    def rounds(self, most: int) -> int:
        """The number of rounds, of most, most/2, …, 1, that promises the largest gain in all."""
        choices = sorted({max(1, most >> halvings) for halvings in range(most.bit_length())}, reverse=True)
        return max(choices, key=self._value)

    def gain(self, most: int) -> float:
        """What that number of rounds promises."""
        return self._value(self.rounds(most))

    def public_room(self, rounds: int) -> float:
        """What is public of all that would be known after so many rounds: what they leave of the variance."""
        _, measure_cost = (self.remaining / rounds).split(self.select_share)
        precision = marginal_stddev(measure_cost, self.unit) ** -2
        now = left = 0.0
        for attrs, prospect in self.prospects.items():
            reach = math.sqrt(np.median(self._spreads_of(attrs)))
            now += prospect.weight * prospect.profile.expected_error(reach, 0.0)
            left += prospect.weight * prospect.profile.expected_error(reach, precision)
        return (left / now) ** 2

    def _value(self, rounds: int) -> float:
        select_cost, measure_cost = (self.remaining / rounds).split(self.select_share)
        stddev = marginal_stddev(measure_cost, self.unit)
        epsilon = math.sqrt(8 * float(select_cost))
        gains = np.array(
            [
                gain
                for attrs, p in self.prospects.items()
                for gain in _gains(p, self._spreads_of(attrs), stddev)
            ]
        )
        appeal = epsilon * gains / (2 * float(self.unit.l1))
        candidates = self.each * len(self.prospects)
        among = _among(appeal - appeal.max(), rounds / candidates)
        return candidates * float(np.mean(among * gains))

    def _spreads_of(self, attrs: Attrs) -> Array:
        return self.spreads[min(len(attrs), 2)]


def beyond(remaining: Cost, kept_back: Fraction) -> Cost:
    """What is left of the budget beyond what is kept back; nothing where that is all of it."""
    part, _ = remaining.split(max(Fraction(0), 1 - kept_back / remaining.value) if remaining else 0)
    return part


def expected_error(beliefs: Beliefs, model: ManyCountSource, asked: Sequence[Attrs]) -> float:
    """The mean error in records that is expected of these marginals, by the median spread of their like."""
    spreads = {order: float(pooled.quartiles[1]) for order, pooled in beliefs.pooled().items()}
    prospects = beliefs.prospects(model, asked, dict.fromkeys(asked, 1.0))
    return float(
        np.mean(
            [
                one.profile.expected_error(math.sqrt(spreads[min(len(attrs), 2)]), one.precision)
                for attrs, one in prospects.items()
            ]
        )
    )


def _among(appeal: Array, share: float) -> Array:
    """The probability of each to be among those selected, which are this share of all."""
    from scipy.optimize import brentq

    if share >= 1:
        return np.ones(appeal.size)

    def among(log_time: float) -> Array:
        # Chances as small as exp(−1000) matter here, so it is their logarithms that are shifted.
        return np.asarray(-np.expm1(-np.exp(np.minimum(log_time + appeal, 40.0))))

    high = 40.0 - float(appeal.min())
    return among(brentq(lambda log_time: float(among(log_time).mean()) - share, -40.0, high, xtol=1e-12))


def _gains(prospect: Prospect, spreads: Sequence[float] | Array, stddev: float) -> list[float]:
    """The expected gain at each spread."""
    profile, held = prospect.profile, prospect.precision
    found = []
    for spread in spreads:
        reach = math.sqrt(spread)
        before = profile.expected_error(reach, held)
        found.append(prospect.weight * (before - profile.expected_error(reach, held + stddev**-2)))
    return found
