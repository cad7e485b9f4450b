"""The sums that runs hold of a budget, by project and by month: a policy is checked against them.

An open run holds its whole allotment, a closed one what it spent; either holds what it paid out of the
promise itself, too. A run belongs to the month in which it began.

PRIVACY: time never runs backwards here. A run whose clock tells an earlier time than a run before it is
counted in that run's month, so nobody gets an earlier month's budget, or one month's twice, by setting a
clock.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from sidelight.privacy.budget import Budget, Cost, Rho, Tally, added
from sidelight.privacy.chain import Line
from sidelight.privacy.purpose import Purpose


@dataclass(frozen=True)
class Held:
    """Sums over runs, from which the price under any budget follows."""

    rho: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)
    squares: Fraction = Fraction(0)
    """Σε² over runs of pure DP."""
    runs: int = 0

    @staticmethod
    def of(cost: Cost) -> "Held":
        """The amount that one run holds."""
        if isinstance(cost, Rho):
            return Held(rho=cost.value, runs=1)
        return Held(epsilon=cost.value, squares=cost.value**2, runs=1)

    def __add__(self, other: "Held") -> "Held":
        return Held(
            self.rho + other.rho,
            self.epsilon + other.epsilon,
            self.squares + other.squares,
            self.runs + other.runs,
        )

    def __sub__(self, other: "Held") -> "Held":
        return Held(
            self.rho - other.rho,
            self.epsilon - other.epsilon,
            self.squares - other.squares,
            self.runs - other.runs,
        )

    def tally(self, budget: Budget) -> Tally:
        """The sums as a budget prices them.

        PRIVACY: Σ min(ε²/2, ε/α) over runs is at most min(Σε²/2, Σε/α), which is what this takes.
        """
        if budget.is_pure:
            return Tally(self.rho, self.epsilon, self.rho + self.epsilon)
        pure = min(self.squares / 2, self.epsilon / Fraction(budget.order)) if self.epsilon else Fraction(0)
        return Tally(self.rho, self.epsilon, self.rho + pure)


@dataclass
class _Run:
    purpose: Purpose
    month: str
    cost: Cost


@dataclass
class Standing:
    """Runs as they begin, pay apart and close, and what they hold by project and by month."""

    latest: str = ""
    """The latest time that a run began at, as far as lines tell."""
    _runs: dict[str, _Run] = field(default_factory=dict)
    _projects: dict[str, Held] = field(default_factory=dict)
    _months: dict[str, Held] = field(default_factory=dict)

    @staticmethod
    def of(ends: Iterable[tuple[Line, Line]]) -> "Standing":
        """The standing after runs, given by the first and the last line of each, in the order they began."""
        standing = Standing()
        for first, last in ends:
            standing.begin(first)
            sums, allotment = last.of_run, first.allotment
            apart = type(allotment)(sums.apart)
            standing.hold(first.run, added(allotment, apart) if sums.open_runs else sums.spent(allotment))
        return standing

    def begin(self, line: Line) -> None:
        """A run begins, and holds its allotment."""
        self.latest = max(self.latest, line.when)
        run = _Run(line.purpose, self.latest[:7], line.allotment * 0)
        self._runs[line.run] = run
        self._count(run, Held(runs=1))
        self.hold(line.run, line.allotment)

    def hold(self, run_id: str, cost: Cost) -> None:
        """From now on the run holds this much."""
        run = self._runs[run_id]
        self._count(run, Held.of(cost) - Held.of(run.cost))
        run.cost = cost

    def held(self, run_id: str) -> Cost:
        """The amount that the run holds."""
        return self._runs[run_id].cost

    def purpose_of(self, run_id: str) -> Purpose:
        """The purpose of the run, as its first line says it."""
        return self._runs[run_id].purpose

    def month(self, now: str) -> str:
        """The month, such as 2026-11, of a run that begins now."""
        return max(self.latest, now)[:7]

    def month_of(self, run_id: str) -> str:
        """The month that the run counts in."""
        return self._runs[run_id].month

    def of_month(self, month: str) -> Held:
        """The sum that all runs of a month hold."""
        return self._months.get(month, Held())

    def of_project(self, project: str) -> Held:
        """The sum that all runs of a project hold."""
        return self._projects.get(project, Held())

    def _count(self, run: _Run, more: Held) -> None:
        self._months[run.month] = self._months.get(run.month, Held()) + more
        project = run.purpose.project
        if project is not None:
            self._projects[project] = self._projects.get(project, Held()) + more
