"""The plan of a release, decided and checked before anything private is read."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidelight.data.domain import Domain
from sidelight.data.schema import Schema
from sidelight.errors import DataError, PrivacyWarning, SettingError, WorkloadError
from sidelight.mechanisms.base import Mechanism, Outlook
from sidelight.mechanisms.registry import mechanism_of
from sidelight.privacy.budget import Budget, Cost, Epsilon
from sidelight.privacy.ledger import Ledger
from sidelight.privacy.promise import agreed_unit
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.releases.prior_folder import read_public


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Schema, workload, mechanism and budget of one release, each checked against the others."""

    schema: Schema
    workload: Workload
    mechanism: Mechanism
    budget: Budget
    unit: Unit
    public: Any = None
    """A public table; for APERTURE also a prior, an earlier release, or several of them."""

    @classmethod
    def of(
        cls,
        *,
        schema: Schema | str | Path,
        epsilon: float,
        delta: float | None,
        unit: Unit | str | None = None,
        mechanism: Mechanism | str | None = None,
        workload: Workload | str | Path | Any = "3-way",
        public: Any = None,
        ledger: Ledger | None = None,
        settings: dict[str, Any] | None = None,
    ) -> "Plan":
        """Make a plan: check every part and read the public data. Nothing private is read."""
        known = schema if isinstance(schema, Schema) else Schema.read(Path(schema))
        recipe = mechanism_of(_default(public) if mechanism is None else mechanism, settings)
        who = agreed_unit(
            asked=unit, declared=known.declared_unit, promise=None if ledger is None else ledger.promise
        )
        plan = cls(
            schema=known,
            workload=Workload.of(workload, known.domain),
            mechanism=recipe,
            budget=Budget(epsilon=epsilon, delta=_delta(delta, ledger, recipe, epsilon)),
            unit=who,
            public=None if public is None else read_public(public, known),
        )
        plan.mechanism.check(plan.domain, plan.workload, plan.public)
        plan._refuse_constants()
        for event in plan.mechanism.noisiest(
            plan.domain, plan.workload, allotment=plan.allotment, unit=plan.unit
        ):
            event.require_drawable()
        _ = plan.outlook
        return plan

    def _refuse_constants(self) -> None:
        """Refuse queries whose answer no person can change: they need no protection, and no noise."""
        for query in self.workload:
            if not query.l1(self.unit):
                raise WorkloadError(
                    f"{query.describe()} has the same answer whoever is in the table: its weights are all 0, "
                    "or all alike where the number of records is public. Leave it out of the workload."
                )

    @property
    def domain(self) -> Domain:
        """The attributes that the release is about."""
        return self.schema.domain

    @property
    def allotment(self) -> Cost:
        """The most that the run may spend."""
        return self.mechanism.allotment(self.budget)

    @property
    def outlook(self) -> Outlook:
        """The run's noise and memory, from public information alone."""
        return self.mechanism.outlook(self.domain, self.workload, allotment=self.allotment, unit=self.unit)

    def as_json(self) -> dict[str, Any]:
        """The plan in plain values; a checkpoint is recognised by them, too."""
        outlook = self.outlook
        allotment = self.allotment
        return {
            "mechanism": self.mechanism.name,
            "settings": self.mechanism.settings(),
            "unit": {"relation": self.unit.relation, "records": self.unit.records},
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "epsilon_allotted" if isinstance(allotment, Epsilon) else "rho_allotted": float(allotment),
            "attributes": len(self.domain),
            "domain_cells": float(self.domain.size()),
            "queries": len(self.workload),
            "measurements": outlook.measurements,
            "noise_stddev": outlook.stddev,
            "model_bytes": outlook.model_bytes,
            "counting_bytes": outlook.counting_bytes,
            "notes": list(outlook.notes),
        }

    def check_total(self, records: int) -> None:
        """Refuse a table without records, or with too few for this much noise; n is public here."""
        if not records:
            raise DataError("the private table has no records. Nothing was charged.")
        self.mechanism.check_total(float(records), allotment=self.allotment, unit=self.unit)

    def warn_about(self, records: int) -> None:
        """Warn if δ is 1/n or more for a table of that (public) size n."""
        if self.budget.delta >= 1 / max(records, 1):
            warnings.warn(
                f"delta = {self.budget.delta:g} is at least 1/n: the promise would allow publishing some "
                "person's record outright. Choose a delta well below 1/n, such as 1/n².",
                PrivacyWarning,
                stacklevel=3,
            )


def _delta(delta: float | None, ledger: Ledger | None, mechanism: Mechanism, epsilon: float) -> float:
    if ledger is not None:
        promised = ledger.promise.budget.delta
        if delta is not None and delta != promised:
            raise SettingError(
                f"delta must be the ledger's own, {promised:g}; got {delta:g}. Leave delta out: "
                "what a release spends is counted at the ledger's δ."
            )
        return promised
    if delta is None:
        pure = mechanism.allotment(Budget(epsilon=epsilon, delta=1e-9))
        if isinstance(pure, Epsilon):
            return 0.0
        raise SettingError(
            "delta must be given (such as 1e-9, and well below 1/n), or a ledger that promises one."
        )
    return delta


def _default(public: Any) -> str:
    """The mechanism for people who name none."""
    return "mwem" if public is None else "aperture"
