"""Which residuals are worth measuring where relations fade, by n, the budget, the workload and noisy answers.

    τ_S² = c_S (n/n_S)²           what residual S is expected to be, squared, a dimension
    V_S  = 1/(1/v_S + 1/τ_S²)     what is left of that, once it is measured with variance v_S

with c_S = 1 for single attributes, ``pairs`` for two of them, and ``fading`` times less for each further one.
The squared errors of all cells are Σ_S V_S μ_S n_S ω_S (hdmm/planning.py), and are made small:

- **ρ** pays for residuals, each with Gaussian noise of its own. Without τ the best is HDMM's v⁰_S. With it,

      1/v_S = κ/v⁰_S − 1/τ_S²

  where that is more than half of κ/v⁰_S; other residuals are left alone but for single attributes, which are
  always measured. κ is what the budget pays for. A first part of ρ looks at all single attributes and pairs,
  in the proportions of v⁰. What it says of a pair is its τ_S² from then on (shrinking.py), and the precision
  that a residual has got is taken off 1/v_S; what is left is paid for where it is a quarter of κ/v⁰_S. Where
  a look would not tell two equal columns from independent ones, there is none.
- **ε** pays for whole marginals, "views", with Laplace noise in equal parts: a record stands in one cell of a
  view, however many residuals the view tells of. Views of 1, 2, … attributes are made to cover what the
  workload asks for, as few as a greedy search finds. Of all these covers the one with the least errors is
  taken. On a small table that is often the table itself.

Only sets, sizes and sums are touched: no private data is seen.
"""

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.measurement import measuring_together
from sidelight.mechanisms.candidates import marginal_stddev, mib
from sidelight.mechanisms.hdmm.planning import MarginalPlan
from sidelight.privacy.budget import Epsilon, Rho
from sidelight.privacy.unit import Unit
from sidelight.queries.query import expected_l1_noise
from sidelight.queries.strategy import Closure

Array = NDArray[np.float64]

LEAST = 1 / 4
"""A residual is measured, and measured again, for at least so much of κ/v⁰: less tells next to nothing."""
_SEEN = 6.0
"""A look is worth it where it sees two equal columns at so many standard errors."""
_PLENTY = Rho(Fraction(10**100))
"""With more than that, nothing else is measured; and doubles hold it."""
_MOST_CELLS = 2**17
"""Most cells of a view."""
_MOST_ATTRIBUTES = 8
"""Most attributes of a view, but for views as large as their cells allow."""


@dataclass(frozen=True)
class Fade:
    """How strong relations are expected to be."""

    pairs: float
    fading: float

    def strength(self, degree: int) -> float:
        """c of relations between so many attributes."""
        return 1.0 if degree < 2 else float(self.pairs * self.fading ** (degree - 2))

    def expected(self, plan: MarginalPlan, n: float) -> Array:
        """τ² of every residual; that of the total, which is known, is 0."""
        strengths = np.array([self.strength(len(attrs)) if attrs else 0.0 for attrs in plan.closure.members])
        return np.asarray(strengths * (n / plan.closure.cells) ** 2)


def with_room(domain: Domain, weights: Mapping[Attrs, float], *, limit_mb: float) -> dict[Attrs, float]:
    """As many marginals as there is room for, the smallest first; of the others their single attributes.

    >>> domain = Domain.of({"a": 2, "b": 1000, "c": 1000})
    >>> with_room(domain, {("a", "b"): 1.0, ("b", "c"): 1.0}, limit_mb=1.0)
    {('a', 'b'): 1.0, ('b',): 1.0, ('c',): 1.0}
    """
    if mib(Closure.of(domain, weights).size) <= limit_mb:
        return dict(weights)
    order = sorted(weights, key=domain.size)

    def size(number: int) -> float:
        return mib(Closure.of(domain, [*order[:number], *singles_of(order)]).size)

    number = bisect_right(range(1, len(order) + 1), limit_mb, key=size)
    kept = {attrs: weights[attrs] for attrs in order[:number]}
    for attrs in order[number:]:
        for one in singles_of([attrs]):
            kept[one] = kept.get(one, 0.0) + weights[attrs]
    return kept


def singles_of(sets: Iterable[Attrs]) -> list[Attrs]:
    """The attributes that sets are of, each by itself."""
    return [(attr,) for attr in dict.fromkeys(attr for attrs in sets for attr in attrs)]


def looking(best: MarginalPlan) -> MarginalPlan:
    """HDMM's plan without relations of more than two attributes: what is measured first."""
    is_low = np.array([len(attrs) <= 2 for attrs in best.closure.members])
    return replace(best, variances=np.where(is_low, best.variances, 0.0))


def hears(look: MarginalPlan, rho: Rho, unit: Unit, *, n: float) -> bool:
    """Whether a look tells two equal columns from independent ones, in most of its pairs.

    Columns of at most m values, one of which decides the other, stray by n²/(n_S (m − 1)) in each dimension.
    """
    sizes, closure = look.closure.domain.sizes, look.closure
    largest = np.array([max((sizes[attr] for attr in attrs), default=2) for attrs in closure.members])
    is_pair = np.array([len(attrs) == 2 for attrs in closure.members])
    if not is_pair.any():
        return False
    noise = float(measuring_together(look.strategy, min(rho, _PLENTY), unit).scale) * look.variances
    strong = n**2 / (closure.cells * (largest - 1))
    seen = np.divide(strong, noise, out=np.zeros(noise.size), where=noise > 0) * np.sqrt(
        closure.contrasts / 2
    )
    return bool(np.median(seen[is_pair]) >= _SEEN)


