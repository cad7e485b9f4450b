"""``sl.release``: from a private table to a release in one call."""

import platform
import warnings
from collections.abc import Callable, Mapping, Sequence
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
from sidelight.errors import LedgerError, PrivacyWarning
from sidelight.mechanisms.base import Mechanism, Outcome
from sidelight.mechanisms.registry import AUTO
from sidelight.privacy.budget import Epsilon
from sidelight.privacy.chained_ledger import new_run
from sidelight.privacy.event import Event
from sidelight.privacy.ledger import Ledger, MemoryLedger, Promise
from sidelight.privacy.marks import Marks
from sidelight.privacy.noise import NoiseSource, SystemNoise
from sidelight.privacy.promise import agreed_unit
from sidelight.privacy.sql_ledger import open_ledger
from sidelight.privacy.unit import Unit
from sidelight.progress import Progress, progress_of
from sidelight.releases.acceptance import Acceptance, Criteria
from sidelight.releases.card import NO_LEDGER, AskedWorkload, Card, LedgerEntry, PaidAgain, PublicData
from sidelight.releases.plan import Plan
from sidelight.releases.public_data import marks_of_public
from sidelight.releases.quality import SHARE, Quality
from sidelight.releases.release import Release
from sidelight.releases.unmeasured import Unmeasured
from sidelight.uncertainty.disagreement import Disagreement, disagreements

_LISTED = 2000
"""Most marginals of the workload that a release card lists."""


def release(
    private: Any,
    *,
    schema: Schema | str | Path,
    epsilon: float,
    delta: float | None = None,
    public: Any = None,
    unit: Unit | str | None = None,
    mechanism: Mechanism | str = AUTO,
    workload: Any = "3-way",
    ledger: Ledger | str | Path | None = None,
    checkpoint: str | Path | None = None,
    noise: NoiseSource | None = None,
    progress: bool | Progress = True,
    quality_share: float = SHARE,
    accept: Criteria | Mapping[str, Any] | str | Path | None = None,
    **settings: Any,
) -> Release:
    """Spend privacy budget once, and get a release that anyone may see.

    Args:
        private: a path (.csv, .parquet, a glob), a pandas, polars or pyarrow table, a DuckDB
            relation, a Spark DataFrame, or ``postgresql://…#table``.
        schema: columns, bins and labels, declared beforehand; or the path of a schema file.
        epsilon: the ε that this release spends, counted at ``delta`` or at the ledger's δ.
        delta: δ, a probability well below 1/n; leave it out with a ledger, which has its own.
        public: public data, for the mechanisms that use some: a table of the same schema; for ``aperture``
            also an earlier release, the folder of a prior, or a list of them.
        unit: what one person can change, ``replace`` or ``add-or-remove``; by default that of
            schema and ledger.
        mechanism: a name, or a mechanism with its settings. ``auto`` chooses one from public facts alone:
            the workload, δ and the public data; ``release.card.why`` says why.
        workload: the queries to answer well: ``3-way``, a list of attribute sets, a Workload.
        ledger: the file or database that records this table's spending for ever; see ``sl.SqlLedger``.
        checkpoint: a folder for the journal of paid answers; after an interruption the same call resumes.
        noise: noise from the operating system by default; ``sl.testing.SeededNoise`` for experiments.
        progress: whether to show progress bars on standard error, if that is a terminal.
        quality_share: the share of the budget that measures how far off the release is: ``release.quality``.
            0 measures nothing.
        accept: criteria that the release must keep, as the path of a TOML file or as what such a file
            holds; the same share of the budget measures them. ``release.card.acceptance`` has the verdict.
        settings: the mechanism's own settings, such as ``rounds=30``.
    """
    refuse_same(private, public)
    bars = progress_of(progress)
    book = None if ledger is None else open_ledger(ledger)
    with bars.phase("plan"):
        plan = Plan.of(
            schema=schema, epsilon=epsilon, delta=delta, unit=unit, mechanism=mechanism,
            workload=workload, public=public, ledger=book,
            quality_share=quality_share, accept=accept, settings=settings,
        )  # fmt: skip
    if book is None:
        book = MemoryLedger(Promise(plan.budget, plan.unit, NO_LEDGER))
    return run(plan, private, ledger=book, checkpoint=checkpoint, noise=noise, progress=bars)


