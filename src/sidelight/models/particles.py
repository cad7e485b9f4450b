"""Particles: weighted records in place of a model, to follow answers that its tree has no room for.

    x = (1 − λ) p + λ r   →   records drawn from p, each worth (1 − λ)/N;   records of r, worth λ w

A domain with no more cells than there is room for is taken whole, and nothing is drawn. Elsewhere distinct
records count once, with the weight of all their copies. Where few are distinct more are drawn: what counts is
how many different things the particles can say. Drawing follows the tree with little more than rounding error
(models/sampling.py) on what its cliques hold; on other marginals the draws are then raked to it.

PRIVACY: a function of a released model; post-processing.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.count_source import ManyCountSource
from sidelight.data.domain import Attrs, Domain
from sidelight.models.graphical import GraphicalModel
from sidelight.models.mixture import Blend
from sidelight.models.rounding import round_to
from sidelight.models.support import Support, compact, tally, tilt

_MOST = 250_000
"""Time: half a second for all three-way marginals of 15 attributes."""
_DRAWS = 4
"""How often at most as many are drawn."""
_SWEEPS, _MOST_RATIO = 2, 3.0
"""Of raking, and what a weight moves by at most in one step: a cell may have a single particle."""


def room_for(domain: Domain, limit_mb: float) -> int:
    """How many particles of a domain have room, with a weight each."""
    each = len(domain) * np.min_scalar_type(max(domain.shape, default=1) - 1).itemsize + 8
    return max(1, min(_MOST, int(limit_mb * 2**20 / each)))


def particles(model: GraphicalModel | Blend, *, room: int, seed: int, like: Sequence[Attrs] = ()) -> Support:
    """Particles of a model, with its total; on the marginals ``like`` they are brought close to it.

    >>> model = GraphicalModel.uniform(Domain.of({"a": 2, "b": 2}), total=8.0)
    >>> particles(model, room=4, seed=0).weights
    array([2., 2., 2., 2.])
    """
    domain, total = model.domain, model.total
    model = thinned(model, room=room, seed=seed)
    codes: NDArray[Any]
    if domain.size(domain.attrs) <= room:
        codes = np.indices(domain.shape).reshape(len(domain), -1).T
        weights = model.count(domain.attrs).reshape(-1)
        codes, weights = codes[weights > 0], weights[weights > 0]
    elif isinstance(model, Blend):
        rest = max(1, room - len(model.records.records))
        drawn = drawn_from(model.model, room=rest, seed=seed, like=like)
        return Support.mixed([(drawn, 1 - model.share), (model.records, model.share)], total=total)
    else:
        drawn = drawn_from(model, room=room, seed=seed, like=like)
        codes, weights = drawn.records, drawn.weights
    return Support(domain, compact(codes, domain), weights, total).with_total(total)


def drawn_from(tree: GraphicalModel, *, room: int, seed: int, like: Sequence[Attrs] = ()) -> Support:
    """Distinct records drawn from a tree, with its total; raked to it on the marginals ``like``."""
    found = _draws(tree, room, seed=seed)
    for before in range(1, _DRAWS):
        if 2 * len(found.records) > room:
            break
        again = _draws(tree, room, seed=seed + before)
        found = Support.mixed([(found, before), (again, 1.0)], total=tree.total).distinct
    return raked(found, tree, like)


def _draws(tree: GraphicalModel, number: int, *, seed: int) -> Support:
    """Distinct records drawn from a tree."""
    return Support.of_table(tree.sample(number, seed=seed), total=tree.total)


def thinned(model: GraphicalModel | Blend, *, room: int, seed: int) -> GraphicalModel | Blend:
    """The same with no more records than their share of the room: what hardly counts has none.

    Each is kept as often as its weight says. A domain that has room as a whole is left as it is.
    """
    if not isinstance(model, Blend) or model.domain.size(model.domain.attrs) <= room:
        return model
    records, most = model.records, max(1, round(room * model.share))
    if len(records.records) <= most:
        return model
    counts = round_to(records.weights, most, np.random.default_rng(seed))
    kept = counts > 0
    weights = counts[kept].astype(np.float64) * (records.total / most)
    return Blend(
        model.model, Support(records.domain, records.records[kept], weights, records.total), model.share
    )


def raked(drawn: Support, model: ManyCountSource, like: Sequence[Attrs], *, sweeps: int = _SWEEPS) -> Support:
    """The draws with weights that bring one marginal after another to what a model says of it."""
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
