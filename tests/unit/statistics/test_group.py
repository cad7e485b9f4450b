import math

import numpy as np
import pytest

from sidelight.errors import DataError, InputError, SettingError
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.statistics.group import Group
from sidelight.statistics.mixed_mean import mixed_mean
from sidelight.statistics.mixed_quantile import mixed_quantile
from sidelight.testing import SeededNoise

VALUES = np.linspace(1, 9, 50)


def a_ledger(*, delta: float = 0.0, unit: str = "replace") -> MemoryLedger:
    return MemoryLedger(Promise(Budget(epsilon=3.0, delta=delta), Unit.of(unit), "people"))


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, True, None])
def test_an_epsilon_that_is_not_a_finite_number_above_0_is_refused(epsilon):
    with pytest.raises(SettingError, match="epsilon"):
        Group(VALUES, epsilon=epsilon)


def test_a_group_is_public_or_private_and_not_both():
    with pytest.raises(SettingError, match="got both"):
        Group(VALUES, epsilon=1.0, public=True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, math.nan], "missing values"),
        (["a"], "not numbers"),
        ([[1.0], [2.0]], "not numbers"),
        (np.array([[1.0], [2.0]]), "2 dimensions"),
        ("12", "list of values"),
        (7, "list of values"),
    ],
)
def test_values_that_cannot_be_averaged_are_refused_without_quoting_one(values, message):
    with pytest.raises(DataError, match=message):
        Group(values, epsilon=1.0)


def test_a_public_group_without_values_is_refused():
    with pytest.raises(DataError, match="is empty"):
        Group([], public=True)


@pytest.mark.parametrize(
    "statistic", [mixed_mean, lambda groups, **asked: mixed_quantile(groups, 0.5, **asked)]
)
def test_a_private_group_without_values_is_one_like_any_other_where_its_size_is_private(statistic):
    groups = [Group([], epsilon=1.0), Group([0.2, 0.4], epsilon=1.0)]
    asked = {"bounds": (0, 1), "noise": SeededNoise(1)}
    for some in (groups, groups[::-1]):
        assert math.isfinite(statistic(some, unit="add-or-remove", **asked).estimate)
    book = MemoryLedger(Promise(Budget(epsilon=5.0, delta=0.0), Unit("replace"), "people"))
    with pytest.raises(DataError, match="is empty"):
        statistic(groups, ledger=book, **asked)
    assert not list(book.runs())


@pytest.mark.parametrize("epsilon", [1e-9, 1e-7, 1e-3])
@pytest.mark.parametrize("quantile", [1e-9, 0.5, 0.999999])
def test_a_quantile_lost_in_its_noise_is_an_answer_still(quantile, epsilon):
    groups = [Group([0.2] * size, epsilon=epsilon) for size in (40, 9)]
    found = mixed_quantile(groups, quantile, bounds=(0, 1), noise=SeededNoise(1))
    assert 0 <= found.estimate <= 1


def test_a_share_too_near_to_the_ends_is_refused_before_a_run_begins():
    book = MemoryLedger(Promise(Budget(epsilon=5.0, delta=0.0), Unit("replace"), "people"))
    groups = [Group([0.2, 0.4], epsilon=1.0), Group([0.1], epsilon=1.0)]
    with pytest.raises(SettingError, match="as near to 0 or 1"):
        mixed_quantile(groups, 1e-12, bounds=(0, 1), ledger=book)
    assert not list(book.runs())


def test_a_declared_size_must_be_the_number_of_values_and_the_message_tells_neither():
    with pytest.raises(DataError, match="another number of records") as refusal:
        Group(VALUES, epsilon=1.0, records=49)

    assert "50" not in str(refusal.value)


def test_a_private_group_shows_its_values_to_nobody():
    group = Group(VALUES, epsilon=1.0, name="patients")

    assert repr(group) == "Group('patients', ε = 1)"
    with pytest.raises(SettingError, match="curator alone"):
        _ = group.public_values


