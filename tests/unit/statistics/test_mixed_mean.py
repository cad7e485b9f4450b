import json
import math
from fractions import Fraction

import numpy as np
import pytest

from sidelight.errors import BudgetExhausted, SettingError
from sidelight.privacy.budget import Budget, Epsilon
from sidelight.privacy.event import Event, Gaussian, Laplace, Parallel
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.statistics.group import Group
from sidelight.statistics.mixed_mean import mixed_mean
from sidelight.statistics.weights import (
    inverse_variance,
    laplace_variances,
    mean_variances,
    merged,
)
from sidelight.testing import SeededNoise


def mixed_variance(variances: np.ndarray) -> float:
    """The variance of the best mix."""
    return float(1 / (1 / variances).sum())


EPSILONS = (10, 0.05, 0.1, 0.01, 0.25, 0.15)


def a_ledger(epsilon: float, unit: Unit) -> MemoryLedger:
    return MemoryLedger(Promise(Budget(epsilon=epsilon, delta=0.0), unit, "people"))


def the_papers_groups(n: int) -> list[Group]:
    rng = np.random.default_rng(1)
    sizes = (n, 100, 500, 1000, 5000, 10000)
    return [Group(rng.normal(0, 5, size), epsilon=e) for size, e in zip(sizes, EPSILONS, strict=True)]


@pytest.mark.parametrize(
    ("n", "width", "weights", "variance"),
    [
        (1000, 100, (0.21590339, 0.00000680, 0.00067587, 0.00002720, 0.30566098, 0.47772575), 0.00544077),
        (100, 100, (0.02505570, 0.00000845, 0.00084038, 0.00003382, 0.38005831, 0.59400334), 0.00676504),
        (10000, 100, (0.73498281, 0.00000230, 0.00022844, 0.00000919, 0.10331050, 0.16146676), 0.00183893),
        (1000, 25, (0.07382045, 0.00003674, 0.00335715, 0.00014742, 0.31835071, 0.60428752), 0.00184643),
    ],
)
def test_the_papers_setting_has_its_weights_and_variance(n, width, weights, variance):
    answer = mixed_mean(
        the_papers_groups(n), bounds=(-width / 2, width / 2), variance=25.0, noise=SeededNoise(7)
    )

    assert answer.weights == pytest.approx(weights, abs=6e-9)
    assert answer.standard_error**2 == pytest.approx(variance, abs=6e-9)


def test_a_public_group_counts_without_noise():
    groups = [Group(np.full(100, 0.5), public=True), Group(np.full(100, 0.5), epsilon=1.0)]

    answer = mixed_mean(groups, bounds=(0, 1), variance=1.0, noise=SeededNoise(7))

    assert answer.weights[0] == pytest.approx(0.5049505, abs=5e-8)
    assert answer.standard_error**2 == pytest.approx(0.0050495050, rel=1e-8)
    assert answer.events[0] == ()


@pytest.mark.parametrize(
    ("sizes", "epsilons", "expected"),
    [
        ((10, 30, 60), (1e9, 1e9, 1e9), (0.1, 0.3, 0.6)),
        ((10, 30), (1e-9, 1.0), (0.0, 1.0)),
        ((50, 50, 50, 50), (0.3,) * 4, (0.25,) * 4),
    ],
)
def test_weights_have_the_right_limits(sizes, epsilons, expected):
    weights = inverse_variance(mean_variances(sizes, 4.0, laplace_variances(epsilons, 10.0)))

    assert weights == pytest.approx(expected, abs=1e-9)
    assert weights.sum() == pytest.approx(1.0)


def test_scaling_values_and_bounds_together_leaves_the_weights():
    small = inverse_variance(mean_variances([10, 90], 4.0, laplace_variances([1.0, 0.1], 10.0)))
    large = inverse_variance(mean_variances([10, 90], 400.0, laplace_variances([1.0, 0.1], 100.0)))

    assert small == pytest.approx(large)


def test_each_group_pays_its_own_epsilon_and_the_ledger_the_largest():
    ledger = a_ledger(1.0, Unit("replace"))
    groups = [Group(np.arange(20.0), epsilon=e) for e in (0.1, 0.75, 0.4)] + [Group([1.0, 2.0], public=True)]

    answer = mixed_mean(groups, bounds=(0, 20), ledger=ledger, noise=SeededNoise(7))

    spent = [sum(event.cost.value for event in mine) for mine in answer.events]
    assert spent == [Fraction(1, 10), Fraction(3, 4), Fraction(2, 5), 0]
    (event,) = ledger.events()
    assert isinstance(event, Parallel)
    assert event.cost == Epsilon(Fraction(0.75))
    assert ledger.spent == Fraction(0.75)
    assert answer.card.events == (event,)


