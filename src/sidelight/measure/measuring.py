"""MEASURE: which noise a query's answer gets for what is paid. Public, so a plan can ask for it too."""

from typing import Literal

from sidelight.privacy.budget import Cost, Rho
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Query

NoiseKind = Literal["gaussian", "laplace"]


def measuring(query: Query, cost: Cost, unit: Unit, *, noise: NoiseKind | None = None) -> Gaussian | Laplace:
    """The event of measuring a query: Gaussian noise for zCDP and Laplace for pure ε, unless said.

    >>> from fractions import Fraction
    >>> from sidelight.queries.query import Marginal
    >>> measuring(Marginal(("age",)), Rho(Fraction(1, 2)), Unit("replace")).variance
    Fraction(2, 1)
    """
    # The noise is drawn in multiples of the resolution, so the sensitivity is counted in them too.
    step = query.resolution
    if isinstance(cost, Rho) and noise != "laplace":
        return Gaussian.at(cost, what=query.describe(), l2_squared=query.l2_squared(unit) / step**2)
    return Laplace.at(cost, what=query.describe(), l1=query.l1(unit) / step)


def stddev_of(query: Query, cost: Cost, unit: Unit, *, noise: NoiseKind | None = None) -> float:
    """σ of each number, if a query is measured at this cost."""
    return measuring(query, cost, unit, noise=noise).stddev * float(query.resolution)
