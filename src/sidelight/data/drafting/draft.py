"""A first schema from PUBLIC data: comments invite a person to edit it, remarks say where to look.

Text and truths become labels, and so do whole numbers of few distinct values; other numbers get round bounds
around the public ones, dates those of whole months or years. Identifiers and free text are left out: they
tell people apart, and a release is about groups. Whoever edits the draft knows the private population better
than the public table does: which labels may occur, and how far numbers go.
"""

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np

from sidelight import _check
from sidelight.data.columns.column import LARGEST, CategoricalColumn, Column, IntegerColumn, Label, RealColumn
from sidelight.data.columns.moment import check_zone
from sidelight.data.columns.moment_columns import DateColumn, DatetimeColumn, TimeColumn
from sidelight.data.decode import decode
from sidelight.data.drafting.public_survey import FREE, MOST_LABELS, PublicSurvey, Seen
from sidelight.data.dtypes import LIBRARIES, Fact, facts_of
from sidelight.data.engines.duckdb import DuckDBSource
from sidelight.data.misfits import is_named_as_id, who_hint
from sidelight.data.reading.file_format import FileFormat
from sidelight.data.reading.frames import from_arrow, kind_of
from sidelight.data.reading.read import describe, open_source
from sidelight.data.schema import Schema
from sidelight.errors import DataError, SchemaError
from sidelight.privacy.unit import Unit

_FEW = 16
"""Whole numbers of at most this many distinct values are drafted as labels."""
_LOW = 0.9
"""Share of numbers in the lowest tenth of their range from which on a remark says so."""
_JUDGED = 50
"""Fewer values than this do not show that a column tells people apart."""
_ALONE = 0.9
"""Share of distinct values from which on a column is taken for an identifier or free text."""

_HEAD = """\
Drafted from public data; check every line before it is used.
This file is published with every release, and must never be written from private data.
Labels and bounds should cover everybody the private table may hold, not only the public one:
values outside are refused unless a column declares outside = "other" (or "clamp", for numbers and dates).
The unit says what one person can change: relation "replace" or "add-or-remove", and in how many records."""

_LIKE_ID = "it has very many values, and the name of an identifier."


@dataclass(frozen=True)
class Drafted:
    """A draft, and a line for each column that a person should look at."""

    schema: Schema
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class _Draft:
    """One column, or None if it is left out; and what is to be said of it."""

    column: Column | None
    remark: str = ""


def draft(
    public_table: Any, *, bins: int = 32, missing: Iterable[str] = (), file: FileFormat | None = None
) -> Drafted:
    """The schema of a public table, for a person to check and edit.

    ``missing`` are texts that stand for a missing value, besides NA, N/A, null, - and none at all.
    """
    _check.positive_integer(bins=bins)
    kind = kind_of(public_table)
    facts = facts_of(public_table, kind)
    if kind == "spark":
        public_table = public_table.toArrow()  # public records may leave the cluster
    file = FileFormat() if file is None else file
    source = open_source(public_table, file=file)
    if not isinstance(source, DuckDBSource):
        raise DataError(
            "a schema is drafted from files, frames or DuckDB relations: save a public sample first."
        )
    twice = sorted({name for name in source.names if source.names.count(name) > 1})
    if twice:
        raise DataError(f"{describe(public_table)}: column {twice[0]!r} appears twice; rename or drop one.")
    survey = PublicSurvey(source, file=file, missing=missing)
    every = survey.columns()
    if any(seen is not None and not seen.present and not seen.has_missing for seen in every):
        raise DataError(
            f"{describe(public_table)} has no records, so it says nothing of labels and bounds. Draft from a "
            "public table that has some, or write the schema by hand."
        )
    drafts = {
        name: _column(survey, place, seen, bins, facts.get(name))
        for place, (name, seen) in enumerate(zip(source.names, every, strict=True))
    }
    remarks = [f"column {name!r}: {one.remark}" for name, one in drafts.items() if one.remark]
    columns = [one.column for one in drafts.values() if one.column is not None]
    if not columns:
        raise SchemaError(
            f"{describe(public_table)} has no column that a release can be about:\n  " + "\n  ".join(remarks)
        )
    left_out = [
        f"Left out: {name!r}: {one.remark.removeprefix('left out: ')}"
        for name, one in drafts.items()
        if one.column is None
    ]
    note = "\n".join([_HEAD, *left_out])
    # The unit is declared, for a person to see and to correct.
    schema = Schema(tuple(columns), Unit(), note=note, file=file)
    return Drafted(_with_dtypes(schema, kind, facts), tuple(remarks))


