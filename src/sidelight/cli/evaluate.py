"""``sidelight evaluate``: how far a release is from the exact answers. Its result is PRIVATE."""

from typing import Annotated

import typer

from sidelight.cli._shared import Json, ReleaseFolder, WorkloadName, talk, tell_json, tell_table
from sidelight.errors import SettingError


def evaluate(
    folder: ReleaseFolder,
    table: Annotated[
        str | None, typer.Argument(help="The private table that the release was made from.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="The private table, given by this option instead, as for `report`.")
    ] = None,
    workload: WorkloadName = "3-way",
    downstream: Annotated[
        bool,
        typer.Option(
            "--downstream",
            help="Also compare how pairs of columns go together, and how near synthetic records lie to "
            "private ones.",
        ),
    ] = False,
    target: Annotated[
        str | None,
        typer.Option(
            help="Also train a classifier for this column on synthetic records, and test it on private ones "
            "(needs the extra 'learn')."
        ),
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option(help="A table of the same population that the release never saw, to test on instead."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed that the synthetic table is drawn with.")] = 0,
    as_json: Json = False,
) -> None:
    """Compare a release with the exact answers. The result is PRIVATE: do not publish it.

    Example: sidelight evaluate people-release people.csv --workload 2-way

    With --downstream or --target a synthetic table is drawn as well, and judged by its use.
    """
    from sidelight.evaluation.evaluate import evaluate as compare
    from sidelight.releases.release import Release

    if (table is None) == (against is None):
        raise SettingError("name the private table once: either after the folder, or with --against.")
    outcome = compare(
        Release.load(folder),
        table if table is not None else against,
        workload=workload,
        downstream=downstream if target is None else target,
        held_out=held_out,
        seed=seed,
    )
    talk("PRIVATE: these figures were computed from exact answers; do not publish them.")
    if outcome.remark:
        talk(outcome.remark)
    if as_json:
        tell_json({"private": True, **outcome.as_json()})
        return
    tell_table(
        "PRIVATE",
        ["metric", "value", "range", "goal"],
        [[m.name, f"{v:.5g}", m.range, m.goal] for m, v in outcome.items()],
    )
