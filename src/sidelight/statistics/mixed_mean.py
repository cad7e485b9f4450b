"""The mean of many groups, each with its own ε (MIX; spec 8.2).

    S̃ᵢ ← Σ(x − c) + Lap(R/εᵢ)                                                  measure
    βᵢ ∝ nᵢ² / (nᵢσ² + 2R²/εᵢ²),  Σβᵢ = 1                                      weights; a public group: nᵢ/σ²
    μ̃  ← c + Σ βᵢ S̃ᵢ/nᵢ                                                        estimate

Groups are disjoint, so each person loses their own group's ε and no more, and a ledger is charged the
largest. Weights come from sizes, σ² and ε, so they cost nothing, and μ̃ is unbiased for values within the
bounds. "Combining Public and Private Data" (MIX). Where we differ: R is the width of the bounds, hi − lo,
as replacement needs (the paper prints max(|lo|, |hi|), half of it for symmetric bounds); values are
centred; noise is exact, on a grid; under add-or-remove, sizes are measured; groups may be merged; public
groups may be biased (`bias`); and there is an interval (`spread`).
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
from sidelight.statistics.answer import GroupShare, MixedAnswer
from sidelight.statistics.bias import Bias, Part, check_bias, mix
from sidelight.statistics.grid import Grid
from sidelight.statistics.group import Array, Group, check_bounds, check_groups, named
from sidelight.statistics.group_sums import Asked, check_costs, measure_sums
from sidelight.statistics.spread import Spread
from sidelight.statistics.terms import Terms, check_shares
from sidelight.statistics.variance import (
    KnownVariance,
    Variance,
    check_variance,
    given_variance,
    private_variance,
    public_variance,
)

Weights = Literal["inverse-variance", "proportional"]


def mixed_mean(
    groups: Sequence[Group],
    *,
    bounds: tuple[float, float],
    variance: Variance = "bound",
    weights: Weights = "inverse-variance",
    bias: Bias = None,
    bias_factor: float = 1.5,
    confidence: float = 0.95,
    merge: bool = False,
    unit: Unit | str | None = None,
    accounting: str = "pure",
    delta: float | None = None,
    ledger: Ledger | str | Path | None = None,
    noise: NoiseSource | None = None,
    variance_share: float = 0.2,
    size_share: float = 0.2,
    clipped_share: float = 0.0,
    alone: bool = False,
) -> MixedAnswer:
    """The best single mean that respects everyone's ε.

    Args:
        groups: at least two, each private with its own ε or public; each person is in one of them.
        bounds: public bounds of a value; values outside are clamped, and the mean is of clamped values.
        variance: σ² of a value: a number, ``"bound"`` (the most that the bounds allow), ``"public"``
            (of the public groups) or ``"private"`` (measured with ``variance_share`` of each ε).
        weights: ``"inverse-variance"``, best if all groups have one mean; ``"proportional"`` to their
            sizes, which targets the mean of all people together whatever the groups' own means.
        bias: of the public groups: None, a bound on it, or ``"measure"`` (see ``statistics.bias``).
        bias_factor: with ``bias="measure"``, how much worse than ignoring the public groups it may get.
        confidence: of the interval.
        merge: sum groups of similar ε together, at the least of theirs, where that helps.
        unit: ``"replace"`` (sizes are public) or ``"add-or-remove"`` (sizes are measured).
        accounting: ``"pure"`` Laplace noise, or ``"zcdp"`` Gaussian noise at ``delta``.
        delta: δ of every group under zCDP.
        ledger: where spending is kept for ever; its unit and promise hold.
        noise: operating-system noise unless said.
        variance_share: share of each ε that measures σ², with ``variance="private"``.
        size_share: share of each ε that measures sizes, under add-or-remove.
        clipped_share: share of each ε that counts clamped values for the card; 0 for no count.
        alone: allow a single group.

    >>> from sidelight.testing import SeededNoise
    >>> rng = np.random.default_rng(1)
    >>> patients = Group(rng.normal(50, 5, 4000), epsilon=0.5, name="patients")
    >>> volunteers = Group(rng.normal(50, 5, 100), public=True, name="volunteers")
    >>> answer = mixed_mean([patients, volunteers], bounds=(0, 100), variance=25.0, noise=SeededNoise(7))
    >>> [round(weight, 3) for weight in answer.weights], round(answer.standard_error, 3)
    ([0.957, 0.043], 0.104)
    """
    check_groups(groups, alone=alone)
    names = named(groups)
    grid = Grid(*check_bounds(bounds, groups))
    terms = Terms(unit=unit, accounting=accounting, delta=delta, ledger=ledger, noise=noise)
    private = [place for place, group in enumerate(groups) if not group.is_public]
    public = [place for place, group in enumerate(groups) if group.is_public]
    public_values = [groups[place].public_values for place in public]
    check_variance(variance, public_values)
    check_bias(bias, bias_factor)
    _check.share(confidence=confidence)
    _check.one_of(("inverse-variance", "proportional"), weights=weights)
    if weights == "proportional" and (bias is not None or merge):
        raise SettingError("weights='proportional' takes no bias and no merge; leave them out.")
    _check.share(variance_share=variance_share, size_share=size_share)
    check_shares(variance_share=variance_share * (variance == "private"), clipped_share=clipped_share)

    # MEASURE the private groups; what comes back is public.
    sums, curator = None, None
    known = _known_beforehand(variance, public_values, grid)
    if private:
        own = [groups[place] for place in private]
        asked = Asked(
            variance_share=variance_share if variance == "private" else 0.0,
            size_share=size_share,
            clipped_share=clipped_share,
            merge=merge,
            is_proportional=weights == "proportional",
        )
        costs = terms.costs(own)
        with terms.open(
            own,
            grid,
            label=f"mean of {len(groups)} groups",
            check_unit=lambda unit: check_costs(grid, unit, costs, asked),
        ) as curator:
            sums = measure_sums(curator, costs, asked, variance=known.value)
        if sums.squares is not None:
            for _ in range(2):  # σ² needs μ, and the weights behind μ need σ²; twice is enough
                offset = sums.offset(known.value)
                known = private_variance(sums.squares, sums.sizes, public_values, offset, grid)

    # ESTIMATE: weights from sizes, σ² and noise; then both sides together.
    people = float(sum(values.size for values in public_values))
    everybody = people + (0.0 if sums is None else float(sums.sizes.sum()))
    mixed = mix(
        None if sums is None else sums.part(known),
        _public_part(public_values, known, grid) if public else None,
        bias=bias,
        factor=bias_factor,
        confidence=confidence,
        public_weight=people / everybody if weights == "proportional" else None,
    )
    shares: dict[int, GroupShare] = {}
    for place, values in zip(public, public_values, strict=True):
        mean = float(np.clip(values, grid.low, grid.high).mean())
        error = math.sqrt(known.value / values.size)
        shares[place] = GroupShare(
            names[place], None, float(values.size), mixed.weight * values.size / people, mean, error
        )
    if sums is not None:
        each = zip(private, sums.sizes, *sums.by_group(known), sums.events, strict=True)
        for place, size, weight, mean, error, events in each:
            shares[place] = GroupShare(
                names[place],
                groups[place].epsilon,
                float(size),
                float((1 - mixed.weight) * weight),
                float(mean),
                float(error),
                events,
            )
    card = terms.card("mean", grid, curator) | {
        "variance": {"source": variance if isinstance(variance, str) else "given", "value": known.value},
        "weights": weights,
        "bias": {"option": bias, "factor": bias_factor if bias == "measure" else None},
        "confidence": confidence,
    }
    clamped = {
        names[place]: grid.outside(values) for place, values in zip(public, public_values, strict=True)
    }
    if sums is not None and sums.clipped is not None:
        counted = zip(private, sums.clipped.answer.tolist(), strict=True)
        clamped |= {names[place]: max(0, round(count)) for place, count in counted}
    card["clamped"] = clamped
    if sums is not None and merge:
        card["merged"] = [[names[private[place]] for place in who] for who in sums.members]
    in_order = tuple(shares[place] for place in range(len(groups)))
    return MixedAnswer(mixed.estimate, mixed.standard_error, mixed.interval, in_order, card)


def _known_beforehand(variance: Variance, public: Sequence[Array], grid: Grid) -> KnownVariance:
    """σ² as far as it is known before anything private is measured."""
    if variance == "public" or (variance == "private" and max((x.size for x in public), default=0) > 1):
        return public_variance(public, grid)
    return given_variance(grid.width**2 / 4 if isinstance(variance, str) else variance, grid)


def _public_part(public: Sequence[Array], known: KnownVariance, grid: Grid) -> Part:
    """The public groups together: each person counts once."""
    people = sum(values.size for values in public)
    mean = sum(float(np.clip(values, grid.low, grid.high).sum()) for values in public) / people
    return Part(mean, Spread(np.sqrt(known.likely / people)))