def _as_typed(column: Column, fact: Fact) -> Column:
    """The column, with the zone or the order that the type of a public frame declares."""
    if isinstance(column, DatetimeColumn) and fact.zone is not None and check_zone(fact.zone):
        return replace(column, zone=fact.zone)
    is_order = isinstance(column, CategoricalColumn) and fact.categories is not None
    if is_order and set(column.labels) <= set(fact.categories or ()) and column.outside == "refuse":  # type: ignore[attr-defined]
        return replace(column, labels=fact.categories, ordered=True)  # type: ignore[call-arg]  # has labels
    return column


def _with_dtypes(schema: Schema, kind: str | None, facts: Mapping[str, Fact]) -> Schema:
    """The schema, with the type of each column that would come out of it in another one."""
    if kind not in LIBRARIES:
        return schema
    one = np.zeros((1, len(schema.columns)), dtype=np.int64)
    usual = facts_of(from_arrow(decode(schema, one, seed=0), kind), kind)
    columns = []
    for column in schema.columns:
        fact = facts[column.name]
        is_other = fact.dtype != usual[column.name].dtype and _is_kept(column, fact)
        columns.append(replace(column, dtype=f"{kind}:{fact.dtype}") if is_other else column)
    return replace(schema, columns=tuple(columns))


def _is_kept(column: Column, fact: Fact) -> bool:
    """Whether synthetic values can have this type: a category needs labels, and objects have to be text."""
    if fact.dtype == "object":
        return column.value_kind == "text"
    return fact.dtype not in ("category", "Enum") or column.kind == "categorical"


def _column(survey: PublicSurvey, place: int, seen: Seen | None, bins: int, fact: Fact | None) -> _Draft:
    """The draft of one column; ``fact`` is what the type of a frame says of it."""
    if seen is None:
        return _Draft(None, "left out: it holds values of a type that no schema has (lists, bytes, …).")
    made = _with_missing(_of_kind(survey, place, seen, bins), seen)
    if made.column is None or fact is None:
        return made
    return replace(made, column=_as_typed(made.column, fact))


def _with_missing(made: _Draft, seen: Seen) -> _Draft:
    """The draft, with the texts that stand for missing values."""
    if made.column is None or not seen.tokens:
        return made
    # Labels are compared letter by letter; numbers and dates without the spaces around them.
    is_text = made.column.value_kind == "text"
    texts = tuple(dict.fromkeys(text if is_text else text.strip() for text in seen.tokens))
    texts = tuple(text for text in texts if is_text or text)
    if not texts:
        return made
    column = replace(made.column, missing=True, missing_texts=texts)
    shown = ", ".join(map(repr, texts))
    return _Draft(
        column,
        " ".join(
            filter(None, [made.remark, f"{shown} {'is' if len(texts) == 1 else 'are'} read as missing."])
        ),
    )


def _of_kind(survey: PublicSurvey, place: int, seen: Seen, bins: int) -> _Draft:
    if seen.distinct == 0:
        note = "Only missing values were seen: add labels."
        column = CategoricalColumn(seen.name, (), missing=True, note=note)
        return _Draft(column, "only missing values were seen; add labels.")
    if seen.spelled == "truth":
        return _truths(seen)
    if seen.spelled == "number":
        return _numbers(seen, bins)
    if seen.spelled == "date":
        return _dates(seen)
    if seen.spelled == "time":
        return _Draft(TimeColumn(seen.name, missing=seen.has_missing, note="By the hour."))
    made = _texts(survey, place, seen)
    if seen.spelling.has_comma:
        remark = (
            "taken for text: its values are numbers with a comma. If that is a decimal mark, draft again "
        )
        return _Draft(made.column, remark + "with decimal = ',' (--decimal ,).")
    if not seen.spelling.nearly:
        return made
    what = "left out" if made.column is None else "drafted as text"
    odd = ", ".join(map(_check.brief, seen.spelling.odd))
    return _Draft(
        made.column,
        f"{what}: nearly all of its values are {seen.spelling.nearly}, but not {odd}. If such a text stands "
        f"for a missing value, draft again with --missing {shlex.quote(seen.spelling.odd[0])}; if not, "
        "correct the public table.",
    )


def _truths(seen: Seen) -> _Draft:
    spelled = {str(label) for label in seen.labels}
    if seen.kind == "text" and len(spelled) <= 2 and not spelled <= {"true", "false"}:
        # Two words, such as yes and no, come back as they were.
        return _Draft(_labelled(seen))
    return _Draft(CategoricalColumn(seen.name, (False, True), missing=seen.has_missing))


