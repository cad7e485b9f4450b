"""Means and quantiles of people with several values: at most k of each are used, and the noise is k times."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import sidelight as sl
from sidelight.errors import DataError, SettingError
from sidelight.privacy.budget import Budget, Epsilon
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.statistics.curator import CellCurator, GroupCurator, rank_sensitivity
from sidelight.statistics.grid import Grid
from sidelight.statistics.group import Group
from sidelight.testing import SeededNoise

K = 2
RELATIONS = ["replace", "add-or-remove"]
GRID = Grid(0.0, 1.0)
PLENTY = Epsilon(Fraction(10**6))


def of_people(relation: str, records: int = K, **more) -> Unit:
    return Unit(relation, records, "who", **more)


def ledger(unit: Unit) -> MemoryLedger:
    return MemoryLedger(Promise(Budget(epsilon=1e9, delta=0.0), unit, "people"))


def door(unit: Unit) -> dict:
    return {
        "unit": unit,
        "ledger": ledger(unit),
        "allotment": Epsilon(Fraction(10**9)),
        "noise": SeededNoise(7),
    }


VALUES = (0.0, 0.25, 1.0)
PERSONS = [
    np.array(values)
    for size in range(K + 1)
    for values in itertools.combinations_with_replacement(VALUES, size)
]


def neighbours(relation: str) -> list[tuple[np.ndarray, np.ndarray]]:
    if relation == "replace":
        return list(itertools.product(PERSONS, PERSONS))
    return [pair for one in PERSONS for pair in ((one, PERSONS[0]), (PERSONS[0], one))]


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_neighbour_moves_a_sum_further_and_one_moves_it_as_far(relation):
    unit = of_people(relation)
    terms = {
        "centred": (lambda x: float((x - 0.5).sum()), unit.scalar(Fraction(-1, 2), Fraction(1, 2))),
        "squares": (lambda x: float(((x - 0.5) ** 2).sum() * 4), unit.scalar(0, 1)),
        "number": (lambda x: float(x.size), unit.scalar(0, 1)),
    }

    for exact, allowed in terms.values():
        moves = [abs(exact(before) - exact(after)) for before, after in neighbours(relation)]

        assert max(moves) == float(allowed)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 4)])
def test_no_neighbour_moves_a_rank_further_and_one_moves_it_as_far(relation, q):
    others = np.array([0.0, 0.25, 0.25, 1.0, 1.0])

    def score(person: np.ndarray, place: float) -> Fraction:
        everybody = np.append(others, person)
        return abs(int((everybody <= place).sum()) - q * everybody.size)

    moves = [
        abs(score(before, place) - score(after, place))
        for before, after in neighbours(relation)
        for place in (-0.1, 0.0, 0.25, 1.0)
    ]

    assert max(moves) <= rank_sensitivity(q, of_people(relation))
    if relation == "add-or-remove":
        assert max(moves) == rank_sensitivity(q, of_people(relation))


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_neighbour_moves_the_sums_of_cells_further(relation):
    unit, cells = of_people(relation), 2
    kinds = list(itertools.product(VALUES, range(cells)))
    persons = [kept for size in range(K + 1) for kept in itertools.combinations_with_replacement(kinds, size)]
    pairs = itertools.product(persons, persons if relation == "replace" else [()])

    def sums(person) -> np.ndarray:
        found = np.zeros(cells)
        for value, cell in person:
            found[cell] += value - 0.5
        return found

    moves = [np.abs(sums(before) - sums(after)).sum() for before, after in pairs]

    assert max(moves) == float(unit.scalar(Fraction(-1, 2), Fraction(1, 2)))


WHO = ["a"] * 1000 + ["b", "b", "c"]
NUMBERS = np.append(np.ones(1000), [0.25, 0.5, 0.0])


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_person_with_a_thousand_values_counts_with_k_of_them(relation):
    curator = GroupCurator([Group(NUMBERS, epsilon=1.0, people=WHO)], GRID, **door(of_people(relation)))

    sizes = curator.sizes([PLENTY])
    sums = curator.sums([(0,)], [PLENTY])

    assert sizes.answer == pytest.approx([5], abs=0.01)
    assert sums.answer == pytest.approx([K * 0.5 + (0.25 - 0.5) + (0.5 - 0.5) + (0.0 - 0.5)], abs=0.01)
    single = GroupCurator([Group([0.5], epsilon=1.0, people=["a"])], GRID, **door(of_people(relation, 1)))
    assert sums.stddev == pytest.approx(K * single.sums([(0,)], [PLENTY]).stddev, rel=1e-6)
    with pytest.raises(SettingError, match="private under this unit"):
        curator.public_sizes()


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_person_with_a_thousand_records_counts_with_k_of_them_in_all_cells_together(relation):
    import pyarrow as pa

    codes = np.append(np.arange(1000) % 2, [0, 1, 1])
    curator = CellCurator(NUMBERS, codes, 2, GRID, pa.array(WHO), **door(of_people(relation)))

    sizes = curator.sizes(PLENTY)

    assert sizes.answer.sum() == pytest.approx(5, abs=0.01)


def test_one_person_changes_nothing_about_the_values_of_others(monkeypatch):
    monkeypatch.setattr("sidelight.statistics.curator.new_key", lambda: "5a" * 32)
    unit = of_people("add-or-remove", 3)
    rng = np.random.default_rng(2)
    who, values = rng.integers(0, 20, 300), rng.random(300)

    def kept(is_there) -> list[float]:
        curator = GroupCurator(
            [Group(values[is_there], epsilon=1.0, people=who[is_there])], GRID, **door(unit)
        )
        return sorted(curator._values[0].tolist())

    everybody, without = kept(who >= 0), kept(who != 7)

    assert len(everybody) - len(without) == 3
    assert not set(without) - set(everybody)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_answers_are_those_of_the_kept_values(relation):
    rng = np.random.default_rng(1)
    people = np.repeat(np.arange(2000), 3)
    values = np.clip(rng.normal(50, 5, 2000)[people] + rng.normal(0, 1, 6000), 0, 100)
    people[:900], values[:900] = 0, 100.0  # one person would pull the mean by seven
    group = Group(values, epsilon=5.0, people=people, name="patients")
    unit = of_people(relation)
    mean = sl.mixed_mean([group], bounds=(0, 100), unit=unit, alone=True, variance="private")
    median = sl.mixed_quantile([group], 0.5, bounds=(0, 100), unit=unit, alone=True)
    table = {"cost": values, "who": people, "ward": people % 2}
    cells = sl.grouped_mean(table, "cost", by="ward", cells=[0, 1], bounds=(0, 100), epsilon=5.0, unit=unit)

    for found in (mean, median, *cells.cells):
        assert abs(found.estimate - 50) < 2
        assert found.interval[0] < 50 < found.interval[1]
    assert mean.card.unit == median.card.unit == cells.card.unit == unit
    assert "up to 2 records of each who are used" in mean.card.promise


@pytest.mark.filterwarnings("ignore:ε = 100000 is above 10:sidelight.errors.PrivacyWarning")
def test_values_of_one_person_may_be_alike_and_the_error_says_so():
    """The mean of n values, k of each person, all alike, has k times the variance of n people's."""
    people = np.repeat(np.arange(500), 4)
    values = np.random.default_rng(3).random(500)[people]
    errors = {}
    for records in (1, 4):
        group = Group(values, epsilon=1e5, people=people)
        asked = {"bounds": (0, 1), "alone": True, "unit": of_people("replace", records)}
        errors[records] = [
            sl.mixed_mean([group], variance=1 / 12, **asked).standard_error,
            sl.mixed_quantile([group], 0.5, density=1.0, **asked).standard_error,
        ]

    # Four values of each of 500 people tell as much as one of each.
    assert errors[4] == pytest.approx(errors[1], rel=0.02)


