"""``sidelight evaluate``: how far a release is from the exact answers. Its result is PRIVATE."""

from typing import Annotated

import typer

from sidelight.cli._shared import Json, ReleaseFolder, talk, tell_json, tell_table
from sidelight.errors import SettingError


def evaluate(
    folder: ReleaseFolder,
    table: Annotated[
        str | None, typer.Argument(help="The private table that the release was made from.")
    ] = None,
    against: Annotated[str | None, typer.Option(help="The same table, as `report` names it.")] = None,
    workload: Annotated[str, typer.Option(help="Such as '3-way', 'cuboids', or a file.")] = "3-way",
    downstream: Annotated[
        bool, typer.Option("--downstream", help="Also associations, and nearest records.")
    ] = False,
    target: Annotated[
        str | None,
        typer.Option(help="Also how well a classifier learns this column; needs the extra 'learn'."),
    ] = None,
    held_out: Annotated[
        str | None, typer.Option(help="Records that the release never saw, for cleaner comparisons.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws the synthetic table.")] = 0,
    as_json: Json = False,
) -> None:
    """Compare a release with the exact answers. The result is PRIVATE: do not publish it.

    Example: sidelight evaluate people-release people.csv --workload 2-way

    With --target the synthetic table is also judged as its users would judge it.
    """
    from sidelight.evaluation.against import evaluate as compare
    from sidelight.releases.release import Release

    if (table is None) == (against is None):
        raise SettingError("name the private table once: after the folder, or with --against.")
    outcome = compare(
        Release.load(folder),
        table if table is not None else against,
        workload=workload,
        downstream=downstream if target is None else target,
        held_out=held_out,
        seed=seed,
    )
    talk("PRIVATE: these figures were computed from exact answers; do not publish them.")
    if as_json:
        tell_json({"private": True, **outcome.as_json()})
        return
    tell_table(
        "PRIVATE",
        ["metric", "value", "range", "goal"],
        [[m.name, f"{v:.5g}", m.range, m.goal] for m, v in outcome.items()],
    )
