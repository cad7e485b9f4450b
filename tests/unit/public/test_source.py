"""Public records that tell of all attributes, as one weighted list."""

import numpy as np
import pytest

from sidelight.data.domain import Combination, Domain
from sidelight.data.table import Table
from sidelight.public.source import PublicRecords, WeightedRecords

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4})
DECLARED = Domain(DOMAIN.attrs, DOMAIN.shape, (Combination.of({"a": [0], "b": [2]}),))


def codes_of(number, *, seed=0, shape=DOMAIN.shape):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, number) for size in shape], axis=1)


def table_of(number, *, seed=0, domain=DOMAIN):
    return Table.of_codes(domain, codes_of(number, seed=seed))


def shares(table, attrs):
    return table.count(attrs) / table.records


def whole_of(*sources, domain=DOMAIN, weights=None, most=10_000, seed=0):
    return PublicRecords.of(domain, sources, weights=weights).whole(most=most, seed=seed)


def test_a_table_of_all_attributes_is_its_own_distribution():
    table = table_of(300)

    found = whole_of(table)

    assert found.total == pytest.approx(1.0)
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.count(DOMAIN.attrs) == pytest.approx(shares(table, DOMAIN.attrs))


def test_sources_that_lack_an_attribute_do_not_tell_of_all():
    part = Table.of_codes(DOMAIN.project(("a", "b")), codes_of(50)[:, :2])
    table = table_of(40)

    assert whole_of(part) is None
    assert whole_of(part, part) is None
    assert whole_of(part, table).count(DOMAIN.attrs) == pytest.approx(shares(table, DOMAIN.attrs))


def test_several_sources_count_by_their_weights():
    first, second = table_of(30, seed=1), table_of(900, seed=2)

    found = whole_of(first, second, weights=[3.0, 1.0])

    expected = 0.75 * shares(first, DOMAIN.attrs) + 0.25 * shares(second, DOMAIN.attrs)
    assert found.count(DOMAIN.attrs) == pytest.approx(expected)


def test_a_source_without_weight_is_left_out():
    first, second = table_of(30, seed=1), table_of(900, seed=2)

    found = whole_of(first, second, weights=[1.0, 0.0])

    assert found.count(DOMAIN.attrs) == pytest.approx(shares(first, DOMAIN.attrs))
    assert len(found.records) <= 30


def test_weights_of_records_are_kept_and_records_of_no_weight_left_out():
    codes = np.array([[0, 0, 0], [1, 2, 3], [1, 1, 1]])
    survey = WeightedRecords(DOMAIN, codes, [3.0, 1.0, 0.0])

    found = whole_of(survey)

    assert found.records.tolist() == codes[:2].tolist()
    assert found.weights == pytest.approx([0.75, 0.25])
    assert survey.support.weights == pytest.approx([0.75, 0.25, 0.0])


def test_columns_are_put_in_the_order_of_the_domain():
    turned = DOMAIN.project(("c", "a", "b"))
    codes = codes_of(80, shape=turned.shape)
    weights = np.linspace(1, 2, 80)

    for source in (Table.of_codes(turned, codes), WeightedRecords(turned, codes, weights)):
        found = whole_of(source)

        assert found.domain == DOMAIN
        (expected,) = source.count_many([("a", "b", "c")])
        assert found.count(("a", "b", "c")) == pytest.approx(expected / expected.sum())


def sources_of_a_kind(kind):
    survey = WeightedRecords(DOMAIN, codes_of(500, seed=3), np.linspace(0.5, 2, 500))
    return {
        "table": [table_of(500)],
        "weighted": [survey],
        "several": [table_of(500), table_of(500, seed=1)],
        "both": [table_of(500), survey],
    }[kind]


@pytest.mark.parametrize("kind", ["table", "weighted", "several", "both"])
def test_no_more_records_are_kept_than_asked_for_and_their_seed_repeats_them(kind):
    public = PublicRecords.of(DOMAIN, sources_of_a_kind(kind))

    found, again, other = (public.whole(most=12, seed=seed) for seed in (1, 1, 2))

    assert 1 <= len(found.records) <= 12
    assert found.weights.sum() == pytest.approx(1.0)
    assert np.array_equal(found.records, again.records)
    assert np.array_equal(found.weights, again.weights)
    assert not np.array_equal(found.count(DOMAIN.attrs), other.count(DOMAIN.attrs))


@pytest.mark.parametrize("kind", ["table", "weighted", "several", "both"])
def test_a_random_part_has_on_average_the_distribution_of_the_whole(kind):
    public = PublicRecords.of(DOMAIN, sources_of_a_kind(kind))

    parts = [public.whole(most=60, seed=seed).count(("c",)) for seed in range(60)]

    (expected,) = public.frequencies([("c",)])
    assert np.mean(parts, axis=0) == pytest.approx(expected, abs=0.04)


@pytest.mark.parametrize("knows", [True, False], ids=["the source knows", "the source does not know"])
def test_what_is_declared_impossible_is_left_out(knows):
    table = table_of(300, domain=DECLARED if knows else DOMAIN)

    found = whole_of(table, domain=DECLARED)

    assert found.count(("a", "b"))[0, 2] == 0
    assert found.weights.sum() == pytest.approx(1.0)
    kept = table.count(DOMAIN.attrs).astype(np.float64)
    kept[0, 2] = 0
    assert found.count(DOMAIN.attrs) == pytest.approx(kept / kept.sum())


@pytest.mark.parametrize("domain", [DECLARED, DOMAIN], ids=["the source knows", "the source does not know"])
def test_a_source_of_impossible_records_alone_tells_nothing(domain):
    impossible = Table.of_codes(domain, np.array([[0, 2, 0]] * 5))
    table = table_of(40, domain=domain)

    assert whole_of(impossible, domain=DECLARED) is None
    beside = whole_of(impossible, table, domain=DECLARED)
    assert beside.count(DOMAIN.attrs) == pytest.approx(whole_of(table, domain=DECLARED).count(DOMAIN.attrs))
