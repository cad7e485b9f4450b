"""The plan of a release, decided and checked before anything private is read."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sidelight._check import count_of, listed, natural
from sidelight.curator.curator import fits_in_cache
from sidelight.data.domain import Attrs, Domain
from sidelight.data.people import chosen_records
from sidelight.data.schema import Schema, require_no_attribute
from sidelight.errors import (
    DataError,
    PrivacyWarning,
    SettingError,
    WorkloadError,
)
from sidelight.mean_errors import MeanErrors
from sidelight.mechanisms.base import Mechanism, Outlook
from sidelight.mechanisms.bins import Bins
from sidelight.mechanisms.by_size import Size
from sidelight.mechanisms.choice import Choice, choose
from sidelight.mechanisms.registry import AUTO, mechanism_of
from sidelight.privacy.budget import Budget, Cost, Epsilon
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.meaning import Meaning
from sidelight.privacy.promise import MOST_DELTA, agreed_unit, delta_for
from sidelight.privacy.purpose import Purpose
from sidelight.privacy.sql_ledger import open_ledger
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.releases.acceptance import Criteria
from sidelight.releases.ledger_answer import LedgerAnswer
from sidelight.releases.plan_words import describe
from sidelight.releases.public_data import read_public, records_by_attribute
from sidelight.releases.quality import SHARE, set_aside
from sidelight.releases.reuse import Reused, read_reused


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan:
    """Schema, workload, mechanism and budget of one release, each checked against the others."""

    schema: Schema
    workload: Workload
    mechanism: Mechanism
    budget: Budget
    unit: Unit
    public: Any = None
    """The public data as ``read_public`` returned them: a table, a prior, a model, or a list of these.
    ``helping`` is the part that is used."""
    public_remarks: tuple[str, ...] = ()
    """Which public values do not fit the schema, and what became of them, in sentences."""
    quality_share: float = SHARE
    """Share of the budget that measures how far off the release is, once its model is final; 0: none."""
    accept: Criteria | None = None
    """The criteria of acceptance; ``quality_share`` pays for looking at them."""
    bins: Bins | None = None
    """Which values may be modelled in groups; None where all stay as they are declared."""
    why: str | None = None
    """Why this mechanism, in a sentence; None where a person named it."""
    asked_bins: str = AUTO
    """The choice of ``bins`` that was asked for."""
    is_fixed: bool = False
    """Whether settings were given for the mechanism, or it was approved, so that no other can be taken."""
    may_be_pure: bool = True
    """Whether ``auto`` may take Laplace noise at δ > 0: no ledger promises more than this release may spend,
    and no criteria ask for precise looks."""
    ledger_says: LedgerAnswer | None = None
    """The ledger's last answer to this plan; None where nobody asked it."""
    reused: Reused | None = None
    """Noisy answers of earlier releases of the same records, which cost nothing."""

    @classmethod
    def of(
        cls,
        *,
        schema: Schema | str | Path,
        epsilon: float,
        delta: float | None,
        unit: Unit | str | None = None,
        mechanism: Mechanism | str = AUTO,
        workload: Workload | str | Path | Any = "3-way",
        public: Any = None,
        ledger: Ledger | None = None,
        quality_share: float = SHARE,
        accept: Criteria | Mapping[str, Any] | str | Path | None = None,
        bins: str = AUTO,
        reuse: Any = None,
        settings: dict[str, Any] | None = None,
    ) -> "Plan":
        """Make a plan: check every part and read the public data. Nothing private is read."""
        known = Schema.of(schema)
        named = None if mechanism == AUTO else Choice(mechanism_of(mechanism, settings))
        who = agreed_unit(
            asked=unit, declared=known.declared_unit, promise=None if ledger is None else ledger.promise
        )
        require_no_attribute(who, known.columns)
        who = chosen_records(who, public, known)
        asked = Workload.of(workload, known.domain)
        criteria = (
            None
            if accept is None
            else Criteria.of(accept, known.domain, labels=lambda attr: known.column(attr).code_labels())
        )
        budget = Budget(epsilon=epsilon, delta=_delta(delta, ledger, named, epsilon))
        remarks: list[str] = []
        helping = None if public is None else read_public(public, known, remarks)
        is_alone = ledger is None or ledger.promise.budget.epsilon <= budget.epsilon
        may_be_pure = is_alone and criteria is None
        choice = named or choose(
            known.domain, asked, budget=budget, public=helping, settings=settings or {},
            size=Size(None, who), may_be_pure=may_be_pure,
        )  # fmt: skip
        plan = cls(
            schema=known,
            workload=asked,
            mechanism=choice.mechanism,
            why=choice.why,
            budget=budget,
            unit=who,
            public=helping,
            public_remarks=tuple(remarks),
            quality_share=quality_share,
            accept=criteria,
            asked_bins=bins,
            is_fixed=bool(settings),
            may_be_pure=may_be_pure,
            reused=read_reused(reuse, schema=known, unit=who, ledger=ledger),
        )
        plan._refuse_constants()
        return plan._with_bins()._checked()

    def knowing(self, records: int) -> "Plan":
        """The plan for so many records, where n is public: a mechanism that was chosen is chosen again."""
        natural(records=records)
        if self.why is None or self.is_fixed or not self.unit.total_is_public:
            return self
        choice = choose(
            self.domain, self.workload, budget=self.budget, public=self.public, settings={},
            size=Size(records, self.unit), may_be_pure=self.may_be_pure,
        )  # fmt: skip
        again = replace(self, mechanism=choice.mechanism, why=choice.why, ledger_says=None)
        return again._with_bins()._checked()

    def _with_bins(self) -> "Plan":
        """This plan, with what its mechanism and its public data leave to be grouped."""
        bins = Bins.of(self.asked_bins, self.schema, self.workload, self.mechanism, self.helping)
        return replace(self, bins=bins)

    @property
    def helping(self) -> Any:
        """The public data that the mechanism gets: none where ``auto`` took one that uses none."""
        is_aside = self.why is not None and self.mechanism.public_data == "unused"
        return None if is_aside else self.public

    def _checked(self) -> "Plan":
        """This plan, if its mechanism can carry it out."""
        self.mechanism.check(self.domain, self.workload, self.helping)
        for event in self.mechanism.noisiest(
            self.domain, self.workload, allotment=self.for_mechanism, unit=self.unit
        ):
            event.require_drawable()
        self._refuse_unmeasurable()
        _ = self.outlook  # refuses a run that memory cannot hold
        return self

    def _refuse_unmeasurable(self) -> None:
        """Refuse a share for measured quality whose noise could not be drawn."""
        if self.mean_errors is not None:
            try:
                self.mean_errors.event(self.set_aside, self.unit).require_drawable()
            except SettingError as error:
                raise SettingError(
                    f"quality_share = {self.quality_share:g} of this budget is too little to measure how far "
                    "off the release is: the noise would be more than can be drawn exactly. Give a larger "
                    "epsilon or a larger quality_share, or switch it off with quality_share = 0."
                ) from error

    def _refuse_constants(self) -> None:
        """Refuse queries whose answer no person can change: they need no protection, and no noise."""
        for query in self.workload:
            if not query.l1(self.unit):
                raise WorkloadError(
                    f"{query.describe()} has the same answer whoever is in the table: its weights are all 0, "
                    "or all alike where the number of records is public. Leave it out of the workload."
                )

    @cached_property
    def public_records(self) -> dict[str, float]:
        """How many public records tell of each column; empty where none help."""
        return {} if self.helping is None else records_by_attribute(self.helping, self.domain)

    @property
    def domain(self) -> Domain:
        """The attributes that the release is about."""
        return self.schema.domain

    @property
    def allotment(self) -> Cost:
        """The most that the run may spend."""
        return self.mechanism.allotment(self.budget)

    def asked(self, ledger: Ledger, said: Purpose | None = None) -> "Plan":
        """This plan, with what the ledger says to it now."""
        return replace(self, ledger_says=LedgerAnswer.to(self, ledger, said))

    def purpose(self, said: Purpose | None = None) -> Purpose:
        """The purpose of the run: its mechanism, and the project and approval that people name."""
        return replace(said or Purpose(), mechanism=self.mechanism.name)

    @cached_property
    def mean_errors(self) -> MeanErrors | None:
        """Which mean errors are measured once the model is final; None where that is switched off."""
        if not set_aside(self.allotment, self.quality_share)[0]:
            if self.accept is not None:
                raise SettingError(
                    "quality_share = 0 leaves nothing to measure the criteria of accept with. Give it a "
                    "share of the budget, such as 0.05."
                )
            return None
        currency = type(self.allotment)
        quality = MeanErrors.of(self.workload.attribute_sets, self.domain, currency)
        return quality if self.accept is None else self.accept.added_to(quality, self.domain, currency)

    @cached_property
    def foreseen(self) -> tuple[Attrs, ...]:
        """Marginals that the run counts in any case: single attributes, and those of measured quality."""
        single = [(attr,) for attr in self.domain.attrs]
        measured = () if self.mean_errors is None else self.mean_errors.marginals
        return tuple(dict.fromkeys((*single, *measured)))

    @property
    def passes(self) -> int | None:
        """How often a table that is not in memory is read at most; None: as often as there are rounds.

        Once to check it and once to count, or twice where not all that is asked for is foreseen, and once
        more where values are grouped first. What does not fit in memory is counted again each round.
        """
        every = {*self.foreseen, *self.workload.attribute_sets}
        if not fits_in_cache(self.domain, every):
            return None
        return 2 + (not every <= set(self.foreseen)) + (self.bins is not None)

    @property
    def _split(self) -> tuple[Cost, Cost]:
        """The part of the allotment that measures how far off the release is, and the rest."""
        return set_aside(self.allotment, self.quality_share if self.mean_errors is not None else 0.0)

    @property
    def set_aside(self) -> Cost:
        """The part of the allotment that measures how far off the release is."""
        return self._split[0]

    @property
    def for_mechanism(self) -> Cost:
        """The least part of the allotment that the mechanism may spend."""
        rest = self._split[1]
        return rest if self.bins is None else self.bins.left_of(rest)

    @cached_property
    def outlook(self) -> Outlook:
        """The run's noise and memory, from public information alone."""
        return self.mechanism.outlook(
            self.domain, self.workload, allotment=self.for_mechanism, unit=self.unit
        )

    def as_json(self) -> dict[str, Any]:
        """The plan in plain values; a checkpoint is recognised by them, too."""
        outlook = self.outlook
        allotment = self.allotment
        return {
            "mechanism": self.mechanism.name,
            "why": self.why,
            "settings": self.mechanism.settings(),
            "unit": self.unit.as_json(),
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "epsilon_allotted" if isinstance(allotment, Epsilon) else "rho_allotted": float(allotment),
            "attributes": len(self.domain),
            "domain_cells": float(self.domain.size()),
            "public_records": self.public_records or None,
            "queries": len(self.workload),
            "measurements": outlook.measurements,
            "noise_stddev": outlook.stddev,
            "model_bytes": outlook.model_bytes,
            "counting_bytes": outlook.counting_bytes,
            "quality_share": self.quality_share,
            "quality_stddev": self.quality_stddev,
            "bins": "as declared" if self.bins is None else sorted(self.bins.joinable),
            "accept": None if self.accept is None else self.accept.as_json(),
            "reused": None if self.reused is None else self.reused.digest,
            "notes": list(self.notes),
        }

    def identity(self) -> dict[str, Any]:
        """The identity of a run: a checkpoint resumes only if all of it is the same; words do not count.

        Public data are recognised by their marks.
        """
        words = ("why", "notes", "public_records")
        planned = {name: value for name, value in self.as_json().items() if name not in words}
        return {**planned, "schema": self.schema.fingerprint, "workload": self.workload.as_json()}

    def fixed(self) -> "Plan":
        """The plan whose mechanism stays, however many records the table turns out to have."""
        return replace(self, is_fixed=True)

    @property
    def notes(self) -> tuple[str, ...]:
        """Further remarks, in sentences: of the mechanism, and on marginals that will not be measured."""
        grouped: tuple[str, ...] = ()
        if self.bins is not None:
            grouped = (self.bins.sentence(self.domain, self._split[1], self.unit),)
        elif self.helping is not None:
            alone = Bins.of(self.asked_bins, self.schema, self.workload, self.mechanism, None)
            grouped = () if alone is None else (alone.ungrouped,)
        public = () if self.helping is None else self.mechanism.public_notes(self.domain, self.helping)
        again = () if self.reused is None else (self.reused.sentence,)
        return (*again, *self.outlook.notes, *public, *grouped, *self.unmeasurable)

    def __repr__(self) -> str:
        budget = self.budget
        return (
            f"Plan({self.mechanism.name}, ε = {budget.epsilon:g} at δ = {budget.delta:g}, "
            f"{count_of(len(self.workload), 'query', 'queries')} about "
            f"{count_of(len(self.domain), 'attribute')})"
        )

    def __str__(self) -> str:
        return describe(self)

    @property
    def meaning(self) -> str:
        """The odds that this privacy loss gives somebody who accuses people, in a sentence."""
        return Meaning.of(self.allotment).sentence(self.unit)

    @property
    def unmeasurable(self) -> tuple[str, ...]:
        """The attributes and marginals that are sure not to be measured, in sentences."""
        asked, about = [attrs for attrs in self.workload.attribute_sets if attrs], len(self.workload.attrs)
        unasked = self.workload.leaves_out(self.domain)
        not_asked = (f"Not in the workload, so not measured: {listed(unasked, 12)}.",) if unasked else ()
        outlook, said = self.outlook, list[str]()
        if not outlook.measurements:
            return not_asked  # DualQuery learns by selecting alone
        if outlook.oversized:
            names = listed((" × ".join(attrs) for attrs in outlook.oversized), 5)
            said.append(f"Too large to be measured, so the model fills them in: {names}.")
        if outlook.measurements < len(asked):
            said.append(
                f"At most {outlook.measurements:,} of the workload's {len(asked):,} marginals can be "
                "measured; the model fills in the others."
            )
        reached = outlook.measurements * max(map(len, asked), default=0)
        if reached < about:
            said.append(
                f"At most {reached} of the workload's {about} attributes can be measured at all. Ask "
                "for more rounds, or for a mechanism that measures every attribute (aim)."
            )
        return (*said, *not_asked)

    @property
    def quality_stddev(self) -> float | None:
        """σ, in records, of the mean error that will be measured; None where none is."""
        if self.mean_errors is None or self.mean_errors.sets[0].kind != "degree":
            return None
        return self.mean_errors.event(self.set_aside, self.unit).stddev / self.mean_errors.sets[0].steps

    @property
    def tellable(self) -> tuple[str, ...]:
        """How well each criterion of acceptance can be told, in sentences; none where there are none."""
        if self.accept is None or self.mean_errors is None:
            return ()
        return self.accept.outlook(self.mean_errors, self.set_aside, self.unit)

    def check_total(self, records: int) -> None:
        """Refuse a table without records, or with too few for this much noise; n is public here."""
        if not records:
            raise DataError("the private table has no records. Nothing was charged.")
        if self.accept is not None and self.mean_errors is not None:
            self.accept.refuse_untellable(self.mean_errors, self.set_aside, self.unit, total=records)
        self.mechanism.check_total(float(records), allotment=self.for_mechanism, unit=self.unit)

    def warn_about(self, records: int | None) -> None:
        """Warn where δ is no small probability for a table of that size; None where the size is private."""
        least = MOST_DELTA if records is None else 1 / max(records, 1)
        if self.budget.delta >= least:
            bound = f"{MOST_DELTA:g}" if records is None else "1/n"
            such = "1/n²" if not records else f"{delta_for(records):g}"
            warnings.warn(
                f"delta = {self.budget.delta:g} is at least {bound}: the promise would allow publishing some "
                f"person's record outright. Choose a delta well below 1/n, such as {such}.",
                PrivacyWarning,
                stacklevel=3,
            )


