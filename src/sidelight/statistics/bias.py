"""Public groups may be about other people: how much to lean on them, and what that can cost.

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
from typing import Literal

from sidelight import _check
from sidelight.errors import SettingError
from sidelight.statistics.spread import Spread

Bias = float | Literal["measure"] | None


@dataclass(frozen=True, eq=False)
class Part:
    """One side's estimate, private or public, and the law of its error."""

    estimate: float
    spread: Spread


@dataclass(frozen=True)
class Mixed:
    """The mix of both sides."""

    estimate: float
    standard_error: float
    """The root mean squared error, at the worst bias that is allowed for."""
    interval: tuple[float, float]
    weight: float
    """How far E lies from P towards Q."""


def check_bias(bias: Bias, factor: float) -> None:
    """Refuse what is not an option."""
    if isinstance(bias, str):
        _check.one_of(("measure",), bias=bias)
    elif bias is not None and (isinstance(bias, bool) or not 0 <= bias < math.inf):
        raise SettingError(f"bias must be a bound of at least 0, 'measure' or None; got {bias!r}.")
    if not 1 < factor < math.inf:
        raise SettingError(f"bias_factor must be a finite number above 1; got {factor!r}.")


def mix(
    private: Part | None,
    public: Part | None,
    *,
    bias: Bias,
    factor: float,
    confidence: float,
    public_weight: float | None = None,
) -> Mixed:
    """Both sides together, or the one that there is; ``public_weight`` fixes w beforehand."""
    if private is None or public is None:
        only = private or public
        assert only is not None
        offset = float(bias) if private is None and isinstance(bias, (int, float)) else 0.0
        return _centred(only.estimate, only.spread, confidence, weight=float(private is None), offset=offset)
    v, u = private.spread.variance, public.spread.variance
    gap = public.estimate - private.estimate
    if bias == "measure":
        w = v / (v + u)
        reach = (factor - 1) * math.sqrt(v)
        pull = max(-reach, min(reach, w * gap))
        half = private.spread.half_width(confidence)
        worst = math.sqrt(v) * math.hypot(1.0, factor - 1)
        interval = (private.estimate - half, private.estimate + half)
        return Mixed(private.estimate + pull, worst, interval, pull / gap if gap else w)
    bound = 0.0 if bias is None else float(bias)
    w = v / (v + u + bound**2) if public_weight is None else public_weight
    spread = private.spread.times(1 - w).plus(public.spread.times(w))
    return _centred(private.estimate + w * gap, spread, confidence, weight=w, offset=w * bound)


def _centred(estimate: float, spread: Spread, confidence: float, *, weight: float, offset: float) -> Mixed:
    half = spread.half_width(confidence, offset=offset)
    error = math.hypot(spread.stddev, offset)
    return Mixed(estimate, error, (estimate - half, estimate + half), weight)
