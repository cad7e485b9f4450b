"""Answers to single attributes that were paid for are kept: the release moves back to within their noise.

    x′ ← close to x, with  |z| ≤ 4  in every cell of every attribute  and  Σ z² ≤ F + √(18F)  over all of them

where z is the cell's distance to its answer over σ, and F the number of cells less that of attributes: the
total is known, so each attribute has one cell less to err in.
Later answers pull at single attributes, and a rare value may lose what was measured of it. What noise alone
explains, in one cell or in all of them together (three standard deviations of χ² above its mean), stays:
with little budget the noise is a large part of n, and good public data know better.

PRIVACY: a function of a released model and of noisy answers; post-processing.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.fit.following import Pulled, following
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.evidence import merged_singly
from sidelight.models.graphical import GraphicalModel
from sidelight.models.support import Support, tally, tilt

Array = NDArray[np.float64]

_MOST_OFF = 4.0
"""Standard deviations of its noise that a cell may be off its answer."""
_FIRM = 100.0
"""How strongly a tree is pulled to where it should be, in units of the noise's precision."""
_LEAST = 1e-200
"""A cell of so small a share of all records is as good as empty, and no answer fills it."""
_SWEEPS = 10
"""Passes over all attributes, each of which is met exactly in its turn."""


def kept(model: GraphicalModel | Support, measurements: Sequence[Measurement]) -> GraphicalModel | Support:
    """The model, moved as little as it takes to be within the noise of every answer to one attribute."""
    answers = merged_singly(measurements)
    wanted = within(answers, {attrs: model.count(attrs) for attrs in answers})
    if not wanted:
        return model
    if isinstance(model, Support):
        return _raked(model, wanted)
    firm = {c: Pulled(x, _FIRM * answers[c].precision) for c, x in wanted.items()}
    return following(model, model.potentials, firm, total=model.total, last=True)


def within(answers: Mapping[Attrs, Measurement], counts: Mapping[Attrs, Array]) -> dict[Attrs, Array]:
    """The counts, moved towards noisy answers until what is left between them may be noise; or nothing."""
    # The sum of an attribute's cells is known better than from their noisy answers.
    centres = {
        c: one.answer + (counts[c].sum() - one.answer.sum()) / one.answer.size for c, one in answers.items()
    }
    off = {c: (counts[c] - centres[c]) / one.stddev for c, one in answers.items()}
    left = {c: np.clip(z, -_MOST_OFF, _MOST_OFF) for c, z in off.items()}
    free = sum(z.size - 1 for z in off.values())
    squares = sum(float(z @ z) for z in left.values())
    part = min(1.0, math.sqrt((free + math.sqrt(18 * free)) / max(squares, 1e-300)))
    if part == 1.0 and all(np.array_equal(left[c], off[c]) for c in off):
        return {}
    moved = {c: np.maximum(centres[c] + one.stddev * part * left[c], 0.0) for c, one in answers.items()}
    return {c: x * (counts[c].sum() / x.sum()) for c, x in moved.items()}


def _raked(records: Support, wanted: Mapping[Attrs, Array]) -> Support:
    weights = records.weights.copy()
    for _ in range(_SWEEPS):
        for attrs, target in wanted.items():
            cells = records.cells(attrs)
            now = tally(cells, weights, target.size)
            held = now > _LEAST * records.total
            if target[held].any():  # else every record would go, and none is there to take its place
                tilt(weights, cells, np.divide(target, now, out=np.ones(now.size), where=held))
    return records.with_weights(weights)
