"""The grain, of public records and latent classes of them; and other trees, beside the public model."""

import numpy as np
import pytest

from sidelight.data.domain import Combination, Domain
from sidelight.data.table import Table
from sidelight.fit.proportional_fitting import most_likely
from sidelight.public.grain import against_each_other, grain
from sidelight.public.prior import PublicModel
from sidelight.public.smoothing import smoothed
from sidelight.public.source import PublicRecords
from sidelight.queries.workload import Workload

DOMAIN = Domain.of({"a": 3, "b": 3, "c": 2, "d": 4})
CLOSURE = Workload.marginals(DOMAIN, degree=2).closure(DOMAIN)
ONES = [(attr,) for attr in DOMAIN.attrs]
PLAIN = dict.fromkeys(DOMAIN.attrs, 1.0)
PAIRS = [attrs for attrs in CLOSURE if len(attrs) == 2]


def codes_of(records, seed=0):
    """a and b go together; c and d go alone."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, records)
    b = np.where(rng.random(records) < 0.8, a, rng.integers(0, 3, records))
    return np.stack([a, b, rng.integers(0, 2, records), rng.choice(4, records, p=[0.6, 0.3, 0.1, 0])], axis=1)


def public_of(codes, domain=DOMAIN):
    return PublicRecords.of(DOMAIN, [Table.of_codes(domain, codes)])


def independent(public):
    return most_likely(DOMAIN, smoothed(public, ONES, alpha=PLAIN))


def test_what_a_tree_has_no_room_for_the_records_and_their_classes_are_taken_for():
    halves = public_of(codes_of(4000)).halves(seed=0)

    _, bare_records, bare_classes = against_each_other(halves, list(CLOSURE), ONES, PLAIN, most=1000)
    _, records, classes = against_each_other(halves, list(CLOSURE), [*ONES, ("a", "b")], PLAIN, most=1000)

    assert bare_records + bare_classes > 0.7
    assert records + classes < (bare_records + bare_classes) / 2


@pytest.mark.parametrize("at_once", [2, 1 << 15])
def test_the_shares_are_those_with_the_least_weighted_squared_error_on_the_other_half(monkeypatch, at_once):
    monkeypatch.setattr("sidelight.public.grain._CELLS_AT_ONCE", at_once)
    halves = public_of(codes_of(600)).halves(seed=0)

    _, records, classes = against_each_other(halves, list(CLOSURE), ONES, PLAIN, most=1000)

    trees = [independent(half) for half in halves]
    drawn = [grain(half, records=0.0, classes=1.0, most=1000, seed=0)[0] for half in halves]

    def error(of, by):
        found = 0.0
        for half, other, tree, latent in zip(halves, halves[::-1], trees, drawn, strict=True):
            for attrs, own, unseen in zip(
                PAIRS, half.frequencies(PAIRS), other.frequencies(PAIRS), strict=True
            ):
                expected = tree.count(attrs)
                mixed = (1 - of - by) * expected + of * own + by * latent.count(attrs)
                found += float(((mixed - unseen) ** 2 / np.sqrt(expected)).sum())
        return found

    tried = [(of / 10, by / 10) for of in range(11) for by in range(11 - of)]
    # The classes are drawn here and exact there, so as good as the best is what can be asked for.
    assert error(records, classes) <= 1.02 * min(error(*pair) for pair in tried)


def test_a_tree_of_raw_records_strays_as_they_do():
    public = public_of(codes_of(2000))

    stray, _, _ = against_each_other(public.halves(seed=0), PAIRS, [*ONES, *PAIRS], PLAIN, most=1000)

    assert stray == pytest.approx(1.0, abs=0.1)


def test_without_marginals_of_two_attributes_there_is_nothing_to_judge_by():
    halves = public_of(codes_of(100)).halves(seed=0)

    assert against_each_other(halves, ONES, ONES, PLAIN, most=100) == (1.0, 0.0, 0.0)


def test_every_part_has_its_share():
    public = public_of(codes_of(500))
    own = public.whole(most=10_000, seed=0)

    both, share = grain(public, records=0.1, classes=0.3, most=10_000, seed=0)

    assert share == pytest.approx(0.4)
    assert both.total == pytest.approx(1.0)
    assert np.array_equal(both.records[: len(own.records)], own.records)
    assert both.weights[: len(own.records)] == pytest.approx(0.25 * own.weights / own.total)


def test_records_alone_are_the_records():
    public = public_of(codes_of(500))

    beside, share = grain(public, records=0.3, classes=0.0, most=10_000, seed=0)

    assert share == 0.3
    assert beside.count(DOMAIN.attrs) == pytest.approx(public.frequencies([DOMAIN.attrs])[0])


def test_what_nothing_is_taken_of_is_not_there():
    assert grain(public_of(codes_of(500)), records=0.0, classes=0.0, most=100, seed=0) == (None, 0.0)


def test_there_is_no_more_of_it_than_there_is_room_for():
    public = public_of(codes_of(5000))

    beside, _ = grain(public, records=0.2, classes=0.2, most=40, seed=0)

    assert len(beside.records) <= 80


def test_a_tiny_model_has_no_tiny_grain():
    public = public_of(codes_of(5000))

    prior = PublicModel(max_model_mb=1e-4).fit(public, CLOSURE)

    assert prior.grain_share > 0.5
    assert prior.grain.count(("a", "b")) == pytest.approx(public.frequencies([("a", "b")])[0], abs=0.02)


def test_records_that_do_not_tell_of_all_attributes_leave_no_grain():
    part = codes_of(3000)[:, :3]

    prior = PublicModel(max_marginals=0).fit(public_of(part, DOMAIN.project(("a", "b", "c"))), CLOSURE)

    assert (prior.grain, prior.grain_share) == (None, 0.0)


@pytest.mark.parametrize("records", [1, 2])
def test_one_record_is_too_few_to_judge_by(records):
    prior = PublicModel().fit(public_of(codes_of(records)[:1].repeat(records, axis=0)), CLOSURE)

    assert prior.grain is None or records > 1
    assert (prior.grain is None) == (prior.grain_share == 0)


def test_another_tree_that_is_the_same_is_none(monkeypatch):
    public = public_of(codes_of(4000))
    found = iter([[*ONES, ("a", "b")], [*ONES, ("a", "b")], [*ONES, ("b", "c")]])
    monkeypatch.setattr(PublicModel, "_structure", lambda *_, **__: next(found))

    (other,) = PublicModel().fit(public, CLOSURE).others

    assert set(other.potentials) == {*ONES, ("b", "c")}
    # Both hold what public data say of their own marginals.
    assert other.count(("b", "c")) == pytest.approx(public.frequencies([("b", "c")])[0], abs=5e-3)


def test_a_blend_of_all_errs_less_than_the_tree_alone():
    domain = Domain.of({name: 4 for name in "abcdefgh"})
    closure = Workload.marginals(domain, degree=3).closure(domain)

    def drawn(records, seed):
        rng = np.random.default_rng(seed)
        hidden = rng.integers(0, 3, records)
        return Table.of_codes(
            domain,
            np.stack(
                [(hidden + rng.choice(4, records, p=[0.6, 0.2, 0.1, 0.1])) % 4 for _ in range(8)], axis=1
            ),
        )

    truth = drawn(200_000, seed=1)
    prior = PublicModel(max_model_mb=0.01).fit(PublicRecords.of(domain, [drawn(1000, seed=2)]), closure)

    def error(share):
        return sum(
            np.abs(
                (1 - share) * prior.model.count(attrs)
                + share * prior.grain.count(attrs)
                - truth.count(attrs) / truth.records
            ).sum()
            for attrs in closure
            if len(attrs) == 3
        )

    assert error(prior.grain_share) < 0.9 * error(0.0)


def test_nothing_impossible_is_drawn():
    domain = Domain(("a", "b"), (3, 3), (Combination.of({"a": [0], "b": [1, 2]}),))
    codes = codes_of(500)[:, :2]
    public = PublicRecords.of(domain, [Table.of_codes(Domain.of({"a": 3, "b": 3}), codes)])

    beside, _ = grain(public, records=0.0, classes=1.0, most=5000, seed=0)

    assert (beside.count(("a", "b"))[0, 1:] == 0).all()
    assert beside.total == pytest.approx(1.0)