def run(
    plan: Plan,
    private: Any,
    *,
    ledger: Ledger,
    checkpoint: str | Path | None = None,
    noise: NoiseSource | None = None,
    progress: Progress,
    is_confirmed: bool = True,
) -> Release:
    """Carry out a plan: reserve its budget, read the private table, run the mechanism, close the run.

    If the ledger has seen its table under other schemas only, the run warns, or is refused unless
    ``is_confirmed``.
    """
    agreed_unit(asked=plan.unit, promise=ledger.promise)
    source = noise if noise is not None else SystemNoise()
    identity = _identity(plan)
    folder = None if checkpoint is None else Path(checkpoint)
    known_run = None if folder is None else Journal.read_run(folder, identity)
    if known_run is None or not ledger.knows(known_run) or _came_to_nothing(ledger, known_run):
        ledger.require(plan.allotment)
    with progress.phase("read"):
        table = Table.read(private, plan.schema, may_be_empty=not plan.unit.total_is_public)
    _check_size(plan, table)
    if not isinstance(ledger, MemoryLedger):  # a ledger in memory serves this one table
        marks = marks_of(table, private, ledger.key)
        if ledger.has_other_schema(marks):
            _say_other_schema(ledger, is_confirmed=is_confirmed)
        ledger.for_table(marks)
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
        quality = acceptance = None
        if plan.mean_errors is not None:
            with progress.phase("quality"):
                measured = curator.mean_errors(plan.mean_errors, outcome.model)
                quality = Quality.of(plan.mean_errors, measured, total=outcome.model.total)
                if plan.accept is not None:
                    acceptance = plan.accept.judged(
                        plan.mean_errors, measured, total=outcome.model.total, cost=plan.set_aside
                    )
        ledger.close(number)
    except BaseException as error:
        if not _can_resume(ledger, number, journal):
            _abandon(ledger, number, journal)
        elif isinstance(error, (KeyboardInterrupt, OSError, MemoryError)):
            error.add_note(
                f"What was paid for is kept in {folder}. Repeat the same command or call: "
                "it resumes, and pays nothing twice."
            )
        raise
    finally:
        if journal is not None:
            journal.close()
    card = _card(plan, outcome, curator.events, quality, acceptance, ledger, number, source)
    return Release(outcome.model, outcome.measurements, card, plan.schema, table.kind)


def _check_size(plan: Plan, table: Table) -> None:
    """Refuse a table that is too small for the plan; warn where δ is no small probability."""
    if plan.unit.total_is_public:
        # PRIVACY: n is public under replacement.
        plan.check_total(table.records)
        plan.warn_about(table.records)
    else:
        plan.warn_about(None)


def _can_resume(ledger: Ledger, run_id: str, journal: Journal | None) -> bool:
    """Whether a run that failed has paid for something, and its checkpoint keeps it."""
    if journal is None:
        return False
    return bool(journal.outputs) or (ledger.knows(run_id) and any(ledger.events(run_id)))


def _abandon(ledger: Ledger, run_id: str, journal: Journal | None) -> None:
    """End a run that nobody can resume: what it did not spend goes back."""
    if ledger.knows(run_id):
        ledger.close(run_id)
    if journal is not None:
        journal.discard()


