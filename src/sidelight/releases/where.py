"""``where``: which records an answer or a sample is about, as people say it.

    {"sex": "F"}                       one label, or one of its aliases
    {"region": ["north", "south"]}     any of several
    {"age": "18–29"}                   a bin, by its label
    {"age": "18-64"}, {"age": "65+"}   numbers from 18 to 64, or from 65 on: whole bins alone
    {"age": "18..64"}                  the same; and of any column
    {"admitted": "2020-01..2020-06"}   from one label to another, in the schema's order

A release knows numbers by their bins, so a range must not cut one.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight._check import brief, hint, listed
from sidelight.data.columns.column import CategoricalColumn, Column, NumericColumn
from sidelight.data.columns.intervals import interval_of
from sidelight.data.columns.moment_columns import DateColumn, MomentColumn
from sidelight.data.columns.value import text_of
from sidelight.data.impossible import masks
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
    if not isinstance(where, Mapping):
        raise SettingError(
            "where must say what columns are, such as {'sex': 'F'} or {'age': '18-64'}; got "
            f"{brief(where)}."
        )
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
        is_asked = np.logical_or.reduce([_codes(columns[attr], value) for value in values])
        found[attr] = is_asked.astype(np.float64)
    _refuse_impossible(where, found, schema)
    return found


def _refuse_impossible(where: Where, found: Mapping[str, NDArray[np.float64]], schema: Schema) -> None:
    """Refuse a condition that no record can meet, by what the schema declares."""
    named = tuple(one for one in schema.domain.impossible if set(one.attrs) <= set(found))
    for attrs, is_impossible in masks(replace(schema.domain, impossible=named)):
        if is_impossible[np.ix_(*(found[attr] > 0 for attr in attrs))].all():
            raise SettingError(
                f"no record can have {said({attr: where[attr] for attr in attrs})}: by the schema, they "
                "never go together. Ask for something else."
            )


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
    if isinstance(column, CategoricalColumn):
        aliases = {_plain(alias): code for alias, code in column.spellings.items()}
        if text in aliases:
            return np.asarray(np.arange(len(labels)) == aliases[text])
    first, dots, last = text.partition("..")
    if dots and first.strip() in labels and last.strip() in labels:
        places = np.arange(len(labels))
        return (places >= labels.index(first.strip())) & (places <= labels.index(last.strip()))
    if isinstance(column, NumericColumn):
        range_of = f"{first.strip()}-{last.strip()}" if dots else text
        if (whole := _bins(column, range_of)) is not None:
            return whole
    if isinstance(column, DateColumn):
        _refuse_within_bin(column, value)
    if isinstance(value, str) and "," in value:
        return np.asarray(np.logical_or.reduce([_codes(column, part.strip()) for part in value.split(",")]))
    raise SettingError(
        f"where asks for {column.name} = {brief(value)}, which is no label of it; it has "
        f"{listed(map(str, column.code_labels()), _SHOWN)}.{_form(column, text, labels)}"
    )


def _form(column: Column, text: str, labels: list[str]) -> str:
    """How a range of this column is written, with the one that was perhaps meant."""
    if isinstance(column, NumericColumn):
        numbers = [f"{bound:.12g}" for bound in column.bounds]
        return f" A range of whole bins is written {numbers[0]}..{_last(column, len(numbers) - 2)}."
    if isinstance(column, MomentColumn):
        within = [label for label in labels[: column.declared] if label.startswith(f"{text}-")]
        first, *_, last = [*within, *within] or [labels[0], labels[column.declared - 1]]
        return f" From one bin to another is written {first}..{last}."
    return hint(text, labels)


def _last(column: NumericColumn, place: int) -> str:
    """The number with which a range ends that ends with this bin."""
    return f"{column.bounds[place + 1] - (column.kind == 'integer'):.12g}"


def _refuse_within_bin(column: DateColumn, value: object) -> None:
    """Say which bin a single date is in, where that bin holds others as well."""
    seconds = column.number_of(value)
    low, high = column.ends
    if seconds is None or column.is_circular or not low <= seconds <= high:
        return
    labels = column.code_labels()
    label = labels[int(np.searchsorted(column.bounds, seconds, side="right")) - 1]
    raise SettingError(
        f"where asks for {column.name} = {brief(value)}, which cuts the bin {label}. A release knows dates "
        f"by their bins; ask for {label}, or from one to another, as in "
        f"{label}..{labels[column.declared - 1]}."
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
            f"A release knows numbers by their bins; ask for whole ones, the nearest: "
            f"{_nearest(column, is_touched, is_cut)}."
        )
    mask = np.zeros(column.size, dtype=np.bool_)
    mask[: column.declared] = is_touched
    return mask if mask.any() else None


def _nearest(column: NumericColumn, is_touched: Mask, is_cut: Mask) -> str:
    """The ranges of whole bins nearest to one that cuts some: those within it, and all that it touches."""
    found = []
    for mask in (is_touched & ~is_cut, is_touched):
        places = np.flatnonzero(mask)
        if len(places):
            start, end = f"{column.bounds[places[0]]:.12g}", _last(column, int(places[-1]))
            found.append(start if start == end else f"{start}-{end}")
    return " or ".join(found)


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
