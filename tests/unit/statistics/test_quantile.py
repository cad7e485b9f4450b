from fractions import Fraction

import numpy as np
import pytest

from personal_quantile import personalised_stretches
from sidelight.errors import SettingError
from sidelight.privacy.budget import Budget, Epsilon
from sidelight.privacy.event import Exponential
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.statistics.grid import Grid
from sidelight.statistics.group import Group
from sidelight.statistics.mixed_quantile import mixed_quantile
from sidelight.statistics.quantile import exponential_quantile, stretches
from sidelight.testing import SeededNoise
from stretch_law import chances

HALF = Fraction(1, 2)


def paid(epsilon: float, *, bits: int = 30) -> Exponential:
    return Exponential.at(
        Epsilon(Fraction(epsilon)), what="median", sensitivity=Fraction(1), candidates=2**bits
    )


def law(values: list[float], epsilon: float, quantile: Fraction = HALF) -> np.ndarray:
    """The probability of each stretch, for values on [0, 1]."""
    _, lengths = stretches(Grid(0.0, 1.0).places(np.array(values)), bits=30)
    ranks = np.arange(lengths.size)
    return chances(lengths, epsilon * np.abs(ranks - float(quantile) * len(values)) / 2)


def test_the_law_is_that_of_the_specification():
    assert law([0.2, 0.5, 0.9], 2.0) == pytest.approx(
        [0.09079365, 0.37020408, 0.49360544, 0.04539682], abs=1e-8
    )


def test_ties_make_stretches_that_are_never_drawn():
    law_of_ties = law([0.4, 0.4, 0.4], 2.0)

    assert law_of_ties[1] == 0
    assert law_of_ties[2] == 0
    assert law_of_ties.sum() == pytest.approx(1.0)


def test_large_epsilon_concentrates_on_the_stretches_next_to_the_target():
    assert law([0.2, 0.5, 0.9], 500.0)[1:3].sum() == pytest.approx(1.0)


@pytest.mark.parametrize("values", [[0.5], [0.0] * 7, [1.0] * 7, [0.3] * 1000, [0.0, 1.0]])
@pytest.mark.parametrize("quantile", [Fraction(1, 100), HALF, Fraction(99, 100)])
def test_ties_tiny_groups_and_values_on_the_bounds_give_a_place_on_the_grid(values, quantile):
    noise = SeededNoise(7)
    places = Grid(0.0, 1.0, 20).places(np.array(values))

    drawn = [exponential_quantile(noise, places, quantile, paid(1.0), bits=20) for _ in range(20)]

    assert all(0 <= place < 2**20 for place in drawn)


def test_a_million_equal_values_far_from_the_target_rank_are_drawn_exactly():
    places = np.full(10**6, 2**29)

    drawn = exponential_quantile(SeededNoise(7), places, HALF, paid(10.0), bits=30)

    assert 0 <= drawn < 2**30


def personalised_law(epsilons: tuple[float, ...]) -> np.ndarray:
    grid = Grid(0.0, 1.0)
    private = [grid.places(np.array([value])) for value in (0.2, 0.5, 0.9)]
    _, lengths, steps = personalised_stretches(private, [Fraction(e) for e in epsilons], [], HALF, bits=30)
    return chances(lengths, steps / 2**31)


def test_the_personalised_law_is_that_of_the_specification():
    expected = [0.16683102, 0.32132291, 0.42843055, 0.08341551]

    assert personalised_law((1, 2, 0.5)) == pytest.approx(expected, abs=1e-8)
    assert personalised_law((2, 2, 2)) == pytest.approx(law([0.2, 0.5, 0.9], 2.0), abs=1e-9)


def test_the_personalised_law_keeps_everyones_epsilon_on_a_small_grid():
    """Every replacement of every record on a grid of 4 places: the log-ratio is at most that record's ε."""
    epsilons = (Fraction(1, 4), Fraction(1), Fraction(5, 2))

    def density(places: tuple[int, ...]) -> np.ndarray:
        private = [np.array([place]) for place in places]
        edges, lengths, steps = personalised_stretches(private, epsilons, [], HALF, bits=2)
        of_stretch = np.searchsorted(edges, np.arange(4), side="right") - 1
        weight = np.where(lengths > 0, np.exp(-steps / 2**31), 0.0)[of_stretch]
        return weight / weight.sum()

    worst = [0.0, 0.0, 0.0]
    for places in np.ndindex(5, 5, 5):
        for who in range(3):
            for other in range(5):
                changed = (*places[:who], other, *places[who + 1 :])
                ratio = float(np.abs(np.log(density(places) / density(changed))).max())
                worst[who] = max(worst[who], ratio)

    assert all(loss <= float(epsilon) + 1e-9 for loss, epsilon in zip(worst, epsilons, strict=True))
    assert min(worst) > 0.1


