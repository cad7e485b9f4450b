"""Marginals whose rare values are counted together."""

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.errors import WorkloadError
from sidelight.queries.merged import Merged
from sidelight.queries.query import query_from_json

DOMAIN = Domain.of({"a": 4, "b": 3})
QUERY = Merged(("a", "b"), ((0, 2, 1, 2), (0, 1, 0)))


def test_answers_are_sums_over_groups():
    counts = np.random.default_rng(0).integers(0, 50, (4, 3))

    found = QUERY.apply(counts).reshape(3, 2)

    for group_a in range(3):
        for group_b in range(2):
            inside = np.outer(np.array(QUERY.groups[0]) == group_a, np.array(QUERY.groups[1]) == group_b)
            assert found[group_a, group_b] == counts[inside].sum()
    assert found.dtype == counts.dtype


def test_the_transpose_is_the_transpose():
    rng = np.random.default_rng(1)
    counts, answer = rng.normal(size=(4, 3)), rng.normal(size=6)

    assert QUERY.apply(counts) @ answer == pytest.approx((counts * QUERY.transpose(answer, (4, 3))).sum())


def test_a_cell_is_alone_where_neither_value_is_merged():
    assert QUERY.alone.tolist() == [[False, True, False], [False] * 3, [False, True, False], [False] * 3]


def test_it_comes_back_from_its_plain_form():
    assert query_from_json(QUERY.as_json()) == QUERY


@pytest.mark.parametrize(
    "groups",
    [((0, 1, 2), (0, 1, 2)), ((0, 1, 3, 3), (0, 0, 1)), ((0, 1, -1, 1), (0, 0, 1)), ((0, 0, 0, 0),)],
)
def test_groups_that_do_not_fit_are_refused(groups):
    with pytest.raises(WorkloadError):
        Merged(("a", "b"), groups).check(DOMAIN)
