"""APERTURE asks again: of single attributes, those whose noisy answers leave most in doubt.

    while the best of them promises enough:
        a ← argmax  w_a E_s[ √(R² + e_a(s)²) − √(R² + e′_a(s)²) ]                               free
        y_a ← M_a(D) + 𝒩(0, σ²)                                                                 measure
        p ← the public model after all answers, the most telling first                          estimate

An attribute that public data have wrong takes every marginal with it that holds it or depends on it, a share
w_a of the workload and more; no other answer is worth as much while that is in doubt, and noisy answers alone
tell where it is, so nothing is paid for selecting. With s the spread of the truth around what was expected
(uncertainty/dispersion.py), v_i its variance at s = 1 and σ the noise of the answers so far, the estimate is
off by

    e(s) = C Σ_i ((1 − t_i)² s v_i + t_i² σ²)^½,    t_i = ŝ v_i / (ŝ v_i + σ²),    C = √(2/π)

where ŝ is what is believed of s; s itself is weighed by what the answers say of it. So an answer that is
followed but may be a whim of the noise is worth asking again, and so is one that is too noisy to tell. e′ is
the same after one more answer: less noise, and the ŝ that answers with so much noise lead to if s is true,

    ŝ′(s) = median of  π(s*) exp(−½ Σ_i (ρ_i − 1 − ln ρ_i)),    ρ_i = (s v_i + σ′²) / (s* v_i + σ′²)

by the expected logarithm of the likelihood. R is the expected error of what the workload asks for otherwise.
Marginals that are measured later tell of single attributes, too: σ and σ′ are what is left of the noise once
all of the budget is spent. With much budget, or few and small attributes, nothing is asked again.

PRIVACY: what is asked follows from public data and noisy answers; every answer is paid for.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sidelight.curator.curator import Curator
from sidelight.data.domain import Attrs, Domain
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.evidence import Belief, Beliefs
from sidelight.mechanisms.aperture.rounds import beyond, expected_error
from sidelight.mechanisms.candidates import marginal_stddev
from sidelight.models.graphical import GraphicalModel
from sidelight.queries.query import Marginal
from sidelight.select.improvement import Profile
from sidelight.uncertainty.dispersion import PooledSpread

Array = NDArray[np.float64]

PART = 12
"""An answer costs a twelfth of what is left of the budget."""
_LEAST_GAIN = 0.01
"""Of the expected error, for a twelfth of the budget: what a twelfth is worth anywhere, since errors fall at
least about as the eighth root of the budget, whoever spends it (AIM and JAM in docs/papers/jam.md)."""

Believed = tuple[Beliefs, GraphicalModel]


def measured_again(
    curator: Curator,
    beliefs: Beliefs,
    start: GraphicalModel,
    believed: Callable[[Sequence[Measurement]], Believed],
    *,
    whole: Sequence[Attrs],
    reach: Mapping[Attrs, float],
    most: int,
    kept_back: Fraction,
) -> tuple[list[Measurement], Beliefs, GraphicalModel]:
    """New answers to single attributes, what is believed after them, and the model that follows all.

    ``believed`` takes in new answers beside the first; ``whole`` is what the workload asks for, ``reach``
    the share of it that holds each attribute; ``kept_back`` is what is not to be spent.
    """
    made = list[Measurement]()
    model = beliefs.estimate(start)
    rest = expected_error(beliefs, model, whole)
    while len(made) < most and (spare := beyond(curator.remaining, kept_back)):
        cost = spare / PART
        asked = worth_asking_again(
            beliefs, reach, rest=rest, stddev=marginal_stddev(cost, curator.unit),
            later=told_later(curator.domain, whole, stddev=marginal_stddev(spare, curator.unit)),
        )  # fmt: skip
        if asked is None:
            break
        made.append(curator.measure(Marginal(asked), cost))
        beliefs, start = believed(made)
        model = beliefs.estimate(start)
    return made, beliefs, model


def worth_asking_again(
    beliefs: Beliefs,
    reach: Mapping[Attrs, float],
    *,
    rest: float,
    stddev: float,
    later: Mapping[Attrs, float],
) -> Attrs | None:
    """The single attribute that promises most with noise of this σ, if it is enough.

    ``reach`` is the share of the workload that holds an attribute, ``rest`` the expected error R, ``later``
    the precision on each of its cells that is to come anyway.
    """
    pooled = beliefs.pooled()[1]
    gains = {
        attrs: reach[attrs] * promise(belief, pooled, rest=rest, stddev=stddev, later=later[attrs])
        for attrs, belief in beliefs.held.items()
        if len(attrs) == 1
    }
    best = max(gains, key=lambda attrs: gains[attrs])
    return best if gains[best] > _LEAST_GAIN * rest else None


def told_later(domain: Domain, asked: Sequence[Attrs], *, stddev: float) -> dict[Attrs, float]:
    """The precision on single attributes if all that is left, worth noise of this σ, went to these evenly.

    >>> told_later(Domain.of({"a": 2, "b": 4}), [("a", "b")], stddev=2.0)
    {('a',): 0.0625, ('b',): 0.125}
    """
    size = domain.size
    return {
        (attr,): stddev**-2 * sum(size([attr]) / size(attrs) for attrs in asked if attr in attrs) / len(asked)
        for attr in domain.attrs
    }


def promise(belief: Belief, pooled: PooledSpread, *, rest: float, stddev: float, later: float = 0.0) -> float:
    """What one more answer lowers the error of a marginal by that holds this one and errs by R otherwise."""
    profile, grid = Profile.of(belief.evidence.variance), pooled.grid
    precision = belief.answers.precision + later
    believed = np.full(grid.size, pooled.median(belief.likelihood))
    before = _errors(profile, grid, believed, noise=1 / precision)
    noise = 1 / (precision + stddev**-2)
    after = _errors(profile, grid, _believed_later(profile, pooled, noise=noise), noise=noise)
    chance = pooled.density * belief.likelihood
    return float(chance @ (np.hypot(rest, before) - np.hypot(rest, after)) / chance.sum())


def _errors(profile: Profile, true: Array, believed: Array, *, noise: float) -> Array:
    """E(s) for pairs of an s that is true and one that is believed; noise is σ²."""
    variance = profile.roots**2
    trusted = believed[:, None] * variance
    trust = trusted / (trusted + noise)
    squares = (1 - trust) ** 2 * (true[:, None] * variance) + trust**2 * noise
    return np.asarray(np.sqrt(2 / np.pi) * (np.sqrt(squares) @ profile.cells))


def _believed_later(profile: Profile, pooled: PooledSpread, *, noise: float) -> Array:
    """ŝ′ for every s of the grid."""
    variance = pooled.grid[:, None] * profile.roots**2 + noise
    found = np.empty(pooled.grid.size)
    for place, true in enumerate(variance):
        ratio = true / variance
        unlike = 0.5 * ((ratio - 1 - np.log(ratio)) @ profile.cells)
        found[place] = pooled.quantile(pooled.density * np.exp(-unlike), 0.5)
    return found