def _say_other_schema(ledger: Ledger, *, is_confirmed: bool) -> None:
    """Warn, or refuse: spending adds up over schemas, but another schema may be a slip."""
    said = (
        f"{ledger.promise.shown!r} has paid for releases under another schema. What this one spends is added "
        "to theirs."
    )
    if not is_confirmed:
        raise LedgerError(
            f"{said} If this is the table and the schema that you mean, repeat the command with --yes. "
            "Nothing was charged."
        )
    warnings.warn(said, PrivacyWarning, stacklevel=4)


def _identity(plan: Plan) -> dict[str, Any]:
    """What identifies a run: a checkpoint resumes only if all of it is the same; words do not count."""
    planned = {name: value for name, value in plan.as_json().items() if name not in ("why", "notes")}
    return {**planned, "schema": plan.schema.fingerprint, "workload": plan.workload.as_json()}


def _journal(
    folder: Path, ledger: Ledger, identity: dict[str, Any], tables: Callable[[str], dict[str, Marks]]
) -> Journal:
    """The run's journal. A new run is named there before it begins, so that no crash can lose it."""
    journal = Journal.open(folder, run=new_run(), settings=identity, tables=tables)
    if not journal.outputs and ledger.knows(journal.run) and _came_to_nothing(ledger, journal.run):
        journal.restart(new_run(), identity)
    return journal


def _came_to_nothing(ledger: Ledger, run_id: str) -> bool:
    """Whether a run paid for nothing and was closed, but its process died before the journal was removed."""
    return not ledger.is_open(run_id) and not any(ledger.events(run_id))


def _card(
    plan: Plan,
    outcome: Outcome,
    events: tuple[Event, ...],
    quality: Quality | None,
    acceptance: Acceptance | None,
    ledger: Ledger,
    run_id: str,
    noise: NoiseSource,
) -> Card:
    """The release's card: how the release was made, and nothing private."""
    charged = ledger.run(run_id)
    paid_again = None
    if charged.repeats:
        # A crash lost what was drawn, or the checkpoint was a copy: the ledger was charged for all draws.
        path = sum((event.cost.value for event in events), start=Fraction(0))
        paid_again = PaidAgain(events=charged.repeats, cost=charged.spent.value - path)
    return Card(
        mechanism=plan.mechanism.name,
        why=plan.why,
        settings=plan.mechanism.settings(),
        papers=plan.mechanism.papers,
        unit=plan.unit,
        epsilon=float(plan.budget.epsilon),
        delta=float(plan.budget.delta),
        accounting="pure" if isinstance(plan.allotment, Epsilon) else "zcdp",
        allotted=plan.allotment.value,
        spent=charged.spent.value,
        events=events,
        paid_again=paid_again,
        ledger=LedgerEntry(name=ledger.promise.shown, run=run_id, head=ledger.head),
        noise=noise.name,
        private=noise.is_private,
        workload=_workload(plan),
        public=_public(plan, outcome),
        schema=plan.schema.fingerprint,
        total=outcome.model.total,
        quality=quality,
        acceptance=acceptance,
        unmeasured=_unmeasured(plan, outcome),
        model_error=outcome.model_error,
        notes=outcome.notes,
        rounds=outcome.rounds,
        aperture=outcome.aperture,
        versions={name: version(name) for name in ("sidelight", "numpy", "scipy")}
        | {"python": platform.python_version()},
        created=datetime.now(UTC).replace(microsecond=0),
    )


def _unmeasured(plan: Plan, outcome: Outcome) -> Unmeasured | None:
    """What no measurement covers; None for a mechanism that learns by selecting alone."""
    if not plan.outlook.measurements:
        return None
    asked = plan.workload.attribute_sets
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
    public = plan.public
    if public is None:
        return None
    number = getattr(public, "records", None)
    apart: Sequence[Disagreement] = ()
    if isinstance(public, Table) and outcome.aperture is None:
        apart = disagreements(outcome.measurements, public, total=outcome.model.total)
    return PublicData(
        records=float(number) if isinstance(number, int | float) else None, disagreements=tuple(apart)
    )
