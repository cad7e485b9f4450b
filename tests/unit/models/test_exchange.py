"""Rounding by exchange: nearer to the weights' marginals than systematic rounding, and as strict."""

import itertools

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.models import exchange
from sidelight.models.exchange import closest_counts
from sidelight.models.rounding import round_to
from sidelight.models.support import Support

SIZES = (6, 5, 4, 4, 3, 3, 2, 2)


def support_of(sizes=SIZES, records=3000, seed=0):
    """Weighted records whose attributes hang together as a chain."""
    rng = np.random.default_rng(seed)
    codes = np.zeros((records, len(sizes)), dtype=np.int64)
    for column, size in enumerate(sizes):
        before = codes[:, column - 1] if column else 0
        codes[:, column] = (before + rng.geometric(0.5, records) - 1) % size
    kept, counts = np.unique(codes, axis=0, return_counts=True)
    weights = counts * rng.gamma(1.0, size=len(kept))
    return Support(Domain.of({f"a{i}": size for i, size in enumerate(sizes)}), kept, weights, weights.sum())


def counts_of(support, total, seed):
    rng = np.random.default_rng(seed)
    return closest_counts(support.domain, support.records, support.weights, total, rng)


def distance(support, counts, degree=3):
    """Mean L1 distance between marginals of the counts and of the shares, as a share of the total."""
    total = counts.sum()
    excess = counts - support.weights * (total / support.weights.sum())
    marginals = list(itertools.combinations(support.domain.attrs, degree))
    cells = [np.bincount(support.cells(attrs), weights=excess) for attrs in marginals]
    return sum(np.abs(one).sum() for one in cells) / len(marginals) / total


@pytest.mark.parametrize(("total", "share"), [(100, 0.7), (500, 0.55), (5000, 0.5)])
def test_three_way_marginals_are_much_nearer_than_after_systematic_rounding(total, share):
    support = support_of()
    rounded = round_to(support.weights, total, np.random.default_rng(1))

    assert distance(support, counts_of(support, total, 1)) < share * distance(support, rounded)


@pytest.mark.parametrize("degree", [1, 2])
def test_smaller_marginals_are_nearer_too(degree):
    support = support_of()
    rounded = round_to(support.weights, 500, np.random.default_rng(1))

    assert distance(support, counts_of(support, 500, 1), degree) < 0.4 * distance(support, rounded, degree)


@pytest.mark.parametrize("total", [0, 1, 77, 130, 1500, 10**6])
def test_counts_sum_to_the_total_and_each_is_its_share_rounded_down_or_up(total):
    support = support_of()

    counts = counts_of(support, total, 3)

    assert counts.sum() == total
    assert counts.min() >= 0
    assert np.abs(counts - support.weights * (total / support.weights.sum())).max() < 1 + 1e-6


def test_records_without_weight_are_never_taken():
    support = support_of()
    weights = np.where(np.arange(len(support.weights)) % 3 == 0, 0.0, support.weights)

    counts = counts_of(support.with_weights(weights), 400, 2)

    assert counts.sum() == 400
    assert (counts[::3] == 0).all()


def test_the_same_seed_gives_the_same_counts_and_another_seed_others():
    support = support_of()

    np.testing.assert_array_equal(counts_of(support, 300, 1), counts_of(support, 300, 1))
    assert (counts_of(support, 300, 1) != counts_of(support, 300, 2)).any()


def test_an_exchange_never_takes_the_marginals_further_away(monkeypatch):
    """More looks only ever lower the distance over all three-way marginals: each exchange does."""
    support = support_of()
    found = []
    for passes in (0, 1, 2, 4, 8):
        monkeypatch.setattr(exchange, "_PASSES", passes)
        found.append(distance(support, counts_of(support, 600, 4)))

    assert found == sorted(found, reverse=True)
    assert found[-1] < found[0]


def test_the_predicted_change_of_one_record_is_the_change():
    support = support_of()
    excess = np.random.default_rng(0).normal(size=len(support.records))
    differences = exchange._Differences.of(
        support.domain.shape, support.records, excess, np.random.default_rng(0)
    )
    cells = differences.cells(support.records[:5])
    before = np.abs(differences.values).sum(dtype=float)

    for by in (-1, 1):
        for number, predicted in enumerate(differences.change(cells, by)):
            values = differences.values.copy()
            values[cells[number]] += by
            assert np.abs(values).sum(dtype=float) - before == pytest.approx(predicted, abs=1e-2)


