"""Where n is private, nothing that can be seen of a run follows it: not what is counted, and not when."""

import itertools
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import sidelight as sl
from sidelight.curator.curator import Curator
from sidelight.data.table import Table
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.select.score import Score
from sidelight.testing import SeededNoise

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2}
SCHEMA = sl.Schema.from_domain(SIZES)
EDGES = [255, 256, 65_535, 65_536]


class Told:
    """Progress that notes everything that it is told."""

    def __init__(self):
        self.seen = []

    @contextmanager
    def phase(self, name):
        self.seen.append(("begin", name))
        yield
        self.seen.append(("end", name))

    def step(self, what, *, share):
        self.seen.append((what, share))

    def turn(self, name):
        self.seen.append(("turn", name))


class Asked:
    """A table that notes what it is asked for: every pass over the records."""

    def __init__(self, table, noted):
        self._table, self._noted = table, noted
        self.domain, self.records, self.is_in_memory = table.domain, table.records, True

    def count(self, attrs):
        self._noted.append(attrs)
        return self._table.count(attrs)

    def count_many(self, wanted, tell):
        self._noted.append(tuple(wanted))
        return self._table.count_many(wanted, tell)


class Indifferent(Score):
    """All candidates alike, so that both tables lead the same way."""

    def sensitivity(self, unit, query):
        return query.l1(unit)

    def each(self, candidates):
        return ((place, self.score) for place, _ in enumerate(candidates))

    def score(self, exact):
        return 0.0


def table_of(records):
    draw = np.random.default_rng(1)
    codes = [draw.integers(0, size, 65_537).astype(np.uint8)[:records] for size in SIZES.values()]
    return Table.of_codes(SCHEMA.domain, codes)


def seen_of(records, unit, monkeypatch, *, cache):
    """All that a run shows, and all passes over the records, with a cache of so many bytes."""
    monkeypatch.setattr("sidelight.curator.curator._CACHE_BYTES", cache)
    monkeypatch.setattr("sidelight.data.compact._CELLS_AT_ONCE", 30)
    monkeypatch.setattr("sidelight.data.compact._CELLS_UNSEEN", 30, raising=False)
    told, noted = Told(), []
    ledger = MemoryLedger(Promise(Budget(epsilon=90.0, delta=1e-9), unit, "people"))
    curator = Curator(
        Asked(table_of(records), noted), allotment=Rho(1), unit=unit, ledger=ledger, noise=SeededNoise(3),
        progress=told,
    )  # fmt: skip
    candidates = [Marginal(attrs) for attrs in itertools.combinations(SIZES, 2)]
    for _ in range(3):
        chosen = curator.select(candidates, Indifferent(), Rho(1) / 8)
        curator.measure(chosen, Rho(1) / 8)
    return told.seen, noted


@pytest.mark.parametrize("records", [0, 1, *EDGES])
@pytest.mark.parametrize("cache", [60, 120, 200, 2**30])
def test_what_is_counted_and_told_is_the_same_for_one_record_more(records, cache, monkeypatch):
    unit = Unit("add-or-remove")
    fewer, more = (seen_of(n, unit, monkeypatch, cache=cache) for n in (records, records + 1))
    assert fewer == more


def test_where_n_is_public_counts_are_kept_in_as_few_bytes_as_it_needs(monkeypatch):
    """The planted violation: with the public rule under add-or-remove, the test above would fail."""
    fewer, more = (seen_of(n, Unit("replace"), monkeypatch, cache=60) for n in (255, 256))
    assert fewer != more


def test_no_warning_leaves_a_look_at_private_data():
    class Overflowing(Indifferent):
        def score(self, exact):
            warnings.warn("a warning that only this table would raise", stacklevel=2)
            return float(np.exp(np.float64(1e6)) * 0 + np.float64(1.0) / np.float64(0.0) * 0 == 0)

    unit = Unit("add-or-remove")
    ledger = MemoryLedger(Promise(Budget(epsilon=90.0, delta=1e-9), unit, "people"))
    curator = Curator(table_of(9), allotment=Rho(1), unit=unit, ledger=ledger, noise=SeededNoise(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curator.select([Marginal(("a",)), Marginal(("b",))], Overflowing(), Rho(1) / 8)