def test_all_that_is_asked_for_on_the_side_is_paid_within_each_epsilon():
    ledger = a_ledger(1.0, Unit("add-or-remove"))
    groups = [Group(np.arange(200.0), epsilon=e) for e in (0.5, 1.0)]

    answer = mixed_mean(
        groups, bounds=(0, 200), variance="private", clipped_share=0.1, ledger=ledger, noise=SeededNoise(7)
    )

    for mine, epsilon in zip(answer.events, (0.5, 1.0), strict=True):
        assert len(mine) == 4
        assert sum(event.cost.value for event in mine) == Fraction(epsilon)
    assert ledger.spent == 1
    assert set(answer.card.clamped) == {"group 1", "group 2"}


def test_sums_are_calibrated_to_the_width_under_replacement_and_to_half_of_it_otherwise():
    groups = [Group(np.full(50, 3.0), epsilon=1.0), Group(np.full(50, 3.0), epsilon=1.0)]

    replaced = mixed_mean(groups, bounds=(0, 10), noise=SeededNoise(7))
    added = mixed_mean(groups, bounds=(0, 10), unit="add-or-remove", size_share=0.5, noise=SeededNoise(7))
    twice = mixed_mean(groups, bounds=(0, 10), unit=Unit("replace", records=2), noise=SeededNoise(7))

    def width(event: Event) -> float:
        assert isinstance(event, Laplace)
        return float(event.l1) * 10 / 2**30

    assert width(replaced.events[0][-1]) == 10
    assert width(added.events[0][-1]) == 5
    assert width(twice.events[0][-1]) == 20
    assert isinstance(added.events[0][0], Laplace)
    assert added.events[0][0].l1 == 1


def test_zcdp_draws_gaussian_noise_for_the_rho_of_each_epsilon():
    groups = [Group(np.full(50, 3.0), epsilon=e) for e in (0.5, 1.0)]

    answer = mixed_mean(groups, bounds=(0, 10), accounting="zcdp", delta=1e-9, noise=SeededNoise(7))

    (event,) = answer.events[1]
    assert isinstance(event, Gaussian)
    assert float(event.cost) == pytest.approx(0.014973057700, rel=1e-4)


def test_a_budget_that_cannot_pay_says_no_and_keeps_all_it_has():
    ledger = a_ledger(0.5, Unit("replace"))

    with pytest.raises(BudgetExhausted):
        mixed_mean([Group([1.0], epsilon=0.1), Group([1.0], epsilon=0.6)], bounds=(0, 1), ledger=ledger)

    assert ledger.spent == 0


def test_values_outside_the_bounds_are_clamped():
    inside = [Group([0.0, 10.0] * 20, epsilon=1.0), Group([0.0, 10.0], public=True)]
    outside = [Group([-math.inf, 99.0] * 20, epsilon=1.0), Group([-7.0, 99.0], public=True)]

    answers = [mixed_mean(groups, bounds=(0, 10), noise=SeededNoise(7)) for groups in (inside, outside)]

    assert answers[0].estimate == answers[1].estimate
    assert answers[1].card.clamped == {"group 2": 2}


def test_proportional_weights_are_the_groups_shares_of_people():
    groups = [
        Group(np.zeros(30), epsilon=0.01),
        Group(np.zeros(60), epsilon=1.0),
        Group(np.zeros(10), public=True),
    ]

    answer = mixed_mean(groups, bounds=(-1, 1), weights="proportional", noise=SeededNoise(7))

    assert answer.weights == pytest.approx((0.3, 0.6, 0.1))


def test_one_person_groups_are_merged_into_one_noise():
    groups = [Group([0.5], epsilon=1.0) for _ in range(10)]

    apart = mixed_mean(groups, bounds=(0, 1), variance=1e-6, noise=SeededNoise(7))
    together = mixed_mean(groups, bounds=(0, 1), variance=1e-6, merge=True, noise=SeededNoise(7))

    assert apart.standard_error**2 == pytest.approx(2 / 10, rel=1e-3)
    assert together.standard_error**2 == pytest.approx(2 / 100, rel=1e-3)
    assert len(together.card.merged) == 1


