"""``sidelight sample``: synthetic records from a release."""

from pathlib import Path
from typing import Annotated

import typer

from sidelight.cli._shared import (
    Json,
    Overwrite,
    Quiet,
    ReleaseFolder,
    SafeCells,
    WhereOption,
    parse_where,
    refuse_to_replace,
    talk,
    tell_json,
)


def sample(
    folder: ReleaseFolder,
    to: Annotated[Path, typer.Option(help="File to write: .csv or .parquet.")],
    records: Annotated[
        int | None, typer.Option(min=1, help="How many records. Default: as many as the release counts.")
    ] = None,
    where: WhereOption = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Any whole number; the same seed draws the same records again. Default: a fresh one."
        ),
    ] = None,
    safe_cells: SafeCells = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Draw a synthetic table. This costs no privacy, however often you do it.

    Example: sidelight sample people-release --records 10000 --seed 1 --to synthetic.csv

    With --where, records are drawn from the release given that condition: --where sex=F --where age=18-64.
    """
    from dataclasses import replace

    from sidelight.data.reading.frames import check_file, write_file
    from sidelight.progress import progress_of
    from sidelight.releases.release import Release

    check_file(to, safe_cells=safe_cells)
    refuse_to_replace(to, is_meant=overwrite)
    released = replace(Release.load(folder), kind="pyarrow")
    with progress_of(not quiet).phase("sample"):
        drawn = released.sample(records, where=parse_where(where), seed=seed)
        write_file(drawn, to, safe_cells=safe_cells)
    used = released.draws[-1].seed
    if as_json:
        tell_json({"to": str(to), "records": drawn.num_rows, "seed": used})
    elif not quiet:
        talk(f"wrote {drawn.num_rows:,} synthetic records to {to} (seed {used}).")
