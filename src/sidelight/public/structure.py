"""Which marginals a public model holds: those that carry over from some public records to others.

    t_c ← marginal of the public records, each attribute of each record drawn anew, evenly among its values,
          with probability 1/(m + 1)
    start with all one-way marginals; add the marginal with the largest
        w_c (‖b_c − model_c‖₁ − ‖b_c − t_c‖₁)  >  0
    for a model of half A of the records and the other half B, while the junction tree stays within its size

An attribute's first marginal has to gain 1/√m: less may be chance, and relations that public records do not
tell of are left to private ones. All t_c are marginals of one distribution. A value that public records never
show behaves as if independent of the rest once private data give it mass; the rest keeps its structure.

Attributes are drawn anew one by one: if all of a record were drawn at once, a value never shown would pull
all others apart. Halves are compared both ways. Several marginals are added between two fits if they share at
most one attribute, and gains are recomputed only where they may matter.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.fit.proportional_fitting import most_likely
from sidelight.public.source import PublicRecords
from sidelight.queries.strategy import subsets
from sidelight.trees.triangulation import SizeOracle

Array = NDArray[np.float64]

_LOOK_AT = 64
"""Gains recomputed between two fits: those that were the largest when last seen."""
_ROUGH = 3
"""Sweeps of a fit in the search: gains are differences of errors, and need no more."""
_TOGETHER = 6
"""Most marginals that are added between two fits."""


def smoothed(public: PublicRecords, wanted: Sequence[Attrs]) -> dict[Attrs, Array]:
    """t_c of each attribute set."""
    return {
        attrs: _smooth(public, attrs, frequency)
        for attrs, frequency in zip(wanted, public.frequencies(wanted), strict=True)
    }


def _smooth(public: PublicRecords, attrs: Attrs, frequency: Array) -> Array:
    for axis, attr in enumerate(attrs):
        anew = 1 / (public.records_of(attr) + 1)
        frequency = (1 - anew) * frequency + anew * frequency.mean(axis=axis, keepdims=True)
    return frequency


def structure(
    halves: tuple[PublicRecords, PublicRecords],
    weights: Mapping[Attrs, float],
    *,
    most_cells: float,
    most_marginals: int,
) -> list[Attrs]:
    """The marginals, one-way ones first."""
    domain = halves[0].domain
    chosen: list[Attrs] = [(attr,) for attr in domain.attrs if halves[0].holds([attr])]
    wanted = [attrs for attrs in weights if len(attrs) > 1 and domain.size(attrs) <= most_cells]
    seen = [half.kept_frequencies(wanted) for half in halves]
    noise = {
        attrs: float(np.abs(_smooth(halves[0], attrs, seen[0][attrs]) - seen[1][attrs]).sum())
        for attrs in wanted
    }
    chance = sum(half.records for half in halves) ** -0.5
    gains = dict.fromkeys(wanted, math.inf)
    targets = [smoothed(half, chosen) for half in halves]
    models = [most_likely(domain, target, sweeps=_ROUGH) for target in targets]
    left = most_marginals
    while left > 0:
        oracle = SizeOracle(domain, chosen)
        related = frozenset[str]().union(*(attrs for attrs in chosen if len(attrs) > 1))
        least = {c: 0.0 if related.issuperset(c) else weights[c] * chance for c in gains}
        ranked = sorted((c for c in gains if gains[c] > least[c]), key=lambda c: -gains[c])
        look = _fitting(oracle, ranked, most_cells, number=None if math.inf in gains.values() else _LOOK_AT)
        if not look:
            break
        errors = np.zeros(len(look))
        for model, other in zip(models, reversed(seen), strict=True):
            # Each model is judged by records that it has not seen, one marginal at a time.
            for place, answer in model.count_each(look):
                errors[place] += np.abs(answer - other[look[place]]).sum() / 2
        for attrs, error in zip(look, errors.tolist(), strict=True):
            gains[attrs] = weights[attrs] * (error - noise[attrs])
        ranked = sorted((c for c in look if gains[c] > least[c]), key=lambda a: -gains[a])
        added = _apart(domain, chosen, ranked, gains, number=min(left, _TOGETHER), most_cells=most_cells)
        chosen, left = chosen + added, left - len(added)
        for attrs in added:
            for part in subsets(attrs):
                gains.pop(part, None)  # the tree holds it now
        if added:
            for half, target in zip(halves, targets, strict=True):
                target |= smoothed(half, added)
            models = [
                most_likely(domain, target, start=model.potentials, sweeps=_ROUGH)
                for target, model in zip(targets, models, strict=True)
            ]
    return chosen


def _fitting(
    oracle: SizeOracle, ranked: Sequence[Attrs], most_cells: float, *, number: int | None
) -> list[Attrs]:
    """The first so many, or all, that a tree has room for. Wide tables have thousands: no more are priced."""
    at_once = len(ranked) if number is None else 2 * number
    found: list[Attrs] = []
    for start in range(0, len(ranked), max(1, at_once)):
        some = ranked[start : start + at_once]
        fits = oracle.fits_each(some, most_cells=most_cells)
        found += [attrs for attrs, is_small in zip(some, fits, strict=True) if is_small]
        if number is not None and len(found) >= number:
            break
    return found[:number]


def _apart(
    domain: Domain,
    chosen: Sequence[Attrs],
    ranked: Sequence[Attrs],
    gains: Mapping[Attrs, float],
    *,
    number: int,
    most_cells: float,
) -> list[Attrs]:
    """The best few that hardly touch each other, so that one fit can take them all."""
    added: list[Attrs] = []
    for attrs in ranked:
        # Less than half of the best gain may not be worth its room once the best are in.
        if len(added) == number or gains[attrs] < gains[ranked[0]] / 2:
            break
        is_apart = all(len(set(attrs) & set(other)) < 2 for other in added)
        if is_apart and all(SizeOracle(domain, [*chosen, *added]).fits_each([attrs], most_cells=most_cells)):
            added.append(attrs)
    return added
