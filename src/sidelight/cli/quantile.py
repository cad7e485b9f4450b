"""``sidelight quantile``: one quantile from people with different privacy needs."""

from typing import Annotated

import typer

from sidelight.cli._groups import GroupOptions, read_groups, show, with_group_options


@with_group_options
def quantile(
    asked: GroupOptions,
    q: Annotated[
        float, typer.Option("--q", help="Which quantile, between 0 and 1; 0.5 is the median.")
    ] = 0.5,
    density: Annotated[
        float | None,
        typer.Option(
            help="Density of the values at the quantile, for the interval. Default: that of public people, "
            "if 100 are given, else measured with a part of ε."
        ),
    ] = None,
) -> None:
    """Estimate a quantile that respects everyone's ε.

    Example: sidelight quantile people.csv --value income --q 0.5 --bounds 0 200 --epsilon-column epsilon
    --public survey.csv --ledger people.ledger
    """
    from sidelight.statistics.mixed_quantile import mixed_quantile

    answer = mixed_quantile(read_groups(asked, way="quantile"), q, density=density, **asked.mix_settings())
    show(answer, f"quantile {q:g} of {asked.value}", asked)
