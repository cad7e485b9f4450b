"""``sidelight schema``: draft one from public data, check a table against one."""

import os
from pathlib import Path
from typing import Annotated

import typer

from sidelight._files import write_text
from sidelight.cli._shared import Json, SchemaFile, talk, tell, tell_json
from sidelight.errors import InputError

app = typer.Typer(
    help="Draft a schema (columns, bins, labels) from public data; check that a table fits it.",
    no_args_is_help=True,
)


@app.command(epilog="Example: sidelight schema draft public.csv --out people.toml")
def draft(
    public: Annotated[str, typer.Argument(help="A PUBLIC table: CSV or Parquet, one file or a pattern.")],
    out: Annotated[Path | None, typer.Option(help="File to write. Default: print to stdout.")] = None,
    bins: Annotated[int, typer.Option(min=1, help="Number of bins for each numeric column.")] = 32,
    as_json: Json = False,
) -> None:
    """Draft a schema from PUBLIC data. Its comments say what to check and edit."""
    from sidelight.data.column import CategoricalColumn
    from sidelight.data.schema import Schema

    if out is not None and os.path.isfile(out):  # unlike Path, it takes any name
        raise InputError(
            f"{out} exists already, perhaps with edits of yours; name a new file with --out, or remove it."
        )
    drafted = Schema.draft(public, bins=bins)
    text = drafted.to_toml()
    if out is not None:
        write_text(out, text, "the schema")
    if as_json:
        tell_json({"out": None if out is None else str(out), "toml": text})
        return
    if out is None:
        tell(text)
        return
    talk(f"wrote {out}. Read it, and edit bounds, bins and labels before you use it on private data.")
    for column in drafted.columns:
        if isinstance(column, CategoricalColumn) and column.outside == "other":
            talk(
                f"column {column.name!r} has too many values to list: only the commonest are told apart. "
                "If it is an identifier or a date, take it out, or turn it into a few groups first."
            )


@app.command(epilog="Example: sidelight schema check people.csv --schema people.toml")
def check(
    table: Annotated[str, typer.Argument(help="The table to check. None of its values is printed.")],
    schema: SchemaFile,
    as_json: Json = False,
) -> None:
    """Say what does not fit the schema, without naming any value or count."""
    from sidelight.data.schema import Schema

    misfits = Schema.read(schema).check(table)
    if as_json:
        tell_json(
            [{"column": m.column, "what": m.what, "problem": m.message, "fatal": m.is_fatal} for m in misfits]
        )
    else:
        for misfit in misfits:
            tell(f"{'problem' if misfit.is_fatal else 'remark'}: {misfit}")
        if not any(misfit.is_fatal for misfit in misfits):
            tell("the table fits the schema.")
    if any(misfit.is_fatal for misfit in misfits):
        raise typer.Exit(2)
