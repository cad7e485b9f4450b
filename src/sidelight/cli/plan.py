"""``sidelight plan``: cost, memory and noise, before anything is read."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli._shared import (
    AcceptFile,
    Json,
    MechanismName,
    PublicData,
    QualityShare,
    SchemaFile,
    Settings,
    WorkloadName,
    one_or_all,
    parse_settings,
    tell,
    tell_json,
)

if TYPE_CHECKING:
    from sidelight.releases.plan import Plan


def plan(
    schema: SchemaFile,
    epsilon: Annotated[float, typer.Option(help="ε that the release would spend.")],
    delta: Annotated[
        float | None, typer.Option(help="δ, such as 1e-9. Leave it out with --ledger, which has its own.")
    ] = None,
    mechanism: MechanismName = "auto",
    workload: WorkloadName = "3-way",
    unit: Annotated[
        str | None,
        typer.Option(
            help="What one person can change: replace or add-or-remove. Default: what schema or ledger says."
        ),
    ] = None,
    public: PublicData = None,
    ledger: Annotated[
        str | None, typer.Option(help="A ledger, to see whether its remaining budget suffices.")
    ] = None,
    quality_share: QualityShare = 0.02,
    accept: AcceptFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show a release's cost, noise and memory in advance. Nothing private is read, nothing is charged.

    Example: sidelight plan --schema people.toml --epsilon 1 --delta 1e-9 --workload 2-way
    """
    from sidelight.privacy.sql_ledger import open_ledger
    from sidelight.releases.plan import Plan

    book = None if ledger is None else open_ledger(ledger)
    planned = Plan.of(
        schema=schema, epsilon=epsilon, delta=delta, unit=unit, mechanism=mechanism,
        workload=workload, public=one_or_all(public), ledger=book,
        quality_share=quality_share, accept=accept, settings=parse_settings(settings),
    )  # fmt: skip
    can_pay = None if book is None else book.can_pay(planned.allotment)
    if as_json:
        tell_json(facts(planned, can_pay=can_pay))
    else:
        tell(describe(planned, can_pay=can_pay))


def facts(planned: "Plan", *, can_pay: bool | None) -> dict[str, Any]:
    """The plan for a program; ``can_pay`` is None where there is no ledger."""
    told = planned.as_json() | {"meaning": planned.meaning, "tellable": planned.tellable}
    return told if can_pay is None else told | {"affordable": can_pay}


def describe(planned: "Plan", *, can_pay: bool | None) -> str:
    """The plan for a person, a line for each fact."""
    from sidelight.privacy.budget import Epsilon

    budget, unit, outlook = planned.budget, planned.unit, planned.outlook
    currency = "ε" if isinstance(planned.allotment, Epsilon) else "ρ"
    allotted = f"{currency} = {float(planned.allotment):.5g}"
    lines = [
        f"mechanism  {planned.mechanism.name}",
        *([f"why        {planned.why}"] if planned.why else []),
        f"domain     {len(planned.domain)} attributes, {float(planned.domain.size()):.3g} cells",
        f"workload   {len(planned.workload)} queries",
        f"protects   {unit.relation}, {unit.records} record(s) a person",
        f"cost       ε = {budget.epsilon:g} at δ = {budget.delta:g}, {allotted}",
        f"means      {planned.meaning}",
        f"measures   up to {outlook.measurements} times, σ = {outlook.stddev:.4g} on each number",
        f"memory     model {_size(outlook.model_bytes)}, exact counts {_size(outlook.counting_bytes)}",
    ]
    if planned.quality_stddev is not None:
        lines.append(
            f"quality    {planned.quality_share:.3g} of the budget measures the mean error of a table to "
            f"± {planned.quality_stddev:.3g} records"
        )
    lines += [f"accept     {criterion}" for criterion in planned.tellable]
    if can_pay is not None:
        lines.append(f"ledger     {'can pay for it' if can_pay else 'CANNOT pay for it'}")
    lines += [f"note       {note}" for note in planned.notes]
    return "\n".join(lines)


def _size(count: int) -> str:
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} TiB"
