"""The conversion errs on the private side, checked in sixty-digit arithmetic."""

import math

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from sidelight.privacy.convert import advanced, delta_of, epsilon_of, order_of, rho_of

epsilons = st.floats(1e-6, 1e3)
deltas = st.floats(1e-30, 0.5)
rhos = st.floats(1e-12, 1e2)


def exact_log_delta(order, rho, epsilon):
    """Log δ at one order, with nothing lost."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        a, r, e = (mpmath.mpf(value) for value in (order, rho, epsilon))
        return (a - 1) * (a * r - e) - mpmath.log(a - 1) + a * mpmath.log(1 - 1 / a)


@given(epsilon=st.floats(1e-12, 1e9), delta=st.floats(1e-300, 1 - 1e-12))
@example(epsilon=3.37e-11, delta=0.9994271474245946)  # exp alone would round this δ down
def test_the_rho_that_a_promise_buys_keeps_it_at_the_order_that_is_charged(epsilon, delta):
    mpmath = pytest.importorskip("mpmath")
    rho = rho_of(epsilon, delta)
    assume(rho > 0)

    order = order_of(rho, epsilon)

    assert delta_of(rho, epsilon) <= delta
    with mpmath.workdps(60):
        assert exact_log_delta(order, rho, epsilon) <= mpmath.log(mpmath.mpf(delta))


@given(rho=rhos, delta=deltas)
def test_the_epsilon_of_a_spending_is_a_bound(rho, delta):
    mpmath = pytest.importorskip("mpmath")
    epsilon = epsilon_of(rho, delta)

    with mpmath.workdps(60):
        assert exact_log_delta(order_of(rho, epsilon), rho, epsilon) <= mpmath.log(mpmath.mpf(delta))
    # Bun and Steinke (2016), proposition 1.3.
    assert epsilon <= (rho + 2 * math.sqrt(rho * -math.log(delta))) * (1 + 1e-12)


@given(epsilon=st.floats(1e-3, 1e3), delta=st.floats(1e-30, 1e-3))
def test_there_and_back_is_where_one_began(epsilon, delta):
    assert epsilon_of(rho_of(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-9)


@given(epsilon=epsilons, delta=deltas)
def test_no_larger_rho_would_do(epsilon, delta):
    assert delta_of(rho_of(epsilon, delta) * (1 + 1e-9), epsilon) > delta


@given(rho=rhos, epsilon=epsilons, delta=deltas, factor=st.floats(1.001, 10))
def test_more_loss_never_converts_to_less(rho, epsilon, delta, factor):
    assert delta_of(rho * factor, epsilon) >= delta_of(rho, epsilon)
    assert delta_of(rho, epsilon * factor) <= delta_of(rho, epsilon)
    assert epsilon_of(rho * factor, delta) >= epsilon_of(rho, delta)
    assert epsilon_of(rho, delta / factor) >= epsilon_of(rho, delta)
    assert rho_of(epsilon * factor, delta) >= rho_of(epsilon, delta)


@given(epsilon=epsilons, delta=deltas, rounds=st.integers(1, 10_000))
def test_advanced_composition_adds_up_to_at_most_the_promise(epsilon, delta, rounds):
    mpmath = pytest.importorskip("mpmath")
    each = advanced(epsilon, delta, rounds)

    with mpmath.workdps(60):
        e, d = mpmath.mpf(each), mpmath.mpf(delta)
        total = mpmath.sqrt(2 * rounds * mpmath.log(1 / d)) * e + rounds * e * mpmath.expm1(e)
        assert total <= mpmath.mpf(epsilon)
