"""``sidelight plan``: cost, memory and noise, before anything is read."""

from pathlib import Path
from typing import Annotated

import typer

from sidelight.cli._shared import (
    AcceptFile,
    ApprovedBy,
    BinsChoice,
    Json,
    MechanismName,
    Project,
    PublicData,
    QualityShare,
    ReuseFolder,
    SchemaFile,
    Settings,
    WorkloadName,
    one_or_all,
    parse_settings,
    talk,
    tell,
    tell_json,
)


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
    table: Annotated[
        str | None,
        typer.Option(
            help="The table's files, to see how many bytes would be read. Of the files only the size is "
            "looked at; it may tell how many records there are, so keep it to yourself."
        ),
    ] = None,
    settings: Settings = None,
    reuse: ReuseFolder = None,
    project: Project = None,
    approved_by: ApprovedBy = None,
    as_json: Json = False,
) -> None:
    """Show a release's cost, noise and memory in advance. Nothing private is read, nothing is charged.

    Example: sidelight plan --schema people.toml --epsilon 1 --delta 1e-9 --workload 2-way
    """
    from sidelight.privacy.purpose import Purpose
    from sidelight.privacy.sql_ledger import open_ledger
    from sidelight.releases.plan import Plan
    from sidelight.releases.plan_words import describe, facts, reading

    book = None if ledger is None else open_ledger(ledger)
    planned = Plan.of(
        schema=schema, epsilon=epsilon, delta=delta, unit=unit, mechanism=mechanism,
        workload=workload, public=one_or_all(public), ledger=book,
        quality_share=quality_share, accept=accept, bins=bins, reuse=reuse,
        settings=parse_settings(settings),
    )  # fmt: skip
    if records is not None:
        planned = planned.knowing(records)
        if planned.unit.total_is_public:
            # What `release` would refuse or warn about is said here already.
            planned.check_total(records)
            planned.warn_about(records)
    if book is not None:
        planned = planned.asked(book, Purpose.of("", project=project, approved_by=approved_by))
    size = None if table is None else _bytes_of(table)
    if size is not None:
        # PRIVACY: who plans holds the table; whoever else is shown this must not learn how large it is.
        talk("PRIVATE: the size of the table's files may tell how many records there are; do not publish it.")
    if as_json:
        tell_json(facts(planned) | {"passes": planned.passes, "table_bytes": size})
    else:
        tell(describe(planned, reading=reading(planned, size, is_recognised=book is not None)))


def _bytes_of(table: str) -> int:
    """The size of the files that a table is read from."""
    from sidelight.data.reading.read import files_of
    from sidelight.errors import DataError
    from sidelight.sources import source_name

    files = files_of(table)
    if not files:
        raise DataError(f"there is no file {source_name(table)}: --table takes .csv or .parquet files.")
    return sum(Path(file).stat().st_size for file in files)
