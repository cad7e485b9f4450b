"""What somebody loses whose records are in the tables of several ledgers."""

import pytest

from sidelight.errors import LedgerError
from sidelight.privacy import convert
from sidelight.privacy.budget import Budget, Epsilon, Rho
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.together import together
from sidelight.privacy.unit import Unit

DELTA = 1e-9


def ledger(name, *costs, budget=None, unit="replace"):
    """A ledger that has spent these costs, each in a run of its own."""
    promised = Budget(epsilon=4.0, delta=DELTA) if budget is None else budget
    book = MemoryLedger(Promise(promised, Unit(unit), name))
    for cost in costs:
        run = book.begin(cost, label="a run")
        event = (
            Gaussian.at(cost, what="a", l2_squared=2)
            if isinstance(cost, Rho)
            else Laplace.at(cost, what="a", l1=2)
        )
        book.append(event, run=run)
        book.close(run)
    return book


def test_losses_of_one_person_in_several_periods_add_up_in_rho():
    found = together([ledger("2025", Rho("0.1"), Rho("0.02")), ledger("2026", Rho("0.05"))])

    assert found.spent == pytest.approx(convert.epsilon_of(0.17, DELTA), rel=1e-9)
    assert found.apart == pytest.approx([convert.epsilon_of(rho, DELTA) for rho in (0.12, 0.05)])
    # Together it is more than in either period, and less than the sum of both ε.
    assert max(found.apart) < found.spent < sum(found.apart)
    each = float(Budget(epsilon=4.0, delta=DELTA).rho())
    assert found.promised == pytest.approx(convert.epsilon_of(2 * each, DELTA), rel=1e-9)
    assert found.names == ("2025", "2026")


def test_a_run_that_is_open_counts_with_all_that_it_set_aside():
    before = ledger("2026", Rho("0.05"))
    before.begin(Rho("0.1"), label="open")

    assert together([ledger("2025"), before]).spent == pytest.approx(convert.epsilon_of(0.15, DELTA))


def test_pure_losses_add_up_in_epsilon_or_in_rho_whichever_is_less():
    pure = Budget(epsilon=2.0, delta=0.0)
    alone = [ledger(name, Epsilon("0.5"), budget=pure) for name in ("a", "b", "c")]
    assert together(alone).spent == pytest.approx(1.5)

    beside = ledger("d", Rho("0.1"))
    assert together([*alone, beside]).spent == pytest.approx(1.5 + convert.epsilon_of(0.1, DELTA))
    # Twenty small ones cost less as the ρ = ε²/2 that each of them is.
    small = [ledger(str(place), Epsilon("0.1"), budget=pure) for place in range(20)]
    assert together([*small, beside]).spent == pytest.approx(convert.epsilon_of(0.1 + 20 * 0.005, DELTA))


def test_one_ledger_or_other_changes_are_refused():
    with pytest.raises(LedgerError, match="at least two"):
        together([ledger("a")])
    with pytest.raises(LedgerError, match="add-or-remove, replace"):
        together([ledger("a"), ledger("b", unit="add-or-remove")])
