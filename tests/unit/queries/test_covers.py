"""Tables that many marginals are summed from."""

import itertools

import pytest

from sidelight.data.domain import Domain
from sidelight.queries.covers import covers

DOMAIN = Domain.of({"a": 40, "b": 2, "c": 7, "d": 30, "e": 3, "f": 100})
TRIPLES = list(itertools.combinations(DOMAIN.attrs, 3))


@pytest.mark.parametrize("most_cells", [0, 100, 5000, 10**9])
def test_every_marginal_lies_in_one_table_and_no_table_is_wider_than_allowed(most_cells):
    wanted = [*TRIPLES, ("f",), (), ("b", "a"), ("a", "b")]

    found = covers(DOMAIN, wanted, most_cells=most_cells)

    assert sorted(place for _, places in found for place in places) == list(range(len(wanted)))
    for table, places in found:
        own = max(DOMAIN.size(wanted[place]) for place in places)
        assert DOMAIN.size(table) <= max(own, most_cells)
        assert all(set(wanted[place]) <= set(table) for place in places)


def test_wider_tables_are_fewer():
    numbers = [len(covers(DOMAIN, TRIPLES, most_cells=most)) for most in (0, 5000, 10**9)]

    assert numbers[0] == len(TRIPLES)
    assert numbers[0] > numbers[1] > numbers[2] == 1