def test_merging_never_raises_the_predicted_variance():
    rng = np.random.default_rng(2)
    for _ in range(50):
        sizes = rng.integers(1, 5000, 6).astype(float)
        epsilons = rng.uniform(0.01, 3, 6)
        apart = mixed_variance(mean_variances(sizes, 25.0, laplace_variances(epsilons, 100.0)))

        sets = merged(sizes.tolist(), epsilons.tolist(), variance=25.0, unit_noise=2 * 100.0**2, power=2)

        people = [sizes[list(who)].sum() for who in sets]
        least = [epsilons[list(who)].min() for who in sets]
        assert sorted(place for who in sets for place in who) == list(range(6))
        assert mixed_variance(mean_variances(people, 25.0, laplace_variances(least, 100.0))) <= apart * (
            1 + 1e-12
        )


def test_the_cards_json_holds_what_the_statistic_has_to_tell_and_no_more():
    groups = [Group([1.0], epsilon=0.1, name="a"), Group([1.0, 5.0], public=True, name="b")]

    private = mixed_mean(groups, bounds=(0, 2)).as_json()["card"]
    seeded = mixed_mean(groups, bounds=(0, 2), merge=True, noise=SeededNoise(7)).as_json()["card"]

    assert set(private) == {
        "statistic", "bounds", "unit", "promise", "accounting", "delta", "events", "noise",
        "noise_is_private", "versions", "variance", "weights", "bias", "confidence", "clamped",
    }  # fmt: skip
    assert set(seeded) - set(private) == {"warning", "merged"}
    assert private["delta"] is None
    assert private["bias"] == {"option": None, "factor": None}
    assert private["variance"] == {"source": "bound", "value": 1.0}
    assert private["clamped"] == {"b": 1}
    assert json.loads(json.dumps(private)) == private


def test_seeded_noise_is_named_on_the_card_and_system_noise_is_the_default():
    groups = [Group([1.0], epsilon=0.1), Group([1.0], public=True)]

    assert "NOT PRIVATE" in mixed_mean(groups, bounds=(0, 2), noise=SeededNoise(7)).card.warning
    assert mixed_mean(groups, bounds=(0, 2)).card.noise_is_private is True
    assert mixed_mean(groups, bounds=(0, 2)).estimate != mixed_mean(groups, bounds=(0, 2)).estimate


def test_public_groups_alone_cost_nothing():
    answer = mixed_mean(
        [Group([1.0, 3.0], public=True), Group([5.0], public=True)], bounds=(0, 10), variance="public"
    )

    assert answer.estimate == pytest.approx(3.0)
    assert answer.card.events == ()


def test_a_variance_measured_privately_is_near_the_exact_one_for_a_large_group():
    rng = np.random.default_rng(3)
    groups = [Group(rng.normal(60, 5, 40_000), epsilon=1.0), Group(rng.normal(60, 5, 40_000), epsilon=0.5)]

    answer = mixed_mean(groups, bounds=(0, 100), variance="private", noise=SeededNoise(7))

    assert answer.card.variance.value == pytest.approx(25.0, rel=0.1)


def test_a_parallel_event_survives_json_and_refuses_to_cost_less_than_a_part():
    parts = [Laplace.at(Epsilon(Fraction(1, k)), what=f"group {k}", l1=Fraction(5)) for k in (1, 2, 3)]

    event = Parallel.of(parts, what="sums of 3 groups")

    assert event.cost == Epsilon(1)
    assert Event.from_json(event.as_json()) == event
    with pytest.raises(AssertionError, match="owes"):
        Parallel(what="sums", cost=Epsilon(Fraction(1, 2)), parts=tuple(parts))
    with pytest.raises(AssertionError, match="at least one"):
        Parallel(what="sums", cost=Epsilon(1), parts=())


def test_an_epsilon_too_small_for_its_noise_is_refused_before_a_run_begins():
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), Unit("replace"), "people"))
    groups = [Group([1.0, 2.0, 3.0], epsilon=1e-300, name="all")]

    with pytest.raises(SettingError, match="too small to be of use"):
        mixed_mean(groups, bounds=(0, 100), variance=5.0, ledger=ledger, alone=True)

    assert ledger.runs() == ()
