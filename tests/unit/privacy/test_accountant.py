"""The filter of one run."""

from fractions import Fraction

import pytest

from sidelight.errors import BudgetExhausted, SettingError
from sidelight.privacy.accountant import Accountant
from sidelight.privacy.budget import Epsilon, Rho
from sidelight.privacy.event import Gaussian, Laplace


def gaussian(value):
    return Gaussian.at(Rho(Fraction(value)), what="age", l2_squared=Fraction(2))


def test_thirty_rounds_of_a_thirtieth_spend_all_of_it_and_not_a_bit_more():
    accountant = Accountant(Rho(Fraction(0.1)))
    each = Gaussian.at(accountant.remaining / 30, what="age", l2_squared=Fraction(2))

    for _ in range(30):
        accountant.charge(each)

    assert accountant.remaining == Rho(0)
    assert accountant.spent == accountant.allotment
    assert accountant.events == (each,) * 30
    with pytest.raises(BudgetExhausted):
        accountant.charge(gaussian(Fraction(1, 10**30)))


def test_an_overdraft_raises_and_leaves_the_state_unchanged():
    accountant = Accountant(Rho(1))
    accountant.charge(gaussian("3/4"))

    with pytest.raises(BudgetExhausted, match=r"has 0\.25 of 1 left"):
        accountant.charge(gaussian("1/2"))

    assert accountant.remaining == Rho(Fraction(1, 4))
    assert len(accountant.events) == 1
    accountant.charge(gaussian("1/4"))


def test_the_wrong_currency_is_refused_and_costs_nothing():
    accountant = Accountant(Epsilon(1))

    with pytest.raises(SettingError, match="accounted in ε"):
        accountant.charge(gaussian("1/100"))

    assert accountant.remaining == Epsilon(1)
    accountant.charge(Laplace.at(Epsilon(1), what="age", l1=Fraction(1)))
    assert accountant.remaining == Epsilon(0)
