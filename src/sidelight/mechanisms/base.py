"""What a mechanism is: settings that can be checked, an outlook before, a loop that runs."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sidelight.curator.curator import Curator
from sidelight.data.domain import Attrs, Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.measurement import Measurement
from sidelight.models.model import Model
from sidelight.privacy.budget import Budget, Cost
from sidelight.privacy.event import Event
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.uncertainty.model_error import model_error


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What a run will cost, hold and blur, told before anything is read."""

    measurements: int
    """How many marginals or queries will be measured, at most."""
    stddev: float
    """σ of the noise on each measured number."""
    model_bytes: int
    """Memory of the model, at most."""
    counting_bytes: int
    """Memory of the exact counts that the curator holds, at most."""
    notes: tuple[str, ...] = ()
    """What else a person should know."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a mechanism's loop ends with; all of it may be published."""

    model: Model
    measurements: tuple[Measurement, ...]
    events: tuple[Event, ...]
    facts: dict[str, Any] = field(default_factory=dict)
    """What the mechanism tells about its own run, for the release's card."""
    public_attrs: tuple[str, ...] = ()
    """Attributes that public data told of."""
    dispersions: Mapping[Attrs, tuple[float, float]] | None = None
    """Of the measured marginals, where the fit weighed a prior against them: see ``model_error``."""

    @property
    def told(self) -> dict[str, Any]:
        """The same with what the measurements tell about the error of the model."""
        error = model_error(
            self.model.domain, self.measurements,
            total=self.total, public_attrs=self.public_attrs, dispersions=self.dispersions,
        )  # fmt: skip
        return self.facts if error is None else self.facts | {"model_error": error}

    @property
    def total(self) -> float:
        """n, public or noisy."""
        return self.model.total

    def count(self, attrs: Attrs) -> NDArray[np.float64]:
        """The model's counts over these attributes, axes in the order asked."""
        return np.asarray(self.model.count(tuple(attrs)), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A recipe: its fields are the recipe's numbers, ``run`` is the paper's loop.

    A run is a function of what the curator answers, and of nothing else that is random: the
    same answers give the same release, which is what makes a run resumable.
    """

    name: ClassVar[str]
    public_data: ClassVar[Literal["unused", "optional", "needed"]]

    @abstractmethod
    def run(self, curator: Curator, workload: Workload, *, public: Table | None = None) -> Outcome:
        """Spend what the curator was allotted; return what may be published."""

    @abstractmethod
    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        """Noise and memory, from public information alone."""

    @abstractmethod
    def noisiest(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Iterable[Event]:
        """Of each kind of measurement that a run may make, the one with the most noise.

        They are asked for in the plan: noise that cannot be drawn is refused before anything is charged.
        """

    def check_total(self, total: float, *, allotment: Cost, unit: Unit) -> None:  # noqa: B027  # most have none
        """Refuse what makes no sense for so many records, where their number is public; nothing is paid."""

    def allotment(self, budget: Budget) -> Cost:
        """What the promise allows this mechanism to spend: zCDP, unless it is a pure one."""
        return budget.rho()

    def check(self, domain: Domain, workload: Workload, public: Table | None) -> None:
        """Refuse what cannot run, before anything is read or charged."""
        if self.public_data == "needed" and public is None:
            raise SettingError(
                f"mechanism {self.name!r} starts from public data, and none was given. Give a public table "
                "(public=…, --public), or choose a mechanism that needs none: mwem, aim."
            )
        if self.public_data == "needed" and not isinstance(public, Table):
            raise SettingError(
                f"mechanism {self.name!r} takes one public table; a prior, an earlier release or several "
                "tables can be given to mechanism='aperture'."
            )
        if self.public_data == "unused" and public is not None:
            raise SettingError(
                f"mechanism {self.name!r} does not use public data, but a public table was given. "
                "Leave it out, or choose a mechanism that uses it."
            )

    def settings(self) -> dict[str, Any]:
        """Every field with its value, as plain values."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return value
