"""``sl.release``: from a private table to a release in one call."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sidelight._check import brief, count_of
from sidelight._interrupt import told
from sidelight.curator.curator import Curator
from sidelight.curator.journal import Journal
from sidelight.data.fingerprint import marks_of
from sidelight.data.leak_guard import refuse_same
from sidelight.data.people import people_key
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import (
    BudgetExhausted,
    LedgerError,
    PrivacyWarning,
    SettingError,
)
from sidelight.mechanisms.base import Mechanism, Outcome
from sidelight.mechanisms.registry import AUTO
from sidelight.privacy.chained_ledger import Ledger, new_run
from sidelight.privacy.ledger import MemoryLedger, warn_unrecorded
from sidelight.privacy.marks import Marks, new_key
from sidelight.privacy.noise import NoiseSource, SystemNoise
from sidelight.privacy.promise import Promise, agreed_unit
from sidelight.privacy.purpose import Purpose
from sidelight.privacy.sql_ledger import open_ledger
from sidelight.privacy.unit import Unit
from sidelight.progress import Progress, progress_of
from sidelight.releases.acceptance import Criteria
from sidelight.releases.card import NO_LEDGER
from sidelight.releases.failed_run import end_failed
from sidelight.releases.judged import judged
from sidelight.releases.plan import Plan
from sidelight.releases.public_data import marks_of_public
from sidelight.releases.quality import SHARE
from sidelight.releases.release import Release
from sidelight.releases.reuse import Reused, refuse_unless_same
from sidelight.releases.run_card import card_of


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
    bins: str = AUTO,
    reuse: Any = None,
    project: str | None = None,
    approved_by: str | Sequence[str] | None = None,
    **settings: Any,
) -> Release:
    """Spend privacy budget once, and get a release that anyone may see.

    Args:
        private: a path (.csv, .parquet, .xlsx, a glob), a pandas, polars or pyarrow table, a DuckDB
            relation, a Spark or Dask DataFrame, or ``postgresql://…#table``.
        schema: columns, bins and labels, declared beforehand; or the path of a schema file.
        epsilon: the ε that this release spends, counted at ``delta`` or at the ledger's δ.
        delta: δ, a probability well below 1/n; leave it out with a ledger, which has its own.
        public: public data, for the mechanisms that use some: a table, which for ``aperture`` and ``jam`` may
            lack columns, or a list of them; for ``aperture`` also earlier releases and folders of priors, for
            ``gem-pub`` an earlier release of its own or of ``gem``.
        unit: what one person can change, ``replace``, ``add-or-remove`` or a Unit; by default that of
            schema and ledger.
        mechanism: a name, or a mechanism with its settings. ``auto`` chooses one from public facts alone:
            the workload, ε and δ, the public data, and n where it is public; ``release.card.why`` says why.
        workload: the queries to answer well: ``3-way``, a list of attribute sets, a Workload.
        ledger: the file or database that records this table's spending for ever; see ``sl.SqlLedger``.
        checkpoint: a folder for the journal of paid answers; after an interruption the same call resumes.
        noise: noise from the operating system by default; ``sl.testing.SeededNoise`` for experiments.
        progress: whether to show progress bars on standard error, if that is a terminal.
        quality_share: the share of the budget that measures how far off the release is: ``release.quality``.
            0 measures nothing.
        accept: criteria that the release must keep, as the path of a TOML file or as what such a file
            holds; the same share of the budget measures them. ``release.card.acceptance`` has the verdict.
        bins: ``auto`` models neighbouring values of a numeric column in groups where it has many more of them
            than n and ε can tell apart; ``release.card.groups`` says which. ``as declared`` never does.
        reuse: earlier releases of the same records, or their folders, whose noisy answers are used again for
            nothing; schema, unit and ledger must be theirs.
        project: what the release is for, by a name that the ledger's policy knows; the ledger keeps it.
        approved_by: who approved it, by name; the ledger keeps that too.
        settings: the mechanism's own settings, such as ``rounds=30``.
    """
    refuse_same(private, public)
    if not (noise is None or hasattr(noise, "is_private")):
        raise SettingError(
            "noise must be None, for noise from the operating system, or a source such as "
            f"sl.testing.SeededNoise(7), for experiments; got {brief(noise)}."
        )
    bars = progress_of(progress)
    book = None if ledger is None else open_ledger(ledger)
    with bars.phase("plan"):
        plan = Plan.of(
            schema=schema, epsilon=epsilon, delta=delta, unit=unit, mechanism=mechanism,
            workload=workload, public=public, ledger=book,
            quality_share=quality_share, accept=accept, bins=bins, reuse=reuse, settings=settings,
        )  # fmt: skip
    if book is None:
        book = MemoryLedger(Promise(plan.budget, plan.unit, NO_LEDGER))
        if noise is None or noise.is_private:
            warn_unrecorded(book.promise)
    said = Purpose.of("", project=project, approved_by=approved_by)
    return run(plan, private, ledger=book, checkpoint=checkpoint, noise=noise, progress=bars, said=said)


def run(
    plan: Plan,
    private: Any,
    *,
    ledger: Ledger,
    checkpoint: str | Path | None = None,
    noise: NoiseSource | None = None,
    progress: Progress,
    is_confirmed: bool = True,
    said: Purpose | None = None,
) -> Release:
    """Carry out a plan: reserve its budget, read the private table, run the mechanism, close the run.

    If the ledger has seen its table under other schemas only, the run warns, or is refused unless
    ``is_confirmed``. ``said`` is what people say of its purpose; the mechanism is the plan's. Whoever passes
    an approval in it has compared its digest with that of the plan (``plan_digest.require_approved``).
    """
    agreed_unit(asked=plan.unit, promise=ledger.promise)
    source = noise if noise is not None else SystemNoise()
    identity = plan.identity()
    folder = None if checkpoint is None else Path(checkpoint)
    with told("This attempt charged nothing: repeat the same command or call."):
        _require_budget(plan, ledger, folder, identity, said)
        plan, table = _read(plan, private, progress)
        if not isinstance(ledger, MemoryLedger):  # a ledger in memory serves this one table
            _tell_ledger(ledger, table, private, plan.reused, is_confirmed=is_confirmed)

        def tables(key: str) -> dict[str, Marks]:
            return {"private": marks_of(table, private, key)} | marks_of_public(plan.public, key)

        is_new = folder is not None and not folder.exists()
        journal = None if folder is None else _journal(folder, ledger, identity, tables)
        number = new_run() if journal is None else journal.run
    try:
        kept = _kept(table, plan.unit, ledger, journal, progress)
        if not ledger.knows(number):
            label = f"{plan.mechanism.name}, {count_of(len(plan.workload), 'query', 'queries')}"
            ledger.begin(plan.allotment, label=label, run=number, purpose=plan.purpose(said))
        with progress.phase(plan.mechanism.name):
            curator = Curator(
                kept, allotment=plan.allotment, set_aside=plan.set_aside, unit=plan.unit,
                ledger=ledger, run=number, noise=source, journal=journal, progress=progress,
                earlier=() if plan.reused is None else plan.reused.measurements, foreseen=plan.foreseen,
            )  # fmt: skip
            if plan.bins is not None:
                outcome = plan.bins.run(plan.mechanism, curator, plan.workload)
            else:
                outcome = plan.mechanism.run(curator, plan.workload, public=plan.helping)
        outcome = replace(outcome, total_stddev=_noise_in_total(outcome, curator))
        facts = judged(plan, curator, outcome, progress)
        ledger.close(number)
    except BaseException as error:
        end_failed(error, ledger, number, journal, folder, is_new=is_new)
        raise
    finally:
        if journal is not None:
            journal.close()
    reused = () if plan.reused is None else plan.reused.after(curator.used_again)
    card = replace(
        card_of(plan, outcome, curator.events, ledger, number, source),
        reused=reused, counting=kept.counting, **facts,
    )  # fmt: skip
    return Release(outcome.model, outcome.measurements, card, plan.schema, table.kind)


def _noise_in_total(outcome: Outcome, curator: Curator) -> float:
    """σ of the noise in n, where the model was scaled to one noisy count, and no answer holds it; else 0."""
    n = curator.noisy_total
    if n is None or any(not made.query.attrs for made in outcome.measurements):
        return 0.0
    return curator.total_stddev if math.isclose(outcome.total, n, rel_tol=1e-9) else 0.0


def _require_budget(
    plan: Plan, ledger: Ledger, folder: Path | None, identity: dict[str, Any], said: Purpose | None
) -> None:
    """Refuse a run that the ledger cannot pay for, unless it has begun and has its allotment."""
    if not _has_begun(ledger, folder, identity):
        try:
            ledger.require(plan.allotment, plan.purpose(said))
        except BudgetExhausted:
            # Another process may have begun this very run meanwhile: its checkpoint has the last word.
            if not _has_begun(ledger, folder, identity):
                raise


def _read(plan: Plan, private: Any, progress: Progress) -> tuple[Plan, Table]:
    """The private table, and the plan for so many records, where n is public.

    A table that is too small for the plan is refused; a δ that is no small probability is warned of.
    """
    total_is_public = plan.unit.total_is_public
    with progress.phase("read"):
        table = Table.read(private, plan.schema, may_be_empty=not total_is_public, unit=plan.unit)
    if total_is_public:
        # PRIVACY: n is public under replacement.
        plan = plan.knowing(table.records)
        plan.check_total(table.records)
    plan.warn_about(table.records if total_is_public else None)
    return plan, table


def _kept(table: Table, unit: Unit, ledger: Ledger, journal: Journal | None, progress: Progress) -> Table:
    """The table, with as many records of each person as the unit says."""
    if unit.person is None or table.kept == unit:
        return table
    with progress.phase("people"):
        return table.keeping(unit, people_key(_key(ledger, journal)))


def _key(ledger: Ledger, journal: Journal | None) -> str:
    """The key by which some records of a person are kept: a ledger's own, so that every run keeps the same.

    An earlier answer is about the same records only if the same ones of each person were kept for it.
    """
    if not isinstance(ledger, MemoryLedger):
        return ledger.key
    return new_key() if journal is None else journal.key


def _tell_ledger(
    ledger: Ledger, table: Table, private: Any, reused: Reused | None, *, is_confirmed: bool
) -> None:
    """Let the ledger recognise its table; warn of another schema, or refuse one that nobody confirmed.

    Refuse earlier answers, too, if they are about a table that has changed since.
    """
    marks = marks_of(table, private, ledger.key)
    for one in () if reused is None else reused.releases:
        refuse_unless_same(one, ledger.is_same_table(one.run, marks))
    if ledger.has_other_schema(marks):
        _say_other_schema(ledger, is_confirmed=is_confirmed)
    ledger.for_table(marks)


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
    warnings.warn(said, PrivacyWarning, stacklevel=5)


def _journal(
    folder: Path, ledger: Ledger, identity: dict[str, Any], tables: Callable[[str], dict[str, Marks]]
) -> Journal:
    """The run's journal. A new run is named there before it begins, so that no crash can lose it."""
    journal = Journal.open(folder, run=new_run(), settings=identity, tables=tables)
    if not journal.outputs and ledger.knows(journal.run) and _came_to_nothing(ledger, journal.run):
        journal.restart(new_run(), identity)
    return journal


def _has_begun(ledger: Ledger, folder: Path | None, identity: dict[str, Any]) -> bool:
    """Whether the run of this checkpoint has set its allotment aside already."""
    known = None if folder is None else Journal.read_run(folder, identity)
    return known is not None and ledger.knows(known) and not _came_to_nothing(ledger, known)


def _came_to_nothing(ledger: Ledger, run_id: str) -> bool:
    """Whether a run paid for nothing and was closed, but its process died before the journal was removed."""
    return not ledger.is_open(run_id) and not any(ledger.events(run_id))
