"""Where a table does not fit its schema, in messages that contain none of its values and no count.

PRIVACY: that a private table holds some value outside the schema is itself a fact about the table.
It is told to the person who holds the table, before anything is charged or released.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sidelight.data.column import Column, NumericColumn
from sidelight.data.engines.sql import survey
from sidelight.data.engines.sql_encoding import SqlSource
from sidelight.data.schema import Schema
from sidelight.errors import DataError


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
    from sidelight.data.read import open_source

    opened = open_source(source, schema)
    misfits = misfits_of_columns(opened, schema)
    if not any(misfit.is_fatal for misfit in misfits):
        may_be_empty = not schema.unit.total_is_public
        misfits += misfits_of_values(*survey(opened, schema), schema, may_be_empty=may_be_empty)
    return misfits


def misfits_of_columns(source: SqlSource, schema: Schema) -> list[Misfit]:
    """Misfits that the column names show.

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
    declared = {column.name for column in schema.columns}
    for name in dict.fromkeys((*names, *source.extra)):
        if name not in declared:
            message = f"column {name!r} is not in the schema and is left out."
            misfits.append(Misfit(name, "extra", message))
    return misfits


def misfits_of_values(
    records: int, missing: Sequence[bool], outside: Sequence[bool], schema: Schema, *, may_be_empty: bool
) -> list[Misfit]:
    """Misfits found by a pass over the values.

    PRIVACY: where n is private, a table without records is accepted like any other.
    """
    if records == 0 and not may_be_empty:
        return [Misfit(None, "empty", "the table has no records.")]
    misfits = []
    for column, has_missing, has_outside in zip(schema.columns, missing, outside, strict=True):
        if has_missing:
            message = (
                f"column {column.name!r} has missing values, which its schema does not allow; "
                "declare missing = true, or remove those records."
            )
            misfits.append(Misfit(column.name, "missing", message))
        if has_outside:
            misfits.append(Misfit(column.name, "outside", _outside_message(column)))
    return misfits


def require_fit(misfits: Sequence[Misfit], *, what: str) -> None:
    """Refuse a table with a fatal misfit; the message lists them all."""
    fatal = [misfit.message for misfit in misfits if misfit.is_fatal]
    if len(fatal) == 1:
        raise DataError(f"{what} does not fit its schema: {fatal[0]}")
    if fatal:
        raise DataError(f"{what} does not fit its schema:\n" + "\n".join(f"  {message}" for message in fatal))


def _outside_message(column: Column) -> str:
    numbers = "finite numbers" if column.kind == "real" else "whole numbers"
    if not isinstance(column, NumericColumn):
        what, places = "outside the labels that its schema declares; add the labels", '"other"'
    elif column.outside == "clamp":  # every number falls into some bin, so the bounds are not the reason
        what, places = "that are not numbers, and so have no nearest bin; correct the table", '"other"'
    else:
        what = f"outside the bounds that its schema declares, or that are not {numbers}; correct the table"
        places = '"other" (or "clamp", if all of them are numbers)'
    return f"column {column.name!r} has values {what}, or declare outside = {places}."
