"""The synthetic table as its users see it: associations, nearest records, a classifier."""

import sys

import numpy as np
import pytest

import sidelight as sl
from cards import card_of
from sidelight.data.columns.column import CategoricalColumn, IntegerColumn, RealColumn
from sidelight.data.domain import Domain
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError, MissingExtraError, SettingError
from sidelight.evaluation.association import association, association_gap
from sidelight.evaluation.learning import check_target, learn
from sidelight.evaluation.nearest import LOOKED_AT, nearer_share, nearest
from sidelight.models.histogram import Histogram
from sidelight.models.support import Support
from sidelight.releases.release import Release

DOMAIN = Domain.of({"a": 4, "b": 4, "c": 3, "sick": 2})


def records(number, *, seed, domain=DOMAIN):
    """b follows a; sickness follows both, four times in five."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, number)
    b = np.where(rng.random(number) < 0.7, a, rng.integers(0, 4, number))
    sick = np.where(rng.random(number) < 0.8, (a + b) > 3, rng.random(number) < 0.5)
    codes = np.stack([a, b, rng.integers(0, 3, number), sick.astype(int)], axis=1)
    return Table.of_codes(domain, codes)


def shuffled(table, *, seed):
    """Every column in an order of its own: nothing goes together any more."""
    rng = np.random.default_rng(seed)
    return Table.of_codes(table.domain, np.stack([rng.permutation(c) for c in table.codes().T], axis=1))


def fitted(table, **settings):
    model = Histogram.of_counts(table.domain, table.count(table.domain.attrs), total=float(table.records))
    return Release(model, (), card_of(model), **settings)


def wide(number, *, seed, attributes=12, values=8):
    rng = np.random.default_rng(seed)
    domain = Domain.of({f"x{i}": values for i in range(attributes)})
    return Table.of_codes(domain, rng.integers(0, values, (number, attributes)))


# --- associations ---------------------------------------------------------------------------------


def test_attributes_that_determine_each_other_are_associated_fully_and_independent_ones_not_at_all():
    assert association(np.diag([40, 30, 20])) == 1.0
    assert association(np.outer([4, 6], [1, 3, 6])) == 0.0


def test_the_correction_takes_away_what_chance_alone_would_show():
    rng = np.random.default_rng(0)
    drawn = [rng.multinomial(200, np.full(100, 0.01)).reshape(10, 10) for _ in range(200)]

    corrected = [association(table) for table in drawn]
    plain = [np.sqrt((np.square(t) / np.outer(t.sum(1), t.sum(0))).sum() / 9 - 1 / 9) for t in drawn]

    assert np.mean(plain) > 0.2
    assert np.mean(corrected) < 0.04


def test_values_that_never_occur_and_single_records_do_not_matter():
    assert association(np.array([[50, 0, 0], [0, 50, 0], [0, 0, 0]])) == 1.0
    assert association(np.array([[50, 50], [0, 0]])) == 0.0
    assert association(np.array([[1, 0], [0, 0]])) == 0.0


def test_the_gap_is_that_of_the_pair_that_is_furthest_off():
    private = records(4000, seed=1)

    same = association_gap(private, records(4000, seed=2))
    apart = association_gap(private, shuffled(private, seed=3))

    assert same.largest < 0.06
    assert apart.largest == pytest.approx(association(private.count(("a", "b"))), abs=0.05)
    assert 0 < same.mean < apart.mean < apart.largest


def test_pairs_of_too_many_cells_are_left_out(monkeypatch):
    private = records(4000, seed=1)
    other = shuffled(private, seed=3)
    whole = association_gap(private, other)
    monkeypatch.setattr("sidelight.evaluation.association._MOST_CELLS", 8)
    kept = [("a", "sick"), ("b", "sick"), ("c", "sick")]
    gaps = [abs(association(private.count(pair)) - association(other.count(pair))) for pair in kept]

    found = association_gap(private, other)

    assert found.largest == max(gaps) < whole.largest
    assert found.mean == pytest.approx(np.mean(gaps))


# --- nearest records --------------------------------------------------------------------------------


def test_distances_are_those_of_a_plain_loop():
    one, other = wide(60, seed=1, values=3).codes(), wide(200, seed=2, values=3).codes()

    found = nearest(one, other)

    assert found.tolist() == [int((other != record).sum(axis=1).min()) for record in one]


def test_a_record_is_not_its_own_neighbour(monkeypatch):
    monkeypatch.setattr("sidelight.evaluation.nearest._RECORDS_AT_ONCE", 7)
    codes = np.unique(wide(50, seed=4).codes(), axis=0)

    found = nearest(codes, codes, own=np.arange(len(codes)))

    apart = (codes[:, None, :] != codes[None, :, :]).sum(axis=2) + 99 * np.eye(len(codes), dtype=int)
    assert found.tolist() == apart.min(axis=1).tolist()


def test_a_second_sample_is_as_near_as_fresh_records_and_a_copy_is_nearer():
    private, second, held_out = (wide(2000, seed=seed) for seed in (1, 2, 3))

    assert nearer_share(private, second) == pytest.approx(0.5, abs=0.04)
    assert nearer_share(private, second, held_out=held_out) == pytest.approx(0.5, abs=0.04)
    assert nearer_share(private, private) > 0.99
    assert nearer_share(private, private, held_out=held_out) > 0.99


def test_half_copies_are_seen():
    private = wide(2000, seed=1)
    mixed = np.concatenate([private.codes()[:1000], wide(1000, seed=2).codes()])

    assert nearer_share(private, Table.of_codes(private.domain, mixed)) == pytest.approx(0.75, abs=0.05)


def test_records_from_elsewhere_are_further_away():
    domain = wide(1, seed=0).domain
    private = Table.of_codes(domain, wide(2000, seed=1, values=4).codes())
    elsewhere = Table.of_codes(domain, 4 + wide(500, seed=2, values=4).codes())

    assert nearer_share(private, elsewhere) == 0.0


def test_repeated_records_are_at_distance_zero_of_each_other():
    twice = Table.of_codes(wide(1, seed=0).domain, np.repeat(wide(300, seed=1).codes(), 2, axis=0))

    assert nearer_share(twice, twice) == pytest.approx(0.5)


def test_more_attributes_than_a_byte_counts_are_told_apart():
    one, other = np.zeros((1, 300), dtype=int), np.ones((1, 300), dtype=int)

    assert nearest(one, other).tolist() == [300]


def test_distances_need_records():
    domain = wide(1, seed=0).domain
    none = Table.of_codes(domain, np.zeros((0, 12), dtype=int))

    with pytest.raises(DataError, match="at least two private records"):
        nearer_share(wide(1, seed=1), wide(5, seed=2))
    with pytest.raises(DataError, match="one of each other"):
        nearer_share(wide(9, seed=1), none)
    with pytest.raises(DataError, match="one of each other"):
        nearer_share(wide(9, seed=1), wide(9, seed=2), held_out=none)


@pytest.mark.slow
def test_a_hundred_thousand_records_of_fifteen_attributes_take_seconds():
    private = wide(100_000, seed=1, attributes=15)

    assert nearer_share(private, wide(100_000, seed=2, attributes=15)) == pytest.approx(0.5, abs=0.03)
    assert len(private.codes()) > LOOKED_AT


# --- a classifier ------------------------------------------------------------------------------------


def test_a_faithful_table_teaches_as_well_as_the_private_one_and_a_shuffled_one_does_not():
    pytest.importorskip("sklearn", reason="the classifier comes with the extra 'learn'")
    private = records(1200, seed=1)

    good = learn(fitted(private).model, private, "sick", repeats=2)
    bad = learn(fitted(shuffled(private, seed=2)).model, private, "sick", repeats=2)

    assert good.accuracy == pytest.approx(good.accuracy_private, abs=0.03)
    assert good.accuracy > good.accuracy_majority + 0.15
    assert bad.accuracy < bad.accuracy_private - 0.1
    assert bad.accuracy_private == good.accuracy_private


def test_held_out_records_are_the_ones_tested():
    pytest.importorskip("sklearn", reason="the classifier comes with the extra 'learn'")
    private = records(300, seed=1)
    healthy = Table.of_codes(DOMAIN, np.where([0, 0, 0, 1], 0, records(100, seed=2).codes()))

    found = learn(fitted(private).model, private, "sick", held_out=healthy, repeats=1)

    assert found.accuracy_majority in (0.0, 1.0)


def test_a_release_of_one_class_alone_is_no_better_than_a_guess():
    pytest.importorskip("sklearn", reason="the classifier comes with the extra 'learn'")
    private = records(300, seed=1)
    single = Support(DOMAIN, np.array([[0, 0, 0, 1]]), np.array([300.0]), 300.0)

    found = learn(single, private, "sick", repeats=1)

    assert found.accuracy == pytest.approx(1 - found.accuracy_majority) or (
        found.accuracy == found.accuracy_majority
    )


COLUMNS = (
    CategoricalColumn("sex", ("f", "m")),
    IntegerColumn("age", low=0, high=99, bins=10),
    RealColumn("income", low=0.0, high=1e5, bins=10),
    IntegerColumn("place", low=1, high=5000),
    IntegerColumn("rooms", low=1, high=6),
)


def test_only_a_column_of_a_few_labels_can_be_the_target():
    pytest.importorskip("sklearn", reason="the classifier comes with the extra 'learn'")
    schema = Schema(COLUMNS)

    check_target(schema, "sex")
    check_target(schema, "rooms")
    for numeric in ("age", "income", "place"):
        with pytest.raises(SettingError, match=r"bins of numbers.*'sex', 'rooms'"):
            check_target(schema, numeric)
    with pytest.raises(SettingError, match=r"got 'sexx': choose one of 'sex', 'rooms'\."):
        check_target(schema, "sexx")
    with pytest.raises(SettingError, match="nothing to predict it from"):
        check_target(Schema(COLUMNS[:1]), "sex")


def test_without_scikit_learn_the_extra_is_named_before_anything_is_read(monkeypatch):
    for name in ("sklearn", "sklearn.ensemble"):
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(MissingExtraError, match=r"pip install 'sidelight\[learn\]'"):
        sl.evaluate(fitted(records(100, seed=1)), "no-such-file.csv", downstream="sick")


def test_one_class_and_few_records_are_refused_without_a_count():
    pytest.importorskip("sklearn", reason="the classifier comes with the extra 'learn'")
    few = records(17, seed=1)
    single = Table.of_codes(DOMAIN, np.where([0, 0, 0, 1], 1, records(100, seed=1).codes()))

    with pytest.raises(DataError, match="at least 30 records") as found:
        learn(fitted(few).model, few, "sick")
    assert "17" not in str(found.value)
    with pytest.raises(DataError, match="all records have the same value in it"):
        learn(fitted(single).model, single, "sick")
    with pytest.raises(DataError, match="at least 30 records"):
        learn(fitted(single).model, records(100, seed=1), "sick", held_out=few)


# --- evaluate ----------------------------------------------------------------------------------------


def test_evaluate_tells_each_metric_with_goal_and_range_and_says_private():
    pytest.importorskip("sklearn", reason="the classifier comes with the extra 'learn'")
    private = records(600, seed=1)

    found = sl.evaluate(fitted(private), private, workload="2-way", downstream="sick", repeats=1)

    told = {known.name: (value, known) for known, value in found.items()}
    assert str(found).startswith("PRIVATE")
    for value, known in told.values():
        assert known.low <= value <= known.high
    assert told["accuracy, trained on A"][1].goal == "high"
    assert told["share nearer than fresh records"][1].range == "0 to 1"
    assert found.as_json()["association_max"] == found.downstream.association_max


def test_evaluate_without_downstream_is_what_it_was_and_with_true_asks_for_no_target():
    private = records(300, seed=1)

    plain = sl.evaluate(fitted(private), private, workload="2-way")
    more = sl.evaluate(fitted(private), private, workload="2-way", downstream=True)

    assert plain.downstream is None
    assert set(more.as_json()) - set(plain.as_json()) == {
        "association_mean",
        "association_max",
        "nearer_share",
    }
    assert "accuracy, trained on A" not in str(more)


def test_a_held_out_table_of_another_schema_is_refused():
    private = records(300, seed=1)

    with pytest.raises(DataError, match="not those of the release"):
        sl.evaluate(fitted(private), private, downstream=True, held_out=wide(10, seed=1))
