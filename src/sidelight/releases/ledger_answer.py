"""A ledger's answer to a plan: whether its budget is enough, and its policy's objection."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sidelight.errors import BudgetExhausted, PolicyError
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.purpose import Purpose

if TYPE_CHECKING:
    from sidelight.releases.plan import Plan


@dataclass(frozen=True)
class LedgerAnswer:
    """A ledger's answer, as things are now; nothing is set aside."""

    can_pay: bool
    """Whether its budget is enough."""
    refusal: str = ""
    """The policy's objection to the run, in a sentence; empty where it allows the run."""

    @classmethod
    def to(cls, planned: "Plan", ledger: Ledger, said: Purpose | None = None) -> "LedgerAnswer":
        """The answer of this ledger to a plan, with the purpose that people named."""
        try:
            ledger.require(planned.allotment, planned.purpose(said))
        except PolicyError as refusal:  # a ledger looks at its budget first
            return cls(can_pay=True, refusal=str(refusal))
        except BudgetExhausted:
            return cls(can_pay=False)
        return cls(can_pay=True)

    def __str__(self) -> str:
        if self.refusal:
            return f"can pay for it, but its policy does not allow it: {self.refusal}"
        return "can pay for it" if self.can_pay else "CANNOT pay for it"

    @property
    def facts(self) -> dict[str, Any]:
        """The answer as plain values, for a program."""
        is_allowed = self.can_pay and not self.refusal
        return {"affordable": self.can_pay, "allowed": is_allowed, "refusal": self.refusal or None}
