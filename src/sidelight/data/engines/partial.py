"""Counts of a part of a table, as a worker of a cluster sends them: few numbers, however many records.

All marginals that are asked for stand one after another, as one long vector of cells. A worker counts the
records of its part with the same kernel as files on one machine (``counting.py``), and sends the cells that
are not empty, each with its count. The cluster adds up what its workers send; the driver cuts the sums into
marginals again. What is sent is bounded by the cells, so more records make no message longer.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines.base import Counts
from sidelight.data.engines.counting import MarginalCounter

REFUSED = -1
"""The cell of a part in which some value was refused; such a part sends nothing else."""
_AT_ONCE = 1 << 17
"""Records that are counted together: clusters hand them over in smaller batches."""
_MOST_CELLS = 1 << 25
"""Most cells in one pass: a worker holds eight bytes for each of them."""

Codes = Sequence[npt.NDArray[np.integer]]


def count_part(
    batches: Iterable[Codes | None], domain: Domain, marginals: Sequence[Attrs], *, expected: int
) -> tuple[Counts, Counts]:
    """The cells that are not empty, and their counts; None stands for records with a value that was refused.

    >>> domain = Domain.of({"age": 3, "sex": 2})
    >>> part = [[np.array([0, 2, 2]), np.array([1, 0, 0])]]
    >>> count_part(part, domain, [("age", "sex"), ("sex",)], expected=3)
    (array([1, 4, 6, 7]), array([1, 2, 2, 1]))
    """
    counter = MarginalCounter(domain, marginals, expected=expected)
    for columns in _together(batches):
        if columns is None:
            return np.array([REFUSED]), np.array([1])
        counter.add(columns)
    counts = np.concatenate([marginal.reshape(-1) for marginal in counter.counts()])
    cells = np.flatnonzero(counts)
    return cells, counts[cells]


def marginals_of(
    cells: Counts, counts: Counts, domain: Domain, marginals: Sequence[Attrs]
) -> dict[Attrs, Counts]:
    """The marginals whose cells, one marginal after another, have these counts; all others are empty."""
    sizes = [domain.size(attrs) for attrs in marginals]
    whole = np.zeros(sum(sizes), dtype=np.int64)
    whole[cells] = counts
    parts = np.split(whole, np.cumsum(sizes)[:-1])
    return {
        attrs: part.reshape(domain.project(attrs).shape) for attrs, part in zip(marginals, parts, strict=True)
    }


def passes(domain: Domain, marginals: Sequence[Attrs]) -> Iterator[list[Attrs]]:
    """The marginals in their order, as many at a time as a worker's memory allows."""
    some: list[Attrs] = []
    cells = 0
    for attrs in marginals:
        if some and cells + domain.size(attrs) > _MOST_CELLS:
            yield some
            some, cells = [], 0
        some.append(attrs)
        cells += domain.size(attrs)
    if some:
        yield some


def _together(batches: Iterable[Codes | None]) -> Iterator[Codes | None]:
    """The same records in fewer, larger batches, and no empty one."""
    held: list[Codes] = []
    records = 0
    for batch in batches:
        if batch is None:
            yield None
        elif len(batch[0]):
            held.append(batch)
            records += len(batch[0])
        if records >= _AT_ONCE:
            yield [np.concatenate(parts) for parts in zip(*held, strict=True)]
            held, records = [], 0
    if held:
        yield [np.concatenate(parts) for parts in zip(*held, strict=True)]
