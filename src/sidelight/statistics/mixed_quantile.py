"""A quantile of many groups, each with its own ε (MIX; spec 8.6).

    x̃ᵢ ~ exp(−εᵢ·|#{x ≤ o} − q·nᵢ| / 2Δ)      by the exponential mechanism        measure
    βᵢ ∝ nᵢ² / (nᵢ·q(1 − q) + 8Δ²/εᵢ²)        Σβᵢ = 1; a public group has no noise  weights
    x̃  ← Σ βᵢ x̃ᵢ                                                                  estimate

"Combining Public and Private Data" (MIX) mixes quantiles with the weights of the *mean* and leaves better
ones open; ``weights="mean"`` are theirs. Ours follow from the law of the draw. Its rank is off by about
Lap(2Δ/ε), since exp(−ε|i − qn|/2Δ) is that law; the exact quantile's rank varies by n·q(1 − q); and a rank
becomes a value through 1/(n·f), f the density at the quantile. f is the same for all groups and cancels,
but for a small term that keeps groups with little to say from being trusted (`weights.quantile_variances`).
A group whose rank noise exceeds its distance to the ends, √8·Δ/(ε·n) > min(q, 1 − q), would draw from all
over the bounds; it is not asked, and pays nothing, as long as another group does better.

f is needed for the standard error alone: given, from the public groups, or measured at a price (`density`).
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from sidelight import _check
from sidelight.errors import SettingError
from sidelight.privacy.ledger import Ledger
from sidelight.privacy.noise import NoiseSource
from sidelight.privacy.unit import Unit
from sidelight.statistics import density as densities
from sidelight.statistics.answer import GroupShare, MixedAnswer
from sidelight.statistics.bias import Bias, Mixed, Part, check_bias, mix
from sidelight.statistics.density import Density
from sidelight.statistics.grid import Grid
from sidelight.statistics.group import Array, Group, asked_share, check_bounds, check_groups, named
from sidelight.statistics.group_quantiles import GroupQuantiles, measure_quantiles
from sidelight.statistics.spread import Spread
from sidelight.statistics.terms import Terms, check_shares
from sidelight.statistics.weights import TYPICAL_DENSITY, laplace_variances, mean_variances

QuantileWeights = Literal["rank", "mean"]


def mixed_quantile(
    groups: Sequence[Group],
    quantile: float,
    *,
    bounds: tuple[float, float],
    weights: QuantileWeights = "rank",
    variance: float | None = None,
    density: Density = None,
    bias: Bias = None,
    bias_factor: float = 1.5,
    confidence: float = 0.95,
    unit: Unit | str | None = None,
    accounting: str = "pure",
    delta: float | None = None,
    ledger: Ledger | str | Path | None = None,
    noise: NoiseSource | None = None,
    density_share: float = 0.25,
    size_share: float = 0.1,
    alone: bool = False,
) -> MixedAnswer:
    """The best single quantile that respects everyone's ε.

    Args:
        groups: at least two, each private with its own ε or public; each person is in one of them.
        quantile: q, strictly between 0 and 1; 0.5 for the median.
        bounds: public bounds of a value; values outside are clamped.
        weights: ``"rank"``, ours; or ``"mean"``, the paper's, which need a ``variance``.
        variance: σ² for ``weights="mean"``; the most that the bounds allow unless said.
        density: of values at the quantile, for the standard error: a number, ``"public"`` (from the
            public groups), ``"private"`` (measured with ``density_share`` of each ε), or None: public
            where there are 100 public people, else private.
        bias: of the public groups: None, a bound on it, or ``"measure"`` (see ``statistics.bias``).
        bias_factor: with ``bias="measure"``, how much worse than ignoring the public groups it may get.
        confidence: of the interval.
        unit: ``"replace"`` (sizes are public) or ``"add-or-remove"`` (sizes are measured).
        accounting: ``"pure"``, or ``"zcdp"`` at ``delta``.
        delta: δ of every group under zCDP.
        ledger: where spending is kept for ever; its unit and promise hold.
        noise: operating-system noise unless said.
        density_share: share of each ε that measures the density, where that is private.
        size_share: share of each ε that measures sizes, under add-or-remove.
        alone: allow a single group.

    >>> from sidelight.testing import SeededNoise
    >>> rng = np.random.default_rng(1)
    >>> patients = Group(rng.normal(50, 5, 4000), epsilon=0.5, name="patients")
    >>> volunteers = Group(rng.normal(50, 5, 100), public=True, name="volunteers")
    >>> answer = mixed_quantile([patients, volunteers], 0.5, bounds=(0, 100), noise=SeededNoise(7))
    >>> abs(answer.estimate - 50) < 0.5, [round(weight, 3) for weight in answer.weights]
    (True, [0.975, 0.025])
    """
    check_groups(groups, alone=alone)
    names = named(groups)
    grid = Grid(*check_bounds(bounds, groups))
    terms = Terms(unit=unit, accounting=accounting, delta=delta, ledger=ledger, noise=noise)
    private = [place for place, group in enumerate(groups) if not group.is_public]
    public = [place for place, group in enumerate(groups) if group.is_public]
    public_values = [groups[place].public_values for place in public]
    _check.share(quantile=quantile, confidence=confidence)
    _check.one_of(("rank", "mean"), weights=weights)
    if variance is not None:
        _check.positive(variance=variance)
    density = densities.choose(density, public_values, has_private=bool(private))
    check_bias(bias, bias_factor)
    check_shares(density_share=density_share, size_share=size_share)
    _check_epsilons([groups[place] for place in private], density_share, size_share)
    share = asked_share(quantile)
    sigma2 = grid.width**2 / 4 if variance is None else variance
    mean_noise = None
    if weights == "mean":
        mean_noise = laplace_variances([groups[place].epsilon or math.inf for place in private], grid.width)

    slope = None
    if isinstance(density, float):
        slope = densities.given_slope(density)
    elif density == "public":
        slope = densities.public_slope(public_values, quantile, grid)

    # MEASURE the private groups; what comes back is public.
    measured, curator = None, None
    if private:
        own = [groups[place] for place in private]
        with terms.open(own, grid, label=f"quantile {quantile:g} of {len(groups)} groups") as curator:
            measured = measure_quantiles(
                curator,
                terms.costs(own),
                share,
                mean_noise=mean_noise,
                variance=sigma2,
                density=TYPICAL_DENSITY if slope is None else grid.width / slope.value,
                density_share=density_share if density == "private" else 0.0,
                size_share=size_share,
            )

    # ESTIMATE: weights from sizes and ε; then both sides together.
    if measured is not None and measured.slope is not None:
        slope = measured.slope
    assert slope is not None
    known = [float(np.quantile(np.clip(values, grid.low, grid.high), quantile)) for values in public_values]
    sizes = np.array([values.size for values in public_values], dtype=np.float64)
    private_part = None if measured is None else measured.part(slope)
    public_part = None
    if public:
        deviation = np.full(slope.likely.size, math.sqrt(quantile * (1 - quantile) / sizes.sum()))
        public_part = Part(float(sizes @ known / sizes.sum()), Spread(deviation, multiplier=slope.likely))
    mixed = mix(
        private_part,
        public_part,
        bias=bias,
        factor=bias_factor,
        confidence=confidence,
        public_weight=None if mean_noise is None else _paper_weight(sizes, measured, sigma2, mean_noise),
    )
    if measured is not None and measured.is_weak and not public:
        # All groups draw from all over the bounds: nothing narrower can be promised.
        mixed = Mixed(mixed.estimate, grid.width / 2, (grid.low, grid.high), mixed.weight)

    shares: dict[int, GroupShare] = {}
    for place, size, value in zip(public, sizes.tolist(), known, strict=True):
        error = slope.value * math.sqrt(quantile * (1 - quantile) / size)
        weight = mixed.weight * size / float(sizes.sum())
        shares[place] = GroupShare(names[place], None, size, weight, value, error)
    if measured is not None:
        errors = slope.value * np.sqrt(measured.variances)
        for index, place in enumerate(private):
            shares[place] = GroupShare(
                names[place],
                groups[place].epsilon,
                float(measured.sizes[index]),
                float((1 - mixed.weight) * measured.weights[index]),
                float(measured.estimates[index]),
                float(errors[index]),
                tuple(measured.events[index]),
            )
    card = terms.card("quantile", grid, curator) | {
        "quantile": quantile,
        "weights": weights,
        "density": {"source": slope.source, "value": 1 / slope.value},
        "bias": {"option": bias, "factor": bias_factor if bias == "measure" else None},
        "confidence": confidence,
    }
    low, high = (min(max(end, grid.low), grid.high) for end in mixed.interval)
    in_order = tuple(shares[place] for place in range(len(groups)))
    return MixedAnswer(mixed.estimate, mixed.standard_error, (low, high), in_order, card)


def _paper_weight(
    public_sizes: Array, measured: GroupQuantiles | None, variance: float, mean_noise: Array
) -> float | None:
    """The public groups' share of the inverse variances that their *means* would have."""
    if measured is None or not public_sizes.size:
        return None
    public = float(public_sizes.sum()) / variance
    return public / (public + float((1 / mean_variances(measured.sizes, variance, mean_noise)).sum()))


_LEAST_EPSILON = 2.0**-60
"""Below, a rank is off by more than any table has records, and variances leave the floating-point numbers."""


def _check_epsilons(private: Sequence[Group], *shares: float) -> None:
    """Refuse an ε too small for any part of what is measured, before a run begins."""
    least = min(share for share in (*shares, 1 - sum(shares)) if share > 0)
    for group in private:
        if group.epsilon is not None and group.epsilon * least < _LEAST_EPSILON:
            raise SettingError(
                f"epsilon = {group.epsilon:g} is too small for a quantile: the smallest that can be used is "
                f"{_LEAST_EPSILON / least:.1g}. Nothing was read and nothing was charged."
            )
