"""Coded records in memory, one array an attribute."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines.base import (
    HERE,
    Codes,
    Counts,
    Tell,
    require_countable,
    smallest_dtype,
    tell_nobody,
)
from sidelight.data.engines.counting import MarginalCounter
from sidelight.data.engines.distinct import distinct_records


class NumpyEngine:
    """Counts records that are already codes, held column by column.

    The codes are trusted to lie within the domain: ``Table.of_codes`` checks them.
    """

    counting = HERE

    def __init__(self, domain: Domain, columns: Sequence[npt.NDArray[np.integer]], *, records: int) -> None:
        self.domain = domain
        self.records = records
        self.columns = list(columns)

    def count(self, attrs: Attrs) -> Counts:
        return self.count_many([attrs])[0]

    def count_many(self, marginals: Sequence[Attrs], tell: Tell = tell_nobody) -> list[Counts]:
        require_countable(self.domain, marginals)
        asked = {attr for attrs in marginals for attr in attrs}
        # Attributes that nobody asks for are not touched.
        attrs = tuple(attr for attr in self.domain.attrs if attr in asked)
        if not attrs:
            return [np.array(self.records, dtype=np.int64) for _ in marginals]
        # PRIVACY: what is expected decides on speed alone; counts, and what is told of them, are the same.
        counter = MarginalCounter(self.domain.project(attrs), marginals, expected=self.records)
        counter.add([self._column(place) for place in self.domain.index(attrs)])
        return counter.counts()

    def codes(self) -> Codes:
        dtype = smallest_dtype(max(self.domain.shape, default=1))
        codes = np.empty((self.records, len(self.domain)), dtype=dtype, order="F")
        for place in range(len(self.domain)):
            codes[:, place] = self.columns[place]
        return codes

    def distinct(self) -> tuple[Codes, Counts]:
        return distinct_records(self.domain.shape, self.columns, records=self.records)

    def _column(self, place: int) -> npt.NDArray[np.integer]:
        column = self.columns[place]
        if not column.flags.c_contiguous:
            # A column of a records-by-attributes array is copied once, when it is first counted.
            size = self.domain.shape[place]
            self.columns[place] = column = column.astype(smallest_dtype(size))
        return column
