"""``sidelight schema``: draft one from public data, check a table against one."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidelight._files import write_text
from sidelight.cli._shared import Json, SchemaFile, talk, tell, tell_json
from sidelight.errors import InputError

if TYPE_CHECKING:
    from sidelight.data.schema import Schema

app = typer.Typer(
    help="Draft a schema (columns, bins, labels) from public data; check that a table fits it.",
    no_args_is_help=True,
)


@app.command(epilog="Example: sidelight schema draft public.csv --out people.toml")
def draft(
    public: Annotated[
        str, typer.Argument(help="A PUBLIC table: CSV, Parquet or Excel, one file or a pattern.")
    ],
    out: Annotated[Path | None, typer.Option(help="File to write. Default: print to stdout.")] = None,
    bins: Annotated[
        int,
        typer.Option(
            min=1,
            help="At most so many bins for each column of numbers, all of one round width, such as 5 or 10. "
            "Dates have days, weeks, months, quarters or years instead, by the time that they span.",
        ),
    ] = 32,
    missing: Annotated[
        list[str] | None,
        typer.Option(help="A text that stands for a missing value, besides NA, N/A, null and -. Repeatable."),
    ] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of a CSV file, such as latin-1.")] = "utf-8",
    delimiter: Annotated[
        str | None, typer.Option(help="What separates the fields of a CSV file, such as ';' or 'tab'.")
    ] = None,
    decimal: Annotated[str, typer.Option(help="Decimal mark of a CSV file: '.' or ','.")] = ".",
    sheet: Annotated[str | None, typer.Option(help="Sheet of an Excel file. Default: the first one.")] = None,
    as_json: Json = False,
) -> None:
    """Draft a schema from PUBLIC data. Its comments say what to check and edit."""
    from sidelight.data.drafting.draft import draft as drafting
    from sidelight.data.reading.file_format import FileFormat

    if out is not None and os.path.isfile(out):  # unlike Path, it takes any name
        raise InputError(
            f"{out} exists already, perhaps with edits of yours; name a new file with --out, or remove it."
        )
    mark = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    file = FileFormat(encoding=encoding, delimiter=mark, decimal=decimal, sheet=sheet)
    drafted = drafting(public, bins=bins, missing=missing or (), file=file)
    text = drafted.schema.to_toml()
    if out is not None:
        write_text(out, text, "the schema")
    if as_json:
        remarks = list(drafted.remarks)
        tell_json({"out": None if out is None else str(out), "toml": text, "remarks": remarks})
        return
    for remark in drafted.remarks:
        talk(remark)
    if out is None:
        tell(text)
        return
    talk(f"wrote {out}. Read it, and edit bounds, bins and labels before you use it on private data.")


@app.command(epilog="Example: sidelight schema check people.csv --schema people.toml")
def check(
    table: Annotated[str, typer.Argument(help="The table to check. None of its values is printed.")],
    schema: SchemaFile,
    public: Annotated[
        bool,
        typer.Option(
            "--public", help="The table is PUBLIC data: say of which columns it tells, and what is left open."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what does not fit the schema, without naming any value or count.

    Public data need not fit: with --public, labels and counts of the table are named.
    """
    from sidelight.data.schema import Schema

    if public:
        _check_public(table, Schema.read(schema), as_json=as_json)
        return
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


def _check_public(table: str, schema: "Schema", *, as_json: bool) -> None:
    """How far a public table can be used; what is left open is said on stderr."""
    from sidelight._check import listed
    from sidelight.releases.public_data import read_public, records_by_attribute, told_of
    from sidelight.releases.public_table import columns_left_out

    records = records_by_attribute(read_public(table, schema), schema.domain)
    left_out = columns_left_out(table, schema)
    if as_json:
        tell_json({"records": records, "left_out": left_out})
    else:
        if left_out:
            tell(f"not in the schema, and left out: {listed(left_out)}")
        for told in told_of(records):
            tell(told)