def test_public_values_cannot_be_moved_so_unreachable_outputs_are_never_drawn():
    grid = Grid(0.0, 1.0, 10)
    public = [grid.places(np.full(9, 0.5))]

    one = [grid.places(np.array([0.1]))]
    _, lengths, _ = personalised_stretches(one, [Fraction(1)], public, Fraction(1, 4), bits=10)

    # Of ten values nine are public and equal: below them one would have to cross, above them six.
    assert lengths[[0, 1]].sum() == 512
    assert lengths[10] == 0


def test_the_paper_weights_are_those_of_the_mean():
    groups = [Group(np.zeros(100), public=True), Group(np.zeros(100), epsilon=1.0)]

    answer = mixed_quantile(
        groups, 0.5, bounds=(-0.5, 0.5), weights="mean", variance=1.0, density=1.0, noise=SeededNoise(7)
    )

    assert answer.weights[0] == pytest.approx(0.5049505, abs=5e-8)


def test_rank_weights_need_neither_variance_nor_data():
    groups = [Group(np.arange(1000.0), epsilon=1.0), Group(np.arange(4000.0), epsilon=0.5)]

    answer = mixed_quantile(groups, 0.5, bounds=(0, 4000), density=1 / 1000, noise=SeededNoise(7))

    worth = [1 / (0.25 / n + 8 / (epsilon * n) ** 2) for n, epsilon in ((1000, 1.0), (4000, 0.5))]
    assert answer.weights == pytest.approx([w / sum(worth) for w in worth], rel=1e-6)


def test_a_group_that_would_draw_from_all_over_the_bounds_is_not_asked_and_pays_nothing():
    groups = [Group(np.arange(1000.0), epsilon=1.0), Group(np.arange(3.0), epsilon=0.1)]

    answer = mixed_quantile(groups, 0.5, bounds=(0, 1000), density=1 / 1000, noise=SeededNoise(7))

    assert answer.weights == (1.0, 0.0)
    assert answer.events[1] == ()


def test_where_all_groups_are_weak_nothing_narrower_than_the_bounds_is_promised():
    groups = [Group([1.0, 2.0], epsilon=0.1), Group([1.0, 3.0], epsilon=0.1)]

    answer = mixed_quantile(groups, 0.5, bounds=(0, 10), density=0.1, noise=SeededNoise(7))

    assert answer.interval == (0, 10)


def test_density_and_sizes_are_paid_within_each_epsilon():
    groups = [Group(np.arange(1000.0), epsilon=1.0), Group(np.arange(1000.0), epsilon=0.5)]

    answer = mixed_quantile(
        groups, 0.25, bounds=(0, 1000), density="private", unit="add-or-remove", noise=SeededNoise(7)
    )

    for mine, epsilon in zip(answer.events, (1, 0.5), strict=True):
        assert len(mine) == 4
        assert sum(event.cost.value for event in mine) == Fraction(epsilon)
        assert isinstance(mine[-1], Exponential)
        assert mine[-1].sensitivity == Fraction(3, 4)


@pytest.mark.parametrize("quantile", [0.0, 1.0, -0.1, 1.5])
def test_a_quantile_outside_0_to_1_is_refused(quantile):
    with pytest.raises(ValueError, match="quantile"):
        mixed_quantile([Group([1.0], epsilon=1.0), Group([1.0], epsilon=1.0)], quantile, bounds=(0, 1))


@pytest.mark.parametrize("epsilon", [1e-300, 1e-18])
@pytest.mark.parametrize("unit", ["replace", "add-or-remove"])
def test_an_epsilon_too_small_for_any_rank_is_refused_before_a_run_begins(epsilon, unit):
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), Unit(unit), "people"))

    with pytest.raises(SettingError, match="too small for a quantile"):
        mixed_quantile([Group([1.0, 2.0], epsilon=epsilon)], 0.5, bounds=(0, 9), ledger=ledger, alone=True)

    assert ledger.runs() == ()


def test_an_epsilon_that_is_just_large_enough_is_answered():
    answer = mixed_quantile(
        [Group([1.0, 2.0], epsilon=1e-16)], 0.5, bounds=(0, 9), noise=SeededNoise(1), alone=True
    )

    assert 0 <= answer.interval[0] <= answer.estimate <= answer.interval[1] <= 9


@pytest.mark.parametrize("density", [1e-300, 1e-31, 1e31])
def test_a_density_that_leaves_no_finite_error_is_refused(density):
    with pytest.raises(SettingError, match="density must be from 1e-30 to 1e"):
        mixed_quantile([Group([1.0, 2.0], epsilon=1.0)], 0.5, bounds=(0, 10), density=density)