def _texts(survey: PublicSurvey, place: int, seen: Seen) -> _Draft:
    share = seen.distinct / max(seen.present, 1)
    if seen.present >= _JUDGED and seen.spaces >= 2 and share > FREE:
        return _Draft(None, "left out: it seems to be free text. Turn it into a few groups first.")
    if seen.present >= _JUDGED and share >= _ALONE:
        hint = " If it is a code whose first characters say something, declare it with a prefix."
        hints = who_hint(seen.name) + (hint if seen.is_code else "")
        return _Draft(None, f"left out: nearly every value is another one.{hints}")
    if _is_id(seen):
        return _Draft(None, f"left out: {_LIKE_ID}{who_hint(seen.name)}")
    if seen.labels and seen.distinct <= MOST_LABELS:
        column = _labelled(seen)
        folded = sum(len(spellings) for _, spellings in column.aliases)
        told = "spelling differs" if folded == 1 else "spellings differ"
        kept = "is an alias" if folded == 1 else "are aliases"
        remark = f"{folded} {told} in case or spaces alone, and {kept}." if folded else ""
        return _Draft(column, remark)
    if seen.prefix is not None:
        return _prefixed(seen, seen.prefix)
    labels = sorted(survey.commonest(place, MOST_LABELS))
    other = next(word for word in ("other", "(other)", "((other))") if word not in labels)
    note = f"More than {MOST_LABELS} distinct values: the commonest are kept."
    column = CategoricalColumn(
        seen.name, tuple(labels), missing=seen.has_missing, outside="other", other_label=other, note=note
    )
    return _Draft(column, f"has more than {MOST_LABELS} values; only the commonest are told apart.")


def _prefixed(seen: Seen, length: int) -> _Draft:
    labels = sorted(seen.labels)
    note = f"Codes, told apart by their first characters ({length})."
    column = CategoricalColumn(
        seen.name, tuple(labels), missing=seen.has_missing, outside="other", prefix=length, note=note
    )
    remark = f"codes of more than {MOST_LABELS} values: only the first characters count (prefix = {length})."
    return _Draft(column, remark)


def _is_id(seen: Seen) -> bool:
    """Whether a column of very many values is named as identifiers are; people may have several records."""
    return seen.distinct > MOST_LABELS and is_named_as_id(seen.name)


def _labelled(seen: Seen) -> CategoricalColumn:
    """Labels that differ only in case or spaces become one; the others are its aliases.

    The one is the commonest of those without needless spaces, if there are any.
    """

    def by_preference(label: Label) -> tuple[bool, int, str]:
        text = str(label)
        return text != " ".join(text.split()), -seen.labels[label], text

    alike: dict[str, list[str]] = {}
    for label in sorted(seen.labels, key=by_preference):
        alike.setdefault(" ".join(str(label).casefold().split()), []).append(str(label))
    groups = sorted(alike.values())
    aliases = tuple((group[0], tuple(sorted(group[1:]))) for group in groups if len(group) > 1)
    note = "Labels seen in public data; add any other that may occur."
    labels = tuple(group[0] for group in groups)
    return CategoricalColumn(seen.name, labels, missing=seen.has_missing, aliases=aliases, note=note)


def _numbers(seen: Seen, bins: int) -> _Draft:
    name, missing = seen.name, seen.has_missing
    if seen.low is None or seen.high is None:
        return _Draft(None, "left out: it holds no finite number.")
    is_whole = seen.is_whole and max(abs(seen.low), abs(seen.high)) <= LARGEST
    if is_whole and seen.present >= _JUDGED and seen.distinct >= _ALONE * seen.present:
        is_row = seen.high - seen.low + 1 == seen.present and seen.present > 1000
        if is_named_as_id(name) or is_row:
            return _Draft(None, f"left out: nearly every value is another one.{who_hint(name)}")
    if is_whole and _is_id(seen):
        return _Draft(None, f"left out: {_LIKE_ID}{who_hint(name)}")
    if is_whole and seen.labels and seen.distinct <= _FEW:
        labels: tuple[Label, ...] = tuple(sorted(int(label) for label in seen.labels))
        note = "Labels seen in public data; add any other that may occur."
        return _Draft(CategoricalColumn(name, labels, missing=missing, note=note))
    note = "Check the bounds: values beyond them go to the nearest bin."
    if is_whole:
        about: dict[str, Any] = {"missing": missing, "outside": "clamp", "note": note}
        return _Draft(_whole_numbers(name, int(seen.low), int(seen.high), bins, about), _tail(seen))
    if seen.low == seen.high:
        note = "One value only was seen."
        return _Draft(CategoricalColumn(name, (float(seen.low),), missing=missing, note=note))
    low, high = _round_bounds(seen.low, seen.high)
    if seen.decimals is not None:
        # Two steps of the last decimal, so that every bin holds a number however its edges are rounded.
        bins = max(1, min(bins, int((high - low) * 10**seen.decimals / 2)))
    first, beyond, bins = _round_bins(low, high, bins)
    column = RealColumn(name, first, beyond, bins, missing=missing, outside="clamp", note=note)
    try:
        return _Draft(replace(column, decimals=seen.decimals), _tail(seen))
    except SchemaError:  # a bin is narrower than the last decimal all the same
        return _Draft(column, _tail(seen))


