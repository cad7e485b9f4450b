"""On what terms private people are asked: who is protected, in which currency, out of which ledger."""

import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from sidelight import _check
from sidelight.curator.door import Door
from sidelight.errors import SettingError
from sidelight.privacy.budget import Budget, Cost
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.ledger import MemoryLedger, warn_unrecorded
from sidelight.privacy.noise import NoiseSource, SystemNoise
from sidelight.privacy.promise import Promise, agreed_unit
from sidelight.privacy.purpose import Purpose
from sidelight.privacy.unit import Unit
from sidelight.statistics.card import AnswerCard
from sidelight.statistics.grid import Grid

D = TypeVar("D", bound=Door)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Who is protected, and where spending is kept."""

    unit: Unit | str | None = None
    """What one person can change: ``"replace"`` (sizes are public) or ``"add-or-remove"`` (sizes are
    measured), or a ``Unit`` that names a column of people (sizes are measured, too). If None, the ledger's;
    without a ledger, ``"replace"``."""
    ledger: Ledger | str | Path | None = None
    """Where spending is kept for ever; its promise and its unit hold."""
    noise: NoiseSource | None = None
    """The operating system's if None; ``sl.testing.SeededNoise`` for experiments, which protects nobody."""
    project: str | None = None
    """The project that this is for, by a name that the ledger's policy knows; the ledger keeps it."""
    approved_by: str | Sequence[str] | None = None
    """Who approved it, by name; the ledger keeps that too."""

    def __post_init__(self) -> None:
        self.purpose("")  # refuses what cannot be a name

    @property
    def source(self) -> NoiseSource:
        """Where noise comes from."""
        return SystemNoise() if self.noise is None else self.noise

    @cached_property
    def opened(self) -> Ledger | None:
        """The ledger, if there is one."""
        if self.ledger is None:
            return None
        from sidelight.privacy.sql_ledger import open_ledger

        return open_ledger(self.ledger)

    def agreed(self, declared: Unit | None = None) -> Unit:
        """The unit; all who name one must name the same."""
        promise = None if self.opened is None else self.opened.promise
        return agreed_unit(asked=self.unit, declared=declared, promise=promise)

    def book(self, budget: Budget, *, name: str, declared: Unit | None = None) -> Ledger:
        """The ledger, or one in memory that promises this budget."""
        unit = self.agreed(declared)
        return MemoryLedger(Promise(budget, unit, name)) if self.opened is None else self.opened

    def purpose(self, way: str) -> Purpose:
        """The purpose of a run that spends in this way."""
        return Purpose.of(way, project=self.project, approved_by=self.approved_by)

    @contextmanager
    def run(
        self,
        curator: Callable[..., D],
        book: Ledger,
        allotment: Cost,
        *,
        label: str,
        way: str,
        unit: Unit | None = None,
    ) -> Iterator[D]:
        """A curator that may spend the allotment; what it does not spend goes back when the run ends.

        ``way`` is how the run spends, as a policy names it: mean, quantile, screen or discover.
        """
        if self.opened is None and self.source.is_private:
            warn_unrecorded(book.promise)
        run = book.begin(allotment, label=label, purpose=self.purpose(way))
        who = book.promise.unit if unit is None else unit
        try:
            yield curator(allotment=allotment, unit=who, ledger=book, run=run, noise=self.noise)
        finally:
            book.close(run)


@dataclass(frozen=True, kw_only=True)
class GroupTerms(Terms):
    """The terms of means and quantiles, which may count in ε or in ρ."""

    accounting: str = "pure"
    """``"pure"``: Laplace noise, counted in ε. ``"zcdp"``: Gaussian noise, counted in the ρ of (ε, δ)."""
    delta: float | None = None
    """δ of every group under ``"zcdp"``; the ledger's if None."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.one_of(("pure", "zcdp"), accounting=self.accounting)
        if self.accounting == "pure":
            if self.delta:
                raise SettingError("delta must be left out under accounting='pure'; there δ is 0.")
        elif self.delta is None:
            if self.ledger is None:
                raise SettingError("accounting='zcdp' needs a delta above 0.")
        else:
            _check.share(delta=self.delta)

    @property
    def group_delta(self) -> float | None:
        """δ of every group; None under pure accounting."""
        if self.accounting == "pure":
            return None
        if self.delta is not None:
            return self.delta
        assert self.opened is not None  # checked when the terms were made
        return float(self.opened.promise.budget.delta)

    def budget(self, epsilon: float) -> Budget:
        """The promise to a person with this ε."""
        return Budget(epsilon=epsilon, delta=self.group_delta or 0.0)

    def cost(self, epsilon: float) -> Cost:
        """The amount that this ε may spend: ε itself, or the ρ that (ε, δ) pays for."""
        budget = self.budget(epsilon)
        return budget.pure() if self.accounting == "pure" else budget.rho()

    def require(self, epsilon: float, *, way: str) -> None:
        """Refuse, before a private table is read, what the ledger or its policy would refuse."""
        if self.opened is not None:
            self.opened.require(self.cost(epsilon), self.purpose(way))

    def card(self, statistic: str, grid: Grid, curator: Door | None) -> AnswerCard:
        """What a reader needs to know about how a number was made, as far as the terms can tell."""
        unit = agreed_unit(asked=self.unit) if curator is None else curator.unit
        return AnswerCard(
            statistic=statistic,
            bounds=(grid.low, grid.high),
            unit=unit,
            promise=f"each group's own ε under {unit.describe()}; groups and sizes as declared are public",
            accounting=self.accounting,
            delta=self.group_delta,
            events=() if curator is None else curator.events,
            noise=self.source.name,
            noise_is_private=self.source.is_private,
            versions={"sidelight": version("sidelight"), "python": platform.python_version()},
        )
