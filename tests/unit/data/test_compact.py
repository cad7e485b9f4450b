"""Exact counts of a workload in as few bytes as the records need."""

import itertools

import numpy as np
import pytest

from sidelight.data.compact import compact_type, count_compactly
from sidelight.data.domain import Domain
from sidelight.data.table import Table

DOMAIN = Domain.of({"a": 5, "b": 3, "c": 7})
WANTED = [attrs for k in (0, 1, 2, 3) for attrs in itertools.permutations(DOMAIN.attrs, k)]


class Counting:
    """A table that notes how many marginals, and cells, it is asked for at a time."""

    def __init__(self, table):
        self.domain, self.records, self.asked = table.domain, table.records, []
        self._table = table

    def count_many(self, wanted):
        self.asked.append(sum(self.domain.size(attrs) for attrs in wanted))
        return self._table.count_many(wanted)


def table_of(records):
    rng = np.random.default_rng(0)
    return Table.of_codes(DOMAIN, np.stack([rng.integers(0, m, records) for m in DOMAIN.shape], axis=1))


@pytest.mark.parametrize(
    ("records", "kind"), [(0, "uint8"), (255, "uint8"), (256, "uint16"), (70_000, "uint32")]
)
def test_compact_counts_are_the_counts(records, kind):
    table = table_of(records)

    compact = count_compactly(table, WANTED)

    assert list(compact) == WANTED
    for attrs in WANTED:
        assert compact[attrs].dtype == kind == compact_type(records)
        np.testing.assert_array_equal(compact[attrs].astype(np.int64), table.count(attrs))


def test_every_record_in_one_cell_still_fits():
    for records in (255, 256, 65_535, 65_536):
        table = Table.of_codes(Domain.of({"a": 2}), np.zeros((records, 1), dtype=np.int8))

        assert count_compactly(table, [("a",)])[("a",)].tolist() == [records, 0]


def test_few_records_are_counted_part_by_part_and_many_in_one_pass():
    few, many = Counting(table_of(1000)), Counting(table_of(70_000))

    for table in (few, many):
        count_compactly(table, WANTED)

    cells = sum(DOMAIN.size(attrs) for attrs in WANTED)
    assert len(few.asked) > 1
    assert max(few.asked) <= max(cells / 4, DOMAIN.size(DOMAIN.attrs))
    assert many.asked == [cells]
