"""``sidelight report``: one HTML file about a release, to read, print and pass on."""

from pathlib import Path
from typing import Annotated

import typer

from sidelight.cli._shared import Json, Overwrite, ReleaseFolder, refuse_to_replace, talk, tell_json


def report(
    folder: ReleaseFolder,
    to: Annotated[Path, typer.Option(help="File to write.")] = Path("report.html"),
    against: Annotated[
        str | None,
        typer.Option(
            help="The private table, to compare with exact counts; the file's name then says PRIVATE."
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="What the page is called; by default what the ledger calls the table.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write an HTML report that opens offline. It is made from the release alone, and costs no privacy.

    Example: sidelight report people-release --to people.html

    A report made with --against also shows exact counts of the private table. Do not publish it.
    """
    from sidelight.reports.report import report as write
    from sidelight.reports.report import target_of

    refuse_to_replace(target_of(to, is_private=against is not None), is_meant=overwrite)
    written = write(folder, to, against=against, title=title, overwrite=overwrite)
    size = written.stat().st_size
    if against is not None:
        talk("PRIVATE: this report holds exact counts; do not publish it.")
    if as_json:
        tell_json({"to": str(written), "bytes": size})
    else:
        talk(f"wrote {written} ({size / 1000:,.0f} kB).")
