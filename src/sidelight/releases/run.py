"""The front door: from a private table to a release in one call."""

import platform
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sidelight.curator.curator import Curator
from sidelight.curator.journal import Journal
from sidelight.data.fingerprint import marks_of
from sidelight.data.leak_guard import refuse_same
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.mechanisms.base import Mechanism, Outcome
from sidelight.privacy.budget import Epsilon
from sidelight.privacy.convert import epsilon_of
from sidelight.privacy.ledger import Ledger, MemoryLedger, Promise, new_run
from sidelight.privacy.marks import Marks
from sidelight.privacy.noise import NoiseSource, SystemNoise
from sidelight.privacy.promise import agreed_unit
from sidelight.privacy.sql_ledger import open_ledger
from sidelight.privacy.unit import Unit
from sidelight.progress import Progress, progress_of
from sidelight.releases.plan import Plan
from sidelight.releases.prior_folder import marks_of_public
from sidelight.releases.quality import SHARE, Quality
from sidelight.releases.release import Release
from sidelight.uncertainty.disagreement import disagreements

_LISTED = 2000
"""At most so many marginals of the workload are named on a release card."""


def release(
    private: Any,
    *,
    schema: Schema | str | Path,
    epsilon: float,
    delta: float | None = None,
    public: Any = None,
    unit: Unit | str | None = None,
    mechanism: Mechanism | str | None = None,
    workload: Any = "3-way",
    ledger: Ledger | str | Path | None = None,
    checkpoint: str | Path | None = None,
    noise: NoiseSource | None = None,
    progress: bool | Progress = True,
    quality_share: float = SHARE,
    **settings: Any,
) -> Release:
    """Spend privacy budget once; get a release that anyone may see.

    Args:
        private: a path (.csv, .parquet, a glob), a pandas, polars or pyarrow table, a DuckDB
            relation, a Spark DataFrame, or ``postgresql://…#table``.
        schema: columns, bins and labels, declared beforehand; or the file that holds them.
        epsilon: what to spend of ε, at ``delta``, or at the ledger's δ where a ledger is given.
        delta: δ; a probability well below 1/n.
        public: a public table of the same schema, for the mechanisms that use one.
        unit: what one person can change, ``replace`` or ``add-or-remove``; unless said, that of
            schema and ledger.
        mechanism: a name, or a mechanism with its settings.
        workload: the queries to answer well: ``3-way``, a list of attribute sets, a Workload.
        ledger: a file or database that keeps this table's spending for ever.
        checkpoint: a folder in which every paid output is journalled; the same call resumes.
        noise: operating-system noise unless said; ``sl.testing.SeededNoise`` for experiments.
        progress: bars on standard error, where that is a terminal.
        quality_share: share of the budget that measures how far off the release is, once its model stands:
            ``release.quality``. 0 measures nothing.
        settings: the mechanism's own fields, such as ``rounds=30``.
    """
    refuse_same(private, public)
    bars = progress_of(progress)
    book = None if ledger is None else open_ledger(ledger)
    with bars.phase("plan"):
        plan = Plan.of(
            schema=schema, epsilon=epsilon, delta=delta, unit=unit, mechanism=mechanism,
            workload=workload, public=public, ledger=book,
            quality_share=quality_share, settings=settings,
        )  # fmt: skip
    if book is None:
        book = MemoryLedger(Promise(plan.budget, plan.unit, "this release"))
    return run(plan, private, ledger=book, checkpoint=checkpoint, noise=noise, progress=bars)


def run(
    plan: Plan,
    private: Any,
    *,
    ledger: Ledger,
    checkpoint: str | Path | None = None,
    noise: NoiseSource | None = None,
    progress: Progress,
) -> Release:
    """Carry out a plan: reserve its budget, read the private table, run the mechanism, close the books."""
    agreed_unit(asked=plan.unit, promise=ledger.promise)
    source = noise if noise is not None else SystemNoise()
    identity = _identity(plan)
    folder = None if checkpoint is None else Path(checkpoint)
    known_run = None if folder is None else Journal.read_run(folder, identity)
    if known_run is None or not ledger.knows(known_run) or _came_to_nothing(ledger, known_run):
        ledger.require(plan.allotment)
    with progress.phase("read"):
        table = Table.read(private, plan.schema, may_be_empty=not plan.unit.total_is_public)
    if plan.unit.total_is_public:
        # PRIVACY: n is public under replacement.
        plan.check_total(table.records)
        plan.warn_about(table.records)
    if not isinstance(ledger, MemoryLedger):  # which no other table will ever see
        ledger.for_table(marks_of(table, private, ledger.key))
    label = f"{plan.mechanism.name}, {len(plan.workload)} queries"

    def tables(key: str) -> dict[str, Marks]:
        return {"private": marks_of(table, private, key)} | marks_of_public(plan.public, key)

    journal = None if folder is None else _journal(folder, ledger, identity, tables)
    number = new_run() if journal is None else journal.run
    try:
        if not ledger.knows(number):
            ledger.begin(plan.allotment, label=label, run=number)
        with progress.phase(plan.mechanism.name):
            curator = Curator(
                table, allotment=plan.allotment, set_aside=plan.set_aside, unit=plan.unit,
                ledger=ledger, run=number, noise=source, journal=journal, progress=progress,
            )  # fmt: skip
            outcome = plan.mechanism.run(curator, plan.workload, public=plan.public)
        quality = None
        if plan.mean_errors is not None:
            with progress.phase("quality"):
                measured = curator.mean_errors(plan.mean_errors, outcome.model)
                quality = Quality.of(plan.mean_errors, measured, total=outcome.model.total)
        outcome = replace(outcome, events=curator.events)
        ledger.close(number)
    except BaseException as error:
        # Without a checkpoint nobody can take this run up again, and a run that paid for nothing has
        # nothing to take up: what it did not spend goes back.
        begun = ledger.knows(number)
        paid = begun and any(ledger.events(number))
        if journal is None or not (paid or journal.outputs):
            if begun:
                ledger.close(number)
            if journal is not None:
                journal.discard()
        elif isinstance(error, (KeyboardInterrupt, OSError, MemoryError)):
            error.add_note(
                f"What was paid for is kept in {folder}. Repeat the same command or call: "
                "it resumes, and pays nothing twice."
            )
        raise
    finally:
        if journal is not None:
            journal.close()
    card = outcome.told | _card(plan, outcome, ledger, number, source)
    if quality is not None:
        card["quality"] = quality.as_json()
    return Release.of(outcome, schema=plan.schema, card=card, kind=table.kind)


