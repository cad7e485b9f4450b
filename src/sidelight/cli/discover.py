"""``sidelight discover``: labels, bin edges and records a person, found privately and put into the schema."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli._shared import (
    ApprovedBy,
    ChargedLedger,
    Json,
    Project,
    talk,
    tell,
    tell_json,
)

if TYPE_CHECKING:
    from sidelight.statistics.discovery import Discovery

_OTHER_SCHEMA = (
    "It is another schema now: a release made under the one before cannot be reused (--reuse) with it, and "
    "the ledger cannot tell by the records alone that they are those it saw under the one before."
)


def discover(
    table: Annotated[
        str, typer.Argument(help="The private table: .csv or .parquet files, or postgresql://…#table.")
    ],
    epsilon: Annotated[float, typer.Option(help="ε to spend, such as 0.1.")],
    schema: Annotated[
        Path | None,
        typer.Option(help="Schema file (TOML) that is to declare what is found. Default: a new one."),
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="The column whose labels, or bin edges (--bins), are to be found.")
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Lower and upper bound of a column of numbers; by default those of the schema."),
    ] = None,
    bins: Annotated[
        int | None, typer.Option(help="How many bins of a column of numbers to look for.")
    ] = None,
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
    ledger: ChargedLedger = None,
    delta: Annotated[float | None, typer.Option(help="δ, where there is no ledger; such as 1e-9.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Schema file to write. Default: the one given, changed in place; without one, the table's "
            "name with .toml, in this folder."
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            help="The column that says who each record is about, where no ledger or schema says it: then one "
            "record of each person counts."
        ),
    ] = None,
    project: Project = None,
    approved_by: ApprovedBy = None,
    as_json: Json = False,
) -> None:
    """Find privately what a schema should declare, and write it there.

    A label is told if the noisy number of people who have it reaches a threshold. Edges are private
    quantiles between the bounds. [unit] in the schema says how many labels or values of each person count.

    Without --schema a new one is begun, with this column and the ledger's unit; the next discovery can add to
    it.

    Example: sidelight discover people.csv --column drug --person patient --epsilon 0.1 --delta 1e-9
    """
    from sidelight._files import check_file
    from sidelight.errors import SettingError
    from sidelight.privacy.unit import Unit
    from sidelight.statistics.discovery import discover as find
    from sidelight.statistics.discovery import discover_records

    if (column is None) != records:
        raise SettingError("name a --column, or ask for --records: one of them.")
    target = _target(table, schema, out, is_of_records=records)
    check_file(target, "the schema")
    terms: dict[str, Any] = {
        "ledger": ledger,
        "delta": delta,
        "unit": None if person is None else Unit("add-or-remove", person=person),
        "project": project,
        "approved_by": approved_by,
    }
    if schema is None and ledger is None and person is None:
        talk(
            "warning: nothing says who each record is about, so one record is protected, not one person. If "
            "people can have several, more is told of them than is promised: name their column with --person."
        )
    if column is None:
        assert schema is not None  # otherwise there is no target
        found = discover_records(table, schema=schema, epsilon=epsilon, **terms)
    else:
        found = find(
            table, column, schema=schema, epsilon=epsilon, bounds=bounds, bins=bins, public=public,
            at_least=at_least, **terms,
        )  # fmt: skip
    written = _write(found, schema, target)
    if as_json:
        tell_json(_as_json(found, written))
        return
    _tell(found)
    if written is None:
        talk("nothing was written.")
    elif schema is None:
        talk(f"wrote {written}, a new schema: {_told_change(found)} {_told_unit(found)}")
    else:
        talk(f"wrote {written}: {_told_change(found)} {_OTHER_SCHEMA}")


def _tell(found: "Discovery") -> None:
    """Print what was found."""
    talk(found.sentence)
    for label, number in sorted((found.labels or {}).items(), key=lambda pair: (-pair[1], pair[0])):
        tell(f"{number:>12,}  {label}")
    if found.edges is not None:
        tell(" ".join(f"{edge:g}" for edge in found.edges))
    if found.records is not None:
        tell(str(found.records))


def _target(table: str, schema: Path | None, out: Path | None, *, is_of_records: bool) -> Path:
    """The file to write. A file that nobody named as the schema is not replaced."""
    from sidelight.errors import SettingError
    from sidelight.sources import is_postgres

    if schema is not None:
        return schema if out is None else out
    if is_of_records:
        raise SettingError(
            "records a person go into the [unit] of a schema that names the column of people: give --schema."
        )
    if out is None:
        if is_postgres(table) or any(mark in table for mark in "*?[:#"):
            raise SettingError("a new schema needs a name here: give --out, such as --out people.toml.")
        out = Path(Path(table).stem + ".toml")
    if os.path.lexists(out):
        raise SettingError(
            f"{out} exists already. To let it declare what is found, give --schema {out}; to begin another "
            "schema, name a new file with --out. Nothing was read and nothing was charged."
        )
    return out


def _write(found: "Discovery", schema: Path | None, out: Path) -> Path | None:
    """The schema file with what was found, all else in it as it was; None if the schema stays the same."""
    from sidelight._files import write_text
    from sidelight.data.schema_edit import if_it_declares, with_column, with_records
    from sidelight.data.schema_toml import parse, render

    if found.schema is None:
        return None
    if schema is None:
        write_text(out, render(found.schema), "the schema")
        return out
    text = schema.read_text(encoding="utf-8")
    if found.schema == parse(text):
        return None
    if found.records is not None:
        text = with_records(text, found.records, found.sentence)
    else:
        assert found.column is not None  # records or a column: one of them was asked for, and was found
        text = with_column(text, found.column)
    write_text(out, if_it_declares(text, found.schema), "the schema")
    return out


def _told_change(found: "Discovery") -> str:
    """The new declaration in the schema file, in a sentence."""
    if found.records is not None:
        return f"[unit] says records = {found.records}."
    assert found.column is not None  # otherwise nothing was written
    name = f"column {found.column.name!r}"
    if found.edges is not None:
        return f"{name} has {len(found.edges) - 1} bins, between the edges found."
    return f'{name} has {found.column.declared} labels, and outside = "other" for all other values.'


def _told_unit(found: "Discovery") -> str:
    """Who was protected, which a new schema declares."""
    assert found.schema is not None  # it was written
    unit = found.schema.unit
    if unit.person is not None:
        return f"[unit] is {unit.spelled()}."
    return (
        f"[unit] is {unit.spelled()}: if one person can have more records in the table, more was told of "
        "that person than was promised. Correct the unit before you spend more."
    )


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
