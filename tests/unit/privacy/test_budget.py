"""Amounts and promises."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sidelight.errors import SettingError
from sidelight.privacy.budget import Budget, Epsilon, Rho, Tally, cost_from_json, cost_to_json
from sidelight.privacy.convert import delta_of


def test_the_two_currencies_do_not_mix():
    for mix in (lambda: Rho(1) + Epsilon(1), lambda: Rho(1) - Epsilon(1), lambda: Rho(1) < Epsilon(1)):
        with pytest.raises(TypeError):
            mix()
    assert Rho(1) != Epsilon(1)


def test_a_float_neither_divides_nor_multiplies_an_amount():
    for lossy in (lambda: Rho(1) / 3.0, lambda: Rho(1) * 0.1, lambda: 0.1 * Rho(1)):
        with pytest.raises(TypeError):
            lossy()


def test_whole_numbers_of_numpy_leave_the_amount_exact():
    assert Rho(1) / np.int64(3) * np.int32(3) == Rho(1)
    assert type((Rho(1) / np.int64(3)).value.denominator) is int


def test_an_amount_is_true_when_there_is_some_of_it():
    assert Rho(Fraction(1, 10**30))
    assert not Epsilon(0)


@pytest.mark.parametrize("value", [-1, Fraction(-1, 10**20), math.nan, math.inf])
def test_what_is_no_amount_is_refused(value):
    with pytest.raises(SettingError):
        Rho(value)


def test_taking_more_than_there_is_is_refused():
    with pytest.raises(SettingError):
        Rho(1) - Rho(2)


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_a_share_outside_0_and_1_is_refused(share):
    with pytest.raises(SettingError, match="share must be a share between 0 and 1"):
        Rho(1).split(share)


@pytest.mark.parametrize("cost", [Rho(Fraction(1, 3)), Epsilon(Fraction(0.1))])
def test_a_cost_survives_json(cost):
    assert cost_from_json(cost_to_json(cost)) == cost


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, "1", True])
def test_an_epsilon_that_promises_nothing_is_refused(epsilon):
    with pytest.raises(SettingError, match="epsilon must be"):
        Budget(epsilon=epsilon, delta=1e-9)


@pytest.mark.parametrize("delta", [1, -1e-9, math.nan, False])
def test_a_delta_outside_0_and_1_is_refused(delta):
    with pytest.raises(SettingError, match="delta must be"):
        Budget(epsilon=1.0, delta=delta)


def test_a_budget_holds_the_most_rho_that_keeps_it():
    budget = Budget(epsilon=1.0, delta=1e-9)

    rho = float(budget.rho())

    assert delta_of(rho, 1.0) <= 1e-9 < delta_of(rho * (1 + 1e-9), 1.0)
    assert budget.capacity == budget.rho().value


def test_a_pure_promise_pays_for_pure_noise_alone():
    budget = Budget(epsilon=1.0, delta=0.0)

    assert budget.capacity == 1
    assert budget.price(Epsilon(Fraction(1, 4))) == Fraction(1, 4)
    assert budget.admits(budget.tally(Epsilon(1)))
    assert not budget.admits(budget.tally(Epsilon(1 + Fraction(1, 10**30))))
    for ask in (budget.rho, lambda: budget.price(Rho(1))):
        with pytest.raises(SettingError, match="δ = 0"):
            ask()


def test_a_promise_too_small_for_floats_says_so():
    with pytest.raises(SettingError, match="too little"):
        Budget(epsilon=1e-200, delta=1e-200).rho()


def test_a_pure_cost_takes_the_cheaper_of_its_two_bounds():
    budget = Budget(epsilon=1.0, delta=1e-9)
    small, large = Fraction(1, 100), Fraction(1, 2)

    assert budget.price(Epsilon(small)) == small**2 / 2 < small / Fraction(budget.order)
    assert budget.price(Epsilon(large)) == large / Fraction(budget.order) < large**2 / 2
    assert budget.price(Rho(large)) == large


def test_all_of_epsilon_may_be_spent_purely_but_not_beside_other_noise():
    budget = Budget(epsilon=1.0, delta=1e-9)
    pure = budget.tally(budget.pure())

    assert budget.price(budget.pure()) > budget.capacity
    assert budget.admits(pure)
    assert not budget.admits(pure + budget.tally(Rho(Fraction(1, 10**30))))
    assert not budget.admits(pure + budget.tally(Epsilon(Fraction(1, 10**30))))


def test_the_epsilon_that_was_spent_is_told_in_the_promises_delta():
    budget = Budget(epsilon=1.0, delta=1e-9)

    assert budget.epsilon_of(Tally()) == 0
    assert budget.epsilon_of(budget.tally(budget.rho())) == pytest.approx(1.0, rel=1e-12)
    assert budget.epsilon_of(budget.tally(Epsilon(Fraction(1, 4)))) == 0.25


def test_a_mix_is_told_by_the_better_of_two_bounds():
    budget = Budget(epsilon=1.0, delta=1e-9)
    half = budget.tally(budget.rho() / 2)

    one = budget.epsilon_of(half + budget.tally(Epsilon(Fraction(1, 100))))
    many = budget.epsilon_of(sum([budget.tally(Epsilon(Fraction(1, 100)))] * 100, half))

    assert one == pytest.approx(budget.epsilon_of(half) + 0.01)
    assert budget.epsilon_of(half) < many < 1.0  # a hundred such add up to ε = 1 beside the half


def test_ten_tenths_are_one():
    budget = Budget(epsilon=1.0, delta=0.0)
    tenth = budget.tally(Budget(epsilon=0.1, delta=0.0).pure())

    spent = sum([tenth] * 9, tenth)

    assert budget.admits(spent)
    assert not budget.admits(spent + budget.tally(Epsilon(Fraction(1, 10**30))))
