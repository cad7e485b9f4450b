"""An engine seen through a grouping: counts of groups are sums of the counts of their values."""

from collections.abc import Sequence

import numpy as np

from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines.base import Codes, Counts, Engine, Tell, smallest_dtype, tell_nobody
from sidelight.data.engines.distinct import distinct_records
from sidelight.data.engines.numpy import NumpyEngine
from sidelight.data.grouping import Grouping


def grouped(engine: Engine, grouping: Grouping) -> Engine:
    """The same records, counted in groups; records in memory are given the codes of their groups."""
    if not isinstance(engine, NumpyEngine):
        return GroupedEngine(engine, grouping)
    columns = list(engine.columns)
    for place, attr in enumerate(grouping.whole.attrs):
        if attr in grouping.groups:
            columns[place] = _lookup(grouping, attr)[columns[place]]
    return NumpyEngine(grouping.domain, columns, records=engine.records)


class GroupedEngine:
    """Records that are counted elsewhere, by all their values, and then summed."""

    def __init__(self, engine: Engine, grouping: Grouping) -> None:
        self._engine = engine
        self._grouping = grouping

    @property
    def domain(self) -> Domain:
        return self._grouping.domain

    @property
    def counting(self) -> str:
        return self._engine.counting

    @property
    def records(self) -> int:
        return self._engine.records

    def count(self, attrs: Attrs) -> Counts:
        return self._grouping.summed(attrs, self._engine.count(attrs))

    def count_many(self, marginals: Sequence[Attrs], tell: Tell = tell_nobody) -> list[Counts]:
        counted = self._engine.count_many(marginals, tell)
        return [
            self._grouping.summed(attrs, counts) for attrs, counts in zip(marginals, counted, strict=True)
        ]

    def codes(self) -> Codes:
        codes = self._engine.codes().copy()
        for place, attr in enumerate(self.domain.attrs):
            if attr in self._grouping.groups:
                codes[:, place] = _lookup(self._grouping, attr)[codes[:, place]]
        return codes

    def distinct(self) -> tuple[Codes, Counts]:
        codes = self.codes()
        return distinct_records(self.domain.shape, list(codes.T), records=len(codes))


def _lookup(grouping: Grouping, attr: str) -> Codes:
    groups = grouping.of(attr)
    return np.array(groups, dtype=smallest_dtype(max(groups) + 1))
