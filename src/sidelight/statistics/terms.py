"""On what terms private groups are asked: who is protected, in which currency, from which ledger."""

import platform
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sidelight import _check
from sidelight.curator.door import Door
from sidelight.errors import SettingError
from sidelight.privacy.budget import Cost
from sidelight.privacy.ledger import Ledger
from sidelight.privacy.noise import NoiseSource, SystemNoise
from sidelight.privacy.promise import agreed_unit
from sidelight.privacy.unit import Unit
from sidelight.statistics.curator import GroupCurator, open_groups
from sidelight.statistics.grid import Grid
from sidelight.statistics.group import Group


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The options that all statistics share; checked before anything is read."""

    unit: Unit | str | None = None
    """What one person can change; the ledger's unless said, and ``replace`` without a ledger."""
    accounting: str = "pure"
    """``pure``: Laplace noise and ε. ``zcdp``: Gaussian noise, and ρ of (ε, δ)."""
    delta: float | None = None
    """δ of every group under zCDP; the ledger's unless said."""
    ledger: Ledger | str | Path | None = None
    noise: NoiseSource | None = None

    def __post_init__(self) -> None:
        _check.one_of(("pure", "zcdp"), accounting=self.accounting)
        if self.unit is not None:
            Unit.of(self.unit)
        if self.accounting == "pure":
            if self.delta:
                raise SettingError("delta must be left out under accounting='pure'; there δ is 0.")
        elif self.delta is None:
            if self.ledger is None:
                raise SettingError("accounting='zcdp' needs a delta above 0.")
        else:
            _check.share(delta=self.delta)

    def open(
        self,
        groups: Sequence[Group],
        grid: Grid,
        *,
        label: str,
        check_unit: Callable[[Unit], None] = lambda _: None,
    ) -> AbstractContextManager[GroupCurator]:
        """A curator over the private groups."""
        return open_groups(
            groups,
            grid,
            unit=self.unit,
            delta=self.group_delta,
            ledger=self.ledger,
            noise=self.noise,
            label=label,
            check_unit=check_unit,
        )

    @property
    def group_delta(self) -> float | None:
        """δ of every group, or None under pure accounting."""
        if self.accounting == "pure":
            return None
        if self.delta is not None:
            return self.delta
        from sidelight.privacy.sql_ledger import open_ledger

        assert self.ledger is not None
        return float(open_ledger(self.ledger).promise.budget.delta)

    def costs(self, groups: Sequence[Group]) -> list[Cost]:
        """What each group may spend."""
        return [group.cost(delta=self.group_delta) for group in groups]

    def card(self, statistic: str, grid: Grid, curator: Door | None) -> dict[str, Any]:
        """What a reader needs to know about how a number was made; nothing private."""
        noise = self.noise if self.noise is not None else SystemNoise()
        unit = agreed_unit(asked=self.unit) if curator is None else curator.unit
        card: dict[str, Any] = {
            "statistic": statistic,
            "bounds": [grid.low, grid.high],
            "unit": {"relation": unit.relation, "records": unit.records},
            "promise": f"each group's own ε under {unit.describe()}; groups and sizes as declared are public",
            "accounting": self.accounting,
            "delta": self.group_delta,
            "events": [] if curator is None else [event.as_json() for event in curator.events],
            "noise": noise.name,
            "private": noise.is_private,
            "versions": {"sidelight": version("sidelight"), "python": platform.python_version()},
        }
        if not noise.is_private:
            card["warning"] = (
                "NOT PRIVATE: the noise was seeded, and anyone who knows the seed can draw it again."
            )
        return card


def shares_of(costs: Sequence[Cost], share: float) -> list[Cost]:
    """This share of each cost."""
    return [cost * Fraction(share) for cost in costs]


def check_shares(**shares: float) -> float:
    """Each share is at least 0 and together they leave something; gives what they leave."""
    for name, share in shares.items():
        if share != 0:
            _check.share(**{name: share})
    rest = 1 - sum(Fraction(share) for share in shares.values())
    if rest <= 0:
        listed = ", ".join(f"{name}={share:g}" for name, share in shares.items())
        raise SettingError(f"the shares must leave something for the estimate itself; got {listed}.")
    return float(rest)
