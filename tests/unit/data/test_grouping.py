"""Counts of groups are sums of the counts of their values, in every engine and whatever is impossible."""

import numpy as np
import pytest

from sidelight.data.domain import Combination, Domain
from sidelight.data.engines.grouped import GroupedEngine
from sidelight.data.grouping import Grouping, apart
from sidelight.data.table import Table

DOMAIN = Domain.of({"age": 6, "sex": 2, "job": 3})
GROUPS = {"age": (0, 0, 1, 1, 1, 2)}
MARGINALS = [(), ("age",), ("sex", "age"), ("job", "sex"), ("age", "sex", "job")]


@pytest.fixture
def people():
    rng = np.random.default_rng(3)
    return Table.of_codes(DOMAIN, np.stack([rng.integers(0, k, 500) for k in DOMAIN.shape], axis=1))


def summed_by_hand(counts, axis):
    parts = [
        counts.take(range(low, high), axis).sum(axis, keepdims=True) for low, high in [(0, 2), (2, 5), (5, 6)]
    ]
    return np.concatenate(parts, axis)


def test_a_grouped_table_counts_what_the_whole_table_sums_to(people):
    grouping = Grouping(DOMAIN, GROUPS)
    for table in (people.grouped(grouping), Table(GroupedEngine(people._engine, grouping))):
        assert table.domain.shape == (3, 2, 3)
        assert table.records == 500
        for attrs, counted in zip(MARGINALS, table.count_many(MARGINALS), strict=True):
            whole = people.count(attrs)
            expected = summed_by_hand(whole, attrs.index("age")) if "age" in attrs else whole
            assert np.array_equal(counted, expected)
            assert np.array_equal(table.count(attrs), expected)


def test_both_engines_give_the_same_records(people):
    grouping = Grouping(DOMAIN, GROUPS)
    in_memory, elsewhere = people.grouped(grouping), Table(GroupedEngine(people._engine, grouping))

    assert np.array_equal(in_memory.codes(), elsewhere.codes())
    for ours, theirs in zip(in_memory.distinct(), elsewhere.distinct(), strict=True):
        assert np.array_equal(ours, theirs)


def test_the_table_itself_is_left_as_it_was(people):
    before = people.count(("age", "job")).copy()

    people.grouped(Grouping(DOMAIN, GROUPS)).codes()

    assert np.array_equal(people.count(("age", "job")), before)


def test_what_is_impossible_is_the_same_in_groups():
    young = Combination(("age", "sex"), ((0, 1), (1,)))
    domain = Domain(DOMAIN.attrs, DOMAIN.shape, (young,))

    assert apart(domain, "age") == [frozenset({0})] * 2 + [frozenset()] * 4
    assert Grouping(domain, GROUPS).domain.impossible == (Combination(("age", "sex"), ((0,), (1,))),)
