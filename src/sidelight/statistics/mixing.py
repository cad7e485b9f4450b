"""The private and the public groups' estimates together, where the public ones may be about other people.

With a private estimate P of variance v and a public one Q of variance u, whose bias is b,

    E = P + ψ(w·(Q − P)),      w = v/(v + u)

**No bias** (``None``): ψ(p) = p, the inverse-variance mix.

**Bounded** (a number B ≥ |b|): w = v/(v + u + B²). The mean squared error is at most
(1 − w)²v + w²(u + B²) = v·(u + B²)/(v + u + B²) < v: never worse than ignoring the public groups,
for any bias within the bound. The interval allows for an offset of w·B.

**Measured** (``"measure"``): Q − P measures the bias, and ψ clips the pull towards Q to ±(F − 1)·√v. So
the root mean squared error is at most √v + (F − 1)·√v, by Minkowski: F = ``bias_factor`` times that of
ignoring the public groups, for *any* bias and whatever laws the errors have; and √(1 + (F − 1)²) times
where the bias is large, since the pull is then a constant. That much is the standard error we give. The
measuring is paid for already, by the sums behind P. Nobody can shorten an honest interval by a bias that is
only estimated (Low 1997), so the interval is that of P alone, and E may lie off its centre.
"""

import math
from dataclasses import dataclass

from sidelight.statistics.error_law import ErrorLaw
from sidelight.statistics.settings import MixSettings


@dataclass(frozen=True, eq=False)
class Part:
    """One side's estimate, private or public."""

    estimate: float
    error: ErrorLaw


@dataclass(frozen=True)
class Mixed:
    """The mix of both sides."""

    estimate: float
    standard_error: float
    """The root mean squared error, at the worst bias that is allowed for."""
    interval: tuple[float, float]
    weight: float
    """The public side's share of the estimate: E = P + weight·(Q − P)."""


def mix(
    private: Part | None, public: Part | None, asked: MixSettings, *, public_weight: float | None = None
) -> Mixed:
    """Both sides together, or the one that there is; ``public_weight`` fixes w beforehand."""
    bound = float(asked.bias) if isinstance(asked.bias, (int, float)) else 0.0
    if private is None or public is None:
        only = private or public
        assert only is not None
        offset = bound if private is None else 0.0
        return _centred(only.estimate, only.error, asked, weight=float(private is None), offset=offset)
    v, u = private.error.variance, public.error.variance
    gap = public.estimate - private.estimate
    if asked.bias == "measure":
        w = v / (v + u)
        most = (asked.bias_factor - 1) * math.sqrt(v)
        pull = max(-most, min(most, w * gap))
        half = private.error.half_width(asked.confidence)
        worst = math.sqrt(v) * math.hypot(1.0, asked.bias_factor - 1)
        interval = (private.estimate - half, private.estimate + half)
        return Mixed(private.estimate + pull, worst, interval, pull / gap if gap else w)
    w = v / (v + u + bound**2) if public_weight is None else public_weight
    error = private.error.times(1 - w).plus(public.error.times(w))
    return _centred(private.estimate + w * gap, error, asked, weight=w, offset=w * bound)


def _centred(estimate: float, error: ErrorLaw, asked: MixSettings, *, weight: float, offset: float) -> Mixed:
    half = error.half_width(asked.confidence, offset=offset)
    return Mixed(estimate, math.hypot(error.stddev, offset), (estimate - half, estimate + half), weight)
