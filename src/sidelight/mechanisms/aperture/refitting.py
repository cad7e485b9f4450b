"""Public data after noisy answers: a tree, other trees, public records. All follow the same answers.

PRIVACY: functions of public data and of noisy answers; post-processing.
"""

from collections.abc import Sequence
from dataclasses import replace

from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.mechanisms.aperture.reweighting import Reweighting, evenness, lowered
from sidelight.models.graphical import GraphicalModel
from sidelight.models.particles import drawn_from, room_for
from sidelight.models.support import Support
from sidelight.public.prior import LEAST_SAMPLE, Prior, pruned
from sidelight.trees.triangulation import BYTES_PER_CELL

Fitted = tuple[GraphicalModel, Beliefs]


def taken_in(prior: Prior, singles: Sequence[Measurement], total: float) -> Fitted:
    """The public model after the answers to single attributes, and what they say of it."""
    beliefs = Beliefs(prior, total)
    start = GraphicalModel(prior.domain, total, prior.model.potentials)
    return beliefs.estimate(beliefs.add_all(singles, start, beliefs.estimate)), beliefs


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
        found.append((records, lowered(prior.sample_share, evenness(records) / evenness(prior.sample))))
    if prior.others:
        room = max(LEAST_SAMPLE, room_for(prior.domain, limit_mb / 2)) // len(prior.others)
        drawn = list[tuple[Support, float]]()
        for place, other in enumerate(prior.others):
            tree, _ = refitted(replace(prior, model=other), measurements, total, limit_mb=limit_mb)
            drawn.append((drawn_from(tree, room=room, seed=place), 1.0))
        found.append((Support.mixed(drawn, total=total), len(drawn) / (len(drawn) + 1)))
    return found
