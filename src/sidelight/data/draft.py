"""A first schema from PUBLIC data, with comments that invite a person to edit it.

Text and booleans become categorical, and so do whole numbers of few distinct values; other
numbers get round bounds around the public ones. Whoever edits the draft knows the private
population better than the public table does: which labels may occur, and how far numbers go.
"""

import math
from dataclasses import dataclass
from typing import Any

from sidelight import _check
from sidelight.data.column import LARGEST, CategoricalColumn, Column, IntegerColumn, Label, RealColumn
from sidelight.data.engines.base import ValueKind
from sidelight.data.engines.duckdb import DuckDBSource, silent_errors
from sidelight.data.frames import kind_of
from sidelight.data.read import describe, open_source
from sidelight.data.schema import Schema
from sidelight.errors import DataError, SchemaError
from sidelight.privacy.unit import Unit

_FEW = 16
"""Whole numbers of at most this many distinct values are drafted as labels."""
_MOST_LABELS = 256
"""Text of more distinct values keeps its commonest ones; the rest goes to "other"."""

_HEAD = """\
Drafted from public data; check every line before it is used.
This file is published with every release, and must never be written from private data.
Labels and bounds should cover everybody the private table may hold, not only the public one:
values outside are refused unless a column declares outside = "other" (or "clamp", for numbers).
The unit says what one person can change: relation "replace" or "add-or-remove", and in how many records."""

# Leading zeros are those of labels such as postal codes.
_WHOLE_TEXT = "^(0|-?[1-9][0-9]{0,14})$"
_NUMBER_TEXT = "^[+-]?((0|[1-9][0-9]*)([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$"


@dataclass(frozen=True)
class _Summary:
    """What a draft needs to know about one public column."""

    name: str
    kind: ValueKind
    has_missing: bool
    distinct: int
    low: float | None
    high: float | None


def draft(public_table: Any, *, bins: int = 32) -> Schema:
    """The schema of a public table, for a person to check and edit."""
    _check.positive_integer(bins=bins)
    if kind_of(public_table) == "spark":
        public_table = public_table.toArrow()  # public records may leave the cluster
    source = open_source(public_table)
    if not isinstance(source, DuckDBSource):
        raise DataError(
            "a schema is drafted from files, frames or DuckDB relations: save a public sample first."
        )
    twice = sorted({name for name in source.names if source.names.count(name) > 1})
    if twice:
        raise DataError(f"{describe(public_table)}: column {twice[0]!r} appears twice; rename or drop one.")
    columns: list[Column] = []
    left_out = []
    for place, (name, kind) in enumerate(zip(source.names, source.types, strict=True)):
        if kind in (None, "date", "timestamp", "bytes"):
            left_out.append(name)
        else:
            kind = "real" if kind == "decimal" else kind
            assert kind is not None  # for mypy
            columns.append(_column(source, place, name, kind, bins))
    if not columns:
        raise SchemaError(f"{describe(public_table)} has no column of text, numbers or booleans.")
    note = _HEAD + "".join(
        f"\nLeft out: {name!r} holds neither text, numbers nor booleans." for name in left_out
    )
    return Schema(tuple(columns), Unit(), note=note)  # declared, for a person to see and to correct


def _column(source: DuckDBSource, place: int, name: str, kind: ValueKind, bins: int) -> Column:
    value = f"CAST(c{place} AS VARCHAR)" if kind == "text" else f"c{place}"
    if kind == "text" and source.kind == "file.csv":
        kind = _kind_of_text(source, place)
        value = f"NULLIF(TRIM(c{place}), '')" if kind != "text" else value
        value = {"integer": f"CAST({value} AS BIGINT)", "real": f"CAST({value} AS DOUBLE)"}.get(kind, value)
        value = f"CAST(LOWER({value}) AS BOOLEAN)" if kind == "boolean" else value
    elif kind == "real":
        value = f"CAST({value} AS DOUBLE)"
    summary = _summarise(source, place, name, kind, value)
    if summary.distinct == 0:
        note = "Only missing values were seen: add labels."
        return CategoricalColumn(name, (), missing=True, note=note)
    if kind == "real" and summary.low is not None and summary.low == math.floor(summary.low):
        # A column of whole numbers with missing values often arrives as floats.
        is_whole = f"{value} IS NOT NULL AND NOT isnan({value}) AND {value} <> floor({value})"
        fractions = _ask(source, place, f"SELECT COUNT(*) FROM raw WHERE {is_whole}")[0][0]
        if not fractions and max(abs(summary.low), abs(summary.high or 0)) <= LARGEST:
            kind = "integer"
    if kind == "boolean":
        return CategoricalColumn(name, (False, True), missing=summary.has_missing)
    if kind == "text" or (kind == "integer" and summary.distinct <= _FEW):
        return _categorical(source, place, summary, value, is_whole=kind == "integer")
    return _numeric(summary, bins, is_whole=kind == "integer")


