"""``sidelight rehearse``: error against ε, played on public data alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli._shared import Json, QualityShare, Quiet, SchemaFile, WorkloadName, talk, tell, tell_json
from sidelight.errors import SettingError

if TYPE_CHECKING:
    from sidelight.evaluation.rehearsal import Rehearsal


def rehearse(
    public: Annotated[str, typer.Option(help="The public table to play on: like your private one.")],
    schema: SchemaFile,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(help="ε to play; several may follow one another. Default: 0.1 0.3 1 3 10."),
    ] = None,
    more: Annotated[list[float] | None, typer.Argument(help="Further ε.", metavar="EPSILON")] = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(help="Mechanism to play; repeat for several. auto is what `release` would choose."),
    ] = None,
    workload: WorkloadName = "3-way",
    delta: Annotated[float, typer.Option(help="δ of the release.")] = 1e-9,
    unit: Annotated[
        str | None,
        typer.Option(help="What one person can change: replace or add-or-remove. Default: the schema's."),
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(help="How many records the private table has. Default: as many as the public one."),
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Play the release without public data to help it.")
    ] = False,
    accuracy: Annotated[
        float | None,
        typer.Option(help="An error to reach, such as 0.05: the answer is the ε that it takes."),
    ] = None,
    runs: Annotated[int, typer.Option(help="How often to play each.")] = 2,
    quality_share: QualityShare = 0.02,
    seed: Annotated[int, typer.Option(help="Seed of the halves and of the noise.")] = 0,
    svg: Annotated[Path | None, typer.Option(help="Also draw error against ε into this SVG file.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Play a release on public data alone: error against ε, before any privacy is spent.

    Example: sidelight rehearse --public old.csv --schema people.toml --epsilon 0.1 0.3 1 3

    One random half of the public table stands in for the private one, the other half helps. Errors are
    shares: the wrong counts of a table, added up and divided by the number of records. Nothing private is
    read, and nothing is charged.
    """
    from sidelight._check import positive
    from sidelight._files import check_file, write_text
    from sidelight._interrupt import told
    from sidelight.evaluation import rehearsal as stage
    from sidelight.evaluation.rehearsal_picture import svg_picture

    if accuracy is not None:
        positive(accuracy=accuracy)
        if accuracy >= 2:
            raise SettingError(
                "--accuracy must be below 2 (200%), the error of tables that have no record in common; got "
                f"{accuracy:g}. It is a share of the records, such as 0.05."
            )
    if svg is not None:
        check_file(svg, "the picture")
    with told("Nothing was charged: a rehearsal reads public data alone."):
        played = stage.rehearse(
            public, schema=schema, epsilon=[*(epsilon or []), *(more or [])] or stage.EPSILONS, delta=delta,
            mechanism=mechanism or ["auto"], workload=workload, unit=unit, records=records, alone=alone,
            runs=runs, quality_share=quality_share, seed=seed, progress=not quiet,
        )  # fmt: skip
    answers = {} if accuracy is None else {m: played.epsilon_for(accuracy, m) for m in played.mechanisms}
    if svg is not None:
        write_text(
            svg, svg_picture(played, title=f"Error against ε, {played.records:,} records"), "the picture"
        )
        talk(f"wrote {svg}.")
    if as_json:
        facts: dict[str, Any] = played.as_json()
        if accuracy is not None:
            facts |= {"accuracy": accuracy, "epsilon_for_accuracy": answers}
        tell_json(facts)
        return
    _tell(played)
    for name, found in answers.items():
        tell(_answer(played, name, accuracy or 0.0, found))
    if not quiet:
        for sentence in stage.CANNOT_KNOW[1 if alone else 0 :]:
            talk(sentence)


def _tell(played: "Rehearsal") -> None:
    """Print error against ε."""
    from sidelight._check import listed
    from sidelight.evaluation.rehearsal_picture import text_picture

    if played.left_out:
        them = "it" if len(played.left_out) == 1 else "them"
        talk(
            f"The public table tells nothing of {listed(played.left_out)}, so tables with {them} are not "
            "played. In a release they err about as they do without public data."
        )
    tell(_headline(played))
    tell(text_picture(played))


def _headline(played: "Rehearsal") -> str:
    helped = (
        f", {played.helping:,} others help mechanisms that use public data"
        if played.helping
        else ", without public data to help"
    )
    return (
        f"mean error of the workload's tables: {played.records:,} records, drawn from {played.stand_in:,} "
        f"public ones{helped}"
    )


def _answer(played: "Rehearsal", mechanism: str, accuracy: float, found: float | None) -> str:
    first, *_, last = [*played.of(mechanism), *played.of(mechanism)]
    if found is None:
        return (
            f"{mechanism}: no ε up to {last.epsilon:g} reaches {accuracy:.4g}; play larger ones, ask for "
            "fewer or smaller tables, or use coarser bins."
        )
    at_most = " or less" if found == first.epsilon else ""
    return f"{mechanism}: an error of {accuracy:.4g} takes about ε = {found:.2g}{at_most}."
