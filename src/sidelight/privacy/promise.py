"""The promise that a ledger was opened with, and the messages with which it refuses."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sidelight import _check
from sidelight.errors import BudgetExhausted, LedgerError, SettingError
from sidelight.privacy.budget import Budget, Cost, Rho, Tally, added
from sidelight.privacy.meaning import Meaning
from sidelight.privacy.unit import Unit
from sidelight.sources import shown_name

USED = "each release uses as many of them as its schema says"
"""How many of a person's records are used, where a column says whose each is."""
MOST_EPSILON, MOST_DELTA = 10, 1e-5
"""Largest ε and δ that a ledger promises without its owner's confirmation."""


def delta_for(records: int) -> float:
    """A δ that is small for so many records: the largest power of ten that is at most 1/n², and 1e-6.

    >>> delta_for(2_986), delta_for(48_842), delta_for(10)
    (1e-07, 1e-10, 1e-06)
    """
    _check.positive_integer(records=records)
    digits = max(6, math.ceil(2 * math.log10(records) - 1e-9))
    return float(f"1e-{digits}")


@dataclass(frozen=True)
class Promise:
    """What was promised about one dataset, once and for ever."""

    budget: Budget
    unit: Unit
    name: str
    """The dataset's name. It is part of the chain of hashes, and may hold an address: show ``shown``."""

    @property
    def shown(self) -> str:
        """The name, for messages and for all that is published."""
        # PRIVACY: ledgers of older versions were named after their address, with its password.
        return shown_name(self.name)

    @property
    def protects(self) -> str:
        """What one person can change, in words; of people whom a column names, however many records are used.

        >>> Promise(Budget(epsilon=1.0, delta=1e-9), Unit("replace", person="id"), "people").protects
        'replacing one person, all records of one id; each release uses as many of them as its schema says'
        """
        if self.unit.person is None:
            return self.unit.describe()
        changed = "replacing" if self.unit.relation == "replace" else "adding or removing"
        return f"{changed} one person, all records of one {self.unit.person}; {USED}"

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why somebody should think twice before making this promise, in sentences.

        >>> from sidelight.privacy.budget import Budget
        >>> Promise(Budget(epsilon=1.0, delta=1e-9), Unit("replace"), "people").doubts
        ()
        """
        said = [*self.doubts_of_epsilon]
        if self.budget.delta > MOST_DELTA:
            said.append(
                f"δ = {self.budget.delta:g} is above {MOST_DELTA:g}: with that probability the promise may "
                "fail altogether, and δ should be well below 1/n."
            )
        return tuple(said)

    @property
    def doubts_of_epsilon(self) -> tuple[str, ...]:
        """The doubts that do not depend on how many records there are."""
        if self.budget.epsilon <= MOST_EPSILON:
            return ()
        spent = self.budget.pure() if self.budget.is_pure else self.budget.rho()
        return (
            f"ε = {self.budget.epsilon:g} is above {MOST_EPSILON} and protects little: "
            f"{Meaning.of(spent).sentence(self.unit)}.",
        )

    def as_json(self) -> dict[str, Any]:
        """A plain form from which ``from_json`` gives back an equal promise."""
        return {
            "name": self.name,
            "epsilon": float(self.budget.epsilon),
            "delta": float(self.budget.delta),
            "unit": self.unit.promised.as_json(),
        }

    @staticmethod
    def from_json(plain: dict[str, Any]) -> "Promise":
        """The promise that ``as_json`` wrote."""
        try:
            budget = Budget(epsilon=plain["epsilon"], delta=plain["delta"])
            unit = Unit.from_json(plain["unit"])
            if not isinstance(plain["name"], str):
                raise TypeError("its name is no text")
            return Promise(budget, unit, plain["name"])
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise LedgerError(f"the promise cannot be read: {error}") from error


def agreed_unit(
    *, asked: Unit | str | None = None, declared: Unit | None = None, promise: Promise | None = None
) -> Unit:
    """The unit that the call, the schema and the ledger agree on; where two of them differ, it is refused.

    Args:
        asked: what the call says, if it says anything.
        declared: what the schema says, if it says anything (``Schema.declared_unit``).
        promise: what the ledger was opened with, if there is one.

    PRIVACY: every sensitivity follows from the unit, so none of the three may silently overrule another. If
    none says anything, it is ``Unit()``. Where a column says who is who, at most k records of each person are
    used, whatever k is: then a ledger promises the same for every k, and the call or the schema says it.

    >>> agreed_unit(declared=Unit("add-or-remove", records=5)).records, agreed_unit().relation
    (5, 'replace')
    """
    said = [
        (who, unit)
        for who, unit in (
            ("the ledger promises", None if promise is None else promise.unit),
            ("the schema declares", declared),
            ("this call asks for", None if asked is None else Unit.of(asked)),
        )
        if unit is not None
    ]
    if not said:
        return Unit()
    for (first, unit), (who, other) in itertools.combinations(said, 2):
        is_ledger = promise is not None and unit is promise.unit
        if unit.promised != other.promised or not (is_ledger or unit == other):
            has = unit.spelled(any_records=is_ledger)
            raise SettingError(
                f"{first} {has}, but {who} {other.spelled()}. Both must say what one person can "
                "really change: correct the one that is wrong, or leave it out. A ledger's promise cannot "
                "change: another unit needs another ledger (`sidelight ledger open` has --unit, --records "
                "and --person). Nothing was read and nothing was charged."
            )
    return said[-1][1]


def exhausted(
    promise: Promise,
    spent: Tally,
    wanted: Cost,
    *,
    events: int = 0,
    open_runs: int = 0,
    where: str = "in memory",
) -> BudgetExhausted:
    """The error for a cost that the promise can no longer pay, told in ε."""
    budget = promise.budget
    would_be = budget.epsilon_of(spent + budget.tally(wanted))
    needs, has = _needs(promise, wanted), _has(promise, spent)
    at = "" if budget.is_pure else f" at δ = {_delta(budget.delta)}"
    verb, held = "spent   ", _check.count_of(events, "event")
    if open_runs:
        verb, held = "held    ", f"{held} and {_check.count_of(open_runs, 'open run')}"
    largest = budget.largest(type(wanted), spent)
    less = f"Ask for less (ε = {largest:g}), or draw" if largest else "Nothing is left, but you can draw"
    return BudgetExhausted(
        f"this release needs {needs}; '{promise.shown}' has {has} left.\n"
        "\n"
        f"  promised   ε = {shown_epsilon(budget.epsilon)}{at}\n"
        f"  {verb}   ε = {shown_epsilon(budget.epsilon_of(spent))} in {held} ({where})\n"
        f"  would be   ε = {shown_epsilon(would_be)}\n"
        "\n"
        f"Nothing was read and nothing was charged. {less} again from a\n"
        "release you already have: `sidelight sample` costs nothing."
    )


def cannot_draw_again(promise: Promise, spent: Tally, costs: Sequence[Cost], *, run: str) -> BudgetExhausted:
    """The error for answers that a checkpoint lost and the promise cannot pay for again."""
    whole = added(*costs)
    return BudgetExhausted(
        f"this run would have to pay again for {_check.count_of(len(costs), 'answer')}: what it drew is not "
        "in this\n"
        "checkpoint, because a crash lost it or because the folder is a copy of another.\n"
        f"That needs {_needs(promise, whole)}; '{promise.shown}' has {_has(promise, spent)} left beside\n"
        "what runs hold.\n"
        "\n"
        "Nothing was drawn and nothing was charged. Resume from the newest copy of the folder, if there is\n"
        f"another. Or give back what the run did not spend (`sidelight ledger close LEDGER {run}`),\n"
        "and start anew in a new folder, for less."
    )


def _needs(promise: Promise, wanted: Cost) -> str:
    budget = promise.budget
    if isinstance(wanted, Rho):
        return f"ρ = {_rho(float(wanted))} (ε = {shown_epsilon(budget.epsilon_of(budget.tally(wanted)))})"
    return f"ε = {shown_epsilon(float(wanted))}" + ("" if budget.is_pure else " of pure DP")


def _has(promise: Promise, spent: Tally) -> str:
    budget = promise.budget
    left = max(0.0, float(budget.capacity - spent.priced))
    if budget.is_pure:
        return f"{shown_epsilon(left)} of {shown_epsilon(budget.epsilon)}"
    return f"{_rho(left)} of {_rho(float(budget.capacity))}"


def shown_epsilon(value: float) -> str:
    """An ε to two digits, as messages tell it."""
    return f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.2g}"


def _rho(value: float) -> str:
    return f"{value:.5f}" if value >= 0.001 or value == 0 else f"{value:.3g}"


def _delta(value: float) -> str:
    """1e-9, as people write it."""
    return f"{value:g}".replace("e-0", "e-")
