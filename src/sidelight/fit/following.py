"""A tree that follows noisy answers with given strength, and the public model in all else.

    p = argmin  n KL(p ‖ q) + Σ_c ½ a_c ‖n p_c − y_c‖²

Solved for one marginal at a time (balance.py), on a walk around the tree (walk.py).

PRIVACY: a function of the public model and of noisy answers; post-processing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.data.impossible import masks
from sidelight.fit.balance import potential
from sidelight.models.graphical import GraphicalModel, Potentials, forbidding
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.walk import Walk

Array = NDArray[np.float64]

_SWEEPS, _CLOSE = 30, 1e-3
"""Most sweeps; fewer once no marginal moves by more than this share of all records."""
_LAST_SWEEPS, _LAST_CLOSE = 60, 1e-4
"""The same two limits for a model that is to be released."""


@dataclass(frozen=True, eq=False)
class Pulled:
    """A noisy answer, and how strongly it pulls the estimate."""

    answer: Array
    pull: float
    """a_c, as above."""


def following(
    start: GraphicalModel,
    prior: Potentials,
    answers: Mapping[Attrs, Pulled],
    *,
    total: float,
    last: bool = False,
) -> GraphicalModel:
    """The fitted tree. ``start`` may follow some answers already; ``prior`` is q, as potentials."""
    domain = start.domain
    shapes = {attrs: domain.project(attrs).shape for attrs in answers}
    new = {attrs: np.zeros(shape) for attrs, shape in shapes.items() if attrs not in start.potentials}
    kept = {**start.potentials, **new}
    tilts = {attrs: kept[attrs] - prior.get(attrs, 0.0) for attrs in answers}
    tree = JunctionTree.of(domain, list(kept))
    walk = Walk(tree, [*kept.items(), *forbidding(masks(domain))], list(answers))
    moved = dict.fromkeys(answers, 0.0)

    def step(attrs: Attrs, p: Array) -> Array:
        before, one, shape = tilts[attrs], answers[attrs], shapes[attrs]
        tilts[attrs] = potential(p, before, answer=one.answer.reshape(shape), pull=one.pull, total=total)
        change = tilts[attrs] - before
        moved[attrs] = float(p.reshape(-1) @ np.abs(np.expm1(change)).reshape(-1))
        return change

    sweeps, close = (_LAST_SWEEPS, _LAST_CLOSE) if last else (_SWEEPS, _CLOSE)
    for _ in range(sweeps):
        walk.sweep(step)
        if max(moved.values(), default=0.0) < close:
            break
    for attrs, tilt in tilts.items():
        kept[attrs] = tilt - tilt.max() + prior.get(attrs, 0.0)
    return GraphicalModel(domain, total, kept)
