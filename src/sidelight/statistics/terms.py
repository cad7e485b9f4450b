"""On what terms private people are asked: who is protected, in which currency, out of which ledger."""

import platform
from collections.abc import Callable, Iterator
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
from sidelight.privacy.ledger import Ledger, MemoryLedger
from sidelight.privacy.noise import NoiseSource, SystemNoise
from sidelight.privacy.promise import Promise, agreed_unit
from sidelight.privacy.unit import Unit
from sidelight.statistics.card import AnswerCard
from sidelight.statistics.grid import Grid

D = TypeVar("D", bound=Door)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Who is protected, and where spending is kept."""

    unit: Unit | str | None = None
    """What one person can change: ``"replace"`` (sizes are public) or ``"add-or-remove"`` (sizes are
    measured). If None, the ledger's; without a ledger, ``"replace"``."""
    ledger: Ledger | str | Path | None = None
    """Where spending is kept for ever; its promise and its unit hold."""
    noise: NoiseSource | None = None
    """The operating system's if None; ``sl.testing.SeededNoise`` for experiments, which protects nobody."""

    def __post_init__(self) -> None:
        if self.unit is not None:
            self.refuse(Unit.of(self.unit))

    @cached_property
    def opened(self) -> Ledger | None:
        """The ledger, if there is one."""
        if self.ledger is None:
            return None
        from sidelight.privacy.sql_ledger import open_ledger

        return open_ledger(self.ledger)

    def refuse(self, unit: Unit) -> None:
        """Refuse a unit that names a column of people: columns of values do not say who is who."""
        if unit.person is not None:
            raise SettingError(
                f"means, quantiles and screening take one line a person, but the unit is {unit.spelled()}. "
                f"Make a table with one line for each {unit.person} first, such as each one's own mean, and "
                "open a ledger for it whose unit names no column. Nothing was read and nothing was charged."
            )

    def agreed(self, declared: Unit | None = None) -> Unit:
        """The unit; all who name one must name the same."""
        promise = None if self.opened is None else self.opened.promise
        return agreed_unit(asked=self.unit, declared=declared, promise=promise)

    def book(self, budget: Budget, *, name: str, declared: Unit | None = None) -> Ledger:
        """The ledger, or one in memory that promises this budget."""
        unit = self.agreed(declared)
        self.refuse(unit)
        return MemoryLedger(Promise(budget, unit, name)) if self.opened is None else self.opened

    @contextmanager
    def run(
        self,
        curator: Callable[..., D],
        book: Ledger,
        allotment: Cost,
        *,
        label: str,
        unit: Unit | None = None,
    ) -> Iterator[D]:
        """A curator that may spend the allotment; what it does not spend goes back when the run ends."""
        run = book.begin(allotment, label=label)
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
        if self.accounting == "pure" or self.delta is not None:
            return None if self.accounting == "pure" else self.delta
        assert self.opened is not None  # checked when the terms were made
        return float(self.opened.promise.budget.delta)

    def budget(self, epsilon: float) -> Budget:
        """What a person with this ε is promised."""
        return Budget(epsilon=epsilon, delta=self.group_delta or 0.0)

    def cost(self, epsilon: float) -> Cost:
        """What this ε may spend: ε itself, or the ρ that (ε, δ) pays for."""
        budget = self.budget(epsilon)
        return budget.pure() if self.accounting == "pure" else budget.rho()

    def card(self, statistic: str, grid: Grid, curator: Door | None) -> AnswerCard:
        """What a reader needs to know about how a number was made, as far as the terms can tell."""
        noise = self.noise if self.noise is not None else SystemNoise()
        unit = agreed_unit(asked=self.unit) if curator is None else curator.unit
        return AnswerCard(
            statistic=statistic,
            bounds=(grid.low, grid.high),
            unit=unit,
            promise=f"each group's own ε under {unit.describe()}; groups and sizes as declared are public",
            accounting=self.accounting,
            delta=self.group_delta,
            events=() if curator is None else curator.events,
            noise=noise.name,
            noise_is_private=noise.is_private,
            versions={"sidelight": version("sidelight"), "python": platform.python_version()},
        )
