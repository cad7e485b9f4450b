"""How far public and private data are apart, as far as noisy answers tell.

For the numbers y measured on some attributes, with noise of standard deviation σ, and the public table's
own answers p scaled to n records:

    d = √max(0, mean((y − p)² − σ²)) / n

a root mean square difference, with the share that noise is expected to make taken off; 0 where nothing but
noise shows. What a mechanism measures it has often selected for being far off, so d tells of the worst.

PRIVACY: functions of noisy answers and of public data alone; post-processing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.data.domain import Attrs
from sidelight.data.table import Table
from sidelight.measurement import Measurement
from sidelight.queries.query import answer


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """How far public and private data are apart on some attributes, by noisy answers."""

    attrs: Attrs
    numbers: int
    """How many noisy numbers this was computed from."""
    difference: float
    """d, as above: a share of all records."""


def disagreements(measurements: Sequence[Measurement], public: Table, *, total: float) -> list[Disagreement]:
    """For each set of attributes that was measured: how many numbers, and d; the largest d first.

    >>> from sidelight.data.domain import Domain
    >>> from sidelight.queries.query import Marginal
    >>> public = Table.of_codes(Domain.of({"a": 2}), np.array([[0], [1]]))
    >>> disagreements([Measurement(Marginal(("a",)), np.array([80.0, 20.0]), 5.0)], public, total=100.0)
    [Disagreement(attrs=('a',), numbers=2, difference=0.295804)]
    """
    if not public.records:
        return []
    excess: dict[Attrs, float] = {}
    numbers: dict[Attrs, int] = {}
    for made in measurements:
        attrs = made.query.attrs
        if not set(attrs) <= set(public.domain.attrs):
            continue  # public data tell nothing of it
        said = np.asarray(answer(made.query, public), dtype=np.float64).reshape(-1) * (total / public.records)
        squares = float(np.square(made.answer - said).sum()) - made.answer.size * made.stddev**2
        excess[attrs] = excess.get(attrs, 0.0) + squares
        numbers[attrs] = numbers.get(attrs, 0) + made.answer.size
    apart = [
        Disagreement(
            attrs=attrs,
            numbers=numbers[attrs],
            difference=round(math.sqrt(max(0.0, excess[attrs]) / numbers[attrs]) / max(total, 1.0), 6),
        )
        for attrs in excess
        if attrs
    ]
    return sorted(apart, key=lambda one: -one.difference)
