"""``sidelight plan``: cost, memory and noise, before anything is read."""

from typing import Annotated, Any

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
    facts = planned.as_json() | {"meaning": planned.meaning, "tellable": planned.tellable}
    if book is not None:
        facts["affordable"] = book.can_pay(planned.allotment)
    if as_json:
        tell_json(facts)
    else:
        tell(describe(facts))


def describe(facts: dict[str, Any]) -> str:
    """The plan, a line for each fact."""
    spent = "ρ = {rho_allotted:.5g}" if "rho_allotted" in facts else "ε = {epsilon_allotted:.5g}"
    lines = [
        f"mechanism  {facts['mechanism']}",
        *([f"why        {facts['why']}"] if facts["why"] else []),
        f"domain     {facts['attributes']} attributes, {facts['domain_cells']:.3g} cells",
        f"workload   {facts['queries']} queries",
        f"protects   {facts['unit']['relation']}, {facts['unit']['records']} record(s) a person",
        f"cost       ε = {facts['epsilon']:g} at δ = {facts['delta']:g}, " + spent.format(**facts),
        f"means      {facts['meaning']}",
        f"measures   up to {facts['measurements']} times, σ = {facts['noise_stddev']:.4g} on each number",
        f"memory     model {_size(facts['model_bytes'])}, exact counts {_size(facts['counting_bytes'])}",
    ]
    if facts["quality_stddev"] is not None:
        lines.append(
            f"quality    {facts['quality_share']:.3g} of the budget measures the mean error of a table to "
            f"± {facts['quality_stddev']:.3g} records"
        )
    lines += [f"accept     {criterion}" for criterion in facts["tellable"]]
    if "affordable" in facts:
        lines.append(f"ledger     {'can pay for it' if facts['affordable'] else 'CANNOT pay for it'}")
    lines += [f"note       {note}" for note in facts["notes"]]
    return "\n".join(lines)


def _size(count: int) -> str:
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} TiB"