def _tail(seen: Seen) -> str:
    """A remark on numbers of which most bins would hold next to none."""
    if seen.in_lowest_tenth < _LOW:
        return ""
    return (
        f"{math.floor(100 * seen.in_lowest_tenth)}% of its values lie in the lowest tenth of its range, so "
        "most of its bins hold next to none: write edges of your own, closer together where values are."
    )


def _whole_numbers(name: str, low: int, high: int, bins: int, about: dict[str, Any]) -> IntegerColumn:
    """Round bounds around low and high, and bins of one round width: 20–24, 25–29, 30–34.

    A high that would begin a bin of its own, such as 100 in percentages, belongs to the bin before it:
    no synthetic number should then lie above it.

    >>> _whole_numbers("age", 17, 88, 32, {}).code_labels()[:2]
    ('10–14', '15–19')
    >>> _whole_numbers("share", 0, 100, 32, {}).code_labels()[-2:]
    ('90–94', '95–100')
    """
    least, most = (int(bound) for bound in _round_bounds(low, high))
    if most - least < bins:
        return IntegerColumn(name, max(least, -LARGEST), min(most, LARGEST), most - least + 1, **about)
    is_reached = most == high
    for width in _round_widths():
        first, beyond = least // width * width, -(-most // width) * width
        if beyond - first <= bins * width and not (is_reached and width == 1):
            break
    if first < -LARGEST or beyond > LARGEST:
        return IntegerColumn(name, max(least, -LARGEST), min(most, LARGEST), bins, **about)
    if is_reached and most == beyond:
        return IntegerColumn(name, edges=(*range(first, beyond, width), most + 1), **about)
    return IntegerColumn(name, first, beyond - 1, (beyond - first) // width, **about)


def _round_bins(low: float, high: float, bins: int) -> tuple[float, float, int]:
    """Bounds around low and high, and at most so many bins of one round width between them.

    >>> _round_bins(0.0, 700.0, 32), _round_bins(0.1, 0.9, 32), _round_bins(-1.0, 6.0, 4)
    ((0.0, 700.0, 28), (0.1, 0.9, 32), (-2.0, 6.0, 4))
    """
    least, most = (Fraction(repr(float(bound))) for bound in (low, high))
    power = math.floor(math.log10(float(most - least) / bins)) - 1
    for width in (m * Fraction(10) ** p for p in count(power) for m in (1, 2, Fraction(5, 2), 5)):
        first, beyond = least // width, -(-most // width)
        if beyond - first <= bins:
            break
    ends = float(first * width), float(beyond * width)
    return (*ends, beyond - first) if all(map(math.isfinite, ends)) else (float(low), float(high), bins)


def _round_widths() -> Iterator[int]:
    """1, 2, 5, 10, 20, 25, 50, 100, and so on."""
    yield from (1, 2, 5)
    for power in count(1):
        yield from (10**power, 2 * 10**power, 25 * 10 ** (power - 1), 5 * 10**power)


def _dates(seen: Seen) -> _Draft:
    first, last = (bound.date() for bound in (seen.low, seen.high))
    days = (last - first).days + 1
    by = next(by for by, most in _PERIODS if days <= most)
    low, high = _period_of(first, by)[0], _period_of(last, by)[1]
    note = "Check the bounds: dates beyond them go to the nearest bin."
    about: dict[str, Any] = {"missing": seen.has_missing, "outside": "clamp"}
    about |= {"format": seen.spelling.order, "note": note}
    remark = (
        f"its bounds, {low} to {high}, are those of the public dates. If yours are of other years, change "
        "them: dates beyond count in the first or last bin."
    )
    if not seen.spelling.is_sure:
        remark += " Day and month cannot be told apart in the text; check its format."
    if not seen.has_time and seen.kind != "instant":
        return _Draft(DateColumn(seen.name, low, high, by, **about), remark)
    zone = "UTC" if seen.kind == "instant" else None
    return _Draft(DatetimeColumn(seen.name, low, high, by, zone=zone, **about), remark)


_PERIODS = (("day", 62), ("week", 366), ("month", 6 * 366), ("quarter", 16 * 366), ("year", math.inf))


def _period_of(day: date, by: str) -> tuple[date, date]:
    """The first and the last day of the period that holds this one."""
    if by == "day":
        return day, day
    if by == "week":
        monday = day - timedelta(days=day.weekday())
        return monday, monday + timedelta(days=6)
    months = {"month": 1, "quarter": 3, "year": 12}[by]
    start = (day.month - 1) // months * months + 1
    after = day.year * 12 + start - 1 + months
    if after // 12 > date.max.year:
        return date(day.year, start, 1), date.max
    return date(day.year, start, 1), date(after // 12, after % 12 + 1, 1) - timedelta(days=1)


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
