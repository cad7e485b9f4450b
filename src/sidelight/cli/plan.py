"""``sidelight plan``: cost, memory and noise, before anything is read."""

from typing import Annotated, Any

import typer

from sidelight.cli._shared import (
    Json,
    QualityShare,
    SchemaFile,
    Settings,
    one_or_all,
    parse_settings,
    tell,
    tell_json,
)


def plan(
    schema: SchemaFile,
    epsilon: Annotated[float, typer.Option(help="What to spend, at δ.")],
    delta: Annotated[float | None, typer.Option(help="δ; the ledger's own where one is given.")] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="Which; mwem unless said, aperture where public data is given.")
    ] = None,
    workload: Annotated[str, typer.Option(help="Such as '3-way', 'cuboids', or a file.")] = "3-way",
    unit: Annotated[
        str | None, typer.Option(help="replace or add-or-remove; that of schema and ledger unless said.")
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(help="A public table of the same schema, or a prior; repeat for several tables."),
    ] = None,
    ledger: Annotated[str | None, typer.Option(help="Whose remaining budget to compare with.")] = None,
    quality_share: QualityShare = 0.02,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Say what a release would cost, hold and blur. Nothing private is read, nothing is charged.

    Example: sidelight plan --schema people.toml --epsilon 1 --delta 1e-9 --workload 2-way
    """
    from sidelight.privacy.sql_ledger import open_ledger
    from sidelight.releases.plan import Plan

    book = None if ledger is None else open_ledger(ledger)
    planned = Plan.of(
        schema=schema, epsilon=epsilon, delta=delta, unit=unit, mechanism=mechanism,
        workload=workload, public=one_or_all(public), ledger=book,
        quality_share=quality_share, settings=parse_settings(settings),
    )  # fmt: skip
    facts = planned.as_json()
    if book is not None:
        facts["affordable"] = book.can_pay(planned.allotment)
    if as_json:
        tell_json(facts)
    else:
        tell(describe(facts))


def describe(facts: dict[str, Any]) -> str:
    """The plan in sentences."""
    spent = "ρ = {rho_allotted:.5g}" if "rho_allotted" in facts else "ε = {epsilon_allotted:.5g}"
    lines = [
        f"mechanism  {facts['mechanism']}",
        f"domain     {facts['attributes']} attributes, {facts['domain_cells']:.3g} cells",
        f"workload   {facts['queries']} queries",
        f"protects   {facts['unit']['relation']}, {facts['unit']['records']} record(s) a person",
        f"cost       ε = {facts['epsilon']:g} at δ = {facts['delta']:g}, " + spent.format(**facts),
        f"measures   up to {facts['measurements']} times, σ = {facts['noise_stddev']:.4g} on each number",
        f"memory     model {_size(facts['model_bytes'])}, exact counts {_size(facts['counting_bytes'])}",
    ]
    if facts["quality_stddev"] is not None:
        lines.append(
            f"quality    measured with {facts['quality_share']:.2g} of the budget, to ± "
            f"{facts['quality_stddev']:.3g} records a table"
        )
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
