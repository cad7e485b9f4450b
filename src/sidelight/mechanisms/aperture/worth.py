"""What is worth measuring: which attribute again, and which marginals are heard above their noise.

PRIVACY: what is asked follows from public data and noisy answers; every answer is paid for.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sidelight.data.domain import Attrs, Domain
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.models.graphical import GraphicalModel
from sidelight.models.support import Support
from sidelight.select.improvement import Profile

_LEAST_GAIN = 0.01
"""Of the expected error, for a twelfth of the budget: what a twelfth is worth anywhere, since errors fall at
least about as the eighth root of the budget, whoever spends it (AIM and JAM in docs/papers/jam.md)."""
_MOST_NOISE = 4.0
"""Most noise of an answer that is heard, as a share of n: σ times the marginal's effective cells."""


def worth_asking_again(
    beliefs: Beliefs,
    model: GraphicalModel,
    whole: Sequence[Attrs],
    shares: Mapping[Attrs, float],
    *,
    stddev: float,
    later: float,
) -> Attrs | None:
    """The single attribute that promises most with noise of this σ, if it is enough.

        a ← argmax  w_a [ √(E² + e_a(σ)²) − √(E² + e_a(σ′)²) ]

    An attribute that public data have wrong takes every marginal with it that holds it or depends on it, a
    share w_a of the workload; and noisy answers alone tell where that is, so nothing is paid for selecting.
    e_a(σ) is the error that is expected of the attribute with noise of σ, averaged over how far the truth may
    stray, and σ′ is the noise after one more answer. E is the expected error of what the workload asks for
    otherwise. Marginals that are measured later tell of single attributes, too: both σ count what is to come.

    ``whole`` are the marginals that are judged by, ``shares`` says how much of the workload holds each
    attribute; ``later`` is σ of one answer that took all that is left.
    """
    rest = _expected_error(beliefs, model, whole)
    pooled, gains = beliefs.pooled(), dict[Attrs, float]()
    for attrs, belief in beliefs.held.items():
        profile, likely = Profile.of(belief.evidence.variance), pooled[beliefs.kind(attrs)]
        known = belief.answers.precision + _told_later(model.domain, attrs[0], whole, later)
        before, after = (
            np.array([profile.expected_error(math.sqrt(s), precision) for s in likely.grid])
            for precision in (known, known + stddev**-2)
        )
        chance = likely.density * belief.likelihood
        gain = chance @ (np.hypot(rest, before) - np.hypot(rest, after)) / chance.sum()
        gains[attrs] = shares[attrs] * float(gain)
    best = max(gains, key=lambda attrs: gains[attrs])
    return best if gains[best] > _LEAST_GAIN * rest else None


def heard(model: GraphicalModel | Support, candidates: Sequence[Attrs], *, stddev: float) -> list[Attrs]:
    """Those that noise of this σ would not swamp if nothing were known of them.

    A marginal has as many cells as its attributes have values, less where some are rare: Π (Σ_i √p_i)².
    """
    n = model.total
    shares = {attr: np.maximum(model.count((attr,)), 0.0) / n for attr in model.domain.attrs}
    cells = {attr: float(np.sqrt(share).sum()) ** 2 for attr, share in shares.items()}
    return [c for c in candidates if math.prod(cells[attr] for attr in c) * stddev <= _MOST_NOISE * n]


def heard_or_single(
    model: GraphicalModel | Support, candidates: Sequence[Attrs], *, stddev: float
) -> list[Attrs]:
    """Those that are heard; where none is, single attributes."""
    return heard(model, candidates, stddev=stddev) or [c for c in candidates if len(c) == 1]


def _expected_error(beliefs: Beliefs, model: GraphicalModel, asked: Sequence[Attrs]) -> float:
    """The mean error in records that is expected of these marginals, by the median spread of their like."""
    spreads = {kind: math.sqrt(pooled.middle) for kind, pooled in beliefs.pooled().items()}
    errors = []
    for place, counts in model.count_each(asked):
        one = beliefs.prospect(asked[place], counts)
        errors.append(one.profile.expected_error(spreads[beliefs.kind(asked[place])], one.precision))
    return float(np.mean(errors))


def _told_later(domain: Domain, attr: str, asked: Sequence[Attrs], stddev: float) -> float:
    """The precision on an attribute if all that is left, one answer with this σ, went to these evenly."""
    told = [domain.size([attr]) / domain.size(attrs) for attrs in asked if attr in attrs]
    return stddev**-2 * sum(told) / len(asked)
