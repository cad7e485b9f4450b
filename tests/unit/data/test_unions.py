"""Marginals that are sums over unions are those that are counted one by one."""

import itertools

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.data.engines import counting
from sidelight.data.engines.counting import MarginalCounter
from sidelight.data.engines.unions import unions

DOMAIN = Domain.of({"a": 5, "b": 3, "c": 40, "d": 2, "e": 7, "f": 1, "g": 300})
ATTRS = DOMAIN.attrs
MARGINALS = [
    (), ("c",), ("d", "a"), ("a", "d"), ("g", "c", "e"), ATTRS[:5], *itertools.combinations(ATTRS, 3)
]  # fmt: skip


def counted(columns, *, expected: int) -> list[np.ndarray]:
    counter = MarginalCounter(DOMAIN, MARGINALS, expected=expected)
    for start in range(0, len(columns[0]), 30_000):
        counter.add([column[start : start + 30_000] for column in columns])
    return counter.counts()


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int64])
@pytest.mark.parametrize("most", [10, 2000, 1 << 14])
def test_counts_are_those_that_are_counted_one_by_one(monkeypatch, kind, most):
    monkeypatch.setattr(counting, "MOST_CELLS", most)
    rng = np.random.default_rng(4)
    columns = [np.minimum(rng.geometric(0.1, 70_000) - 1, size - 1) for size in DOMAIN.shape]
    columns = [
        column.astype(np.uint16 if size > 255 else kind)
        for column, size in zip(columns, DOMAIN.shape, strict=True)
    ]

    by_unions = counted(columns, expected=1 << 20)

    for attrs, one, two in zip(MARGINALS, by_unions, counted(columns, expected=1000), strict=True):
        assert one.dtype == np.int64
        np.testing.assert_array_equal(one, two, err_msg=str(attrs))


def test_every_small_marginal_lies_in_a_union_that_is_not_too_large():
    sizes = DOMAIN.shape
    sets = [ranks for degree in (1, 2, 3) for ranks in itertools.combinations(range(len(sizes)), degree)]

    found = unions(sizes, sets, most=4000)

    assert set(found) == {ranks for ranks in sets if np.prod([sizes[r] for r in ranks]) <= 4000}
    for ranks, union in found.items():
        assert set(ranks) <= set(union)
        assert np.prod([sizes[r] for r in union]) <= 4000
    assert len(set(found.values())) < len(found) / 2


def test_no_records_give_empty_counts():
    assert all(not counts.any() for counts in MarginalCounter(DOMAIN, MARGINALS, expected=1 << 20).counts())