@pytest.mark.parametrize("ask", [mixed_mean, lambda groups, **more: mixed_quantile(groups, 0.5, **more)])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bounds": (10, 0)}, "low below high"),
        ({"bounds": (0, math.inf)}, "finite"),
        ({"bounds": (math.nan, 1)}, "finite"),
        ({"bounds": (3, 3)}, "low below high"),
        ({"bounds": 7}, "two numbers"),
        ({"bounds": (0, 1e-320)}, "too narrow"),
        ({"bounds": (0, 1e-130)}, "too narrow"),
        ({"bounds": (0, 1e130)}, "too wide"),
        ({"bounds": (-1e307, 1e307)}, "too wide"),
        ({"confidence": 1.0}, "confidence"),
        ({"accounting": "renyi"}, "accounting"),
        ({"accounting": "zcdp", "ledger": None}, "delta"),
        ({"delta": 1e-6}, "delta must be left out"),
        ({"unit": "swap"}, "unit"),
        ({"unit": "add-or-remove"}, "the ledger promises"),
        ({"bias": -1.0}, "bias"),
        ({"bias": "guess"}, "bias"),
        ({"bias_factor": 1.0}, "bias_factor"),
        ({"size_share": 1.5}, "size_share"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_spent(ask, wrong, message):
    ledger = a_ledger()
    groups = [Group(VALUES, epsilon=0.5), Group(VALUES, public=True)]
    options = {"bounds": (0, 10), "ledger": ledger, "noise": SeededNoise(1)} | wrong

    with pytest.raises(InputError, match=message):
        ask(groups, **options)

    assert ledger.spent == 0
    assert not ledger.runs()


@pytest.mark.parametrize("ask", [mixed_mean, lambda groups, **more: mixed_quantile(groups, 0.5, **more)])
def test_one_group_only_is_refused_unless_it_is_meant(ask):
    group = Group(VALUES, epsilon=2.0)

    with pytest.raises(SettingError, match="nothing to mix"):
        ask([group], bounds=(0, 10))
    with pytest.raises(SettingError, match="got none"):
        ask([], bounds=(0, 10))
    alone = ask([group], bounds=(0, 10), alone=True, noise=SeededNoise(1))

    assert alone.weights == (1.0,)


def test_two_groups_of_one_name_are_refused():
    with pytest.raises(SettingError, match="same name"):
        mixed_mean(
            [Group(VALUES, epsilon=1.0, name="a"), Group(VALUES, epsilon=1.0, name="a")], bounds=(0, 1)
        )


def test_a_size_cannot_be_declared_where_it_is_private():
    ledger = a_ledger(unit="add-or-remove")

    with pytest.raises(SettingError, match="cannot be declared"):
        mixed_mean(
            [Group(VALUES, epsilon=1.0, records=50), Group(VALUES, public=True)],
            bounds=(0, 10),
            ledger=ledger,
        )

    assert ledger.spent == 0


def test_shares_must_leave_something_for_the_sums():
    groups = [Group(VALUES, epsilon=1.0), Group(VALUES, epsilon=2.0)]

    with pytest.raises(SettingError, match="leave something"):
        mixed_mean(groups, bounds=(0, 10), variance="private", variance_share=0.6, clipped_share=0.5)


@pytest.mark.parametrize("unit", ["replace", "add-or-remove"])
def test_an_epsilon_too_small_for_exact_noise_is_refused_before_anything_is_paid(unit):
    ledger = a_ledger(unit=unit)
    groups = [Group(VALUES, epsilon=1e-9), Group(VALUES, epsilon=1.0)]

    with pytest.raises(SettingError, match="too small to be of use"):
        mixed_mean(groups, bounds=(0, 10), ledger=ledger, clipped_share=0.79, noise=SeededNoise(1))

    assert ledger.spent == 0


@pytest.mark.parametrize("exponent", [-400, -399, 399, 400])
@pytest.mark.parametrize("epsilon", [1e-5, 1.0, 1e3])
def test_bounds_that_are_admitted_are_answered_whatever_the_noise(exponent, epsilon):
    width = 2.0**exponent
    values = np.linspace(0, width, 50)
    groups = [Group(values, epsilon=epsilon), Group(values, public=True)]

    mean = mixed_mean(groups, bounds=(0, width), variance="private", bias="measure", noise=SeededNoise(1))
    median = mixed_quantile(groups, 0.5, bounds=(0, width), density="private", noise=SeededNoise(1))

    assert 0 <= mean.estimate <= width
    assert math.isfinite(mean.standard_error)
    assert math.isfinite(median.standard_error)


def test_what_stands_for_a_missing_value_is_declared_and_lies_within_the_bounds():
    group = Group([1, "2.5", None, "x", math.nan], epsilon=1.0, missing=4.0)

    assert group._values.tolist() == [1.0, 2.5, 4.0, 4.0, 4.0]
    with pytest.raises(SettingError, match="within the bounds, 0 to 3"):
        mixed_mean([group], bounds=(0, 3), alone=True)
    with pytest.raises(SettingError, match="missing must be"):
        Group(VALUES, epsilon=1.0, missing="drop")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="missing must be"):
        Group(VALUES, epsilon=1.0, missing=math.nan)
