"""What ρ means: never below what a real attack reaches, never above what other accountants allow."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from sidelight.privacy.budget import Budget, Epsilon, Rho, Tally
from sidelight.privacy.convert import delta_of
from sidelight.privacy.meaning import Meaning, most_caught
from sidelight.privacy.unit import Unit

RHOS = [1e-6, 1e-4, 0.001, 0.015, 0.1, 0.5, 1.0, 5.0, 40.0]
FALSE = [1e-6, 0.001, 0.05, 0.3, 0.5, 0.9]


def gaussian(rho, false):
    """How often the best attack on a Gaussian mechanism of this ρ succeeds: Φ(Φ⁻¹(f) + √2ρ)."""
    return float(norm.cdf(norm.ppf(false) + math.sqrt(2 * rho)))


def divergence(order, x, y):
    """D_α of two coins, from the definition."""
    return math.log(x**order * y ** (1 - order) + (1 - x) ** order * (1 - y) ** (1 - order)) / (order - 1)


@pytest.mark.parametrize("false", FALSE)
@pytest.mark.parametrize("rho", RHOS)
def test_the_bound_lies_above_the_gaussian_mechanism(rho, false):
    # At high rates both come so near to 1 that doubles cannot tell them apart.
    assert most_caught(rho, false=false) >= min(gaussian(rho, false), 1 - 1e-12)


@pytest.mark.parametrize("false", FALSE)
@pytest.mark.parametrize("rho", RHOS[2:7])
def test_no_gaussian_shortcut_is_taken(rho, false):
    assert most_caught(rho, false=false) > gaussian(rho, false) * (1 + 1e-4)


@pytest.mark.parametrize("false", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("rho", RHOS[2:7])
def test_the_bound_is_attained_by_a_mechanism_of_this_rho(rho, false):
    """Two coins with these chances are ρ-zCDP, and those that are told apart a little better are not."""
    caught = most_caught(rho, false=false)
    orders = 1 + np.geomspace(1e-3, 60, 400)

    def loss(t):
        both = (max(divergence(a, t, false), divergence(a, false, t)) / a for a in orders)
        return max(both)

    assert loss(caught) <= rho * (1 + 1e-3)
    assert loss(caught + 0.01 * (1 - caught)) > rho


@pytest.mark.parametrize("false", FALSE)
@pytest.mark.parametrize("rho", RHOS)
def test_the_bound_is_no_larger_than_what_every_epsilon_and_delta_allow(rho, false):
    """ρ-zCDP implies (ε, δ(ε))-DP for every ε, hence t ≤ e^ε f + δ and 1 − f ≥ e^−ε (1 − t − δ)."""
    epsilons = np.concatenate([np.linspace(0, 3, 200), np.geomspace(3, 200, 100)])
    loose = min(
        min(math.exp(e) * false + delta_of(rho, e), 1 - math.exp(-e) * (1 - false - delta_of(rho, e)))
        for e in epsilons
    )

    assert most_caught(rho, false=false) <= loose + 1e-9


@pytest.mark.parametrize("rho", [0.001, 0.015, 0.1, 1.0])
def test_the_bound_lies_between_two_of_dp_accounting(rho):
    """Above its exact privacy-loss distribution of a Gaussian, below its conversion of Rényi divergences."""
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution
    from dp_accounting.rdp import rdp_privacy_accountant

    assert dp_accounting
    sigma, false = 1 / math.sqrt(2 * rho), 0.05
    exact = privacy_loss_distribution.from_gaussian_mechanism(sigma, value_discretization_interval=1e-4)
    orders = 1 + np.geomspace(0.01, 500, 300)
    epsilons = np.linspace(0.0, 12 * math.sqrt(rho) + 2 * rho, 150)
    by_pld = min(math.exp(e) * false + exact.get_delta_for_epsilon(e) for e in epsilons)
    by_rdp = min(
        math.exp(e) * false + rdp_privacy_accountant.compute_delta(orders, orders * rho, e)[0]
        for e in epsilons
    )

    assert by_pld - 1e-3 <= most_caught(rho, false=false) <= by_rdp + 1e-9


@given(st.floats(1e-8, 30), st.floats(1e-8, 30), st.floats(1e-4, 0.9))
def test_more_loss_never_means_less(one, other, false):
    low, high = sorted((one, other))

    assert most_caught(low, false=false) <= most_caught(high, false=false) + 1e-12


def test_nothing_spent_means_that_nobody_learns_anything():
    nothing = Meaning.of_tally(Tally())

    assert nothing.caught == nothing.false
    assert nothing.posterior == 0.5


def test_pure_epsilon_means_what_randomised_response_attains():
    pure = Meaning.of(Epsilon(Fraction(1)))

    # ε²/2-zCDP says less: the pure bound at f = 5% is e·5%, and zCDP's is taken where it is lower.
    assert pure.caught == pytest.approx(min(math.e * 0.05, most_caught(0.5)))
    assert Meaning.of(Epsilon(Fraction(5))).caught == pytest.approx(1 - math.exp(-5) * 0.95)


def test_both_currencies_together_mean_more_than_either():
    mixed = Meaning.of_tally(Tally(rho=Fraction(1, 10), epsilon=Fraction(1, 2)))

    assert mixed.caught > Meaning.of(Rho(Fraction(1, 10))).caught
    assert mixed.caught == pytest.approx(most_caught(0.1 + 0.125))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_sentence_never_understates(epsilon):
    meaning = Meaning.of(Budget(epsilon=epsilon, delta=1e-9).rho())

    said = meaning.sentence(Unit("add-or-remove"))

    shown = [float(word.rstrip("%")) / 100 for word in said.split() if word.endswith("%")]
    assert shown[0] == 0.05
    assert shown[1] >= meaning.caught
    assert shown[2] >= meaning.posterior
    assert "who are in the table" in said
    assert "whose records say" in meaning.sentence(Unit("replace"))
    # The number of records is private here, but who is in the table is not what was promised to be hidden.
    assert "whose records say" in meaning.sentence(Unit("replace", person="patient_id"))


@pytest.mark.parametrize("cost", [Epsilon(Fraction(10) ** 300), Rho(Fraction(10) ** 400)])
def test_an_amount_that_no_float_can_hold_protects_nobody(cost):
    assert Meaning.of(cost).caught == 1