def residuals(
    best: MarginalPlan, tau: Array, rho: Rho, unit: Unit, *, known: float | Array = 0.0
) -> MarginalPlan:
    """Which residuals to measure, in which proportions, where their squares are expected to be τ².

    ``best`` is HDMM's plan, without the total; ``known`` is 1/v of what was said of each residual before.
    """
    weights, known = best.closure.contrasts / best.closure.cells, np.broadcast_to(known, tau.shape)
    is_asked = best.variances > 0
    full = np.divide(1.0, best.variances, out=np.zeros(tau.size), where=is_asked)
    single = np.array([len(attrs) == 1 for attrs in best.closure.members])
    apart = np.divide(1.0, tau, out=np.zeros(tau.size), where=tau > 0)
    # What a neighbour moves, next to a record more or less; nearly the same for all proportions.
    dearer = float(best.closure.joint_loss(full / best.closure.cells**2, unit)) / float(weights @ full)
    paid = 2 * float(min(rho, _PLENTY)) / dearer

    def precisions(kappa: float) -> Array:
        wanted = kappa * full
        missing = np.maximum(wanted - apart, wanted / 2) - known
        return np.where(((wanted >= 2 * apart) | single) & (missing >= LEAST * wanted), missing, 0.0)

    low, high = 0.0, 4 * (paid + float(weights @ known)) / float((weights * full)[single].sum())
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if float(weights @ precisions(middle)) <= paid else (low, middle)
    found = precisions(low)
    if not found.any():  # the first residual that is worth it takes more than is paid
        found = precisions(high)
    return replace(best, variances=np.divide(1.0, found, out=np.zeros(tau.size), where=found > 0))


def best_views(
    plan: MarginalPlan, fade: Fade, epsilon: Epsilon, unit: Unit, *, n: float
) -> tuple[tuple[Attrs, ...], float]:
    """Which whole marginals to measure, each with an equal part of ε; and the error that is expected."""
    found = covers(plan.closure.domain, tuple(plan.closure.maximal))
    errors = [mean_error(_after_views(plan, views, fade, epsilon, unit, n), n) for views in found]
    best = int(np.argmin(errors))
    return found[best], errors[best]


def mean_error(plan: MarginalPlan, n: float) -> float:
    """The mean error of the workload's marginals, as a share of n, where cells have these variances."""
    sums = [
        expected_l1_noise(1, 1.0) * np.sqrt(variances) * plan.closure.cells[lines[:, -1]]
        for lines, variances in zip(plan.asked, plan.cell_variances(), strict=True)
    ]
    return float(np.minimum(np.concatenate(sums) / max(n, 1.0), 2.0).mean())


def after_measuring(plan: MarginalPlan, fade: Fade, *, n: float) -> MarginalPlan:
    """The plan with the variances that residuals are expected to have once they were measured."""
    tau = fade.expected(plan, n)
    v = plan.variances
    both = np.divide(v * tau, v + tau, out=np.zeros(tau.size), where=v + tau > 0)
    return replace(plan, variances=np.where(v > 0, both, tau))


def _after_views(
    plan: MarginalPlan, views: Sequence[Attrs], fade: Fade, epsilon: Epsilon, unit: Unit, n: float
) -> MarginalPlan:
    """The plan with the variances that residuals are expected to have once these views were measured."""
    closure = plan.closure
    stddev = marginal_stddev(epsilon / len(views), unit)
    variance = min(max(stddev, 1e-6), 1e100) ** 2  # finite for any ε
    precision = np.zeros(len(closure.members))
    for view in views:
        inside, cells = set(view), closure.domain.size(view)
        held = np.array([inside.issuperset(attrs) for attrs in closure.members])
        precision += held * closure.cells / (variance * cells)
    known = np.divide(1.0, precision, out=np.zeros(precision.size), where=precision > 0)
    return after_measuring(replace(plan, variances=known), fade, n=n)


@lru_cache(maxsize=8)
def covers(domain: Domain, asked: tuple[Attrs, ...]) -> tuple[tuple[Attrs, ...], ...]:
    """Lists of views: for each number of attributes, such as hold all that is asked for, or its subsets.

    >>> domain = Domain.of({"a": 2, "b": 2, "c": 2, "d": 2})
    >>> pairs = tuple(itertools.combinations("abcd", 2))
    >>> [len(found) for found in covers(domain, pairs)]
    [4, 6, 3, 1]
    """
    attrs = domain.canonical({attr for one in asked for attr in one})
    sizes = dict.fromkeys([*range(1, min(len(attrs), _MOST_ATTRIBUTES) + 1), len(attrs)])
    found = []
    for size in sizes:
        wanted = {below for one in asked for below in itertools.combinations(one, min(size, len(one)))}
        found.append(_greedy(domain, attrs, sorted(wanted), size))
    return tuple(dict.fromkeys(found))


def _greedy(domain: Domain, attrs: Attrs, wanted: Sequence[Attrs], size: int) -> tuple[Attrs, ...]:
    """Views of at most so many attributes that hold all these sets, each grown from one that is left."""
    members = np.array([[attr in one for attr in attrs] for one in wanted])
    found = []
    while len(members):
        inside = members[0].copy()
        while inside.sum() < size:
            room = _MOST_CELLS // domain.size(tuple(itertools.compress(attrs, inside)))
            fits = ~inside & np.array([domain.sizes[attr] <= room for attr in attrs])
            if not fits.any():
                break
            missing = (members & ~inside).sum(axis=1)
            # What an attribute completes counts most; what it brings near counts for less and less.
            worth = np.where(missing > 0, 8.0**-missing, 0.0) @ members
            inside[np.argmax(np.where(fits, worth, -1.0))] = True
        found.append(tuple(itertools.compress(attrs, inside)))
        members = members[(members & ~inside).any(axis=1)]
    return tuple(found)