def _kind_of_text(source: DuckDBSource, place: int) -> ValueKind:
    """What a CSV column holds: a number or a boolean only if every field is one."""
    text = f"TRIM(c{place})"
    tests = {
        "integer": f"regexp_matches({text}, '{_WHOLE_TEXT}')",
        "real": f"regexp_matches({text}, '{_NUMBER_TEXT}')",
        "boolean": f"LOWER({text}) IN ('true', 'false')",
    }
    asked = ", ".join(f"BOOL_AND({test})" for test in tests.values())
    answers = _ask(source, place, f"SELECT {asked} FROM raw WHERE {text} <> ''")[0]
    kinds: tuple[ValueKind, ...] = ("integer", "real", "boolean")
    return next((kind for kind, holds in zip(kinds, answers, strict=True) if holds), "text")


def _summarise(source: DuckDBSource, place: int, name: str, kind: ValueKind, value: str) -> _Summary:
    is_missing = f"{value} IS NULL" + (f" OR isnan({value})" if kind == "real" else "")
    seen = f"NOT ({is_missing})"
    bounds = "NULL, NULL"
    if kind in ("integer", "real"):
        finite = f"CASE WHEN {seen} AND abs({value}) <> 'inf'::DOUBLE THEN {value} END"
        bounds = f"MIN({finite}), MAX({finite})"
    asked = (
        f"COALESCE(BOOL_OR({is_missing}), FALSE), COUNT(DISTINCT CASE WHEN {seen} THEN {value} END), {bounds}"
    )
    has_missing, distinct, low, high = _ask(source, place, f"SELECT {asked} FROM raw")[0]
    return _Summary(name, kind, bool(has_missing), int(distinct), low, high)


def _categorical(
    source: DuckDBSource, place: int, summary: _Summary, value: str, *, is_whole: bool
) -> CategoricalColumn:
    seen = f"{value} IS NOT NULL" + (f" AND NOT isnan({value})" if summary.kind == "real" else "")
    common = (
        f"SELECT {value}, COUNT(*) FROM raw WHERE {seen} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {_MOST_LABELS}"
    )
    labels: list[Label] = [line[0] for line in _ask(source, place, common)]
    labels = sorted(int(label) for label in labels) if is_whole else sorted(labels, key=str)
    if summary.distinct <= _MOST_LABELS:
        note = "Labels seen in public data; add any other that may occur."
        return CategoricalColumn(summary.name, tuple(labels), missing=summary.has_missing, note=note)
    note = f"More than {_MOST_LABELS} distinct values: the commonest are kept. Is it an identifier?"
    other = next(word for word in ("other", "(other)", "((other))") if word not in labels)
    return CategoricalColumn(
        summary.name,
        tuple(labels),
        missing=summary.has_missing,
        outside="other",
        other_label=other,
        note=note,
    )


def _numeric(summary: _Summary, bins: int, *, is_whole: bool) -> Column:
    name, missing = summary.name, summary.has_missing
    note = "Check the bounds: values beyond them go to the nearest bin."
    if summary.low is None or summary.high is None:
        raise SchemaError(f"column {name!r} holds no finite number; leave it out.")
    if is_whole:
        low, high = _round_bounds(summary.low, summary.high)
        first, last = max(int(low), -LARGEST), min(int(high), LARGEST)
        count = min(bins, last - first + 1)
        return IntegerColumn(name, first, last, count, missing=missing, outside="clamp", note=note)
    if summary.low == summary.high:
        note = "One value only was seen."
        return CategoricalColumn(name, (float(summary.low),), missing=missing, note=note)
    low, high = _round_bounds(summary.low, summary.high)
    return RealColumn(name, float(low), float(high), bins, missing=missing, outside="clamp", note=note)


def _round_bounds(low: float, high: float) -> tuple[float, float]:
    """Round numbers around low and high: multiples of a tenth of their distance, itself rounded.

    >>> _round_bounds(17, 90), _round_bounds(0.13, 0.87)
    ((10, 90), (0.1, 0.9))
    """
    if low == high:
        return low, high
    power = math.floor(math.log10((high - low) / 10) + 1e-9)
    step = next(m for m in (1, 2, 5, 10) if m * 10.0**power >= (high - low) / 10 * (1 - 1e-9))
    if power >= 0:
        whole = step * 10**power
        return math.floor(low / whole) * whole, math.ceil(high / whole) * whole
    per = 10**-power / step
    return math.floor(low * per) / per, math.ceil(high * per) / per


def _ask(source: DuckDBSource, place: int, sql: str) -> list[Any]:
    names = ", ".join(f"c{i}" for i in range(len(source.names)))
    relation = f"(SELECT c{place} FROM {source.relation} AS named({names})) AS raw"
    with silent_errors():
        found: list[Any] = source.run(sql.replace("FROM raw", f"FROM {relation}")).fetchall()
    return found
