"""One audit, told: what was claimed, what an attack found of it, and whether it found the planted bug."""

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

from sidelight.audit.attack import attack
from sidelight.audit.neighbours import UNITS, Asked
from sidelight.audit.subjects import Subject
from sidelight.privacy import convert
from sidelight.privacy.budget import Epsilon

_BAR = 20


@dataclass(frozen=True, kw_only=True)
class Row:
    """One subject under one unit."""

    subject: str
    unit: str
    is_planted: bool
    epsilon: float
    """ε that is claimed, at ``delta``."""
    delta: float
    found: float
    """The lower bound on it, with ``confidence``."""
    confidence: float
    runs: int
    """On each of the two tables."""
    chosen_on: int
    """On so many of them the test was chosen; the others judged it."""
    seconds: float
    """Seconds of processor time."""

    @property
    def share(self) -> float:
        """The bound as a share of the claim: above 1, the claim is refuted."""
        return self.found / self.epsilon

    @property
    def is_refuted(self) -> bool:
        """Whether more privacy was lost than was claimed."""
        return self.found > self.epsilon

    @property
    def verdict(self) -> str:
        """The verdict in two words: correct code must hold, and the planted bug must be found."""
        if self.is_planted:
            return "bug found" if self.is_refuted else "bug not found"
        return "REFUTED" if self.is_refuted else "holds"

    @property
    def bar(self) -> str:
        """The share as a bar; its end is the claim."""
        filled = min(_BAR, round(_BAR * self.share))
        return "█" * filled + "░" * (_BAR - filled) + ("▶" if self.is_refuted else "")

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        found = self.found if math.isfinite(self.found) else None
        return asdict(self) | {
            "found": found,
            "share": None if found is None else self.share,
            "verdict": self.verdict,
        }


def audited(
    name: str,
    subject: Subject,
    unit: str,
    *,
    is_planted: bool = False,
    runs: int | None = None,
    confidence: float = 0.999,
) -> Row:
    """Attack a subject under a unit."""
    began = time.process_time()
    budget = subject.budget
    case = subject.case(Asked(unit=UNITS[unit], budget=budget, is_planted=is_planted, times=subject.times))
    audit = attack(
        case.statistic, case.neighbours, delta=budget.delta,
        runs=subject.runs if runs is None else runs, confidence=confidence,
    )  # fmt: skip
    found, claimed = audit.found(case.claim), budget.epsilon
    if not isinstance(case.claim, Epsilon):
        # ρ was claimed and ρ was found; both are told as the ε that they are at the same δ. A mechanism may
        # claim less than the budget allows it: MWEM+PUB does, by its paper's composition.
        found = convert.epsilon_of(found, budget.delta) if math.isfinite(found) else math.inf
        claimed = min(claimed, convert.epsilon_of(float(case.claim), budget.delta))
    return Row(
        subject=name, unit=unit, is_planted=is_planted, epsilon=claimed, delta=budget.delta,
        found=found, confidence=confidence, runs=audit.runs, chosen_on=audit.chosen_on,
        seconds=round(time.process_time() - began, 1),
    )  # fmt: skip
