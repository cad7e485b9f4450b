"""``sidelight discover``: labels, bin edges and records a person, found privately and put into the schema."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli._shared import Json, SchemaFile, remark_on_private, talk, tell, tell_json

if TYPE_CHECKING:
    from sidelight.statistics.discovery import Discovery


def discover(
    table: Annotated[str, typer.Argument(help="The private table: .csv or .parquet files.")],
    schema: SchemaFile,
    epsilon: Annotated[float, typer.Option(help="ε to spend, such as 0.1.")],
    column: Annotated[
        str | None, typer.Option(help="The column whose labels, or with --bounds bin edges, are to be found.")
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Lower and upper bound of a column of numbers, from public knowledge."),
    ] = None,
    bins: Annotated[int, typer.Option(help="How many bins to look for, with --bounds.")] = 16,
    records: Annotated[
        bool,
        typer.Option("--records", help="Find how many records of each person to use, instead of a column."),
    ] = False,
    at_least: Annotated[
        int, typer.Option(help="A label of fewer people than this is never told, whatever the noise.")
    ] = 10,
    public: Annotated[
        str | None, typer.Option(help="A public table; the labels it has cost nothing.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Ledger that is charged: a file or a database's address.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="δ, where there is no ledger; such as 1e-9.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Schema file to write. Default: the one given, changed in place.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find privately what a schema should declare, and write it there.

    A label is told if the noisy number of people who have it reaches a threshold. Edges are private
    quantiles between the bounds. [unit] in the schema says how many labels or values of each person count.

    Example: sidelight discover people.csv --schema people.toml --column drug --epsilon 0.1 --delta 1e-9
    """
    from sidelight._files import check_file
    from sidelight.errors import SettingError
    from sidelight.statistics.discovery import discover as find
    from sidelight.statistics.discovery import discover_records

    if (column is None) != records:
        raise SettingError("name a --column, or ask for --records: one of them.")
    target = schema if out is None else out
    check_file(target, "the schema")
    terms: dict[str, Any] = {"ledger": ledger, "delta": delta}
    if column is None:
        found = discover_records(table, schema=schema, epsilon=epsilon, **terms)
    else:
        found = find(
            table, column, schema=schema, epsilon=epsilon, bounds=bounds, bins=bins, public=public,
            at_least=at_least, **terms,
        )  # fmt: skip
    written = _write(found, schema, target)
    remark_on_private(ledger)
    if as_json:
        tell_json(_as_json(found, written))
        return
    talk(found.sentence)
    for label, number in sorted((found.labels or {}).items(), key=lambda pair: (-pair[1], pair[0])):
        tell(f"{number:>12,}  {label}")
    if found.edges is not None:
        tell(" ".join(f"{edge:g}" for edge in found.edges))
    if found.records is not None:
        tell(str(found.records))
    if written is not None:
        talk(f"wrote {written}.")


def _write(found: "Discovery", schema: Path, out: Path) -> Path | None:
    """The schema file with what was found; all else in it, comments too, stays as it is."""
    from sidelight._files import write_text
    from sidelight.data.schema import Schema
    from sidelight.data.schema_toml import with_column, with_records
    from sidelight.errors import SchemaError

    text = schema.read_text(encoding="utf-8")
    if found.records is not None:
        text = with_records(text, found.records, found.sentence)
    elif found.column is not None:
        text = with_column(text, found.column)
    else:
        return None
    try:
        is_so = Schema.from_toml(text) == found.schema
    except SchemaError:
        is_so = False
    # A file may declare its columns in a way of its own; then all of it is written anew.
    write_text(out, text if is_so else found.schema.to_toml(), "the schema")
    return out


def _as_json(found: "Discovery", written: Path | None) -> dict[str, Any]:
    return {
        "column": None if found.column is None else found.column.name,
        "labels": found.labels,
        "edges": found.edges,
        "records": found.records,
        "sentence": found.sentence,
        "rho": found.rho,
        "noise_is_private": found.noise_is_private,
        "schema": None if written is None else str(written),
    }