def _identity(plan: Plan) -> dict[str, Any]:
    """What makes a run this run and no other: a checkpoint resumes only where all of it is the same."""
    return {**plan.as_json(), "schema": plan.schema.fingerprint, "workload": plan.workload.as_json()}


def _journal(
    folder: Path, ledger: Ledger, identity: dict[str, Any], tables: Callable[[str], dict[str, Marks]]
) -> Journal:
    """The run's journal; a new run is named there before it begins, so that no crash can lose it."""
    journal = Journal.open(folder, run=new_run(), settings=identity, tables=tables)
    if not journal.outputs and ledger.knows(journal.run) and _came_to_nothing(ledger, journal.run):
        journal.restart(new_run(), identity)
    return journal


def _came_to_nothing(ledger: Ledger, run_id: str) -> bool:
    """Whether a run gave everything back, and died before its journal could forget it."""
    return not ledger.is_open(run_id) and not any(ledger.events(run_id))


def _card(plan: Plan, outcome: Outcome, ledger: Ledger, run_id: str, noise: NoiseSource) -> dict[str, Any]:
    """All that a reader needs to know about how the release was made; nothing private."""
    charged = ledger.run(run_id)
    spent = charged.spent.value
    pure = isinstance(plan.allotment, Epsilon)
    card: dict[str, Any] = {
        "mechanism": plan.mechanism.name,
        "settings": plan.mechanism.settings(),
        "unit": {"relation": plan.unit.relation, "records": plan.unit.records},
        "promise": f"({plan.budget.epsilon:g}, {plan.budget.delta:g})-differential privacy under "
        + plan.unit.describe(),
        "epsilon": plan.budget.epsilon,
        "delta": plan.budget.delta,
        "accounting": "pure" if pure else "zcdp",
        "allotted": str(plan.allotment.value),
        "spent": str(spent),
        "epsilon_spent": float(spent) if pure else epsilon_of(float(spent), plan.budget.delta),
        "total": outcome.model.total,
        "workload": {
            "queries": len(plan.workload),
            "marginals": len(plan.workload.supports),
            "supports": [list(attrs) for attrs in plan.workload.supports[:_LISTED]],
            "asked": _asked(plan),
        },
        "public": None if plan.public is None else {"records": _number_of_records(plan.public)},
        "events": [event.as_json() for event in outcome.events],
        "ledger": {"name": ledger.promise.shown, "run": run_id, "head": ledger.head},
        "noise": noise.name,
        "private": noise.is_private,
        "schema": plan.schema.fingerprint,
        "versions": {name: version(name) for name in ("sidelight", "numpy", "scipy")}
        | {"python": platform.python_version()},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if charged.repeats:
        # A crash lost what was drawn, or the checkpoint was a copy: the ledger was charged for all draws.
        path = sum((event.cost.value for event in outcome.events), start=Fraction(0))
        card["paid_again"] = {"events": charged.repeats, "cost": str(spent - path)}
    if isinstance(plan.public, Table) and "public_error" not in outcome.facts:
        card["public_error"] = disagreements(outcome.measurements, plan.public, total=outcome.model.total)
    if not noise.is_private:
        card["warning"] = (
            "NOT PRIVATE: the noise was seeded, and can be drawn again by anyone who knows the seed."
        )
    return card


def _number_of_records(public: Any) -> float | None:
    """How many public records there are, where they are counted; the model of an earlier release has none."""
    number = getattr(public, "records", None)
    return number if isinstance(number, int | float) else None


def _asked(plan: Plan) -> str | list[dict[str, Any]] | None:
    """The workload as it can be asked for again: its name, or its queries where they are not too many."""
    name = plan.workload.name_in(plan.domain)
    return name if name is not None or len(plan.workload) > _LISTED else plan.workload.as_json()
