"""One column's form: from what a schema declares to fields, and back; errors are told at their field."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from sidelight.data.columns.column import CategoricalColumn, Column, label_text
from sidelight.data.columns.moment_columns import DateColumn, DatetimeColumn, TimeColumn
from sidelight.data.schema_toml import KINDS, column_of, declared
from sidelight.errors import SchemaError
from sidelight.studio.visit import FieldError

KIND_WORDS = {
    "categorical": "labels, such as female and male",
    "integer": "whole numbers",
    "real": "real numbers",
    "date": "dates",
    "datetime": "dates with a time",
    "time": "times of day",
}
OUTSIDE_WORDS = {
    "refuse": "refuse the table",
    "other": "count as “other”",
    "clamp": "move to the nearest bin",
}
LABEL_TYPES = {
    "text": "text",
    "integer": "whole numbers",
    "real": "real numbers",
    "boolean": "true and false",
}
_ALL = ("missing", "missing_texts", "outside", "note")
"""Fields that every kind has."""
_MOMENTS: dict[str, type[Any]] = {"date": DateColumn, "datetime": DatetimeColumn, "time": TimeColumn}


def fields_of(kind: str) -> tuple[str, ...]:
    """The fields that the form of a kind has."""
    own: dict[str, tuple[str, ...]] = {
        "categorical": ("labels", "label_type", "ordered", "prefix", "aliases", "other_label"),
        "integer": ("low", "high", "bins", "edges"),
        "real": ("low", "high", "bins", "edges", "decimals"),
        "date": ("low", "high", "by", "bins", "edges", "format"),
        "datetime": ("low", "high", "by", "bins", "edges", "format", "zone"),
        "time": ("low", "high", "by", "bins", "edges"),
    }
    return own[kind]


def periods(kind: str) -> tuple[str, ...]:
    """The calendar's bins that a kind of moments can have."""
    return _MOMENTS[kind].periods if kind in _MOMENTS else ()


def outsides(kind: str) -> list[tuple[str, str]]:
    """The choices for values outside, with words."""
    return [(one, OUTSIDE_WORDS[one]) for one in KINDS[kind].outsides]


def shown(column: Column | None) -> dict[str, str]:
    """The fields of a column's form; empty for a new column."""
    empty = dict.fromkeys((*_ALL, *fields_of("categorical"), *fields_of("datetime"), "decimals"), "")
    if column is None:
        return empty | {"label_type": "text", "outside": "refuse"}
    said = declared(column)
    values = empty | {
        name: _written(said[name])
        for name in ("low", "high", "bins", "decimals", "by", "format", "zone", "prefix", "other_label")
        if name in said
    }
    if "edges" in said:
        values["edges"] = ", ".join(_written(edge) for edge in said["edges"])
    if isinstance(column, CategoricalColumn):
        values["labels"] = "\n".join(label_text(label) for label in column.labels)
        values["label_type"] = column.value_kind
        values["aliases"] = "\n".join(f"{label} = {', '.join(also)}" for label, also in column.aliases)
        values["ordered"] = "yes" if column.ordered else ""
    values["missing"] = "yes" if column.missing else ""
    values["missing_texts"] = "\n".join(column.missing_texts)
    return values | {"outside": column.outside, "note": column.note}


def column_from(name: str, kind: str, given: Mapping[str, str], before: Column | None) -> Column:
    """The column that a form declares; FieldError says what is wrong at which field."""
    if kind not in KINDS:
        raise FieldError({"kind": "Choose one of the kinds."})
    errors: dict[str, str] = {}
    keys: dict[str, Any] = {"kind": kind, "outside": given.get("outside") or "refuse"}
    if given.get("missing"):
        keys["missing"] = True
        texts = [line for line in given.get("missing_texts", "").splitlines() if line]
        keys |= {"missing_texts": texts} if texts else {}
    readers = _readers(kind, given.get("label_type", "text"))
    for field in fields_of(kind):
        text = given.get(field, "").strip()
        if not text or field == "label_type":
            continue
        try:
            keys[field] = readers.get(field, str)(text)
        except ValueError as error:
            errors[field] = str(error)
    if before is not None and before.kind == kind and before.dtype:
        keys["dtype"] = before.dtype
    if errors:
        raise FieldError(errors)
    try:
        made = column_of(name, keys)
    except SchemaError as error:
        words = str(error).partition(": ")[2] or str(error)
        known = {one.name for one in fields(KINDS[kind])}
        raise FieldError(
            {error.key if error.key in known else "kind": words[:1].upper() + words[1:]}
        ) from error
    return replace(made, note=given.get("note", "").strip())


def _readers(kind: str, label_type: str) -> dict[str, Callable[[str], Any]]:
    """How the text of each field is read; one that is not listed is taken as it is."""
    numbers: dict[str, Callable[[str], Any]] = {"integer": _whole, "real": _real}
    bound, label = numbers.get(kind, str), (numbers | {"boolean": _truth}).get(label_type, str)
    return {
        "labels": lambda text: [label(line.strip()) for line in text.splitlines() if line.strip()],
        "other_label": lambda text: label(text.splitlines()[0].strip()),
        "aliases": _aliases,
        "ordered": bool,
        "prefix": _whole,
        "low": bound,
        "high": bound,
        "bins": _whole,
        "edges": lambda text: [bound(part.strip()) for part in re.split("[,\n]", text) if part.strip()],
        "decimals": _whole,
    }


def _aliases(text: str) -> dict[str, list[str]]:
    found = {}
    for line in text.splitlines():
        label, equals, also = line.partition("=")
        if line.strip() and not equals:
            raise ValueError("Write a label, then =, then its other spellings: F = f, female")
        if line.strip():
            found[label.strip()] = [one.strip() for one in also.split(",") if one.strip()]
    return found


def _whole(text: str) -> int:
    try:
        return int(text.replace(" ", ""))
    except ValueError:
        raise ValueError(f"{text[:40]!r} is no whole number.") from None


def _real(text: str) -> float:
    try:
        value = float(text.replace(" ", ""))
    except ValueError:
        raise ValueError(f"{text[:40]!r} is no number. Decimals have a point: 1.5") from None
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]!r} is no finite number.")
    return value


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text[:40]!r} is neither true nor false.")
    return text.lower() == "true"


def _written(value: Any) -> str:
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)
