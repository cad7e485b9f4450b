"""Counts of a part of a table, as a worker of a cluster sends them: few numbers, however many records.

All marginals that are asked for stand one after another, as one long vector of cells. A worker counts the
records of its part with the same kernel as files on one machine (``counting.py``), and sends the cells that
are not empty, each with its count. The cluster adds up what its workers send; the driver cuts the sums into
marginals again. What is sent is bounded by the cells, so more records make no message longer.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines.base import CHANGED, Counts, Tell, require_countable, smallest_dtype, tell_nobody
from sidelight.data.engines.counting import MarginalCounter
from sidelight.data.engines.kept_records import Word, packed, unpacked
from sidelight.errors import DataError

REFUSED = -1
"""The cell of a part in which some value was refused; such a part sends nothing else."""
_REFUSED_RECORDS = -(1 << 48)
"""The number of records of a part that is refused: below 0, whatever is added to it."""
_AT_ONCE = 1 << 17
"""Records that are counted together: clusters hand them over in smaller batches."""
_MOST_CELLS = 1 << 25
"""Most cells in one pass: a worker holds eight bytes for each of them."""

Codes = Sequence[npt.NDArray[np.integer]]


class PartialEngine(ABC):
    """Counts codes that a cluster holds; a cluster's own engine says how its workers are asked."""

    counting: str

    def __init__(self, domain: Domain, *, records: int) -> None:
        self.domain = domain
        self.records = records

    @abstractmethod
    def _cells(
        self, places: Sequence[int], domain: Domain, marginals: Sequence[Attrs]
    ) -> tuple[Counts, Counts]:
        """The sum of ``count_part`` over all parts; ``domain`` has the attributes at these places."""

    @abstractmethod
    def _distinct_words(self) -> tuple[Sequence[Word], Counts]:
        """The union of ``distinct_of_part`` over all parts."""

    def count(self, attrs: Attrs) -> Counts:
        return self.count_many([attrs])[0]

    def count_many(self, marginals: Sequence[Attrs], tell: Tell = tell_nobody) -> list[Counts]:
        require_countable(self.domain, marginals)
        counted: dict[Attrs, Counts] = {(): np.array(self.records, dtype=np.int64)}
        canonical = self.domain.canonical
        wanted = dict.fromkeys(canonical(attrs) for attrs in marginals)
        for some in passes(self.domain, [attrs for attrs in wanted if attrs]):
            # Attributes that nobody asks for are not handed over.
            places = sorted({place for attrs in some for place in self.domain.index(attrs)})
            domain = self.domain.project([self.domain.attrs[place] for place in places])
            cells, counts = self._cells(places, domain, some)
            if (cells == REFUSED).any():
                raise DataError(CHANGED)
            counted |= marginals_of(cells, counts, domain, some)
            tell((len(counted) - 1) / len(wanted))
        return [
            counted[canonical(attrs)].transpose([canonical(attrs).index(attr) for attr in attrs])
            for attrs in marginals
        ]

    def codes(self) -> npt.NDArray[np.unsignedinteger]:
        """All records as codes, in no particular order: equal ones follow each other."""
        codes, times = self.distinct()
        return np.repeat(codes, times, axis=0)

    def distinct(self) -> tuple[npt.NDArray[np.unsignedinteger], Counts]:
        shape = self.domain.shape
        words, times = self._distinct_words()
        if (times < 0).any():
            raise DataError(CHANGED)
        codes = np.column_stack(unpacked(words, shape, range(len(shape))))
        order = np.lexsort(codes.T[::-1])
        return codes[order].astype(smallest_dtype(max(shape))), times[order]


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


def distinct_of_part(codes: Codes | None, domain: Domain) -> tuple[list[Word], Counts]:
    """The distinct records as words (``kept_records.py``), and how often each occurs; None was refused.

    >>> distinct_of_part([np.array([2, 0, 2]), np.array([1, 4, 1])], Domain.of({"a": 3, "b": 5}))
    ([array([ 4, 11])], array([1, 2]))
    """
    if codes is None:
        nothing = packed([np.zeros(1, np.uint8)] * len(domain), domain.shape)
        return nothing, np.array([_REFUSED_RECORDS])
    found, times = np.unique(np.array(packed(codes, domain.shape)), axis=1, return_counts=True)
    return list(found), times


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
