"""A ledger's statement: what was promised, spent and is left, run by run; what people read of a ledger.

It holds no mark and no key of the table, so it may be shown to whoever may know of the spending.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sidelight.privacy.budget import Epsilon, Rho, Tally
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.meaning import Meaning
from sidelight.privacy.policy import Policy
from sidelight.privacy.promise import Promise
from sidelight.privacy.runs import RunSummary


@dataclass(frozen=True, kw_only=True)
class Statement:
    """All that a ledger tells, at one moment."""

    promise: Promise
    tally: Tally
    head: str
    """The hash of the last line; whoever notes it can tell later whether lines were cut off."""
    runs: tuple[RunSummary, ...]
    policy: Policy | None = None
    allowed: float | None = None
    """The largest ε that the policy allows one run now, by its limits for a release and a month."""

    @classmethod
    def of(cls, ledger: Ledger) -> "Statement":
        """The statement of a ledger as it is now."""
        return cls(
            promise=ledger.promise,
            tally=ledger.tally,
            head=ledger.head,
            runs=ledger.runs(),
            policy=ledger.policy,
            allowed=ledger.largest_allowed,
        )

    @property
    def epsilon_spent(self) -> float:
        """ε that was spent or set aside, at the promise's δ."""
        return self.promise.budget.epsilon_of(self.tally)

    @property
    def epsilon_paid(self) -> float:
        """ε of all payments that were made, without what open runs set aside."""
        budget, paid = self.promise.budget, Tally()
        for run in self.runs:
            paid += budget.tally(run.spent)
        return budget.epsilon_of(paid)

    @property
    def share_spent(self) -> float:
        """The share of the budget that was spent or set aside."""
        return float(self.tally.priced / self.promise.budget.capacity)

    @property
    def largest(self) -> float:
        """The largest ε that one more release may ask for; 0 where nothing is left."""
        budget = self.promise.budget
        return budget.largest(Epsilon if budget.is_pure else Rho, self.tally)

    @property
    def meaning(self) -> str:
        """The odds that the spent budget gives somebody who accuses people, in a sentence."""
        return Meaning.of_tally(self.tally).sentence(self.promise.unit)

    @property
    def open_runs(self) -> tuple[RunSummary, ...]:
        """Runs that were interrupted, or are at work; all that they were allotted is set aside."""
        return tuple(run for run in self.runs if run.is_open)

    @property
    def left(self) -> str:
        """The rest of the budget, in words, and what open runs hold back."""
        said = f"at most ε = {self.largest:g} for one more release" if self.largest else "nothing"
        if self.allowed is not None and self.allowed < self.largest:
            said += f" (the policy allows {f'{self.allowed:g}' if self.allowed else 'nothing'} now)"
        if self.open_runs:
            held = ", ".join(run.id for run in self.open_runs)
            said += f", beside what {held} set aside (resume it, or `sidelight ledger close`)"
        return said

    @property
    def after_each(self) -> Iterator[tuple[RunSummary, float, float]]:
        """Each run, the share of the budget that was used after it, and ε; an open run uses its allotment."""
        budget, used = self.promise.budget, Tally()
        for run in self.runs:
            used += budget.tally(run.allotment if run.is_open else run.spent)
            yield run, min(1.0, float(used.priced / budget.capacity)), budget.epsilon_of(used)

    def as_json(self) -> dict[str, Any]:
        """The statement in plain values."""
        budget, unit = self.promise.budget, self.promise.unit
        return {
            "name": self.promise.shown,
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "unit": unit.relation,
            "records": None if unit.person is not None else unit.records,
            "person": unit.person,
            "capacity": float(budget.capacity),
            "spent": float(self.tally.priced),
            "left": max(0.0, float(budget.capacity - self.tally.priced)),
            "epsilon_spent": self.epsilon_spent,
            "epsilon_paid": self.epsilon_paid,
            "meaning": self.meaning,
            "head": self.head,
            "policy": None if self.policy is None else self.policy.as_json(),
            "runs": [run.as_json() for run in self.runs],
        }
