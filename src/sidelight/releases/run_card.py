"""The card of a run, written once the run has ended.

``card.py`` says what each fact means.
"""

import platform
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from importlib.metadata import version

from sidelight.data.table import Table
from sidelight.mechanisms.base import Outcome
from sidelight.mechanisms.registry import AUTO
from sidelight.privacy.budget import Epsilon
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.event import Event
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.noise import NoiseSource
from sidelight.releases.card import NO_LEDGER, AskedWorkload, Card, LedgerEntry, PaidAgain, PublicData
from sidelight.releases.history import history_of
from sidelight.releases.plan import Plan
from sidelight.releases.unmeasured import Unmeasured
from sidelight.uncertainty.disagreement import Disagreement, disagreements

_LISTED = 2000
"""Most marginals of the workload that a release card lists."""


def card_of(
    plan: Plan,
    outcome: Outcome,
    events: tuple[Event, ...],
    ledger: Ledger,
    run_id: str,
    noise: NoiseSource,
) -> Card:
    """The card of a run that has ended: how the release was made, and nothing private."""
    charged = ledger.run(run_id)
    paid_again = None
    if charged.repeats:
        # A crash lost what was drawn, or the checkpoint was a copy: the ledger was charged for all draws.
        path = sum((event.cost.value for event in events), start=Fraction(0))
        paid_again = PaidAgain(events=charged.repeats, cost=charged.spent.value - path)
    return Card(
        mechanism=plan.mechanism.name,
        why=plan.why,
        settings={**plan.mechanism.settings(), **outcome.decided},
        papers=plan.mechanism.papers,
        unit=plan.unit,
        epsilon=float(plan.budget.epsilon),
        delta=float(plan.budget.delta),
        accounting="pure" if isinstance(plan.allotment, Epsilon) else "zcdp",
        allotted=plan.allotment.value,
        spent=charged.spent.value,
        events=events,
        paid_again=paid_again,
        ledger=_ledger_entry(ledger, run_id),
        noise=noise.name,
        noise_is_private=noise.is_private,
        workload=_workload(plan),
        public=_public(plan, outcome),
        schema_fingerprint=plan.schema.fingerprint,
        total=outcome.model.total,
        unmeasured=_unmeasured(plan, outcome),
        model_error=outcome.model_error,
        notes=outcome.notes,
        rounds=outcome.rounds,
        aperture=outcome.aperture,
        quality_share=plan.quality_share,
        bins="auto" if plan.asked_bins == AUTO else "as declared",
        groups=outcome.groups,
        versions={name: version(name) for name in ("sidelight", "numpy", "scipy")}
        | {"python": platform.python_version()},
        created=datetime.now(UTC).replace(microsecond=0),
    )


def _ledger_entry(ledger: Ledger, run_id: str) -> LedgerEntry:
    """Where the spending is written down, and what it adds up to there."""
    purpose = ledger.run(run_id).purpose
    entry = LedgerEntry(
        name=ledger.promise.shown, run=run_id, head=ledger.head,
        project=purpose.project, approved_by=purpose.approved_by,
    )  # fmt: skip
    if isinstance(ledger, MemoryLedger) and entry.name == NO_LEDGER:
        return entry
    budget = ledger.promise.budget
    return replace(
        entry,
        promised=float(budget.epsilon),
        used=budget.epsilon_of(ledger.tally),
        history=history_of(ledger),
    )


def _unmeasured(plan: Plan, outcome: Outcome) -> Unmeasured | None:
    """Marginals that nothing measured; or, where a mechanism only selects, attributes nobody asked for."""
    asked = plan.workload.attribute_sets
    if not plan.outlook.measurements:
        unasked = plan.workload.leaves_out(plan.domain)
        number = sum(map(bool, asked))
        left = Unmeasured(attributes=unasked, told_by_public=(), marginals=(), number=0, of=number)
        return left if unasked else None
    return Unmeasured.after(outcome.measurements, asked, plan.domain, public_attrs=outcome.public_attrs)


def _workload(plan: Plan) -> AskedWorkload:
    """The workload as it can be asked for again: by name, or by its queries where these are not too many."""
    asked, sets = plan.workload, plan.workload.attribute_sets
    name = asked.name_in(plan.domain)
    return AskedWorkload(
        queries=len(asked),
        marginals=len(sets),
        attribute_sets=sets[:_LISTED],
        asked=name if name is not None or len(asked) > _LISTED else tuple(asked.as_json()),
    )


def _public(plan: Plan, outcome: Outcome) -> PublicData | None:
    """How many public records there are, where they are counted; and how far off they are.

    The model of an earlier release has no records. APERTURE tells by itself how far it moved.
    """
    public = plan.helping
    if public is None:
        return None
    number = getattr(public, "records", None)
    apart: Sequence[Disagreement] = ()
    if isinstance(public, Table) and outcome.aperture is None:
        apart = disagreements(outcome.measurements, public, total=outcome.model.total)
    return PublicData(
        records=float(number) if isinstance(number, int | float) else None,
        disagreements=tuple(apart),
        columns=plan.public_records,
        remarks=plan.public_remarks,
    )
