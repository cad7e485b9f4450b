"""The base of all mechanisms: settings that are checked, an outlook before the run, and the run itself."""

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
from sidelight.mechanisms.paper import Paper
from sidelight.mechanisms.told import GroupedValues, JointRound, Opening
from sidelight.models.model import Model
from sidelight.privacy.budget import Budget, Cost
from sidelight.privacy.event import Event
from sidelight.privacy.unit import Unit
from sidelight.public.source import require_whole_records
from sidelight.queries.workload import Workload
from sidelight.uncertainty.model_error import ModelDispersion, model_error


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """The noise and the memory of a run, known before anything is read."""

    measurements: int
    """How many marginals or queries will be measured, at most."""
    stddev: float
    """σ of the noise on what ``noise_on`` names."""
    model_bytes: int
    """Memory of the model, at most."""
    counting_bytes: int
    """Memory of the exact counts that the curator holds, at most."""
    noise_on: str = "each number"
    """The numbers that have this σ: those that are measured, or counts of the workload that they sum to."""
    oversized: tuple[Attrs, ...] = ()
    """Marginals of the workload that are too large ever to be measured."""
    notes: tuple[str, ...] = ()
    """Further remarks for the person who reads the plan."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a mechanism; all of it may be published."""

    model: Model
    measurements: tuple[Measurement, ...]
    events: tuple[Event, ...]
    notes: tuple[str, ...] = ()
    """Further remarks for a reader of the release, in sentences."""
    decided: Mapping[str, Any] = field(default_factory=dict)
    """Settings that the mechanism was left to choose, with what it took."""
    rounds: tuple[JointRound, ...] = ()
    """JAM's rounds."""
    aperture: Opening | None = None
    """How far APERTURE moved away from the public data."""
    groups: tuple[GroupedValues, ...] = ()
    """Attributes whose values were modelled in groups."""
    public_attrs: tuple[str, ...] = ()
    """Attributes about which the public data held information."""
    public_share: float = 1.0
    """The share of the public records that the model rests on; it used no others."""
    dispersions: Mapping[Attrs, tuple[float, float]] | None = None
    """Dispersion of measured marginals, where the fit weighed a prior against them: see ``model_error``."""
    total_stddev: float = 0.0
    """σ of the noise in n, where the model was scaled to a noisy count of the records."""

    @property
    def model_error(self) -> ModelDispersion | None:
        """The error of the model, as far as the measurements tell of it."""
        return model_error(
            self.model.domain, self.measurements,
            total=self.total, public_attrs=self.public_attrs, dispersions=self.dispersions,
            total_stddev=self.total_stddev,
        )  # fmt: skip

    @property
    def total(self) -> float:
        """n, public or noisy."""
        return self.model.total

    def count(self, attrs: Attrs) -> NDArray[np.float64]:
        """The model's counts over these attributes, axes in the order asked."""
        return np.asarray(self.model.count(tuple(attrs)), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A mechanism: its fields are its settings, ``run`` is the paper's loop.

    All randomness of a run is in the curator's answers: the same answers give the same release.
    That makes a run resumable.
    """

    name: ClassVar[str]
    public_data: ClassVar[Literal["unused", "optional", "needed"]]
    papers: ClassVar[tuple[Paper, ...]] = ()
    """Where the mechanism comes from; release cards and reports cite it."""

    takes_groups: ClassVar[bool] = False
    """Whether it can be asked about groups of values (``bins.py``): it measures marginals or cells alone."""

    @abstractmethod
    def run(self, curator: Curator, workload: Workload, *, public: Table | None = None) -> Outcome:
        """Spend the curator's allotment; return what may be published."""

    @abstractmethod
    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        """Noise and memory, from public information alone."""

    @abstractmethod
    def noisiest(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Iterable[Event]:
        """For each kind of measurement that a run may make, the one with the most noise.

        The plan checks them: noise too large to be drawn is refused before anything is charged.
        """

    def check_total(self, total: float, *, allotment: Cost, unit: Unit) -> None:  # noqa: B027  # most have none
        """Refuse a run that makes no sense for so few records; called where n is public, before paying."""

    def allotment(self, budget: Budget) -> Cost:
        """The budget of this mechanism under the promise: in ρ, or in ε for a mechanism of pure ε."""
        return budget.rho()

    def check(self, domain: Domain, workload: Workload, public: Table | None) -> None:
        """Refuse a run that cannot succeed, before anything private is read or charged."""
        if self.public_data == "needed" and public is None:
            raise SettingError(
                f"mechanism {self.name!r} starts from public data, and none was given. Give a public table "
                "(public=…, --public), or choose a mechanism that needs none: mwem, aim."
            )
        if self.public_data == "unused" and public is not None:
            raise SettingError(
                f"mechanism {self.name!r} does not use public data, but a public table was given. "
                "Leave it out, or choose a mechanism that uses it."
            )
        if public is not None:
            self.check_public(domain, public)

    def check_public(self, domain: Domain, public: Any) -> None:
        """Refuse public data that this mechanism cannot use, and name one that can.

        Most take one table that tells of every attribute.
        """
        if not isinstance(public, Table):
            raise SettingError(
                f"mechanism {self.name!r} takes one public table that fits the schema; what was given is "
                "of another kind, is weighted, or leaves values open. Mechanism 'aperture' can use that."
            )
        require_whole_records(self.name, domain, [public])

    def public_notes(self, domain: Domain, public: Any) -> tuple[str, ...]:
        """The part of the public data that this mechanism cannot use, in sentences."""
        return ()

    def settings(self) -> dict[str, Any]:
        """Every field with its value, as plain values."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self)}


def total_and_rest(allotment: Cost, total_share: float, unit: Unit) -> tuple[Cost, Cost]:
    """The cost of counting the records, 0 where their number is public, and what is left for all else."""
    return allotment.split(0 if unit.total_is_public else total_share)


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return value
