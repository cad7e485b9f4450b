"""``where``: which records an answer or a sample is about, as people say it.

    {"sex": "F"}                       one label
    {"region": ["north", "south"]}     any of several
    {"age": "18–29"}                   a bin, by its label
    {"age": "18-64"}, {"age": "65+"}   numbers from 18 to 64, or from 65 on: whole bins alone
    {"admitted": "2020-01..2020-06"}   from one label to another, in the schema's order

A release knows numbers by their bins, so a range must not cut one.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight._check import brief, hint, listed
from sidelight.data.columns.column import Column, NumericColumn
from sidelight.data.columns.intervals import interval_of
from sidelight.data.columns.value import text_of
from sidelight.data.schema import Schema
from sidelight.errors import SettingError

Where = Mapping[str, Any]
Mask = NDArray[np.bool_]

_SHOWN = 12


def codes_where(where: Where, schema: Schema) -> dict[str, NDArray[np.float64]]:
    """For each attribute named, 1 at the codes that are asked for and 0 at the others.

    >>> schema = Schema.from_domain({"sex": 2, "age": 4})
    >>> {attr: codes.tolist() for attr, codes in codes_where({"age": "1-2", "sex": [1]}, schema).items()}
    {'age': [0.0, 1.0, 1.0, 0.0], 'sex': [0.0, 1.0]}
    """
    columns = {column.name: column for column in schema.columns}
    found = {}
    for attr, asked in where.items():
        if attr not in columns:
            raise SettingError(
                f"where names {brief(attr)}; the release has {listed(columns)}.{hint(str(attr), columns)}"
            )
        values = _each(asked)
        if not values:
            raise SettingError(f"where asks for no value of {brief(attr)}; name one, or leave it out.")
        masks = [_codes(columns[attr], value) for value in values]
        found[attr] = np.logical_or.reduce(masks).astype(np.float64)
    return found


def said(where: Where) -> str:
    """The condition in words.

    >>> said({"sex": "F", "region": ["north", "south"]})
    "sex = 'F' and region = 'north' or 'south'"
    """
    return " and ".join(f"{attr} = {' or '.join(map(brief, _each(asked)))}" for attr, asked in where.items())


def _each(asked: Any) -> list[Any]:
    """A value, or several of them, as a list."""
    return list(asked) if isinstance(asked, Collection) and not isinstance(asked, str) else [asked]


def _codes(column: Column, value: object) -> Mask:
    """The codes that one value, bin or range stands for."""
    text = _plain(text_of(value) or "missing")
    labels = [_plain(text_of(label) or "") for label in column.code_labels()]
    mask = np.array([label == text for label in labels])
    if mask.any():
        return mask
    first, dots, last = text.partition("..")
    if dots and first.strip() in labels and last.strip() in labels:
        places = np.arange(len(labels))
        return (places >= labels.index(first.strip())) & (places <= labels.index(last.strip()))
    if isinstance(column, NumericColumn) and (whole := _bins(column, text)) is not None:
        return whole
    if isinstance(value, str) and "," in value:
        return np.asarray(np.logical_or.reduce([_codes(column, part.strip()) for part in value.split(",")]))
    raise SettingError(
        f"where asks for {column.name} = {brief(value)}, which is no label of it; it has "
        f"{listed(map(str, column.code_labels()), _SHOWN)}."
    )


def _bins(column: NumericColumn, text: str) -> Mask | None:
    """The whole bins within a range, or the bin of a single number; None where the text is neither."""
    interval = _interval(text, whole=column.kind == "integer")
    if interval is None:
        return None
    low, high = interval
    if high < low:
        raise SettingError(
            f"where asks for {column.name} = {text!r}, which ends before it begins; swap the two."
        )
    starts, ends = column.bounds[:-1].astype(np.float64), column.bounds[1:].astype(np.float64)
    is_touched = (starts <= low) & (low < ends) if low == high else (starts < high) & (low < ends)
    is_cut = is_touched & ((starts < low) | (high < ends))
    labels = column.code_labels()
    if is_cut.any():
        raise SettingError(
            f"where asks for {column.name} = {text!r}, which cuts the bin {labels[int(np.argmax(is_cut))]}. "
            f"A release knows numbers by their bins; ask for whole ones: {listed(map(str, labels), _SHOWN)}."
        )
    mask = np.zeros(column.size, dtype=np.bool_)
    mask[: column.declared] = is_touched
    return mask if mask.any() else None


def _interval(text: str, *, whole: bool) -> tuple[float, float] | None:
    """The range [low, high) that a text names; a whole number is a range of one."""
    try:
        number = float(text)
    except ValueError:
        return interval_of(text, whole=whole)
    return number, number + whole


def _plain(text: str) -> str:
    """A bin's dash may be typed as a hyphen."""
    return text.replace("–", "-").strip()
