"""Public tables that lie are what they claim to be."""

from itertools import combinations

import numpy as np
import pytest
from hostile_tables import HOSTILE_SHARE, LIES, MOST_RECORDS, as_one_table, hostile, permuted
from small_town import DOMAIN, drawn

from sidelight.data.domain import Domain
from sidelight.data.table import Table

PRIVATE, PUBLIC = drawn(4_000, seed=1), drawn(600, seed=2)
OTHER = Table.of_codes(Domain.of({"x": 3, "y": 50}), np.stack([np.arange(500) % 3, np.arange(500) % 50], 1))
RIGHT_SINGLE_ATTRIBUTES = [("pairs reversed", PRIVATE), ("locked", PRIVATE), ("bait", PUBLIC)]


def told(lie, *, seed=0, private=PRIVATE):
    return hostile(lie, private, PUBLIC, other=OTHER, seed=seed)


def shares(table, attrs):
    return table.count(attrs) / table.records


def distance(one, two, attrs):
    return float(np.abs(shares(one, attrs) - shares(two, attrs)).sum())


def dependence(table, attrs):
    """By how much each cell of a pair is more frequent than if its attributes were independent."""
    return shares(table, attrs) - np.multiply.outer(*(shares(table, (attr,)) for attr in attrs))


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_has_the_private_domain_and_records(lie):
    table = as_one_table(told(lie))

    assert table.domain == DOMAIN
    assert table.records >= PUBLIC.records


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_the_same_for_the_same_seed_and_another_for_another(lie):
    first, again, other = (as_one_table(told(lie, seed=seed)).codes() for seed in (3, 3, 4))

    np.testing.assert_array_equal(first, again)
    if lie != "order reversed":
        assert not np.array_equal(first, other)


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_does_not_change_the_tables_it_is_made_from(lie):
    before = [table.codes().copy() for table in (PRIVATE, PUBLIC, OTHER)]

    told(lie)

    for table, codes in zip((PRIVATE, PUBLIC, OTHER), before, strict=True):
        np.testing.assert_array_equal(table.codes(), codes)


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_further_from_the_private_table_than_the_good_one(lie):
    pairs = list(combinations(DOMAIN.attrs, 2))

    lying, good = (
        sum(distance(PRIVATE, one, pair) for pair in pairs) for one in (as_one_table(told(lie)), PUBLIC)
    )

    assert lying > good


@pytest.mark.parametrize(("lie", "changed"), [("one", 1), ("a third", 3), ("all", 7)])
def test_labels_are_permuted_in_so_many_attributes_and_in_no_other(lie, changed):
    codes = told(f"labels permuted in {lie}").codes()

    is_other = (codes != PUBLIC.codes()).any(axis=0)
    assert is_other.sum() == changed


def test_no_value_keeps_its_label_and_what_was_alike_stays_alike():
    codes = permuted(PUBLIC, ("income",), np.random.default_rng(0)).codes()

    old, new = (one[:, DOMAIN.attrs.index("income")] for one in (PUBLIC.codes(), codes))
    pairs = set(zip(old.tolist(), new.tolist(), strict=True))
    assert len(pairs) == len({one for one, _ in pairs}) == len({two for _, two in pairs}) == 10
    assert all(one != two for one, two in pairs)


def test_a_reversed_order_reverses_every_attribute():
    table = told("order reversed")

    for attr in DOMAIN.attrs:
        np.testing.assert_array_equal(table.count((attr,)), PUBLIC.count((attr,))[::-1])


def test_independent_attributes_keep_their_counts_and_lose_their_relations():
    table = told("independent")

    for attr in DOMAIN.attrs:
        np.testing.assert_array_equal(table.count((attr,)), PUBLIC.count((attr,)))
    pair = ("work", "income")
    assert np.abs(dependence(table, pair)).sum() < np.abs(dependence(PUBLIC, pair)).sum() / 3


def test_one_record_is_one_record_of_the_public_table():
    codes = told("one record").codes()

    assert (codes == codes[0]).all()
    assert (PUBLIC.codes() == codes[0]).all(axis=1).any()


@pytest.mark.parametrize(("lie", "truth"), RIGHT_SINGLE_ATTRIBUTES)
def test_single_attributes_are_exactly_right_where_the_relations_lie(lie, truth):
    table = told(lie)

    for attr in DOMAIN.attrs:
        np.testing.assert_array_equal(table.count((attr,)), truth.count((attr,)))


def test_of_a_large_private_table_a_part_is_taken():
    table = told("pairs reversed", private=drawn(MOST_RECORDS + 5_000, seed=5))

    assert table.records == MOST_RECORDS


def test_reversed_pairs_are_reversed():
    """Where two attributes depend on each other, values that go together avoid each other."""
    table, tested = told("pairs reversed"), 0

    for pair in combinations(DOMAIN.attrs, 2):
        true, lied = dependence(PRIVATE, pair), dependence(table, pair)
        if np.abs(true).sum() > 0.2:
            tested += 1
            slope = float((true * lied).sum() / (true**2).sum())
            assert slope < -0.05, (pair, slope)
    assert tested > 5


def test_the_bait_is_true_but_for_a_third_that_follows_from_the_rest():
    codes = told("bait").codes()

    is_true = (codes == PUBLIC.codes()).all(axis=0)
    assert is_true.sum() == 4
    # Records that are alike in what is true are mostly alike in what is false.
    _, kind = np.unique(codes[:, is_true], axis=0, return_inverse=True)
    for column in codes[:, ~is_true].T:
        of_kind = np.zeros((kind.max() + 1, column.max() + 1))
        np.add.at(of_kind, (kind.reshape(-1), column), 1)
        assert of_kind.max(axis=1).sum() > 0.9 * len(codes)


def test_locked_attributes_follow_from_a_rank():
    """Two attributes that follow from one rank fill at most n_a + n_b − 1 cells together."""
    table = told("locked")

    for one, two in combinations(DOMAIN.attrs, 2):
        filled = int((table.count((one, two)) > 0).sum())
        assert filled <= DOMAIN.sizes[one] + DOMAIN.sizes[two] - 1


def test_a_fifth_of_a_mixture_is_hostile():
    is_other = (told("mixture").codes() != PUBLIC.codes()).any(axis=1)

    # A hostile record is now and then the good one that it replaces.
    assert HOSTILE_SHARE / 2 < is_other.mean() < HOSTILE_SHARE * 1.3


def test_two_tables_are_the_good_one_and_a_locked_one():
    good, bad = told("good and hostile")

    assert good is PUBLIC
    assert bad.records == PRIVATE.records
    assert as_one_table([good, bad]).records == good.records + bad.records
