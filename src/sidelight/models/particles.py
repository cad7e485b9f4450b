"""Particles: weighted records that stand in for a model, and can follow answers its tree has no room for.

Where the whole domain has room, every cell is a particle, and nothing is drawn. Elsewhere copies of a record
are merged into one particle with their summed weight, and if few are distinct, more are drawn. On marginals
within a clique, draws differ from the tree by little more than rounding (models/sampling.py).

PRIVACY: a function of a released model; post-processing.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sidelight.data.count_source import ManyCountSource
from sidelight.data.domain import Attrs, Domain
from sidelight.models.graphical import GraphicalModel
from sidelight.models.rounding import round_to
from sidelight.models.support import Support, compact, tally, tilt

_MOST = 250_000
"""Most particles. Counting 455 three-way marginals of this many takes half a second."""
_DRAWS = 4
"""Most rounds of drawing."""
_SWEEPS, _MOST_RATIO = 2, 3.0
"""Sweeps of raking, and the largest factor on a weight in one step: a cell may hold a single particle."""


def room_for(domain: Domain, limit_mb: float) -> int:
    """How many particles, each with its weight, fit into this much memory."""
    each = len(domain) * np.min_scalar_type(max(domain.shape, default=1) - 1).itemsize + 8
    return max(1, min(_MOST, int(limit_mb * 2**20 / each)))


def particles(model: GraphicalModel, *, room: int, seed: int) -> Support:
    """Particles of a model, with its total.

    >>> model = GraphicalModel.uniform(Domain.of({"a": 2, "b": 2}), total=8.0)
    >>> particles(model, room=4, seed=0).weights
    array([2., 2., 2., 2.])
    """
    domain = model.domain
    if domain.size(domain.attrs) > room:
        return drawn_from(model, room=room, seed=seed)
    codes = np.indices(domain.shape).reshape(len(domain), -1).T
    weights = model.count(domain.attrs).reshape(-1)
    held = weights > 0
    return Support(domain, compact(codes[held], domain), weights[held], model.total).with_total(model.total)


def drawn_from(tree: GraphicalModel, *, room: int, seed: int) -> Support:
    """Distinct records drawn from a tree, with its total."""
    found = _draws(tree, room, seed=seed)
    for before in range(1, _DRAWS):
        if 2 * len(found.records) > room:
            break
        again = _draws(tree, room, seed=seed + before)
        found = Support.mixed([(found, before), (again, 1.0)], total=tree.total).distinct
    return found


def _draws(tree: GraphicalModel, number: int, *, seed: int) -> Support:
    """Distinct records drawn from a tree."""
    return Support.of_table(tree.sample(number, seed=seed), total=tree.total)


def thinned(records: Support, *, most: int, seed: int) -> Support:
    """No more records than this, sampled in proportion to their weights."""
    if len(records.records) <= most:
        return records
    counts = round_to(records.weights, most, np.random.default_rng(seed))
    kept = counts > 0
    weights = counts[kept].astype(np.float64) * (records.total / most)
    return Support(records.domain, records.records[kept], weights, records.total)


def raked(drawn: Support, model: ManyCountSource, like: Sequence[Attrs], *, sweeps: int = _SWEEPS) -> Support:
    """The draws, reweighted so that one marginal after another agrees with the model."""
    weights = drawn.weights.copy()
    for _ in range(sweeps):
        for place, wanted in model.count_each(like):
            cells = drawn.cells(like[place])
            found = tally(cells, weights, wanted.size)
            least = wanted.reshape(-1) / _MOST_RATIO
            ratio = np.divide(
                wanted.reshape(-1), found, out=np.full(found.size, _MOST_RATIO), where=found > least
            )
            tilt(weights, cells, np.clip(ratio, 1 / _MOST_RATIO, _MOST_RATIO))
    weights *= drawn.total / weights.sum()
    return replace(drawn, weights=weights)
