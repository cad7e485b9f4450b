"""The ρ ↔ (ε, δ) conversion: the values of spec 10.1, and two independent implementations."""

import math

import numpy as np
import pytest

from sidelight.errors import SettingError
from sidelight.privacy.convert import (
    advanced,
    delta_of,
    epsilon_at,
    epsilon_of,
    order_of,
    rho_of,
)

EPSILONS = [
    (1e-4, 1e-9, "0.0743628"),
    (1e-3, 1e-6, "0.182895"),
    (0.01, 1e-5, "0.545726"),
    (0.1, 1e-6, "2.141939"),
    (0.5, 1e-9, "6.474070"),
    (1, 1e-9, "9.521464"),
    (2, 1e-5, "10.724824"),
    (0.005, 1e-10, "0.603536"),
]
RHOS = [
    # ε, ρ at δ = 1e-9, its loose form, ρ at 1e-10, ρ at 1e-5
    (0.03, 1.736348e-5, 1.084951e-5, 1.489102e-5, 4.760046e-5),
    (0.1, 1.771384e-4, 1.203472e-4, 1.536050e-4, 4.329937e-4),
    (0.25, 1.038782e-3, 7.494696e-4, 9.078240e-4, 2.356361e-3),
    (0.31, 1.573173e-3, 1.150734e-3, 1.377321e-3, 3.509825e-3),
    (0.5, 3.953191e-3, 2.980090e-3, 3.475003e-3, 8.505531e-3),
    (1, 1.497306e-2, 1.178116e-2, 1.324258e-2, 3.055660e-2),
    (3.16, 1.329154e-1, 1.120706e-1, 1.189974e-1, 2.459773e-1),
    (10, 1.090786, 9.812404e-1, 9.938914e-1, 1.782696),
]
DELTAS = [
    (0.1, 1, 8.933246e-3, 0.131994),
    (0.5, 3, 5.143184e-3, 0.0439369),
    (1, 5, 2.612035e-3, 0.0183156),
    (0.01, 0.5, 3.505878e-5, 2.47256e-3),
]


@pytest.mark.parametrize(("rho", "delta", "digits"), EPSILONS)
def test_epsilon_has_the_published_digits(rho, delta, digits):
    epsilon = epsilon_of(rho, delta)

    assert f"{epsilon:.{len(digits.partition('.')[2])}f}" == digits


@pytest.mark.parametrize(("epsilon", "at_9", "loose", "at_10", "at_5"), RHOS)
def test_rho_has_the_published_digits(epsilon, at_9, loose, at_10, at_5):
    found = [rho_of(epsilon, delta) for delta in (1e-9, 1e-10, 1e-5)]

    assert [f"{rho:.6e}" for rho in found] == [f"{rho:.6e}" for rho in (at_9, at_10, at_5)]
    assert loose + 2 * math.sqrt(loose * math.log(1e9)) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize(("rho", "epsilon", "delta", "markov"), DELTAS)
def test_delta_has_the_published_digits_and_beats_the_markov_bound(rho, epsilon, delta, markov):
    found = delta_of(rho, epsilon)

    assert f"{found:.6e}" == f"{delta:.6e}"
    assert math.exp(-((epsilon - rho) ** 2) / (4 * rho)) == pytest.approx(markov, rel=1e-5)
    assert found < markov


@pytest.mark.parametrize(
    ("epsilon", "rounds", "delta", "each"),
    [(1, 10, 1e-10, 0.045607343), (1, 100, 1e-10, 0.014426983), (0.1, 50, 1e-10, 0.002079463)],
)
def test_advanced_composition_has_the_published_digits(epsilon, rounds, delta, each):
    found = advanced(epsilon, delta, rounds)

    total = math.sqrt(2 * rounds * math.log(1 / delta)) * found + rounds * found * math.expm1(found)
    assert round(found, 9) == each
    assert epsilon * (1 - 1e-12) < total <= epsilon


