"""Which marginals a public model holds: those that carry over from some public records to others.

    start with all one-way marginals; add the marginal with the largest
        w_c (‖b_c − model_c‖₁ − ‖a_c − b_c‖₁) > 0
    for a model of records A and other records B, while the junction tree stays within its size limit

On average over several pairs (A, B) where there are several. spec/aperture 2. Where we differ: halves are
compared both ways; several marginals are added between two fits if they share at most one attribute, and
gains are recomputed only where they may still matter.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sidelight.data.domain import Attrs, Domain
from sidelight.fit.proportional_fitting import most_likely
from sidelight.public.smoothing import smoothed
from sidelight.public.source import PublicRecords
from sidelight.trees.triangulation import SizeOracle

_LOOK_AT = 64
"""Gains recomputed between two fits: those that were the largest when last seen."""
_ROUGH = 3
"""Sweeps of a fit in the search: gains are differences of errors, and need no more."""
_TOGETHER = 6
"""Most marginals that are added between two fits."""


def structure(
    pairs: Sequence[tuple[PublicRecords, PublicRecords]],
    weights: Mapping[Attrs, float],
    *,
    most_cells: float,
    most_marginals: int,
) -> list[Attrs]:
    """The marginals, one-way ones first: each pair is records to fit, and others to judge by."""
    domain = pairs[0][0].domain
    chosen: list[Attrs] = [(attr,) for attr in domain.attrs if pairs[0][0].holds([attr])]
    wanted = [attrs for attrs in weights if len(attrs) > 1 and domain.size(attrs) <= most_cells]
    frequencies = {half: half.kept_frequencies(wanted) for pair in pairs for half in pair}
    (first, second), *_ = pairs
    noise = {
        attrs: float(np.abs(frequencies[first][attrs] - frequencies[second][attrs]).sum()) for attrs in wanted
    }
    unseen = [frequencies[other] for _, other in pairs]
    gains = dict.fromkeys(wanted, math.inf)
    targets = [smoothed(half, chosen) for half, _ in pairs]
    models = [most_likely(domain, target, sweeps=_ROUGH) for target in targets]
    left = most_marginals
    while left > 0:
        oracle = SizeOracle(domain, chosen)
        held = [set(attrs) for attrs in chosen if len(attrs) > 1]
        hopeful = [c for c in gains if gains[c] > 0 and not any(other.issuperset(c) for other in held)]
        sizes = dict(zip(hopeful, oracle.cells_with_each(hopeful), strict=True))
        allowed = sorted((a for a in hopeful if sizes[a] <= most_cells), key=lambda a: -gains[a])
        look = allowed if math.inf in gains.values() else allowed[:_LOOK_AT]
        if not look:
            break
        errors = np.zeros(len(look))
        for model, other in zip(models, unseen, strict=True):
            # Each model is judged by records that it has not seen, one marginal at a time.
            for place, answer in model.count_each(look):
                errors[place] += np.abs(answer - other[look[place]]).sum()
        for attrs, error in zip(look, errors.tolist(), strict=True):
            gains[attrs] = weights[attrs] * (error / len(pairs) - noise[attrs])
        ranked = sorted(look, key=lambda a: -gains[a])
        added = _apart(domain, chosen, ranked, gains, number=min(left, _TOGETHER), most_cells=most_cells)
        chosen, left = chosen + added, left - len(added)
        if added:
            for (half, _), target in zip(pairs, targets, strict=True):
                target |= smoothed(half, added)
            models = [
                most_likely(domain, target, start=model.potentials, sweeps=_ROUGH)
                for target, model in zip(targets, models, strict=True)
            ]
    return chosen


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
        if len(added) == number or gains[attrs] <= max(0.0, gains[ranked[0]] / 2):
            break
        is_apart = all(len(set(attrs) & set(other)) < 2 for other in added)
        if is_apart and SizeOracle(domain, [*chosen, *added]).cells_with(attrs) <= most_cells:
            added.append(attrs)
    return added
