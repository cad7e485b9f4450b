"""The errors of a release against the private table, on a workload.

PRIVACY: every function here compares with exact private answers, so its result is as private as the
table. It is for experiments, and for people who may see the table anyway.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sidelight.data.count_source import CountSource
from sidelight.data.domain import Attrs
from sidelight.errors import WorkloadError
from sidelight.queries.numbers import Batch
from sidelight.queries.query import Array, Marginal, Query, answer
from sidelight.queries.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Errors:
    """All errors on one workload. PRIVATE: exact answers went into it.

    The workload error is JAM's (eq. 1): for marginals of weight 1 the mean of their L1 distances, divided by
    n. A cuboid's error is the mean over its cells (spec 1.3).
    """

    workload_error: float
    max_error: float
    mean_error: float
    mean_squared_error: float
    squared_error_per_query: float
    cuboid_mean: float
    cuboid_max: float

    @classmethod
    def of(cls, exact: CountSource, released: CountSource, workload: Workload, *, total: float) -> "Errors":
        """Compare two countable things on a workload; ``total`` is n of the exact one."""
        if not total > 0:
            raise WorkloadError("errors are shares of the number of records; the table has none.")
        distance, cells, absolute, squared, largest = 0.0, 0, 0.0, 0.0, 0.0
        per_cuboid: list[float] = []
        for query, weights in _together(workload):
            gap = np.abs(answer(query, exact) - answer(query, released))
            distance += float((weights * gap).sum())
            cells += gap.size
            absolute += float(gap.sum())
            squared += float(np.square(gap).sum())
            largest = max(largest, float(gap.max(initial=0.0)))
            per_cuboid.extend(gap.tolist() if isinstance(query, Batch) else [float(gap.mean())])
        return cls(
            workload_error=distance / (total * sum(workload.weights)),
            max_error=largest / total,
            mean_error=absolute / (cells * total),
            mean_squared_error=squared / (cells * total**2),
            squared_error_per_query=squared / cells,
            cuboid_mean=math.fsum(per_cuboid) / len(per_cuboid),
            cuboid_max=max(per_cuboid),
        )


def _together(workload: Workload) -> Iterator[tuple[Query, Array]]:
    """Marginals with their weight, and batches of scalar queries with one weight each."""
    scalars: dict[Attrs, list[tuple[Query, float]]] = {}
    for query, weight in zip(workload.queries, workload.weights, strict=True):
        if isinstance(query, Marginal):
            yield query, np.array([weight])
        else:
            scalars.setdefault(query.attrs, []).append((query, weight))
    for attrs, members in scalars.items():
        queries, weights = zip(*members, strict=True)
        yield Batch(attrs, queries), np.array(weights)


def workload_error(exact: CountSource, released: CountSource, workload: Workload, *, total: float) -> float:
    """1/(n|W|) Σ_q ‖q(D) − q(A)‖₁, weighted: 0 for equal tables, 2 for disjoint ones."""
    return Errors.of(exact, released, workload, total=total).workload_error


def max_error(exact: CountSource, released: CountSource, workload: Workload, *, total: float) -> float:
    """The largest |q(D) − q(A)| / n over every number of the workload."""
    return Errors.of(exact, released, workload, total=total).max_error
