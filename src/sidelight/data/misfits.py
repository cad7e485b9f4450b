"""Where a table does not fit its schema, in messages that contain none of its values and no count.

PRIVACY: that a private table holds some value outside the schema is itself a fact about the table.
It is told to the person who holds the table, before anything is charged or released.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sidelight.data.columns.column import BinnedColumn, Column, RealColumn
from sidelight.data.columns.moment_columns import DateColumn, DatetimeColumn, MomentColumn
from sidelight.data.engines.choice import surveyed
from sidelight.data.engines.dask import DaskSource
from sidelight.data.engines.sql_encoding import SqlSource
from sidelight.data.reading.file_format import FileFormat
from sidelight.data.schema import Schema
from sidelight.errors import MisfitError
from sidelight.privacy.unit import Unit

_NOUNS = {
    "integer": "whole numbers",
    "real": "finite numbers",
    "date": "dates",
    "datetime": "dates and times",
    "time": "times of day",
}
_NAMED_ID = re.compile(r"(^|[_ .-])(?i:id|uuid|guid|key|nr|no|num|number|ssn|mrn)$|[a-z](Id|ID)$")


@dataclass(frozen=True)
class Misfit:
    """One way in which a table does not fit its schema."""

    column: str | None
    what: Literal["absent", "extra", "twice", "missing", "outside", "empty"]
    message: str

    @property
    def is_fatal(self) -> bool:
        """Whether the table is refused. A column that the schema does not name is merely left out."""
        return self.what != "extra"

    def __str__(self) -> str:
        return self.message


def check(source: Any, schema: Schema) -> list[Misfit]:
    """Every misfit of the table; an empty list means that the table fits."""
    from sidelight.data.reading.read import open_table

    opened = open_table(source, schema, schema.unit.person)
    unit = schema.unit if schema.unit.person in opened.names else Unit(schema.unit.relation)
    misfits = misfits_of_columns(opened, schema, unit)
    wrong = {misfit.column for misfit in misfits if misfit.is_fatal}
    # The values of the columns that are there are checked all the same, so that one call finds everything.
    there = tuple(c for c in schema.columns if c.name not in wrong)
    if there and not any(misfit.what == "twice" for misfit in misfits):
        rest = schema if not wrong else Schema(there, file=schema.file)
        found = surveyed(opened, rest, unit.person)
        misfits += misfits_of_values(*found, rest, unit, may_be_empty=not schema.unit.total_is_public)
    if unit.person != schema.unit.person:
        message = (
            f"column {schema.unit.person!r}, which says who each record is about, is not in the table; a "
            "public table can do without, a private one cannot."
        )
        misfits.append(Misfit(schema.unit.person, "extra", message))
    return misfits


def is_named_as_id(name: str) -> bool:
    """Whether a column has a name that identifiers often have.

    >>> is_named_as_id("patient_id"), is_named_as_id("caseId"), is_named_as_id("paid")
    (True, True, False)
    """
    return _NAMED_ID.search(name) is not None


def who_hint(name: str) -> str:
    """Advice for a column that says who somebody is."""
    return f' If it says who a record is about, declare [unit] person = "{name}".'


def misfits_of_columns(source: SqlSource | DaskSource, schema: Schema, unit: Unit) -> list[Misfit]:
    """Misfits that the column names show; ``unit`` may name a column of people.

    Column types are not consulted: one odd record can change a column's type, so each value is checked alone.
    """
    names = source.names
    misfits = []
    for name in sorted({name for name in names if names.count(name) > 1}):
        message = f"column {name!r} appears twice; rename or drop one of them."
        misfits.append(Misfit(name, "twice", message))
    for column in schema.columns:
        if column.name not in names:
            message = (
                f"column {column.name!r} is in the schema but not in the table; "
                "correct its name, or take it out of the schema."
            )
            misfits.append(Misfit(column.name, "absent", message))
    if unit.person is not None and unit.person not in names:
        message = (
            f"column {unit.person!r}, which says who each record is about ([unit] person), is not in the "
            "table; correct its name in the schema."
        )
        misfits.append(Misfit(unit.person, "absent", message))
    declared = {column.name for column in schema.columns} | {unit.person}
    for name in dict.fromkeys((*names, *source.extra)):
        if name not in declared:
            hint = who_hint(name) if unit.person is None and is_named_as_id(name) else ""
            message = f"column {name!r} is not in the schema and is left out.{hint}"
            misfits.append(Misfit(name, "extra", message))
    return misfits


def misfits_of_values(
    records: int,
    missing: Sequence[bool],
    outside: Sequence[bool],
    schema: Schema,
    unit: Unit,
    *,
    may_be_empty: bool,
) -> list[Misfit]:
    """Misfits found by a pass over the values; the last flags are those of the unit's person, if any.

    PRIVACY: where n is private, a table without records is accepted like any other.
    """
    if records == 0 and not may_be_empty:
        return [Misfit(None, "empty", "the table has no records.")]
    misfits = []
    if unit.person is not None:
        misfits += _misfits_of_people(unit, has_missing=missing[-1], has_unread=outside[-1])
    for column, has_missing, has_outside in zip(schema.columns, missing, outside, strict=False):
        if has_missing:
            message = (
                f"column {column.name!r} has missing values, which its schema does not allow; "
                "declare missing = true, or remove those records."
            )
            misfits.append(Misfit(column.name, "missing", message))
        if has_outside:
            broken = [
                one for one in schema.constraints if one.violated == "refuse" and one.names[-1] == column.name
            ]
            rules = "".join(f" Or they violate the constraint on {one}." for one in broken)
            misfits.append(Misfit(column.name, "outside", _outside_message(column, schema.file) + rules))
    return misfits


def _misfits_of_people(unit: Unit, *, has_missing: bool, has_unread: bool) -> list[Misfit]:
    misfits = []
    if has_missing and unit.missing_person == "refuse":
        message = (
            f"column {unit.person!r}, which says who each record is about, has missing values; remove those "
            'records, or declare missing_person = "own" in [unit], and each of them is a person of its own.'
        )
        misfits.append(Misfit(unit.person, "missing", message))
    if has_unread:
        message = (
            f"column {unit.person!r}, which says who each record is about, has values that are neither text "
            "nor whole numbers; correct the table."
        )
        misfits.append(Misfit(unit.person, "outside", message))
    return misfits


def require_fit(misfits: Sequence[Misfit], *, what: str) -> None:
    """Refuse a table with a fatal misfit; the message lists them all."""
    fatal = [misfit.message for misfit in misfits if misfit.is_fatal]
    if len(fatal) == 1:
        raise MisfitError(f"{what} does not fit its schema: {fatal[0]}")
    if fatal:
        raise MisfitError(
            f"{what} does not fit its schema:\n" + "\n".join(f"  {message}" for message in fatal)
        )


def _read(column: Column, file: FileFormat) -> str:
    """How text is read in this column, and what to declare if it is written in another way.

    PRIVACY: it follows from the schema alone, whatever the values are.
    """
    if isinstance(column, DateColumn):
        said = f" (text is read in the order {column.format}, as format = … says"
        return said + ('; if it is written as 31.12.2024, declare "dmy")' if column.format == "ymd" else ")")
    if isinstance(column, RealColumn) and file.decimal == ".":
        return ' (with a decimal point; for a comma, as in 3,5, declare decimal = "," in [file])'
    return ""


def _outside_message(column: Column, file: FileFormat) -> str:
    numbers = _NOUNS.get(column.kind, "numbers")
    if not isinstance(column, BinnedColumn):
        what, places = "outside the labels that its schema declares; add the labels", '"other"'
        what += " (or aliases of a label, where case, blanks or spelling alone differ)"
    elif column.outside == "clamp":  # every number falls into some bin, so the bounds are not the reason
        kinds = numbers.removeprefix("whole ").removeprefix("finite ")
        what, places = f"that are not {kinds}, and so have no nearest bin{_read(column, file)}", '"other"'
        what += "; correct the table"
    else:
        what = f"outside the bounds that its schema declares, or that are not {numbers}"
        places = f'"other" (or "clamp", if all of them are {numbers.split()[-1]})'
        if isinstance(column, MomentColumn):
            places = '"other"' if column.is_circular else '"other" or "clamp"'
        what += _read(column, file)
        if isinstance(column, DatetimeColumn) and column.zone is None:
            what += ", or that have a zone (declare it: zone = …)"
        what += "; correct the table"
    missing = "" if column.missing else "missing = true and "
    return (
        f"column {column.name!r} has values {what}, or declare outside = {places}. If a text such as NA "
        f'stands for a missing value, declare {missing}missing_texts = ["NA"].'
    )
