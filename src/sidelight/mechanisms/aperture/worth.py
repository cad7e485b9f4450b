"""APERTURE asks again: of single attributes, those whose noisy answers leave most in doubt.

    while the best of them promises enough:
        a ← argmax  w_a [ √(R² + e_a(σ)²) − √(R² + e_a(σ′)²) ]                                    free
        y_a ← M_a(D) + 𝒩(0, σ²)                                                                 measure

An attribute that public data have wrong takes every marginal with it that holds it or depends on it, a share
w_a of the workload; and noisy answers alone tell where that is, so nothing is paid for selecting. e_a(σ) is
the error that is expected of the attribute with noise of σ, averaged over how far the truth may stray, and σ′
is the noise after one more answer. R is the expected error of what the workload asks for otherwise. Marginals
that are measured later tell of single attributes, too: both σ count what is to come.

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

ManyCounted = GraphicalModel | Support

PART = 12
"""An answer costs a twelfth of what is left of the budget."""
_LEAST_GAIN = 0.01
"""Of the expected error, for a twelfth of the budget: what a twelfth is worth anywhere, since errors fall at
least about as the eighth root of the budget, whoever spends it (AIM and JAM in docs/papers/jam.md)."""
_MOST_NOISE = 4.0
"""Of n, summed over the cells of a marginal: an answer with more noise tells a twentieth of what there is."""
_C1 = math.sqrt(2 / math.pi)


def worth_asking_again(
    beliefs: Beliefs,
    model: GraphicalModel,
    whole: Sequence[Attrs],
    reach: Mapping[Attrs, float],
    *,
    stddev: float,
    later: float,
) -> Attrs | None:
    """The single attribute that promises most with noise of this σ, if it is enough.

    ``whole`` is what the workload asks for, ``reach`` the share of it that holds each attribute; ``later`` is
    the noise if all that is left went to those evenly.
    """
    rest = expected_error(beliefs, model, whole)
    pooled, domain = beliefs.pooled(), model.domain
    gains = dict[Attrs, float]()
    for attrs, belief in beliefs.held.items():
        if len(attrs) == 1:
            profile, likely = Profile.of(belief.evidence.variance), pooled[beliefs.kind(attrs)]
            known = belief.answers.precision + _told_later(domain, attrs[0], whole, later)
            before, after = (
                np.array([profile.expected_error(math.sqrt(s), precision) for s in likely.grid])
                for precision in (known, known + stddev**-2)
            )
            chance = likely.density * belief.likelihood
            gain = chance @ (np.hypot(rest, before) - np.hypot(rest, after)) / chance.sum()
            gains[attrs] = reach[attrs] * float(gain)
    best = max(gains, key=lambda attrs: gains[attrs])
    return best if gains[best] > _LEAST_GAIN * rest else None


def forecast(
    beliefs: Beliefs, model: ManyCounted, candidates: Sequence[Attrs], *, stddev: float
) -> dict[Attrs, tuple[float, float]]:
    """The error that is expected of each candidate now, and after measuring it with noise of this σ.

    C k (k/(s v) + P)^(−½), and with P + 1/σ²; as if it were like all of its kind, and n were spread evenly
    over its k cells: as many as its attributes have values, less where some are rare, Π_a (Σ_i √p_ai)².
    """
    n = beliefs.total
    roots = effective_cells(model)
    spreads = {kind: float(pooled.quartiles[1]) for kind, pooled in beliefs.pooled().items()}
    found = {}
    for attrs in candidates:
        cells = math.prod(roots[attr] for attr in attrs)
        known = cells / (n * spreads[beliefs.kind(attrs)] * beliefs.sampling(attrs)) + beliefs.precision(
            attrs
        )
        found[attrs] = _C1 * cells * known**-0.5, _C1 * cells * (known + stddev**-2) ** -0.5
    return found


def public_room(
    beliefs: Beliefs, model: GraphicalModel, candidates: Sequence[Attrs], *, stddev: float
) -> float:
    """The share of its variance that measuring leaves to the public model: all of it with little budget."""
    told = [attrs for attrs in candidates if len(attrs) > 1 and beliefs.prior.tells(attrs)]
    errors = np.array(list(forecast(beliefs, model, told, stddev=stddev).values())).sum(axis=0)
    return float((errors[1] / errors[0]) ** 2)


def heard(model: ManyCounted, candidates: Sequence[Attrs], *, stddev: float) -> list[Attrs]:
    """Those that noise of this σ would not swamp if nothing were known of them; else single attributes."""
    cells = effective_cells(model)
    most = _MOST_NOISE * model.total / stddev
    kept = [attrs for attrs in candidates if math.prod(cells[attr] for attr in attrs) <= most]
    return kept or [attrs for attrs in candidates if len(attrs) == 1]


def effective_cells(model: ManyCounted) -> dict[str, float]:
    """As many values as each attribute has, less where some are rare: (Σ_i √p_i)²."""
    n = model.total
    shares = {attr: np.maximum(model.count((attr,)), 0.0) / n for attr in model.domain.attrs}
    return {attr: float(np.sqrt(share).sum()) ** 2 for attr, share in shares.items()}


def expected_error(beliefs: Beliefs, model: GraphicalModel, asked: Sequence[Attrs]) -> float:
    """The mean error in records that is expected of these marginals, by the median spread of their like."""
    spreads = {kind: math.sqrt(pooled.quartiles[1]) for kind, pooled in beliefs.pooled().items()}
    prospects = beliefs.prospects(model, asked, dict.fromkeys(asked, 1.0))
    errors = [
        one.profile.expected_error(spreads[beliefs.kind(attrs)], one.precision)
        for attrs, one in prospects.items()
    ]
    return float(np.mean(errors))


def _told_later(domain: Domain, attr: str, asked: Sequence[Attrs], stddev: float) -> float:
    """The precision on an attribute if all that is left, worth noise of this σ, went to these evenly."""
    told = [domain.size([attr]) / domain.size(attrs) for attrs in asked if attr in attrs]
    return stddev**-2 * sum(told) / len(asked)
