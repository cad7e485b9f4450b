"""Amounts are exact, prices are monotone, and the filter keeps its promise."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidelight.errors import BudgetExhausted
from sidelight.privacy.accountant import Accountant
from sidelight.privacy.budget import Budget, Epsilon, Rho, Tally
from sidelight.privacy.event import Exponential

fractions = st.fractions(Fraction(1, 10**9), 10, max_denominator=10**12)
budgets = st.builds(Budget, epsilon=st.floats(0.01, 20), delta=st.floats(1e-15, 1e-2))
costs = st.one_of(fractions.map(Rho), fractions.map(Epsilon))


@given(fractions, st.floats(0, 1), st.integers(1, 1000))
def test_the_parts_add_up_to_the_whole_exactly(value, share, parts):
    whole = Rho(value)

    part, rest = whole.split(share)

    assert part + rest == whole
    assert (whole / parts) * parts == whole


@given(budgets, fractions, st.fractions(1, 5))
def test_more_loss_costs_more(budget, value, factor):
    for kind in (Rho, Epsilon):
        assert budget.price(kind(value)) <= budget.price(kind(value * factor))


@given(budgets, st.lists(fractions, min_size=1, max_size=6))
def test_paying_in_parts_is_never_dearer_than_setting_the_sum_aside(budget, parts):
    for kind in (Rho, Epsilon):
        in_parts = sum(budget.price(kind(part)) for part in parts)
        assert in_parts <= budget.price(kind(sum(parts)))


@given(fractions, st.lists(fractions, max_size=8))
def test_an_accountant_never_pays_more_than_its_allotment(allotment, wanted):
    accountant = Accountant(Epsilon(allotment))

    for value in wanted:
        before = accountant.remaining, accountant.events
        event = Exponential.at(
            Epsilon(value), what="adaptive", sensitivity=accountant.remaining.value + 1, candidates=2
        )
        try:
            accountant.charge(event)
        except BudgetExhausted:
            assert (accountant.remaining, accountant.events) == before
            assert value > accountant.remaining.value

    assert accountant.spent.value == sum(event.cost.value for event in accountant.events) <= allotment
    assert accountant.spent + accountant.remaining == accountant.allotment


@given(budgets, st.lists(costs, max_size=8))
def test_what_is_admitted_never_reports_more_than_was_promised(budget, wanted):
    spent = Tally()

    for cost in wanted:
        if budget.admits(spent + budget.tally(cost)):
            spent += budget.tally(cost)

    assert spent.priced <= budget.capacity or spent.epsilon <= budget.pure().value
    assert budget.epsilon_of(spent) <= budget.epsilon * (1 + 1e-9)


def randomised_response(epsilon, order):
    """D_α of randomised response, the most that any ε-DP mechanism can have."""
    mpmath = pytest.importorskip("mpmath")
    keep = 1 / (1 + mpmath.exp(-epsilon))
    moment = keep**order * (1 - keep) ** (1 - order) + (1 - keep) ** order * keep ** (1 - order)
    return mpmath.log(moment) / (order - 1)


@given(budgets, st.lists(st.tuples(st.booleans(), st.floats(0.001, 1)), min_size=1, max_size=12))
def test_a_mix_that_the_filter_allows_keeps_delta(budget, shares):
    """Fill the filter to the brim with Gaussian noise and randomised response; then add up D_α."""
    mpmath = pytest.importorskip("mpmath")
    spent, loss = Tally(), mpmath.mpf(0)
    with mpmath.workdps(60):
        order = mpmath.mpf(budget.order)
        for is_pure, share in shares:
            left = (budget.capacity - spent.priced) * Fraction(share)
            if not left:
                break
            if is_pure:  # the dearer branch of the price, so that none of the filter is wasted
                cost = Epsilon(
                    max(Fraction(math.isqrt(int(2 * left * 10**40)), 10**20), left * Fraction(budget.order))
                )
                if spent.priced + budget.price(cost) > budget.capacity:
                    continue
                loss += randomised_response(mpmath.mpf(cost.value.numerator) / cost.value.denominator, order)
            else:
                cost = Rho(left)
                loss += order * mpmath.mpf(cost.value.numerator) / cost.value.denominator
            spent += budget.tally(cost)

        log_delta = (
            (order - 1) * (loss - mpmath.mpf(budget.epsilon))
            - mpmath.log(order - 1)
            + order * mpmath.log(1 - 1 / order)
        )
        assert spent.priced <= budget.capacity
        assert log_delta <= mpmath.log(mpmath.mpf(budget.delta))


@given(budgets, st.floats(0, 0.999), st.sampled_from([Rho, Epsilon]))
def test_the_largest_epsilon_that_a_refusal_names_would_be_admitted(budget, share, kind):
    spent = budget.tally(Rho(budget.capacity * Fraction(share)))

    largest = budget.largest(kind, spent)

    if largest:
        ask = (
            Budget(epsilon=largest, delta=0.0).pure()
            if kind is Epsilon
            else Budget(epsilon=largest, delta=budget.delta).rho()
        )
        assert budget.admits(spent + budget.tally(ask))
        assert kind is Epsilon or largest <= budget.epsilon