def plan(
    *,
    schema: Schema | str | Path,
    epsilon: float,
    delta: float | None = None,
    public: Any = None,
    unit: Unit | str | None = None,
    mechanism: Mechanism | str = AUTO,
    workload: Any = "3-way",
    ledger: Ledger | str | Path | None = None,
    quality_share: float = SHARE,
    accept: Criteria | Mapping[str, Any] | str | Path | None = None,
    bins: str = AUTO,
    records: int | None = None,
    reuse: Any = None,
    project: str | None = None,
    approved_by: str | Sequence[str] | None = None,
    **settings: Any,
) -> Plan:
    """The plan that ``sl.release`` would follow; nothing private is read, and nothing is charged.

    It is called with the same words. ``print(sl.plan(…))`` shows mechanism, cost, noise, memory, which
    columns public data tell of, and whether the ledger can pay. ``records``: how many the private table has;
    ``auto`` looks at it where the unit keeps it fixed.
    """
    book = None if ledger is None else open_ledger(ledger)
    planned = Plan.of(
        schema=schema, epsilon=epsilon, delta=delta, unit=unit, mechanism=mechanism, workload=workload,
        public=public, ledger=book, quality_share=quality_share, accept=accept, bins=bins, reuse=reuse,
        settings=settings,
    )  # fmt: skip
    if records is not None:
        planned = planned.knowing(records)
    said = Purpose.of("", project=project, approved_by=approved_by)
    return planned if book is None else planned.asked(book, said)


def _delta(delta: float | None, ledger: Ledger | None, named: Choice | None, epsilon: float) -> float:
    if ledger is not None:
        promised = ledger.promise.budget.delta
        if delta is not None and delta != promised:
            raise SettingError(
                f"delta must be the ledger's own, {promised:g}; got {delta:g}. Leave delta out: "
                "what a release spends is counted at the ledger's δ."
            )
        return promised
    if delta is None:
        if named is not None and isinstance(
            named.mechanism.allotment(Budget(epsilon=epsilon, delta=1e-9)), Epsilon
        ):
            return 0.0
        raise SettingError(
            "delta must be given (such as 1e-9, and well below 1/n), or a ledger that promises one."
        )
    return delta
