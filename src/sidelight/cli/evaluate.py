"""``sidelight evaluate``: how far a release is from the exact answers. Its result is PRIVATE."""

from typing import Annotated

import typer

from sidelight.cli._shared import Json, ReleaseFolder, talk, tell_json, tell_table


def evaluate(
    folder: ReleaseFolder,
    table: Annotated[str, typer.Argument(help="The private table that the release was made from.")],
    workload: Annotated[str, typer.Option(help="Such as '3-way', 'cuboids', or a file.")] = "3-way",
    as_json: Json = False,
) -> None:
    """Compare a release with the exact answers. The result is PRIVATE: do not publish it.

    Example: sidelight evaluate people-release people.csv --workload 2-way
    """
    from sidelight.evaluation.against import evaluate as compare
    from sidelight.mechanisms.release import Release

    outcome = compare(Release.load(folder), table, workload=workload)
    talk("PRIVATE: these figures were computed from exact answers; do not publish them.")
    if as_json:
        tell_json({"private": True, **outcome.as_json()})
        return
    tell_table(
        "PRIVATE", ["metric", "value", "goal"], [[m.name, f"{v:.5g}", m.goal] for m, v in outcome.items()]
    )
