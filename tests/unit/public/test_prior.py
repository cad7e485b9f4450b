"""The public model: its structure, its smoothing, and public data of awkward kinds."""

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import DataError, SchemaError
from sidelight.fit.proportional_fitting import most_likely
from sidelight.public.prior import Prior, fit_prior, pruned
from sidelight.public.source import PublicRecords, WeightedRecords
from sidelight.public.structure import _fitting, smoothed
from sidelight.queries.workload import Workload
from sidelight.trees.triangulation import BYTES_PER_CELL, SizeOracle

DOMAIN = Domain.of({"a": 3, "b": 3, "c": 2, "d": 4})
CLOSURE = Workload.marginals(DOMAIN, degree=2).closure(DOMAIN)


def codes_of(records, seed=0):
    """a and b go together; c and d go alone."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, records)
    b = np.where(rng.random(records) < 0.8, a, rng.integers(0, 3, records))
    return np.stack([a, b, rng.integers(0, 2, records), rng.choice(4, records, p=[0.6, 0.3, 0.1, 0])], axis=1)


def public_of(*sources):
    return PublicRecords.of(DOMAIN, sources)


def table_of(codes, domain=DOMAIN):
    return Table.of_codes(domain, codes)


def test_only_what_carries_over_from_half_to_half_becomes_structure():
    prior = fit_prior(public_of(table_of(codes_of(4000))), CLOSURE)

    # Of five pairs that are independent, chance alone lets a few carry over a little.
    assert prior.sets[len(DOMAIN)] == ("a", "b")
    assert len(prior.sets) < len(DOMAIN) + 5


def test_the_model_has_the_smoothed_marginals_of_its_structure():
    public = public_of(table_of(codes_of(2000)))

    prior = fit_prior(public, CLOSURE)

    target = smoothed(public, [("a", "b")])["a", "b"]
    assert prior.model.count(("a", "b")) == pytest.approx(target, abs=1e-5)
    assert prior.model.count(("c", "a")).sum() == pytest.approx(1.0)


def test_a_value_that_was_never_seen_has_little_mass_and_goes_with_nothing():
    public = public_of(table_of(codes_of(2000)))

    target = smoothed(public, [("a", "d")])["a", "d"]

    unseen = target[:, 3]
    # A quarter of the one record of 2,001 whose value is drawn anew, evenly.
    assert unseen.sum() == pytest.approx(0.25 / 2001)
    assert unseen / unseen.sum() == pytest.approx(target.sum(axis=1), abs=1e-12)


def test_a_value_that_was_never_seen_leaves_the_structure_of_the_others_alone():
    # Here b is a, whatever c is; but c is never 1 in public. Private data may well say that it mostly is.
    rng = np.random.default_rng(3)
    first = rng.integers(0, 4, 3000)
    codes = np.stack([first, first, np.zeros(3000, dtype=int), rng.integers(0, 2, 3000)], axis=1)
    domain = Domain.of({"a": 4, "b": 4, "c": 2, "d": 2})
    public = PublicRecords.of(domain, [Table.of_codes(domain, codes)])
    closure = Workload.marginals(domain, degree=3).closure(domain)

    prior = fit_prior(public, closure)

    seen, unseen = np.moveaxis(prior.model.count(("a", "b", "c")), 2, 0)
    assert np.trace(seen) / seen.sum() == pytest.approx(1.0, abs=0.01)
    assert 0 < unseen.sum() < 0.001
    assert np.trace(unseen) / unseen.sum() == pytest.approx(1.0, abs=0.01)


def test_smoothed_marginals_agree_with_each_other():
    public = public_of(table_of(codes_of(50)))

    found = smoothed(public, [("a", "b"), ("b", "d")])

    assert found["a", "b"].sum(axis=0) == pytest.approx(found["b", "d"].sum(axis=1))


def test_the_size_limit_holds():
    limit = 25 * BYTES_PER_CELL / 2**20

    prior = fit_prior(public_of(table_of(codes_of(4000))), CLOSURE, max_model_mb=limit)

    assert prior.model.tree.cells <= 25


@pytest.mark.parametrize("records", [1, 2, 10])
def test_a_tiny_public_table_is_enough(records):
    prior = fit_prior(public_of(table_of(codes_of(records))), CLOSURE)

    assert prior.records == records
    assert np.isfinite(prior.model.count(("a", "b"))).all()


def test_the_same_records_in_another_order_give_the_same_prior():
    codes = codes_of(500)

    first, second = (fit_prior(public_of(table_of(c)), CLOSURE) for c in (codes, codes[::-1].copy()))

    assert first.sets == second.sets
    assert np.array_equal(first.model.count(("a", "b")), second.model.count(("a", "b")))


def test_an_attribute_that_the_public_table_lacks_stays_uniform():
    part = DOMAIN.project(("a", "b", "c"))

    prior = fit_prior(public_of(table_of(codes_of(2000)[:, :3], part)), CLOSURE)

    assert prior.model.count(("d",)) == pytest.approx(np.full(4, 0.25))
    assert prior.records_by_attribute == {"a": 2000, "b": 2000, "c": 2000, "d": 0}
    assert ("a", "b") in prior.sets


def test_two_tables_that_cover_different_attributes_are_joined():
    first = table_of(codes_of(2000)[:, :2], DOMAIN.project(("a", "b")))
    second = table_of(codes_of(500)[:, 1:], DOMAIN.project(("b", "c", "d")))

    prior = fit_prior(public_of(first, second), CLOSURE)

    assert ("a", "b") in prior.sets
    assert prior.model.count(("d",))[0] == pytest.approx(0.6, abs=0.08)


def test_weights_count_and_unequal_weights_are_worth_fewer_records():
    codes = codes_of(1000)
    weights = np.where(codes[:, 0] == 0, 9.0, 1.0)
    survey = WeightedRecords(DOMAIN, codes, weights)

    prior = fit_prior(public_of(survey), CLOSURE)

    expected = np.bincount(codes[:, 0], weights) / weights.sum()
    assert prior.model.count(("a",)) == pytest.approx(expected, abs=0.01)
    assert prior.records < 500


def test_kept_shares_are_the_shares_and_drop_what_is_not_wanted_any_more():
    part = DOMAIN.project(("a", "b"))
    public = PublicRecords.of(
        DOMAIN,
        [
            table_of(codes_of(300)),
            Table.of_codes(part, codes_of(500, seed=1)[:, :2]),
            WeightedRecords(DOMAIN, codes_of(50, seed=2), np.linspace(0.5, 2.0, 50)),
        ],
    )
    wanted = [("a", "b"), ("d", "a"), ("c",)]

    kept = public.kept_frequencies(wanted)

    assert list(kept) == wanted
    for attrs, share in zip(wanted, public.frequencies(wanted), strict=True):
        np.testing.assert_array_equal(kept[attrs], share)
        assert share.flags.c_contiguous
        assert share.sum() == pytest.approx(1.0)


def test_a_foreign_attribute_or_size_is_named():
    with pytest.raises(SchemaError, match="'z'"):
        public_of(table_of(np.zeros((3, 1), dtype=np.uint8), Domain.of({"z": 2})))
    with pytest.raises(SchemaError, match="'a' has 5 values"):
        public_of(table_of(np.zeros((3, 1), dtype=np.uint8), Domain.of({"a": 5})))


def test_an_empty_public_table_is_refused():
    with pytest.raises(DataError, match="no records"):
        public_of(table_of(np.zeros((0, 4), dtype=np.uint8)))


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, np.nan]])
def test_bad_weights_are_refused(weights):
    with pytest.raises(DataError, match="weights"):
        WeightedRecords(DOMAIN, codes_of(2), weights)


def test_without_public_data_the_prior_is_uniform():
    prior = Prior.nothing(DOMAIN)

    assert prior.records == 0
    assert prior.model.count(("a", "b")) == pytest.approx(np.full((3, 3), 1 / 9))


def test_maximum_likelihood_meets_targets_that_overlap():
    codes = codes_of(5000)
    table = table_of(codes)
    sets = [("a", "b"), ("b", "c"), ("a", "c")]
    targets = {attrs: table.count(attrs) / 5000 for attrs in sets}

    model = most_likely(DOMAIN, targets)

    for attrs in sets:
        assert model.count(attrs) == pytest.approx(targets[attrs], rel=0.02)


def test_what_is_cut_off_is_independent_of_the_rest_and_each_is_as_it_was():
    whole = fit_prior(public_of(table_of(codes_of(4000))), CLOSURE)

    part = whole.without_relations(["d"])

    assert part.model.count(("a", "b")) == pytest.approx(whole.model.count(("a", "b")), abs=1e-3)
    apart = np.multiply.outer(whole.model.count(("a",)), whole.model.count(("d",)))
    assert part.model.count(("a", "d")) == pytest.approx(apart, abs=1e-3)
    assert not part.tells(("a", "d"))
    assert part.tells(("d",))
    assert part.tells(("a", "b"))
    # c goes with nothing that public records can tell from chance.
    assert part.related == ("a", "b")
    assert part.sample is None


def test_a_prior_without_an_attribute_keeps_its_other_single_attributes_in_the_least_room():
    whole = fit_prior(public_of(table_of(codes_of(4000))), CLOSURE)

    part = pruned(whole.without_relations(["c"]).model, most_cells=1.0)

    for attr in "abd":
        assert part.count((attr,)) == pytest.approx(whole.model.count((attr,)), abs=1e-3)


def test_what_is_forgotten_is_as_if_public_data_lacked_it():
    whole = fit_prior(public_of(table_of(codes_of(4000))), CLOSURE)

    part = whole.without_values(["d"])

    assert part.model.count(("d",)) == pytest.approx(np.full(4, 0.25))
    assert not part.tells(("d",))
    assert part.records_by_attribute["a"] == 4000
    assert part.model.count(("a", "b")) == pytest.approx(whole.model.count(("a", "b")), abs=1e-3)


def test_public_records_are_worth_a_share_where_the_tree_has_no_room_for_what_they_show():
    public = public_of(table_of(codes_of(4000)))

    bare = fit_prior(public, CLOSURE, max_model_mb=12 * BYTES_PER_CELL / 2**20)
    roomy = fit_prior(public, CLOSURE)

    assert bare.sample is not None
    assert bare.sample_share > 0.7
    assert roomy.sample_share < bare.sample_share / 2


@pytest.mark.parametrize("number", [1, 3, 50])
def test_marginals_priced_lazily_are_those_of_pricing_all(number):
    rng = np.random.default_rng(2)
    domain = Domain.of({f"x{i}": int(size) for i, size in enumerate(rng.integers(2, 9, 10))})
    sets = [tuple(rng.choice(domain.attrs, 2, replace=False)) for _ in range(7)]
    ranked = [domain.canonical(rng.choice(domain.attrs, 3, replace=False)) for _ in range(40)]
    oracle = SizeOracle(domain, sets)
    most = sorted(oracle.cells_with_each(ranked))[20]

    lazily = _fitting(SizeOracle(domain, sets), ranked, most, number=number)

    everything = [attrs for attrs in ranked if oracle.cells_with(attrs) <= most]
    assert 20 <= len(everything) < 40
    assert lazily == everything[:number]
    assert _fitting(oracle, ranked, most, number=None) == everything
