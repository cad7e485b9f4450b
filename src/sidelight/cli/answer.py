"""``sidelight answer``: released counts over some attributes, with their uncertainty."""

from typing import Annotated, Any

import typer

from sidelight.cli._shared import Json, ReleaseFolder, talk, tell_json, tell_table


def answer(
    folder: ReleaseFolder,
    attrs: Annotated[list[str], typer.Argument(help="Columns to count by, such as: age sex.")],
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.9999, help="Confidence level of the intervals.")
    ] = 0.95,
    as_json: Json = False,
) -> None:
    """Print released counts with their uncertainty. This costs no privacy, however often you ask.

    Example: sidelight answer people-release age sex

    Each count comes with its standard error, the parts of that error due to noise and to the model, and a
    confidence interval from low to high.
    """
    from dataclasses import replace

    from sidelight.releases.release import Release

    release = replace(Release.load(folder), kind="pyarrow")
    records: list[dict[str, Any]] = release.answer(attrs, confidence=confidence).to_pylist()
    if as_json:
        tell_json(records)
        return
    titles = {"standard_error": "std error", "noise_error": "noise", "model_error": "model"}
    columns = [*attrs, "estimate", *titles, "low", "high", "source"]
    tell_table(
        f"{' × '.join(attrs)}, {100 * confidence:.4g}% intervals",
        [titles.get(column, column) for column in columns],
        [[record[column] for column in columns] for record in records],
    )
    talk(release.error_bars(attrs).words)