def test_values_without_a_name_are_refused_or_a_person_each():
    values, people = [0.5, 0.5, 0.25], ["a", None, " "]
    with pytest.raises(DataError, match="without 'who'"):
        sl.mixed_mean(
            [Group(values, epsilon=1.0, people=people)], bounds=(0, 1), alone=True, unit=of_people("replace")
        )

    own = of_people("replace", missing_person="own")
    curator = GroupCurator([Group(values, epsilon=1.0, people=people)], GRID, **door(own))

    assert curator.sizes([PLENTY]).answer == pytest.approx([3], abs=0.01)


def ask(groups, **more):
    return sl.mixed_mean(groups, bounds=(0, 1), alone=True, **more)


@pytest.mark.parametrize(
    ("says", "groups", "more"),
    [
        ("every private group must say who", [Group([0.5], epsilon=1.0)], {"unit": of_people("replace")}),
        ("the unit names no column", [Group([0.5], epsilon=1.0, people=["a"])], {}),
        (
            "cannot be declared where 'who'",
            [Group([0.5], epsilon=1.0, people=["a"], records=1)],
            {"unit": of_people("replace")},
        ),
        (
            "somebody has values in two private groups",
            [Group([0.5], epsilon=1.0, people=["a"]), Group([0.1], epsilon=2.0, people=["a"])],
            {"unit": of_people("replace")},
        ),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_paid(says, groups, more):
    unit = more.get("unit", Unit())
    book = ledger(unit)

    with pytest.raises((SettingError, DataError), match=says) as refusal:
        ask(groups, ledger=book, **more)

    assert not list(book.events())
    assert "'a'" not in str(refusal.value)


def test_a_name_for_every_value_is_needed():
    with pytest.raises(DataError, match="one name in people for each value"):
        Group([0.5, 0.1], epsilon=1.0, people=["a"])


def test_people_in_a_public_group_are_nobodys_business():
    private = Group(NUMBERS, epsilon=1.0, people=WHO, name="private")
    public = Group([0.5, 0.25], public=True, name="public")

    answer = ask([private, public], unit=of_people("add-or-remove"))

    assert [group.name for group in answer.groups] == ["private", "public"]


def test_a_ledger_of_people_lets_one_record_of_each_count_unless_more_are_asked_for():
    book = ledger(of_people("replace").promised)

    answers = [
        ask([Group(NUMBERS, epsilon=1.0, people=WHO)], ledger=book, **more)
        for more in ({}, {"unit": of_people("replace", 3)})
    ]

    assert [answer.card.unit.records for answer in answers] == [1, 3]


def test_the_column_of_people_is_no_value_and_no_cell():
    table = {"who": [1, 2], "cost": [0.5, 0.1]}
    for value, by in (("who", "cost"), ("cost", "who")):
        with pytest.raises(SettingError, match="says who each record is about"):
            sl.grouped_mean(
                table, value, by=by, cells=[1, 2], bounds=(0, 1), epsilon=1.0, unit=of_people("replace")
            )
