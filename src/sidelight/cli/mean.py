"""``sidelight mean``: one mean from people with different privacy needs, or one for every cell."""

from typing import Annotated, Any

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
from sidelight.cli._shared import Json, remark_on_private, tell_json, tell_table
from sidelight.errors import SettingError


def mean(
    table: TableFile,
    value: Value,
    bounds: Bounds,
    epsilon: EveryEpsilon = None,
    epsilon_column: EpsilonColumn = None,
    group_column: GroupColumn = None,
    group: GroupNeeds = None,
    by: Annotated[
        str | None, typer.Option(help="A mean for every cell of this column, with --epsilon.")
    ] = None,
    cell: Annotated[
        list[str] | None,
        typer.Option("--cell", help="A cell of --by, one option each; those of --public unless said."),
    ] = None,
    public: PublicFile = None,
    missing: MissingOption = "refuse",
    variance: Annotated[
        str | None, typer.Option(help="σ² of a value: a number, bound, public or private.")
    ] = None,
    bias: BiasOption = None,
    merge: Annotated[bool, typer.Option("--merge", help="Sum groups of similar ε together.")] = False,
    confidence: Confidence = 0.95,
    unit: UnitName = None,
    accounting: Accounting = "pure",
    delta: Delta = None,
    ledger: LedgerPlace = None,
    svg: SvgFile = None,
    as_json: Json = False,
) -> None:
    """Estimate a mean that respects everyone's ε.

    Example: sidelight mean visits.csv --value cost --bounds 0 500 --group-column who --group patients=0.1
    --group staff=public --ledger visits.ledger

    A mean for every region: sidelight mean people.csv --value income --bounds 0 200 --by region --epsilon 1
    --public survey.csv. There `own` is the share of an estimate that a cell's own records make; the rest
    comes from the other cells, or from the public table.
    """
    common: dict[str, Any] = {
        "bounds": bounds,
        "confidence": confidence,
        "unit": unit,
        "accounting": accounting,
        "delta": delta,
        "ledger": ledger_of(ledger, table),
    }
    if variance is not None:
        common["variance"] = _number_or_word(variance)
    if by is not None:
        if epsilon is None or epsilon_column or group_column or bias or merge:
            raise SettingError("--by takes --epsilon, and neither groups nor --bias nor --merge.")
        common |= {"by": by, "epsilon": epsilon, "cells": cell, "public": public}
        _by_cell(table, value, missing=parse_missing(missing), as_json=as_json, **common)
        remark_on_private(ledger)
        return
    from sidelight.statistics.mixed_mean import mixed_mean

    groups = read_groups(
        table,
        value,
        epsilon=epsilon,
        epsilon_column=epsilon_column,
        group_column=group_column,
        needs=group,
        public=public,
        unit=unit_of(unit, common["ledger"]),
        missing=parse_missing(missing),
    )
    answer = mixed_mean(groups, bias=parse_bias(bias), merge=merge, alone=True, **common)
    remark_on(ledger, groups)
    show(answer, f"mean of {value}", svg=svg, as_json=as_json)


def _by_cell(table: Any, value: str, *, by: str, as_json: bool, **options: Any) -> None:
    from sidelight.statistics.grouped_mean import grouped_mean

    answer = grouped_mean(table, value, by=by, **options)
    if as_json:
        tell_json(answer.as_json())
        return
    rows = [
        [str(m.cell), *(f"{x:.6g}" for x in (m.estimate, m.standard_error, *m.interval)), f"{m.own:.0%}"]
        for m in answer.cells
    ]
    tell_table(f"mean of {value}", [by, "estimate", "standard error", "low", "high", "own"], rows)


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
