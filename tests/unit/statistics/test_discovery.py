"""Private discovery: what is told, what is never told, what is paid, and what is refused for nothing."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from sidelight.data.schema import Schema
from sidelight.errors import DataError, SettingError, SidelightError
from sidelight.privacy import convert
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.statistics import discovery_curator
from sidelight.statistics.discovery import records_off
from sidelight.statistics.discovery_curator import DELTA_SHARE, Contribution, label_event
from sidelight.statistics.label_counts import count_labels
from sidelight.testing import SeededNoise

DRAW = np.random.default_rng(6)
PEOPLE, RECORDS = 3000, 9000
IDS = np.concatenate([np.zeros(900, dtype=int), DRAW.integers(1, PEOPLE, RECORDS - 900)])
DRUGS = np.where(
    IDS == 0, [f"only-{i}" for i in range(RECORDS)], [f"d{i % 7}" for i in DRAW.integers(0, 7, RECORDS)]
)
VISITS = pa.table(
    {"who": [f"p{i}" for i in IDS], "drug": DRUGS, "cost": DRAW.integers(0, 100, RECORDS), "sex": IDS % 2}
)
UNIT = Unit("add-or-remove", 2, "who")
KEY = "5a" * 32


def schema(unit: Unit = UNIT) -> Schema:
    return Schema.from_domain({"sex": 2}, unit=unit)


def find(column="drug", table=VISITS, *, unit: Unit = UNIT, **asked):
    asked = {"epsilon": 1.0, "noise": SeededNoise(7)} | asked
    asked = ({} if "ledger" in asked else {"delta": 1e-9}) | asked
    return sl.discover(table, column, schema=schema(unit), **asked)


@pytest.mark.parametrize("relation", ["replace", "add-or-remove"])
def test_the_labels_of_many_people_are_found_and_none_of_one_person(relation):
    found = find(unit=Unit(relation, 2, "who"))

    assert set(found.labels) == {f"d{i}" for i in range(7)}
    assert found.column.labels == tuple(sorted(found.labels))
    assert found.schema.columns[-1] == found.column
    assert found.column.outside == "other"
    assert "ε = 1 at δ = 1e-09 was paid" in found.sentence
    assert "NOT PRIVATE" in found.sentence
    numbers = count_labels(pa.array(DRUGS), VISITS.column("who"), records=2, key=KEY)
    for label, number in found.labels.items():
        assert abs(number - numbers[label]) < 250  # another key, and noise


def test_labels_that_are_public_are_kept_and_cost_nothing():
    public = pa.table({"drug": ["rare", "d1", None, ""]})

    found = find(public=public)

    assert found.column.labels[:2] == ("d1", "rare")
    assert set(found.labels) == {f"d{i}" for i in (0, 2, 3, 4, 5, 6)}
    again = sl.discover(VISITS, "drug", schema=found.schema, epsilon=1.0, delta=1e-9, noise=SeededNoise(8))
    assert again.column.labels == found.column.labels
    assert not again.labels


def test_a_label_of_few_people_is_never_told_whatever_the_noise(monkeypatch):
    monkeypatch.setattr(discovery_curator, "gaussian", lambda noise, exact, event: exact + 10**9)
    table = pa.table(
        {"who": [f"p{i}" for i in range(30)], "drug": ["a"] * 12 + ["b"] * 9 + ["c"] * 9, "sex": [0] * 30}
    )

    assert set(find(table=table).labels) == {"a"}
    assert set(find(table=table, at_least=9).labels) == {"a", "b", "c"}
    # Without a column of people, nine records of one label may be those of three people.
    three = Unit("add-or-remove", 3)
    assert set(find(table=table, unit=three, at_least=5).labels) == set()
    assert set(find(table=table, unit=three, at_least=4).labels) == {"a"}
    assert set(find(table=table, unit=three, at_least=3).labels) == {"a", "b", "c"}


def test_a_label_is_told_if_its_noisy_number_reaches_the_threshold_and_not_below(monkeypatch):
    thresholds = []

    def noisy(noise, exact, event):
        thresholds.append(event.threshold)
        return event.threshold + np.array([-2, -1, 0, 1], dtype=np.int64)

    monkeypatch.setattr(discovery_curator, "gaussian", noisy)
    who = [f"p{i}" for i in range(48)]
    table = pa.table({"who": who, "drug": [*"abcd"] * 12, "sex": [0] * 48})

    for unit, at_least, left_out in ((UNIT, 1, 0), (UNIT, 10, 9), (Unit("replace", 3), 3, 6)):
        found = find(table=table, unit=unit, at_least=at_least)
        least = thresholds[-1] + left_out
        assert found.labels == {"c": least, "d": least + 1}


@settings(max_examples=40)
@given(
    others=st.lists(st.tuples(st.sampled_from(["x", "y", None]), st.sampled_from("abc")), max_size=12),
    one=st.lists(st.sampled_from("abcdef"), max_size=9),
    records=st.integers(1, 3),
)
def test_one_person_counts_with_at_most_k_labels_and_changes_nobody_elses(others, one, records):
    def counted(lines):
        who, labels = [p for p, _ in lines], [label for _, label in lines]
        arrays = pa.array(labels, pa.large_string()), pa.array(who, pa.large_string())
        return Counter(count_labels(*arrays, records=records, key=KEY))

    without, with_one = counted(others), counted([*others, *(("me", label) for label in one)][::-1])

    moved = with_one - without
    assert not without - with_one
    assert sum(moved.values()) == min(records, len(set(one)))
    assert (
        sum(number**2 for number in moved.values()) <= Contribution.of(UNIT.with_records(records)).l2_squared
    )


@pytest.mark.parametrize(
    "unit", [Unit("replace", 3), Unit("add-or-remove", 2, "who"), Unit("replace", 5, "who")], ids=str
)
def test_what_one_person_alone_has_reaches_the_threshold_with_less_than_delta(unit):
    delta = Fraction(1, 10**6)
    event = label_event(Rho(Fraction(1, 100)), unit, column="drug", delta=delta, surcharge=Fraction(1, 1000))
    adds = Contribution.of(unit)
    variance = float(event.variance)

    support = np.arange(-400, 401)
    chances = np.exp(-(support**2) / (2 * variance))
    told = chances[support >= event.threshold - adds.each].sum() / chances.sum()

    assert adds.labels * told <= float(delta)
    lower = chances[support >= 0.9 * (event.threshold - adds.each)].sum() / chances.sum()
    assert adds.labels * lower > float(delta)  # the bound is no idle one
    assert event.owed <= event.cost.value


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("share", [Fraction(1, 4096), Fraction(1, 100), Fraction(1, 3)])
@pytest.mark.parametrize("times", [1, 7])
def test_what_is_left_of_delta_is_enough_for_what_is_left_of_the_budget(epsilon, share, times):
    budget = Budget(epsilon=epsilon, delta=1e-9)
    left = budget.capacity - times * budget.delta_price(share)
    if left < 0:
        assert times * share > Fraction(49, 100) or budget.delta_price(share) > budget.capacity / 2
        return
    of_delta = 1 - float(times * share)

    assert of_delta >= 0.49
    # Rounding apart, (ε, δ) holds with the smaller δ at the same order.
    assert convert.epsilon_at(budget.order, float(left), budget.delta * of_delta) <= epsilon * (1 + 1e-9)


def test_edges_are_near_the_quantiles_and_a_person_with_many_records_moves_them_little():
    table = VISITS.set_column(2, "cost", pa.array(np.where(IDS == 0, 99.0, DRAW.uniform(0, 50, RECORDS))))

    found = find("cost", table, bounds=(0, 100), bins=5)

    assert np.allclose(found.edges[1:-1], [10, 20, 30, 40], atol=2.5)
    assert (found.edges[0], found.edges[-1]) == (0.0, 100.0)
    assert found.column.kind == "real"
    whole = sl.discover(
        table, "sex", schema=schema(), bounds=(0, 1), bins=4, epsilon=1.0, delta=1e-9, noise=SeededNoise(3)
    )
    assert whole.column.kind == "integer"
    assert set(whole.edges) <= {0, 1, 2}


def test_missing_numbers_are_left_out_and_an_empty_table_is_like_any_other():
    cost = pa.array([None if i % 2 else "7" for i in range(400)])
    table = pa.table({"who": [f"p{i}" for i in range(400)], "cost": cost, "drug": ["a"] * 400})

    found = find("cost", table, bounds=(0, 100), bins=2, epsilon=5.0)
    empty = table.slice(0, 0)

    assert abs(found.edges[1] - 7) < 3
    assert len(find("cost", empty, bounds=(0, 100), bins=2).edges) == 3
    nothing = find("drug", empty)
    assert nothing.labels == {}
    assert nothing.schema == schema()
    assert "With a larger epsilon the threshold is lower. The schema stays as it is." in nothing.sentence


def test_what_the_schema_says_of_a_column_decides_what_its_values_are():
    toml = """
    [columns.drug]
    kind = "categorical"
    labels = ["known"]
    missing = true
    missing_texts = ["NA"]
    aliases = { known = ["Known", "KNOWN"] }
    [columns.cost]
    kind = "integer"
    low = 0
    high = 100
    missing = true
    missing_texts = ["99"]
    """
    drugs = ["NA", "KNOWN", "Known", "new"] * 500
    table = pa.table({"drug": drugs, "cost": ["99", "10", "20", "30"] * 500})
    asked = {"schema": Schema.from_toml(toml), "delta": 1e-9, "noise": SeededNoise(4)}

    found = sl.discover(table, "drug", epsilon=5.0, **asked)
    edges = sl.discover(table, "cost", epsilon=5.0, bounds=(0, 100), bins=3, **asked).edges

    assert set(found.labels) == {"new"}
    assert found.column.labels == ("known", "new")
    assert found.column.aliases == asked["schema"].column("drug").aliases
    assert len(edges) <= 4
    assert max(edges[:-1]) <= 30


def test_records_a_person_are_found_privately():
    ids = [f"p{i}" for i in range(2000) for _ in range(1 + 5 * (i % 4 == 0))] + ["much"] * 5000
    table = pa.table({"who": ids, "sex": [0] * len(ids)})
    auto = schema(Unit.said(relation="replace", records="auto", person="who"))

    found = sl.discover_records(table, schema=auto, epsilon=1.0, delta=1e-9, noise=SeededNoise(2))

    assert found.records == 6
    assert found.schema.unit == Unit("replace", 6, "who")
    many, few = records_off(2 / math.sqrt(8 * found.rho))  # b = 2/ε, where ρ = ε²/8
    assert f"too large by at most {many} people, and too small by at most {few}" in found.sentence


def test_what_is_said_of_records_a_person_holds_and_large_numbers_are_rarely_drawn_in_vain():
    number = 1 + np.searchsorted(1 - 0.5 ** np.arange(1, 12), np.arange(2000) / 2001)
    ids = np.repeat([f"p{i}" for i in range(2000)], number)
    table = pa.table({"who": ids, "sex": [0] * len(ids)})
    asked = {"schema": schema(Unit("replace", person="who")), "epsilon": 0.1, "delta": 1e-9}

    found = [sl.discover_records(table, **asked, noise=SeededNoise(seed)) for seed in range(40)]

    many, few = records_off(2 / math.sqrt(8 * found[0].rho))
    covered = np.array([(number <= one.records).sum() for one in found])
    assert np.mean(covered - 1900 <= many) > 0.9
    assert np.mean(1900 - covered <= few) > 0.9
    # Five records are the answer; with even chances more than a third of these were above 20.
    assert np.mean([one.records > 20 for one in found]) < 0.2


def test_a_number_of_records_between_two_answers_counts_as_the_larger_one():
    ids = [f"p{i}" for i in range(3000) for _ in range(11)]
    table = pa.table({"who": ids, "sex": [0] * len(ids)})
    one = schema(Unit("replace", person="who"))

    found = sl.discover_records(table, schema=one, epsilon=1.0, delta=1e-9, noise=SeededNoise(2))

    assert found.records == 12


def test_bins_alone_lie_between_the_bounds_that_the_schema_declares():
    declared = Schema.from_toml('[columns.cost]\nkind = "real"\nlow = 0.0\nhigh = 100.0\nbins = 2')
    terms = {"schema": declared, "unit": UNIT, "epsilon": 1.0, "delta": 1e-9, "noise": SeededNoise(3)}

    edges = sl.discover(VISITS, "cost", bins=5, **terms).edges

    assert (edges[0], edges[-1], len(edges)) == (0.0, 100.0, 6)


def test_the_ledger_is_charged_once_and_refuses_what_it_cannot_pay(tmp_path):
    path = tmp_path / "visits.ledger"
    sl.SqlLedger.create(path, Promise(Budget(epsilon=1.0, delta=1e-9), UNIT, "visits"))

    find(ledger=path, epsilon=0.5)

    book = sl.SqlLedger.open(path)
    (run,) = book.runs()
    assert not run.is_open
    (event,) = book.events()
    assert event.what == "labels of drug"
    assert event.delta == DELTA_SHARE * Fraction(1e-9)
    assert event.surcharge == book.promise.budget.delta_price(DELTA_SHARE)
    assert float(book.spent) == pytest.approx(float(Budget(epsilon=0.5, delta=1e-9).rho()))
    with pytest.raises(sl.BudgetExhausted):
        find(ledger=path, epsilon=0.95)
    assert len(list(sl.SqlLedger.open(path).runs())) == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"column": "who"}, "cannot be an attribute"),
        ({"column": "nothing"}, "no column 'nothing'"),
        ({"column": "sex"}, "no labels of text"),
        ({"at_least": 0}, "at least 1"),
        ({"delta": 0.0}, "δ = 0"),
        ({"delta": None}, "delta must be given"),
        ({"epsilon": 1e-9}, "too small|too little|more than can be drawn"),
        ({"column": "cost", "bins": 4}, "declare low and high of 'cost'"),
        ({"column": "cost", "bounds": (5, 5)}, "lower one first"),
        ({"column": "cost", "bounds": (0, math.inf)}, "lower one first"),
        ({"column": "cost", "bounds": (0, 9), "bins": 1}, "from 2 to 1024"),
        ({"column": "cost", "bounds": (0, 9), "public": VISITS.slice(3)}, "leave public out"),
        ({"public": VISITS}, "given as public data"),
        ({"unit": Unit("add-or-remove", 2, "whom")}, "no column 'whom'"),
        ({"table": VISITS.set_column(0, "who", pa.array([None] * RECORDS, pa.string()))}, "without 'who'"),
        ({"ledgers": 3}, "no setting 'ledgers'"),
    ],
)
def test_bad_input_is_refused_before_anything_is_paid(asked, said, monkeypatch):
    drawn = []
    monkeypatch.setattr(discovery_curator.DiscoveryCurator, "_pay_then", lambda *_: drawn.append(1))

    with pytest.raises(SidelightError, match=said):
        find(**asked)

    assert not drawn


def test_people_who_are_not_named_count_by_themselves_where_that_is_declared():
    table = VISITS.set_column(0, "who", pa.array([None] * RECORDS, pa.string()))

    found = find(table=table, unit=Unit("add-or-remove", 2, "who", "own"))

    assert sum(found.labels.values()) == pytest.approx(8100, rel=0.1)
    with pytest.raises((SettingError, DataError)):
        sl.discover_records(table, schema=Schema.from_domain({"sex": 2}), epsilon=1.0, delta=1e-9)


@pytest.mark.parametrize("delta", [1e-9, 1e-12, 1e-30, 1e-300, 5e-324])
def test_at_every_noise_that_can_be_drawn_one_person_does_not_reach_the_threshold(delta):
    """The least budgets are where a threshold could fall off the numbers that are drawn."""
    share = DELTA_SHARE * Fraction(delta)
    drawn = 0
    for places in range(0, 700, 3):
        cost = Rho(Fraction(10**6, 2 ** (places // 10) * 10 ** (places % 10)))
        try:
            event = label_event(
                cost, Unit("replace", 100, "who"), column="x", delta=share, surcharge=cost.value / 50
            )
        except SettingError:
            continue
        drawn += 1
        # As many σ above the one person's own part as δ takes, shared out among 100 labels.
        above = (event.threshold - 1) / math.sqrt(event.variance)
        assert above**2 / 2 >= math.log(100) + math.log(4096) - math.log(delta) - 1e-6
    assert 0 < drawn < 234  # both sides of what can be drawn were tried
