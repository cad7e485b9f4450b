"""Several ledgers, and somebody whose records are in the tables of all of them: what that person loses.

A ledger adds up one table. If a table is made anew every year, each year has a ledger of its own, and
somebody who stays is in several. Their losses compose like releases of one table: ρ adds up, and so does ε.

PRIVACY: neighbours of all tables together differ in one person's records in each of them; each ledger's runs
see one table, so the sum of their losses bounds the loss of all (Bun and Steinke 2016, lemma 1.7), even if
later runs depend on what earlier ones released.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sidelight.errors import LedgerError
from sidelight.privacy import convert
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.rational import float_up
from sidelight.privacy.standing import Held


@dataclass(frozen=True)
class Together:
    """The loss of somebody who is in the tables of several ledgers."""

    names: tuple[str, ...]
    delta: float
    """At which both numbers below are told: the largest δ that a ledger promises."""
    spent: float
    """ε of all that was spent so far, open runs counted with all that they set aside."""
    promised: float
    """ε if every promise is used up."""
    apart: tuple[float, ...]
    """ε that each ledger has spent by itself, at its own δ."""

    @property
    def sentence(self) -> str:
        """The loss so far and the most in the end, in words."""
        at = f" at δ = {self.delta:g}" if self.delta else ""
        return (
            f"Somebody whose records are in all {len(self.names)} tables has lost ε = {self.spent:.4g}{at} "
            f"so far, and ε = {self.promised:.4g} once every promise is used up."
        )


def together(ledgers: Sequence[Ledger]) -> Together:
    """Compose what was spent, and what was promised, over ledgers of tables that share people.

    All must protect against the same change: replacing somebody, or adding and removing them.
    """
    units = {ledger.promise.unit.relation for ledger in ledgers}
    if len(ledgers) < 2 or len(units) > 1:
        said = (
            "name at least two ledgers"
            if len(ledgers) < 2
            else f"their units differ: {', '.join(sorted(units))}"
        )
        raise LedgerError(
            f"{said}. Losses add up where each ledger protects a person against the same change. Nothing was "
            "changed."
        )
    delta = max(ledger.promise.budget.delta for ledger in ledgers)
    held = sum((_held(ledger) for ledger in ledgers), start=Held())
    budgets = [ledger.promise.budget for ledger in ledgers]
    whole = sum(
        (Held.of(budget.pure() if budget.is_pure else budget.rho()) for budget in budgets), start=Held()
    )
    return Together(
        names=tuple(ledger.promise.shown for ledger in ledgers),
        delta=delta,
        spent=_epsilon(held, delta),
        promised=_epsilon(whole, delta),
        apart=tuple(budget.epsilon_of(ledger.tally) for budget, ledger in zip(budgets, ledgers, strict=True)),
    )


def _held(ledger: Ledger) -> Held:
    """The sum that all runs of a ledger hold: open ones their allotment, closed ones what they spent."""
    held = Held()
    for run in ledger.runs():
        held += Held.of(
            type(run.allotment)(max(run.allotment.value, run.spent.value)) if run.is_open else run.spent
        )
    return held


def _epsilon(held: Held, delta: float) -> float:
    """ε at this δ: of ρ and, for pure runs, of their ε or of the ρ = ε²/2 that it is; the smaller."""
    pure = float_up(held.epsilon)
    if not delta:
        return pure
    found = pure + (convert.epsilon_of(float_up(held.rho), delta) if held.rho else 0.0)
    if held.epsilon:
        found = min(found, convert.epsilon_of(float_up(held.rho + held.squares / Fraction(2)), delta))
    return found
