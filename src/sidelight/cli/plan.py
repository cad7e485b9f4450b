"""``sidelight plan``: cost, memory and noise, before anything is read."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli._shared import (
    AcceptFile,
    BinsChoice,
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
    bins: BinsChoice = "auto",
    records: Annotated[
        int | None,
        typer.Option(
            help="How many records the table has, where one person cannot change that: auto looks at it."
        ),
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show a release's cost, noise and memory in advance. Nothing private is read, nothing is charged.

    Example: sidelight plan --schema people.toml --epsilon 1 --delta 1e-9 --workload 2-way
    """
    from sidelight.privacy.sql_ledger import open_ledger
    from sidelight.releases.plan import Plan
    from sidelight.releases.plan_words import describe

    book = None if ledger is None else open_ledger(ledger)
    planned = Plan.of(
        schema=schema, epsilon=epsilon, delta=delta, unit=unit, mechanism=mechanism,
        workload=workload, public=one_or_all(public), ledger=book,
        quality_share=quality_share, accept=accept, bins=bins, settings=parse_settings(settings),
    )  # fmt: skip
    if records is not None:
        planned = planned.knowing(records)
    can_pay = None if book is None else book.can_pay(planned.allotment)
    if as_json:
        tell_json(facts(planned, can_pay=can_pay))
    else:
        tell(describe(planned, can_pay=can_pay))


def facts(planned: "Plan", *, can_pay: bool | None) -> dict[str, Any]:
    """The plan for a program; ``can_pay`` is None where there is no ledger."""
    told = planned.as_json() | {"meaning": planned.meaning, "tellable": planned.tellable}
    return told if can_pay is None else told | {"affordable": can_pay}
