"""Exact counts of a workload in as few bytes as the records need."""

import itertools

import numpy as np
import pytest

from sidelight.data.compact import Compact, count_compactly
from sidelight.data.domain import Domain
from sidelight.data.table import Table

DOMAIN = Domain.of({"a": 5, "b": 3, "c": 7})
WANTED = [attrs for k in (0, 1, 2, 3) for attrs in itertools.permutations(DOMAIN.attrs, k)]


class Counting:
    """A table that notes how many marginals, and cells, it is asked for at a time."""

    def __init__(self, table, *, is_in_memory=True):
        self.domain, self.records, self.asked = table.domain, table.records, []
        self._table, self.is_in_memory = table, is_in_memory

    def count_many(self, wanted, tell=None):
        self.asked.append(sum(self.domain.size(attrs) for attrs in wanted))
        return self._table.count_many(wanted)


def table_of(records):
    rng = np.random.default_rng(0)
    return Table.of_codes(DOMAIN, np.stack([rng.integers(0, m, records) for m in DOMAIN.shape], axis=1))


@pytest.mark.parametrize("records", [0, 3, 255, 256, 70_000])
def test_compact_counts_are_the_counts(records):
    table = table_of(records)

    compact = count_compactly(table, WANTED)

    assert list(compact) == WANTED
    for attrs in WANTED:
        wide = compact[attrs].wide()
        assert wide.dtype == np.int64
        np.testing.assert_array_equal(wide, table.count(attrs))


def test_few_full_cells_are_kept_alone_and_many_are_kept_whole():
    few, many = np.zeros((100, 10), dtype=np.int64), np.ones((100, 10), dtype=np.int64)
    few[3, 4] = 300

    alone, whole = Compact.of(few), Compact.of(many)
    assert (alone.places.tolist(), alone.counts.tolist()) == ([34], [300])
    assert alone.counts.itemsize == alone.places.itemsize == 2
    assert whole.places is None
    assert whole.counts.nbytes == 1000
    for counts in (few, many, many.T):
        np.testing.assert_array_equal(Compact.of(counts).wide(), counts)


def test_every_record_in_one_cell_still_fits():
    for records in (255, 256, 65_535, 65_536):
        table = Table.of_codes(Domain.of({"a": 2}), np.zeros((records, 1), dtype=np.int8))

        assert count_compactly(table, [("a",)])[("a",)].wide().tolist() == [records, 0]


def test_counts_of_one_pass_take_about_what_the_records_take(monkeypatch):
    monkeypatch.setattr("sidelight.data.compact._CELLS_AT_ONCE", 200)
    few, many = Counting(table_of(110)), Counting(table_of(70_000))
    elsewhere = Counting(table_of(110), is_in_memory=False)

    for table in (few, many, elsewhere):
        count_compactly(table, WANTED)

    cells = sum(DOMAIN.size(attrs) for attrs in WANTED)
    assert len(few.asked) > 1
    assert max(few.asked) <= 220
    assert many.asked == elsewhere.asked == [cells]
