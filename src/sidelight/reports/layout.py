"""Where the attributes stand in the picture of the model's structure.

A force layout: joined attributes attract each other, all repel each other, and everything is drawn
gently to the middle (Fruchterman and Reingold 1991). It starts from a circle and uses no chance, so
the same release always gives the same picture.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from sidelight.models.model import Array

_STEPS = 300


def circle(number: int) -> Array:
    """So many points on the unit circle, clockwise from the top.

    >>> circle(4).round(6).tolist()
    [[0.0, -1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
    """
    angle = 2 * np.pi * np.arange(number) / max(number, 1)
    # Adding 0 turns −0 into 0.
    return np.stack([np.sin(angle), -np.cos(angle)], axis=1).round(12) + 0.0


def force_layout(names: Sequence[str], edges: Mapping[tuple[str, str], int]) -> Array:
    """A position in [0, 1]² for every name."""
    number = len(names)
    if number < 2:
        return np.full((number, 2), 0.5)
    index = {name: position for position, name in enumerate(names)}
    pairs = np.array([(index[one], index[other]) for one, other in edges], dtype=np.int64).reshape(-1, 2)
    at = circle(number)
    ideal = 2.0 / np.sqrt(number)
    for step in range(_STEPS):
        gap = at[:, None, :] - at[None, :, :]
        distance = np.maximum(np.sqrt(np.square(gap).sum(axis=2)), 1e-3)
        move = (gap * (ideal / distance)[:, :, None] ** 2).sum(axis=1)
        pull = gap[pairs[:, 0], pairs[:, 1]] * (distance[pairs[:, 0], pairs[:, 1]] / ideal)[:, None]
        np.add.at(move, pairs[:, 0], -pull)
        np.add.at(move, pairs[:, 1], pull)
        move -= at * 0.9
        length = np.maximum(np.sqrt(np.square(move).sum(axis=1, keepdims=True)), 1e-9)
        heat = 0.12 * (1 - step / _STEPS)
        at = at + move / length * np.minimum(length, heat)
    low, high = at.min(axis=0), at.max(axis=0)
    return np.asarray((at - low) / np.maximum(high - low, 1e-9))
