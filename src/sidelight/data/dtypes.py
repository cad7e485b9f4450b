"""The types of a frame's columns, as its library names them: what came in as int16 comes out as int16.

A schema may declare, for a column, ``dtype = "pandas:Int16"``: the library, then its name for the type. A
draft from a public frame writes it where a synthetic frame would have another type by itself.

PRIVACY: types come from the schema and from public frames, never from the private frame. A private frame's
type depends on its values: one missing value makes int64 float64, one word makes it object, a category lists
every label that somebody has. Only the library of the private frame is taken over.
"""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sidelight._extras import need
from sidelight.data.columns.column import CategoricalColumn, Column
from sidelight.data.schema import Schema

LIBRARIES = ("pandas", "polars", "pyarrow", "spark")
_NULLABLE = {
    "bool": "boolean",
    **{f"{u}int{n}": f"{u.upper()}Int{n}" for u in ("", "u") for n in (8, 16, 32, 64)},
}


@dataclass(frozen=True)
class Fact:
    """The declaration that the type of a PUBLIC frame's column amounts to."""

    dtype: str
    zone: str | None = None
    categories: tuple[Any, ...] | None = None
    """The labels of a category, where they have an order."""


def facts_of(frame: Any, kind: str | None) -> dict[str, Fact]:
    """The types of a PUBLIC frame, by column; none for files."""
    if kind == "pandas":
        return {str(name): _of_pandas(dtype) for name, dtype in zip(frame.columns, frame.dtypes, strict=True)}
    if kind == "polars":
        return {name: _of_polars(dtype) for name, dtype in frame.collect_schema().items()}
    if kind == "pyarrow" and hasattr(frame, "schema"):
        return {field.name: Fact(str(field.type), getattr(field.type, "tz", None)) for field in frame.schema}
    if kind == "spark":
        return {field.name: Fact(field.dataType.simpleString()) for field in frame.schema.fields}
    return {}


def with_dtypes(frame: Any, kind: str, schema: Schema) -> Any:
    """A synthetic frame, its columns in the types that the schema declares for this library."""
    declared = {
        column.name: (column, column.dtype.partition(":")[2])
        for column in schema.columns
        if column.dtype.partition(":")[0] == kind
    }
    for name, (column, dtype) in declared.items():
        try:
            frame = _CASTS[kind](frame, column, dtype)
        except Exception:  # noqa: BLE001  # libraries refuse in many ways, and the records are worth more than their type
            warnings.warn(
                f"column {name!r} cannot be held as {dtype}, and comes in another type; correct its dtype.",
                stacklevel=2,
            )
    return frame


def _of_pandas(dtype: Any) -> Fact:
    categories = tuple(dtype.categories) if getattr(dtype, "ordered", False) else None
    zone = getattr(dtype, "tz", None)
    return Fact(str(dtype), None if zone is None else str(zone), categories)


def _of_polars(dtype: Any) -> Fact:
    name = type(dtype).__name__
    categories = tuple(dtype.categories.to_list()) if name == "Enum" else None
    return Fact("Enum" if name == "Enum" else str(dtype), getattr(dtype, "time_zone", None), categories)


def _cast_pandas(frame: Any, column: Column, dtype: str) -> Any:
    pandas: Any = need("pandas", "to make a pandas frame")
    values = frame[column.name]
    if dtype == "category":
        assert isinstance(
            column, CategoricalColumn
        )  # others have no list of values, and are left as they are
        labels = _labels(column)
        made = pandas.Categorical(values, categories=labels, ordered=column.ordered)
        return frame.assign(**{column.name: made})
    if dtype.startswith("datetime64") and values.dtype == object:
        values = pandas.to_datetime(values)
    if _can_be_null(column):
        dtype = _NULLABLE.get(dtype, dtype)
    return frame.assign(**{column.name: values.astype(dtype)})


def _cast_polars(frame: Any, column: Column, dtype: str) -> Any:
    polars: Any = need("polars", "to make a polars frame")
    name, _, rest = dtype.partition("(")
    said = dict(re.findall(r"(\w+)='?([^',)]+)'?", rest))
    kind: Any
    if name == "Enum":
        assert isinstance(column, CategoricalColumn)
        kind = polars.Enum(_labels(column))
    elif name == "Datetime":
        zone = said.get("time_zone")
        kind = polars.Datetime(said.get("time_unit", "us"), None if zone == "None" else zone)
    elif name == "Decimal":
        kind = polars.Decimal(int(said["precision"]), int(said["scale"]))
    else:
        kind = getattr(polars, name)
    return frame.with_columns(polars.col(column.name).cast(kind))


def _cast_pyarrow(frame: Any, column: Column, dtype: str) -> Any:
    import pyarrow as pa

    place = frame.column_names.index(column.name)
    values = frame.column(place)
    if dtype.startswith("dictionary"):
        return frame.set_column(place, column.name, values.dictionary_encode())
    kind = _arrow_type(dtype)
    if pa.types.is_decimal(kind):
        values = values.cast(pa.decimal128(38, kind.scale))  # which holds any whole number
    return frame.set_column(place, column.name, values.cast(kind, safe=False))


def _cast_spark(frame: Any, column: Column, dtype: str) -> Any:
    return frame.withColumn(column.name, frame[column.name].cast(dtype))


_CASTS: dict[str, Callable[[Any, Column, str], Any]] = {
    "pandas": _cast_pandas,
    "polars": _cast_polars,
    "pyarrow": _cast_pyarrow,
    "spark": _cast_spark,
}


def _arrow_type(name: str) -> Any:
    import pyarrow as pa

    found = re.fullmatch(r"(\w+)[\[(](\w+)(?:, (?:tz=)?([^\])]+))?[\])]", name)
    if found is None:
        return pa.type_for_alias({"double": "float64", "float": "float32"}.get(name, name))
    kind, first, second = found.groups()
    if kind.startswith("decimal"):
        return getattr(pa, kind)(int(first), int(second))
    if kind == "timestamp":
        return pa.timestamp(first, second)
    return pa.type_for_alias(kind if kind.startswith("date") else f"{kind}[{first}]")


def _labels(column: CategoricalColumn) -> list[Any]:
    return [
        *column.labels,
        *([column.other_label] if column.outside == "other" and column.other_label is not None else []),
    ]


def _can_be_null(column: Column) -> bool:
    is_text = isinstance(column, CategoricalColumn) and column.other_label is not None
    return column.missing or (column.outside == "other" and not is_text)
