"""Counting as SQL, written once for every engine that speaks it.

The codes that ``sql_encoding`` selects are grouped by GROUPING SETS, one set a marginal, so that one pass
serves many marginals and only counts come back.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines.base import (
    CHANGED,
    Codes,
    Counts,
    Tell,
    require_countable,
    smallest_dtype,
    tell_nobody,
)
from sidelight.data.engines.sql_encoding import REFUSED_MISSING, REFUSED_OUTSIDE, SqlSource, encode_sql
from sidelight.data.schema import Schema
from sidelight.errors import DataError

_NOT_GROUPED = -9
# One query holds as many marginals as this; engines copy every record once a marginal.
_MOST_MARGINALS, _MOST_CELLS, _MOST_ATTRS = 128, 4_000_000, 60


class SqlEngine:
    """Counts records where they are; only counts come back."""

    counting = "in a database, by SQL (grouping sets)"

    def __init__(self, source: SqlSource, schema: Schema, *, records: int) -> None:
        self.domain: Domain = schema.domain
        self.records = records
        self._source = source
        self._encoded = encode_sql(source, schema)

    def count(self, attrs: Attrs) -> Counts:
        return self.count_many([attrs])[0]

    def count_many(self, marginals: Sequence[Attrs], tell: Tell = tell_nobody) -> list[Counts]:
        require_countable(self.domain, marginals)
        counted: dict[Attrs, Counts] = {(): np.array(self.records, dtype=np.int64)}
        wanted = dict.fromkeys(self.domain.canonical(attrs) for attrs in marginals)
        for chunk in _chunks(self.domain, [attrs for attrs in wanted if attrs]):
            counted |= self._count_chunk(chunk)
            tell((len(counted) - 1) / len(wanted))
        return self._as_asked(counted, marginals)

    def _as_asked(self, counted: Mapping[Attrs, Counts], marginals: Sequence[Attrs]) -> list[Counts]:
        """Counts whose attributes are in the domain's order, in the order in which they were asked for."""
        answers = []
        for attrs in marginals:
            own = self.domain.canonical(attrs)
            answers.append(counted[own].transpose([own.index(attr) for attr in attrs]))
        return answers

    def codes(self) -> Codes:
        """All records as codes, in no particular order: equal ones follow each other."""
        codes, times = self.distinct()
        return np.repeat(codes, times, axis=0)

    def distinct(self) -> tuple[Codes, Counts]:
        attrs = ", ".join(f"a{i}" for i in range(len(self.domain)))
        fetched = self._source.fetch(
            f"SELECT {attrs}, COUNT(*) AS n FROM ({self._encoded}) AS encoded "
            f"GROUP BY {attrs} ORDER BY {attrs}"
        )
        _require_unchanged(fetched[:-1])
        codes = np.column_stack(fetched[:-1]).astype(smallest_dtype(max(self.domain.shape)))
        return codes, fetched[-1]

    def _count_chunk(self, marginals: Sequence[Attrs]) -> dict[Attrs, Counts]:
        places = sorted({place for attrs in marginals for place in self.domain.index(attrs)})
        sets = [", ".join(f"a{place}" for place in self.domain.index(attrs)) for attrs in marginals]
        *cells, counts = self._source.fetch(
            f"SELECT {', '.join(f'COALESCE(a{p}, {_NOT_GROUPED}) AS g{p}' for p in places)}, COUNT(*) AS n "
            f"FROM ({self._encoded}) AS encoded GROUP BY GROUPING SETS ({', '.join(f'({s})' for s in sets)})"
        )
        _require_unchanged(cells)
        bit = {place: 1 << k for k, place in enumerate(places)}
        which = np.zeros(len(counts), dtype=np.int64)
        for place, codes in zip(places, cells, strict=True):
            which += np.where(codes >= 0, bit[place], 0)
        by_place = dict(zip(places, cells, strict=True))
        counted: dict[Attrs, Counts] = {}
        for attrs in marginals:
            own = self.domain.index(attrs)
            lines = np.flatnonzero(which == sum(bit[place] for place in own))
            cube = np.zeros([self.domain.shape[place] for place in own], dtype=np.int64)
            cube[tuple(by_place[place][lines] for place in own)] = counts[lines]
            counted[attrs] = cube
        return counted


def records_in(source: SqlSource) -> int:
    """How many records a source has."""
    (records,) = source.fetch(f"SELECT COUNT(*) AS n FROM {source.relation} AS counted")
    return int(records[0])


def survey(
    source: SqlSource, schema: Schema, person: str | None = None
) -> tuple[int, list[bool], list[bool]]:
    """One pass before anything is charged: how many records; whether each column has values to refuse.

    Two flags a column: missing ones, and ones outside the schema. The last is the column ``person``, if any.
    """
    flags = [
        f"MAX(CASE WHEN a{i} = {refused} THEN 1 ELSE 0 END)"
        for i in range(len(schema.columns))
        for refused in (REFUSED_MISSING, REFUSED_OUTSIDE)
    ]
    if person is not None:
        flags += [f"MAX(CASE WHEN {found} THEN 1 ELSE 0 END)" for found in ("p IS NULL AND NOT pu", "pu")]
    # COALESCE: the maximum over no records is NULL.
    columns = ", ".join(f"COALESCE({flag}, 0) AS f{i}" for i, flag in enumerate(flags))
    encoded = encode_sql(source, schema, person)
    fetched = source.fetch(f"SELECT COUNT(*) AS n, {columns} FROM ({encoded}) AS encoded")
    records, *found = (int(column[0]) for column in fetched)
    return records, [bool(f) for f in found[0::2]], [bool(f) for f in found[1::2]]


def _chunks(domain: Domain, marginals: Sequence[Attrs]) -> Iterator[list[Attrs]]:
    chunk: list[Attrs] = []
    cells, seen = 0, set[str]()
    for attrs in marginals:
        size, together = domain.size(attrs), seen | set(attrs)
        if chunk and (
            len(chunk) == _MOST_MARGINALS or cells + size > _MOST_CELLS or len(together) > _MOST_ATTRS
        ):
            yield chunk
            chunk, cells, together = [], 0, set(attrs)
        chunk.append(attrs)
        cells, seen = cells + size, together
    if chunk:
        yield chunk


def _require_unchanged(codes: Sequence[npt.NDArray[np.int64]]) -> None:
    if any(((c == REFUSED_MISSING) | (c == REFUSED_OUTSIDE)).any() for c in codes):
        raise DataError(CHANGED)