@pytest.mark.parametrize(("rho", "delta"), [(1e-4, 1e-9), (0.01, 1e-5), (0.5, 1e-9), (2, 1e-5)])
def test_dp_accounting_finds_the_same_epsilon(rho, delta):
    peer = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    orders = 1 + np.geomspace(1e-3, 1e4, 40_001)

    theirs, _ = peer.compute_epsilon(orders, rho * orders, delta)

    assert epsilon_of(rho, delta) == pytest.approx(theirs, rel=1e-6)
    assert epsilon_of(rho, delta) <= theirs * (1 + 1e-12)  # a grid of orders can only lose


@pytest.mark.parametrize(("rho", "delta"), [(0.005, 1e-9), (0.1, 1e-6), (1.0, 1e-9)])
def test_opendp_finds_the_same_epsilon(rho, delta):
    peer = pytest.importorskip("opendp.prelude")
    peer.enable_features("contrib")
    space = peer.atom_domain(T=int), peer.absolute_distance(T=int)
    noise = peer.m.make_gaussian(*space, scale=1 / math.sqrt(2 * rho))

    theirs = peer.c.make_zCDP_to_approxDP(noise).map(1).epsilon(delta=delta)

    assert epsilon_of(rho, delta) == pytest.approx(theirs, rel=1e-6)


def test_the_order_is_where_the_bound_is_least():
    rho, epsilon = 0.01, 0.5

    def log_delta(order):
        return (order - 1) * (order * rho - epsilon) - math.log(order - 1) + order * math.log1p(-1 / order)

    order = order_of(rho, epsilon)
    assert log_delta(order) == pytest.approx(math.log(delta_of(rho, epsilon)), rel=1e-12)
    assert log_delta(order) < min(log_delta(order * 0.999), log_delta(order * 1.001))


def test_one_order_alone_gives_an_epsilon_that_is_never_too_small():
    best = epsilon_of(0.01, 1e-5)
    order = order_of(0.01, best)

    assert epsilon_at(order, 0.01, 1e-5) == pytest.approx(best, rel=1e-12)
    assert min(epsilon_at(order * factor, 0.01, 1e-5) for factor in (0.5, 0.9, 1.1, 2.0)) > best


def test_nothing_spent_is_nothing_lost():
    assert delta_of(0.0, 0.5) == 0.0
    assert epsilon_of(0.0, 1e-9) == 0.0
    assert rho_of(1.0, 0.0) == 0.0


def test_a_little_spent_is_never_rounded_to_nothing():
    assert delta_of(1e-300, 1.0) > 0
    assert delta_of(1.0, 1e300) > 0
    assert epsilon_of(1e-9, 0.0) == math.inf


def test_extremes_stay_on_the_private_side():
    assert delta_of(1e300, 1.0) == 1.0
    assert delta_of(math.inf, 1.0) == 1.0
    assert epsilon_of(math.inf, 1e-9) == math.inf
    assert epsilon_of(1.0, 1 - 1e-16) == 0.0
    for epsilon, delta in [(1e300, 1e-9), (1e-300, 1e-300), (1.0, 1e-320), (1.0, 1 - 1e-12), (0.0, 0.5)]:
        assert delta_of(rho_of(epsilon, delta), epsilon) <= delta


def test_advanced_composition_survives_a_huge_epsilon():
    assert 0 < advanced(1e6, 0.5, 1) < 700
    assert advanced(0.0, 0.5, 3) == 0.0


@pytest.mark.parametrize(
    "ask",
    [
        lambda: delta_of(-1.0, 1.0),
        lambda: delta_of(math.nan, 1.0),
        lambda: epsilon_of(1.0, -1e-9),
        lambda: rho_of(-0.1, 1e-9),
        lambda: advanced(1.0, 0.0, 3),
        lambda: advanced(1.0, 1.0, 3),
        lambda: advanced(1.0, 1e-9, 0),
    ],
)
def test_what_is_not_a_loss_is_refused(ask):
    with pytest.raises(SettingError):
        ask()
