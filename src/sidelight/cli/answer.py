"""``sidelight answer``: released counts over some attributes, with their uncertainty."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sidelight.cli._shared import (
    Json,
    Overwrite,
    ReleaseFolder,
    SafeCells,
    WhereOption,
    parse_where,
    refuse_to_replace,
    talk,
    tell_json,
    tell_table,
)


def answer(
    folder: ReleaseFolder,
    attrs: Annotated[
        list[str] | None, typer.Argument(help="Columns to count by, such as: age sex. None: one number.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(help="A column that makes groups: each count comes with its share of its group."),
    ] = None,
    where: WhereOption = None,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.9999, help="Confidence level of the intervals.")
    ] = 0.95,
    to: Annotated[Path | None, typer.Option(help="Write the table to this file: .csv or .parquet.")] = None,
    safe_cells: SafeCells = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Print released counts with their uncertainty. This costs no privacy, however often you ask.

    Example: sidelight answer people-release age sex --where region=north --to table.csv

    Each count comes with its standard error, the parts of that error due to noise and to the model, and a
    confidence interval from low to high. With --by, each count also has its share of its group.
    """
    from dataclasses import replace

    from sidelight.data.reading.frames import check_file, write_file
    from sidelight.releases.release import Release
    from sidelight.releases.where import said

    if to is not None:
        check_file(to, safe_cells=safe_cells)
        refuse_to_replace(to, is_meant=overwrite)
    release = replace(Release.load(folder), kind="pyarrow")
    shown, condition = [*(by or []), *(attrs or [])], parse_where(where)
    found = release.answer(attrs or [], by=by or [], where=condition, confidence=confidence)
    if to is not None:
        write_file(found, to, safe_cells=safe_cells)
    records: list[dict[str, Any]] = found.to_pylist()
    if as_json:
        tell_json(records)
        return
    if to is not None:
        talk(f"wrote {len(records):,} counts to {to}.")
        return
    titles = {"standard_error": "std error", "noise_error": "noise", "model_error": "model"}
    shares = ["share", "share_low", "share_high"] if by else []
    columns = [*shown, "estimate", *titles, "low", "high", "source", *shares]
    about = " × ".join(shown) or "all records"
    about += f", where {said(condition)}" if condition else ""
    tell_table(
        f"{about}, {100 * confidence:.4g}% intervals",
        [titles.get(column, column).replace("_", " ") for column in columns],
        [
            [_percent(record[name]) if name in shares else record[name] for name in columns]
            for record in records
        ],
    )
    talk(release.error_bars([*shown, *(attr for attr in condition or () if attr not in shown)]).words)


def _percent(share: float | None) -> str:
    return "" if share is None or share != share else f"{share:.1%}"