def test_the_differences_are_those_of_all_three_way_marginals_and_single_attributes():
    support = support_of()
    excess = np.random.default_rng(0).normal(size=len(support.records))
    differences = exchange._Differences.of(
        support.domain.shape, support.records, excess, np.random.default_rng(0)
    )
    expected = [
        np.abs(np.bincount(support.cells(attrs), weights=excess)).sum()
        for degree in (1, 3)
        for attrs in itertools.combinations(support.domain.attrs, degree)
    ]

    assert np.abs(differences.values).sum(dtype=float) == pytest.approx(sum(expected), rel=1e-5)


@pytest.mark.parametrize("sizes", [(5,), (5, 4), (5, 4, 3)], ids=len)
def test_few_attributes_are_rounded_as_well(sizes):
    support = support_of(sizes)

    counts = counts_of(support, 117, 1)

    assert counts.sum() == 117
    assert np.abs(counts - support.weights * (117 / support.weights.sum())).max() < 1 + 1e-9


def test_one_way_marginals_of_two_attributes_are_as_near_as_whole_records_allow():
    support = support_of((12, 9))

    counts = counts_of(support, 140, 1)

    for column, size in enumerate((12, 9)):
        shares = np.bincount(support.records[:, column], weights=support.weights, minlength=size)
        found = np.bincount(support.records[:, column], weights=counts, minlength=size)
        assert np.abs(found - shares * (140 / shares.sum())).max() < 1


def test_a_handful_of_records_keeps_the_shares_on_average():
    support = support_of()

    found = np.mean([counts_of(support, 3, seed) for seed in range(2000)], axis=0)

    assert found @ support.records[:, 0] == pytest.approx(
        3 * support.weights @ support.records[:, 0] / support.weights.sum(), abs=0.15
    )


@pytest.mark.parametrize("sizes", [(700, 600, 500, 40, 3, 2), (3000, 3000, 2), (10**7, 10**7, 10**7, 2)])
def test_large_attributes_are_left_to_the_marginals_that_fit(sizes):
    support = support_of(sizes, records=2000)

    counts = counts_of(support, 300, 1)

    assert counts.sum() == 300
    for attributes in exchange._marginals(sizes, 1200, np.random.default_rng(0)):
        assert np.prod([float(sizes[one]) for one in attributes]) <= exchange._MOST_CELLS_EACH


def test_of_many_attributes_all_pairs_come_first_and_no_more_marginals_than_allowed():
    sets = exchange._marginals((2,) * 40, 1200, np.random.default_rng(0))

    assert len(sets) == len(set(sets)) == 1200
    assert sum(len(one) == 2 for one in sets) == 780
    assert all(list(one) == sorted(set(one)) for one in sets)


def test_many_attributes_come_nearer_too():
    support = support_of((2, 3) * 13, records=2000)
    rounded = round_to(support.weights, 300, np.random.default_rng(1))

    assert distance(support, counts_of(support, 300, 1), 2) < 0.6 * distance(support, rounded, 2)


def test_a_support_is_sampled_by_exchange_and_its_records_come_in_random_order():
    support = support_of()
    rounded = round_to(support.weights, 500, np.random.default_rng(1))

    table = support.sample(500, seed=1)

    attrs = ("a0", "a1", "a2")
    scaled = support.count(attrs) * (500 / support.total)
    systematic = np.bincount(support.cells(attrs), weights=rounded, minlength=scaled.size)
    assert np.abs(table.count(attrs) - scaled).sum() < 0.7 * np.abs(systematic - scaled.reshape(-1)).sum()
    codes = np.asarray(table.codes())
    assert set(map(tuple, codes.tolist())) <= set(map(tuple, support.records.tolist()))
    assert (codes[1:, 0] < codes[:-1, 0]).any()
    np.testing.assert_array_equal(codes, np.asarray(support.sample(500, seed=1).codes()))


def rare(support, total):
    """How many records have values of which two to twenty are expected; and how many are expected."""
    found = expected = 0.0
    for seed in range(6):
        counts = counts_of(support, total, seed)
        for attr in support.domain.attrs:
            shares = support.count((attr,)) * total / support.total
            is_rare = (shares > 2) & (shares < 20)
            expected += shares[is_rare].sum()
            found += np.bincount(support.cells((attr,)), counts, shares.size)[is_rare].sum()
    return found, expected


def test_single_attributes_count_too_so_that_rare_values_come_nearly_as_often_as_they_should(monkeypatch):
    support = support_of(sizes=(12, 10, 8, 6, 5, 4, 3, 3), records=6000)
    found, expected = rare(support, 1000)
    monkeypatch.setattr(exchange, "_SINGLES", 0.0)
    without, _ = rare(support, 1000)

    assert without < found < 1.02 * expected
    assert found > 0.87 * expected
