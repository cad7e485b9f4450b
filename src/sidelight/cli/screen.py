"""``sidelight screen``: which public table is worth using, for a small ε."""

from typing import Annotated

import typer

from sidelight.cli._shared import (
    ApprovedBy,
    ChargedLedger,
    Json,
    Project,
    SchemaFile,
    WorkloadName,
    tell,
    tell_json,
)


def screen(
    table: Annotated[str, typer.Argument(help="The private table.")],
    schema: SchemaFile,
    public: Annotated[
        list[str],
        typer.Option(
            help="A public table; one that lacks columns is judged by the others. Repeat for each candidate."
        ),
    ],
    epsilon: Annotated[float, typer.Option(help="ε to spend on all candidates together, such as 0.05.")],
    workload: WorkloadName = "3-way",
    ledger: ChargedLedger = None,
    for_epsilon: Annotated[
        float, typer.Option(help="ε of the release to come, which a candidate should improve.")
    ] = 1.0,
    for_delta: Annotated[float | None, typer.Option(help="δ of the release to come. Default: 1/n².")] = None,
    project: Project = None,
    approved_by: ApprovedBy = None,
    as_json: Json = False,
) -> None:
    """Rank public tables by how well the best mixture of their records could answer the workload.

    Example: sidelight screen people.csv --schema people.toml --public 2015.csv --public oh.csv --epsilon 0.1
    """
    from sidelight.evaluation.screening import screen as rank

    ranked = rank(
        table, public, schema=schema, epsilon=epsilon, workload=workload,
        ledger=ledger, for_epsilon=for_epsilon, for_delta=for_delta, project=project, approved_by=approved_by,
    )  # fmt: skip
    if as_json:
        tell_json(
            [
                {
                    "name": found.name,
                    "best_mixture_error": found.mixture.error,
                    "stddev": found.mixture.stddev,
                    "verdict": found.verdict,
                    "sentence": found.sentence,
                    "left_out": list(found.left_out),
                }
                for found in ranked
            ]
        )
        return
    for rank_of, found in enumerate(ranked, start=1):
        tell(f"{rank_of}  {found.sentence}")
