"""``sidelight sample``: synthetic records from a release."""

from pathlib import Path
from typing import Annotated

import typer

from sidelight.cli._shared import Json, Quiet, ReleaseFolder, talk, tell_json


def sample(
    folder: ReleaseFolder,
    to: Annotated[Path, typer.Option(help="File to write: .csv or .parquet.")],
    seed: Annotated[
        int, typer.Option(min=0, help="Any whole number; the same seed draws the same records again.")
    ],
    records: Annotated[
        int | None, typer.Option(min=1, help="How many records. Default: as many as the release counts.")
    ] = None,
    safe_cells: Annotated[
        bool,
        typer.Option(
            "--safe-cells",
            help="Put an apostrophe before texts that a spreadsheet would run as formulas (.csv).",
        ),
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Draw a synthetic table. This costs no privacy, however often you do it.

    Example: sidelight sample people-release --records 10000 --seed 1 --to synthetic.csv
    """
    from dataclasses import replace

    from sidelight.data.frames import check_file, write_file
    from sidelight.progress import progress_of
    from sidelight.releases.release import Release

    check_file(to, safe_cells=safe_cells)
    released = replace(Release.load(folder), kind="pyarrow")
    with progress_of(not quiet).phase("sample"):
        drawn = released.sample(records, seed=seed)
        write_file(drawn, to, safe_cells=safe_cells)
    if as_json:
        tell_json({"to": str(to), "records": drawn.num_rows, "seed": seed})
    elif not quiet:
        talk(f"wrote {drawn.num_rows:,} synthetic records to {to}.")
