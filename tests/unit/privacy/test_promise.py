"""The refusal, word for word."""

from fractions import Fraction

import pytest

from sidelight.errors import BudgetExhausted, LedgerError
from sidelight.privacy.budget import Budget, Epsilon, Rho, Tally
from sidelight.privacy.promise import Promise, exhausted
from sidelight.privacy.unit import Unit

PROMISE = Promise(Budget(epsilon=1.0, delta=1e-9), Unit("replace"), "adult")
PURE = Promise(Budget(epsilon=1.0, delta=0.0), Unit("replace"), "adult")


def test_a_refusal_says_what_was_asked_what_is_left_and_what_to_do():
    spent = PROMISE.budget.tally(Rho(PROMISE.budget.capacity - Fraction("0.00749")))

    refusal = exhausted(PROMISE, spent, Rho(Fraction("0.01121")), events=21, where="adult.ledger")

    assert isinstance(refusal, BudgetExhausted)
    assert refusal.exit_code == 3
    assert str(refusal) == (
        "this release needs ρ = 0.01121 (ε = 0.86); 'adult' has 0.00749 of 0.01497 left.\n"
        "\n"
        "  promised   ε = 1.00 at δ = 1e-9\n"
        "  spent      ε = 0.70 in 21 events (adult.ledger)\n"
        "  would be   ε = 1.12\n"
        "\n"
        "Nothing was read and nothing was charged. Ask for less (ε = 0.69), or draw again from a\n"
        "release you already have: `sidelight sample` costs nothing."
    )


def test_a_pure_promise_is_refused_in_epsilon_only():
    spent = PURE.budget.tally(Epsilon(Fraction("0.6")))

    refusal = exhausted(PURE, spent, Epsilon(Fraction("0.5")), events=1, where="adult.ledger")

    assert str(refusal) == (
        "this release needs ε = 0.50; 'adult' has 0.40 of 1.00 left.\n"
        "\n"
        "  promised   ε = 1.00\n"
        "  spent      ε = 0.60 in 1 event (adult.ledger)\n"
        "  would be   ε = 1.10\n"
        "\n"
        "Nothing was read and nothing was charged. Ask for less (ε = 0.4), or draw again from a\n"
        "release you already have: `sidelight sample` costs nothing."
    )


def test_what_open_runs_hold_is_told_apart_from_what_was_spent():
    spent = PURE.budget.tally(Epsilon(1))

    refusal = str(exhausted(PURE, spent, Epsilon(Fraction("0.5")), events=2, open_runs=1))

    assert "  held       ε = 1.00 in 2 events and 1 open run (in memory)\n" in refusal
    assert "Nothing is left, but you can draw again from a\n" in refusal


def test_small_numbers_keep_two_digits():
    promise = Promise(Budget(epsilon=0.03, delta=1e-12), Unit("replace"), "tiny")

    refusal = str(exhausted(promise, Tally(), promise.budget.rho() * 2))

    assert "promised   ε = 0.03 at δ = 1e-12" in refusal
    assert refusal.startswith(
        "this release needs ρ = 2.31e-05 (ε = 0.043); 'tiny' has 1.16e-05 of 1.16e-05 left."
    )
    assert "(ε = 0.03)" in refusal


def test_a_pure_cost_under_a_promise_with_delta_is_told_in_both():
    spent = PROMISE.budget.tally(PROMISE.budget.rho() / 2)

    refusal = str(exhausted(PROMISE, spent, Epsilon(1)))

    assert refusal.startswith("this release needs ε = 1.00 of pure DP; 'adult' has 0.00749 of 0.01497 left.")
    assert "(ε = 0.26)" in refusal


def test_a_promise_survives_json():
    for promise in (PROMISE, PURE, Promise(PURE.budget, Unit("add-or-remove", records=3), "Bürger")):
        assert Promise.from_json(promise.as_json()) == promise


@pytest.mark.parametrize("change", [{"epsilon": -1}, {"delta": 2}, {"unit": {}}, {"unit": None}], ids=str)
def test_a_promise_that_was_edited_is_refused(change):
    with pytest.raises(LedgerError, match="promise cannot be read"):
        Promise.from_json(PROMISE.as_json() | change)
