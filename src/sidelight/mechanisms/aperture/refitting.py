"""Another tree of the public records after the same answers, all at once.

It keeps of its public marginals what there is room for beside those that were measured. The first tree's own
are narrowed before it is known what will be measured (public/prior.py), so others say what it had to drop.

PRIVACY: a function of public data and of noisy answers; post-processing.
"""

from collections.abc import Sequence
from dataclasses import replace

from sidelight.data.domain import Domain
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.models.graphical import GraphicalModel
from sidelight.public.prior import Prior, pruned
from sidelight.trees.triangulation import BYTES_PER_CELL


def refitted(
    prior: Prior,
    measurements: Sequence[Measurement],
    domain: Domain,
    *,
    total: float,
    least_doubt: float,
    limit_mb: float,
) -> GraphicalModel:
    """The tree of a prior after these answers: single attributes first, then all others."""
    asked = [measurement.query.attrs for measurement in measurements]
    most_cells = limit_mb * 2**20 / BYTES_PER_CELL
    prior = replace(prior, model=pruned(prior.model, most_cells=most_cells, beside=asked))
    beliefs = Beliefs(prior, total, least_doubt=least_doubt)
    tree = GraphicalModel(domain, total, prior.model.potentials)
    singles = [m for m in measurements if len(m.query.attrs) == 1]
    others = [m for m in measurements if len(m.query.attrs) > 1]
    if singles:
        tree = beliefs.estimate(beliefs.add_all(singles, tree, beliefs.estimate))
    for measurement in others:
        beliefs.add(measurement.against(tree))
    return beliefs.estimate(tree) if others else tree
