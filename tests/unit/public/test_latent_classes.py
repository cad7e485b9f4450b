"""Latent classes: fitted by expectation maximisation, counted exactly, drawn evenly."""

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.models.support import Support
from sidelight.public import latent_classes
from sidelight.public.latent_classes import LatentClasses, _fitted

DOMAIN = Domain.of({"a": 3, "b": 2, "c": 4})


def two_kinds(number=4000, seed=0):
    """Records of two kinds, within each of which attributes are independent."""
    rng = np.random.default_rng(seed)
    kind = rng.random(number) < 0.3
    columns = []
    for size in DOMAIN.shape:
        ones = rng.choice(size, number, p=np.r_[0.8, np.full(size - 1, 0.2 / (size - 1))])
        others = rng.choice(size, number, p=np.r_[np.full(size - 1, 0.2 / (size - 1)), 0.8])
        columns.append(np.where(kind, ones, others))
    return Support(DOMAIN, np.stack(columns, axis=1), np.ones(number), float(number))


@pytest.fixture(scope="module")
def fitted():
    return LatentClasses.of(two_kinds(), seed=0)


def test_shares_and_tables_are_distributions(fitted):
    assert fitted.shares.sum() == pytest.approx(1.0)
    for table, size in zip(fitted.tables, DOMAIN.shape, strict=True):
        assert table.shape == (size, fitted.shares.size)
        assert table.sum(axis=0) == pytest.approx(1.0, abs=1e-4)
        assert (table > 0).all()


@pytest.mark.parametrize("attrs", [("b",), ("c", "a"), ("a", "b", "c")])
def test_a_marginal_is_the_sum_over_classes(fitted, attrs):
    expected = np.zeros(DOMAIN.project(attrs).shape)
    for k, share in enumerate(fitted.shares):
        product = np.array(share)
        for place in DOMAIN.index(attrs):
            product = np.multiply.outer(product, fitted.tables[place][:, k])
        expected += product

    assert fitted.count(attrs) == pytest.approx(expected, abs=1e-6)


def test_classes_tell_of_pairs_what_independence_cannot(fitted):
    truth = two_kinds(200_000, seed=1)
    pair = truth.count(("a", "c")) / truth.total
    alone = np.multiply.outer(pair.sum(axis=1), pair.sum(axis=0))

    assert np.abs(fitted.count(("a", "c")) - pair).sum() < 0.25 * np.abs(alone - pair).sum()


def test_a_step_never_makes_the_records_less_likely(monkeypatch):
    records = two_kinds(500)
    found = []
    for steps in (1, 3, 10, 40):
        monkeypatch.setattr(latent_classes, "_STEPS", steps)
        shares, tables = _fitted(DOMAIN, records.records, records.weights, np.random.default_rng(0))
        each = shares * np.prod([table[records.records[:, k]] for k, table in enumerate(tables)], axis=0)
        found.append(float(np.log(each.sum(axis=1)).sum()))

    assert found == sorted(found)


def test_weights_count_as_copies_do():
    few = Support(DOMAIN, np.array([[0, 0, 0], [2, 1, 3]]), np.array([300.0, 100.0]), 400.0)

    assert LatentClasses.of(few, seed=0).count(("a",)) == pytest.approx([0.75, 0.0, 0.25], abs=0.05)


def test_of_more_records_than_it_reads_some_are_read(monkeypatch):
    monkeypatch.setattr(latent_classes, "_READ", 100)

    some = LatentClasses.of(two_kinds(), seed=0)

    assert some.shares.size == latent_classes._CLASSES
    assert some.count(("a",)) == pytest.approx(two_kinds().count(("a",)) / 4000, abs=0.15)


def test_draws_are_as_the_model_says(fitted):
    drawn = fitted.draw(50_000, seed=3)

    assert len(drawn.records) == 50_000
    assert drawn.total == 1.0
    for attr in DOMAIN.attrs:
        # Every value of an attribute comes as often as its class says, but for rounding.
        assert drawn.count((attr,)) == pytest.approx(fitted.count((attr,)), abs=0.005)
    assert np.abs(drawn.count(("a", "c")) - fitted.count(("a", "c"))).sum() < 0.02


def test_draws_follow_their_seed(fitted):
    once, again, other = (fitted.draw(100, seed=seed).records for seed in (1, 1, 2))

    assert np.array_equal(once, again)
    assert not np.array_equal(once, other)


@pytest.mark.parametrize("number", [1, 2, 7])
def test_a_few_draws_are_records_of_the_domain(fitted, number):
    drawn = fitted.draw(number, seed=0)

    assert drawn.records.shape == (number, 3)
    assert (drawn.records < np.array(DOMAIN.shape)).all()
