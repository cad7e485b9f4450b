"""``sidelight mean``: one mean from people with different privacy needs, or one for every cell."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli._groups import GroupOptions, number_or, read_groups, show, with_group_options
from sidelight.cli._shared import tell_json, tell_table
from sidelight.errors import SettingError

if TYPE_CHECKING:
    from sidelight.statistics.grouped_mean import GroupedAnswer


@with_group_options
def mean(
    asked: GroupOptions,
    by: Annotated[
        str | None,
        typer.Option(help="Estimate a mean for every cell of this column, at --epsilon for all of them."),
    ] = None,
    cell: Annotated[
        list[str] | None,
        typer.Option(help="A cell of --by. Repeat for each cell. Default: the cells of the --public table."),
    ] = None,
    variance: Annotated[
        str | None,
        typer.Option(
            help="σ² of a value: a number, bound (the most that --bounds allow), public (that of public "
            "people) or private (measured with a part of ε). Default: bound; private with --by."
        ),
    ] = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="Sum groups of similar ε together where that lowers the error.")
    ] = False,
) -> None:
    """Estimate a mean that respects everyone's ε.

    Example: sidelight mean visits.csv --value cost --bounds 0 500 --group-column who --group patients=0.1
    --group staff=public --ledger visits.ledger

    A mean for every region: sidelight mean people.csv --value income --bounds 0 200 --by region --epsilon 1
    --public survey.csv. The column `own` then says what share of an estimate a cell's own records make; the
    rest comes from the other cells, or from the public table.
    """
    more: dict[str, Any] = {}
    if variance is not None:
        more["variance"] = number_or("--variance", variance, "bound", "public", "private")
    if by is None:
        from sidelight.statistics.mixed_mean import mixed_mean

        answer = mixed_mean(read_groups(asked, way="mean"), merge=merge, **asked.mix_settings(), **more)
        show(answer, f"mean of {asked.value}", asked)
        return
    if asked.epsilon is None or asked.epsilon_column or asked.group_column or asked.bias or merge:
        raise SettingError("--by takes --epsilon, and neither groups nor --bias nor --merge.")
    from sidelight.statistics.grouped_mean import grouped_mean

    asked.require("mean", asked.epsilon)
    found = grouped_mean(
        asked.table, asked.value, by=by, epsilon=asked.epsilon, cells=cell, public=asked.public,
        missing=asked.stand_in, file=asked.file, **asked.settings(), **more,
    )  # fmt: skip
    _show_cells(found, by, asked)


def _show_cells(answer: "GroupedAnswer", by: str, asked: GroupOptions) -> None:
    if asked.as_json:
        tell_json(answer.as_json())
        return
    rows = [
        [str(m.cell), *(f"{x:.6g}" for x in (m.estimate, m.standard_error, *m.interval)), f"{m.own:.0%}"]
        for m in answer.cells
    ]
    tell_table(f"mean of {asked.value}", [by, "estimate", "standard error", "low", "high", "own"], rows)
