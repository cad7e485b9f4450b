"""Another tree after the same answers, within the same room."""

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.fit.proportional_fitting import most_likely
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.refitting import (
    refitted,
    without_doubted,
    without_false_values,
)
from sidelight.public.prior import fit_prior, pruned
from sidelight.public.source import PublicRecords
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload
from sidelight.trees.triangulation import BYTES_PER_CELL

DOMAIN = Domain.of({"a": 4, "b": 4, "c": 4, "d": 3})
CLOSURE = Workload.marginals(DOMAIN, degree=3).closure(DOMAIN)
ONES = [(attr,) for attr in DOMAIN.attrs]
N = 5000.0


def table_of(records, *, seed, shift):
    """b follows a, c follows b, d stands alone; a is shifted."""
    rng = np.random.default_rng(seed)
    a = np.minimum(rng.integers(0, 4, records) + shift * (rng.random(records) < 0.5), 3)
    b = np.where(rng.random(records) < 0.7, a, rng.integers(0, 4, records))
    c = np.where(rng.random(records) < 0.7, b, rng.integers(0, 4, records))
    return Table.of_codes(DOMAIN, np.stack([a, b, c, rng.integers(0, 3, records)], axis=1))


@pytest.fixture(scope="module")
def prior():
    return fit_prior(PublicRecords.of(DOMAIN, [table_of(4000, seed=1, shift=0)]), CLOSURE)


def measured(table, *sets, stddev):
    return [Measurement(Marginal(c), table.count(c).reshape(-1).astype(float), stddev) for c in sets]


def refit(prior, answers, *, cells):
    tree, _ = refitted(prior, answers, N, limit_mb=cells * BYTES_PER_CELL / 2**20)
    return tree


def test_it_follows_all_answers_and_keeps_public_conditionals_elsewhere(prior):
    private = table_of(int(N), seed=2, shift=1)
    answers = measured(private, ("a",), ("d",), ("a", "d"), stddev=1.0)

    tree = refit(prior, answers, cells=1000)

    for answer in answers:
        attrs = answer.query.attrs
        assert np.abs(tree.count(attrs) - private.count(attrs)).sum() < 0.02 * N
    # What was not measured follows from a, as in public: far closer than the public model itself.
    public = N * prior.model.count(("a", "b", "c"))
    after = np.abs(tree.count(("a", "b", "c")) - private.count(("a", "b", "c"))).sum()
    assert after < 0.4 * np.abs(public - private.count(("a", "b", "c"))).sum()


@pytest.mark.parametrize(("false", "believed"), [("a", "bcd"), ("ab", "cd"), ("abc", "")])
def test_where_most_public_values_are_false_none_of_them_is_believed(false, believed):
    """None of the four has relations, and d is right: whether it is believed depends on the others."""
    rng, shares = np.random.default_rng(0), [0.5, 0.3, 0.15, 0.05]
    truth, codes = (
        np.stack([*(rng.choice(4, records, p=shares) for _ in "abc"), rng.binomial(2, 0.1, records)], axis=1)
        for records in (int(N), 4000)
    )
    private = Table.of_codes(DOMAIN, truth)
    for attr in false:
        codes[:, DOMAIN.attrs.index(attr)] = 3
    public = fit_prior(PublicRecords.of(DOMAIN, [Table.of_codes(DOMAIN, codes)]), CLOSURE)
    assert not public.related

    left = without_false_values(public, measured(private, *ONES, stddev=60.0), N)

    assert "".join(attr for attr in DOMAIN.attrs if left.tells([attr])) == believed


def test_no_more_than_half_of_the_related_attributes_are_left_out_before_all_are(prior):
    off = Table.of_codes(DOMAIN, np.zeros((int(N), 4), dtype=np.int64))

    found = without_doubted(prior, measured(off, *ONES, stddev=30.0), N)

    assert len(found) == 1 + len(prior.related) // 2
    assert not any(found[-1].tells([attr]) for attr in DOMAIN.attrs)


def test_what_was_measured_comes_first_where_there_is_little_room(prior):
    private = table_of(int(N), seed=2, shift=1)
    answers = measured(private, ("a", "c", "d"), stddev=1.0)

    tree = refit(prior, answers, cells=80)

    assert tree.tree.cells <= 80
    assert np.abs(tree.count(("a", "c", "d")) - private.count(("a", "c", "d"))).sum() < 0.02 * N


def test_a_pruned_tree_is_as_it_was_on_what_it_keeps():
    table = table_of(4000, seed=3, shift=0)
    sets = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    whole = most_likely(DOMAIN, {attrs: table.count(attrs) / 4000 for attrs in [*ONES, *sets]})

    part = pruned(whole, most_cells=60)

    kept = [attrs for attrs in part.potentials if len(attrs) > 1]
    assert 0 < len(kept) < len(sets)
    assert part.tree.cells <= 60
    for attrs in kept:
        assert part.count(attrs) == pytest.approx(whole.count(attrs), rel=0.03)


def test_a_tree_that_has_room_is_left_alone(prior):
    assert pruned(prior.model, most_cells=1e6) is prior.model
