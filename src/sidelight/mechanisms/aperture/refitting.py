"""Public data after noisy answers: a tree, other trees, public records; with all of it, and with less.

PRIVACY: functions of public data and of noisy answers; post-processing.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.evidence import Beliefs, merged_singly
from sidelight.mechanisms.aperture.reweighting import Reweighting, evenness, lowered
from sidelight.models.graphical import GraphicalModel
from sidelight.models.particles import drawn_from, room_for
from sidelight.models.support import Support
from sidelight.public.prior import LEAST_SAMPLE, Prior, pruned
from sidelight.trees.triangulation import BYTES_PER_CELL

Fitted = tuple[GraphicalModel, Beliefs]

_CONTRADICTS = 1.0
"""An answer contradicts a model where it is e times as likely under a spread above 1."""
_MOST_FITS = 16
"""Most answers that are followed before others are tried, and most priors that leave out attributes in doubt:
each takes a fit, and tables may be wide."""


def taken_in(prior: Prior, singles: Sequence[Measurement], total: float) -> Fitted:
    """q after the answers to single attributes, and what they say of it.

    An attribute that public data have wrong takes with it those that it is related to. So the answer that
    contradicts the model most is followed first, and the others are held against what the model says then.
    """
    beliefs = Beliefs(prior, total)
    model, waiting = beliefs.start, merged_singly(singles)
    for _ in range(_MOST_FITS):
        related = {attrs: one for attrs, one in waiting.items() if attrs[0] in prior.related}
        doubts = {attrs: beliefs.doubt(one.against(model)) for attrs, one in related.items()}
        worst = max(doubts, key=lambda attrs: doubts[attrs], default=())
        if not worst or doubts[worst] <= _CONTRADICTS:
            break
        beliefs.add(waiting.pop(worst).against(model))
        model = beliefs.estimate(model)
    beliefs.add_singles(waiting.values(), model)
    return beliefs.estimate(model), beliefs


def without_doubted(prior: Prior, singles: Sequence[Measurement], total: float) -> list[Prior]:
    """Without the attribute whose answer contradicts its public values most; without two; and so on.

    Those that are left out lose their relations. At most half are: last comes no public data at all.
    """
    told = Beliefs(prior, total)
    doubt = {one.query.attrs[0]: told.doubt(one.against(told.start)) for one in singles}
    order = sorted((a for a in prior.related if doubt[a] > _CONTRADICTS), key=lambda a: -doubt[a])
    order = order[: len(prior.related) // 2]
    numbers = _numbers(len(order))
    found = [
        without_false_values(prior.without_relations(order[:number]), singles, total) for number in numbers
    ]
    return [*found, Prior.nothing(prior.domain)]


def _numbers(doubted: int) -> list[int]:
    """How many are left out: 1, 2, 3 and so on, in growing steps where there are many, since each is a fit.

    >>> _numbers(3), _numbers(40)
    ([1, 2, 3], [1, 2, 3, 4, 6, 7, 9, 12, 15, 19, 24, 31, 40])
    """
    if doubted <= _MOST_FITS:
        return list(range(1, doubted + 1))
    steps = _MOST_FITS - 1
    return sorted({round(doubted ** (step / steps)) for step in range(_MOST_FITS)})


def without_false_values(prior: Prior, singles: Sequence[Measurement], total: float) -> Prior:
    """Without public values that have no relations, where the answers are likelier without them."""
    told, untold = Beliefs(prior, total), Beliefs(Prior.nothing(prior.domain), total)
    alone = {a: one for (a,), one in merged_singly(singles).items() if a not in prior.related}
    known = {a: one for a, one in alone.items() if prior.tells([a])}
    # One model after the other: only the one used last is kept ready.
    without = {a: untold.log_chance(one.against(untold.start)) for a, one in known.items()}
    gains = {a: without[a] - told.log_chance(one.against(told.start)) for a, one in known.items()}
    # Beforehand one of them is thought to be false; where most prove to be, none of them is believed.
    false = {a for a, gain in gains.items() if gain > math.log(len(gains))}
    false = set(gains) if 2 * len(false) > len(gains) else false
    return prior.without_values(false) if false else prior


def refitted(prior: Prior, measurements: Sequence[Measurement], total: float, *, limit_mb: float) -> Fitted:
    """A tree after all answers. It keeps its own marginals as far as there is room beside those measured."""
    asked = [measurement.query.attrs for measurement in measurements]
    most_cells = limit_mb * 2**20 / BYTES_PER_CELL
    prior = replace(prior, model=pruned(prior.model, most_cells=most_cells, beside=asked))
    tree, beliefs = taken_in(prior, [m for m in measurements if len(m.query.attrs) == 1], total)
    others = [m for m in measurements if len(m.query.attrs) > 1]
    for measurement in others:
        beliefs.add(measurement.against(tree))
    return (beliefs.estimate(tree) if others else tree), beliefs


def beside(
    prior: Prior, measurements: Sequence[Measurement], total: float, *, limit_mb: float
) -> list[tuple[Support, float]]:
    """Public records, and draws from other trees; with the most of each that is worth taking.

    Trees of other halves of the public records hold other marginals and err in other places, so their mean
    errs less: each counts as much as the first. Records say what no tree has room for, and all the sampling
    error: their share is what public data alone would take, less where their weights became uneven.
    """
    found = list[tuple[Support, float]]()
    if prior.sample is not None:
        records = Reweighting(prior.sample, total).follow(measurements, Beliefs(prior, total))
        evener = min(1.0, evenness(records) / evenness(prior.sample))
        found.append((records, lowered(prior.sample_share, evener)))
    if prior.others:
        room = max(LEAST_SAMPLE, room_for(prior.domain, limit_mb / 2)) // len(prior.others)
        drawn = list[tuple[Support, float]]()
        for place, other in enumerate(prior.others):
            tree, _ = refitted(replace(prior, model=other), measurements, total, limit_mb=limit_mb)
            drawn.append((drawn_from(tree, room=room, seed=place), 1.0))
        found.append((Support.mixed(drawn, total=total), len(drawn) / (len(drawn) + 1)))
    return found
