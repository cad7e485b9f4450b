"""The mean of many groups, each with its own ε (MIX; spec 8.2).

    S̃ᵢ ← Σ(x − c) + Lap(R/εᵢ)                                                  measure
    βᵢ ∝ nᵢ² / (nᵢσ² + 2R²/εᵢ²),  Σβᵢ = 1                                      weights; a public group: nᵢ/σ²
    μ̃  ← c + Σ βᵢ S̃ᵢ/nᵢ                                                        estimate

Groups are disjoint, so each person loses their own group's ε and no more, and a ledger is charged the
largest. Weights come from sizes, σ² and ε, so they cost nothing, and μ̃ is unbiased for values within the
bounds. "Combining Public and Private Data" (MIX). Where we differ: R is the width of the bounds, hi − lo,
as replacement needs (the paper prints max(|lo|, |hi|), half of it for symmetric bounds); values are
centred; noise is exact, on a grid; under add-or-remove, sizes are measured; groups may be merged; public
groups may be biased (`mixing`); and there is an interval (`error_law`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sidelight._check import count_of
from sidelight.statistics.answer import MixedAnswer
from sidelight.statistics.error_law import ErrorLaw
from sidelight.statistics.grid import Array
from sidelight.statistics.group import Group
from sidelight.statistics.group_sums import GroupSums, check_costs, measure_sums
from sidelight.statistics.mixing import Part, mix
from sidelight.statistics.settings import MeanSettings, check_keywords, of_keywords
from sidelight.statistics.sides import Estimates, Sides
from sidelight.statistics.terms import GroupTerms
from sidelight.statistics.variance import KnownVariance, known_beforehand, private_variance


def mixed_mean(groups: Sequence[Group], *, bounds: tuple[float, float], **settings: Any) -> MixedAnswer:
    """The best single mean that respects everyone's ε.

    Args:
        groups: at least two, each private with its own ε or public; each person is in one of them.
        bounds: public bounds of a value; values outside are clamped, and the mean is of clamped values.
        **settings: the fields of ``MeanSettings`` (``variance``, ``weights``, ``bias``, ``merge``,
            ``confidence`` …), which cannot change what is promised, and those of ``GroupTerms`` (``unit``,
            ``accounting``, ``delta``, ``ledger``, ``noise``, ``project``, ``approved_by``), which say what
            is.

    >>> from sidelight.testing import SeededNoise
    >>> rng = np.random.default_rng(1)
    >>> patients = Group(rng.normal(50, 5, 4000), epsilon=0.5, name="patients")
    >>> volunteers = Group(rng.normal(50, 5, 100), public=True, name="volunteers")
    >>> answer = mixed_mean([patients, volunteers], bounds=(0, 100), variance=25.0, noise=SeededNoise(7))
    >>> [round(weight, 3) for weight in answer.weights], round(answer.standard_error, 3)
    ([0.957, 0.043], 0.104)
    """
    check_keywords("mixed_mean", settings, MeanSettings, GroupTerms)
    asked, terms = of_keywords(MeanSettings, settings), of_keywords(GroupTerms, settings)
    sides = Sides.of(groups, bounds, alone=asked.alone)
    grid, shown = sides.grid, sides.shown
    known = known_beforehand(asked.variance, shown, grid)

    # MEASURE the private groups; what comes back is public.
    sums = curator = None
    if sides.private:
        label = f"mean of {count_of(len(groups), 'group')}"
        with sides.ask(
            terms, label=label, way="mean", check=lambda unit, costs: check_costs(grid, unit, costs, asked)
        ) as (curator, costs):
            sums = measure_sums(curator, costs, asked, variance=known.value)
        if sums.squares is not None:
            for _ in range(2):  # σ² needs μ, and the weights behind μ need σ²; twice is enough
                offset = sums.offset(known.value)
                known = private_variance(sums.squares, sums.sizes, shown, offset, grid)

    # ESTIMATE: weights from sizes, σ² and noise; then both sides together.
    people = float(sum(values.size for values in shown))
    everybody = people + (0.0 if sums is None else float(sums.sizes.sum()))
    mixed = mix(
        None if sums is None else sums.part(known),
        _public_part(shown, known) if shown else None,
        asked,
        public_weight=people / everybody if asked.weights == "proportional" else None,
    )

    card = replace(
        terms.card("mean", grid, curator),
        variance=known.on_card(asked.variance),
        weights=asked.weights,
        bias=asked.allowed_bias,
        confidence=asked.confidence,
        clamped=_clamped(sides, sums),
        merged=sides.named(sums.members) if sums is not None and asked.merge else None,
    )
    return sides.answer(
        mixed,
        None if sums is None else sums.by_group(known),
        _public_estimates(shown, known) if shown else None,
        card,
    )


def _clamped(sides: Sides, sums: GroupSums | None) -> dict[str, int]:
    """How many values lie outside the bounds: of public groups exactly, of private ones as measured."""
    found = {
        sides.names[place]: sides.grid.outside(sides.groups[place].public_values) for place in sides.public
    }
    if sums is not None and sums.clipped is not None:
        counted = zip(sides.private, sums.clipped.answer.tolist(), strict=True)
        found |= {sides.names[place]: max(0, round(count)) for place, count in counted}
    return found


def _public_part(shown: Sequence[Array], known: KnownVariance) -> Part:
    """The public groups together: each person counts once."""
    people = sum(values.size for values in shown)
    mean = sum(float(values.sum()) for values in shown) / people
    return Part(mean, ErrorLaw(np.sqrt(known.likely / people)))


def _public_estimates(shown: Sequence[Array], known: KnownVariance) -> Estimates:
    sizes = np.array([values.size for values in shown], dtype=np.float64)
    means = np.array([values.mean() for values in shown])
    return Estimates(sizes, sizes / sizes.sum(), means, np.sqrt(known.value / sizes))
