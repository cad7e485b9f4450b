"""``sidelight quantile``: one quantile from people with different privacy needs."""

from typing import Annotated

import typer

from sidelight.cli._groups import (
    Accounting,
    BiasOption,
    Bounds,
    Confidence,
    Delta,
    EpsilonColumn,
    EveryEpsilon,
    GroupColumn,
    GroupNeeds,
    LedgerPlace,
    MissingOption,
    PublicFile,
    SvgFile,
    TableFile,
    UnitName,
    Value,
    ledger_of,
    parse_bias,
    parse_missing,
    read_groups,
    remark_on,
    show,
    unit_of,
)
from sidelight.cli._shared import Json


def quantile(
    table: TableFile,
    value: Value,
    bounds: Bounds,
    q: Annotated[float, typer.Option("--q", help="Which quantile; 0.5 for the median.")] = 0.5,
    epsilon: EveryEpsilon = None,
    epsilon_column: EpsilonColumn = None,
    group_column: GroupColumn = None,
    group: GroupNeeds = None,
    public: PublicFile = None,
    missing: MissingOption = "refuse",
    density: Annotated[
        float | None, typer.Option(help="Of values at the quantile, for the interval; measured unless said.")
    ] = None,
    bias: BiasOption = None,
    confidence: Confidence = 0.95,
    unit: UnitName = None,
    accounting: Accounting = "pure",
    delta: Delta = None,
    ledger: LedgerPlace = None,
    svg: SvgFile = None,
    as_json: Json = False,
) -> None:
    """Estimate a quantile that respects everyone's ε.

    Example: sidelight quantile people.csv --value income --q 0.5 --bounds 0 200 --epsilon-column epsilon
    --public survey.csv --ledger people.ledger
    """
    from sidelight.statistics.mixed_quantile import mixed_quantile

    book = ledger_of(ledger, table)
    groups = read_groups(
        table,
        value,
        epsilon=epsilon,
        epsilon_column=epsilon_column,
        group_column=group_column,
        needs=group,
        public=public,
        unit=unit_of(unit, book),
        missing=parse_missing(missing),
    )
    answer = mixed_quantile(
        groups,
        q,
        bounds=bounds,
        density=density,
        bias=parse_bias(bias),
        confidence=confidence,
        unit=unit,
        accounting=accounting,
        delta=delta,
        ledger=book,
        alone=True,
    )
    remark_on(ledger, groups)
    show(answer, f"quantile {q:g} of {value}", svg=svg, as_json=as_json)
