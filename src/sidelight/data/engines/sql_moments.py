"""Dates, moments and times of day as SQL: the seconds that ``moment`` gives, in every engine alike.

Engines read text as dates each in its own way, and some stop at a day that does not exist: one record would
decide for all. So no engine reads a date here. Text that has the declared form is cut into year, month, day
and clock, one SELECT around another, and the seconds are worked out from those by arithmetic.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sidelight.data.columns.moment import (
    CLOCK_PATTERN,
    DAY,
    EARLIEST,
    LATEST,
    MOMENT_PATTERN,
    OFFSET_PATTERN,
    Offsets,
    seconds_of,
)
from sidelight.data.columns.moment_columns import DateColumn, MomentColumn
from sidelight.data.engines.base import ValueKind

if TYPE_CHECKING:
    from sidelight.data.engines.sql_encoding import Dialect

TYPED: dict[str, tuple[ValueKind, ...]] = {
    "date": ("date", "timestamp"),
    "datetime": ("date", "timestamp", "instant"),
    "time": ("time",),
}
"""The types of the table that a kind of column reads, text apart."""


def layers(sql: "Dialect", column: MomentColumn, x: str, i: int) -> list[list[str]]:
    """The parts of a text, layer by layer; r{i}: its seconds, q{i}: whether it means a missing value."""
    text = sql.as_text(x)
    trimmed = f"TRIM({text})"
    is_missing = f"({x} IS NULL OR {sql.one_of(trimmed, ('', *column.missing_texts))})"
    if not isinstance(column, DateColumn):
        found = f"CASE WHEN {sql.matches(trimmed, CLOCK_PATTERN)} THEN {trimmed} END"
        return [
            [f"{is_missing} AS q{i}", f"{found} AS k{i}"],
            [f"CASE WHEN NOT q{i} THEN {_clock(sql, f'k{i}')} END AS r{i}"],
        ]
    k, y, m, d = f"k{i}", f"y{i}", f"m{i}", f"d{i}"
    has_form = sql.matches(trimmed, MOMENT_PATTERN[column.format])
    # Most dates are written as the engine writes them: that takes little to see, and saves the rest.
    dates = [token for token in column.missing_texts if token.strip() and seconds_of(token) is not None]
    plain = sql.days_of_iso(text) if column.format == "ymd" and not dates else "NULL"
    is_missing = f"CASE WHEN n{i} IS NULL THEN {is_missing} ELSE FALSE END"
    found = f"CASE WHEN n{i} IS NULL THEN CASE WHEN {has_form} THEN REPLACE({trimmed}, 'T', ' ') END END"
    wall = f"CAST(NULL AS {sql.double})"
    if column.offsets is not None:
        wall = _on_the_wall(sql, f"(s{i} - z{i})", column.offsets)
    day = f"TRANSLATE(split_part(t{i}, ' ', 1), './', '--')"
    place = {letter: column.format.index(letter) + 1 for letter in "ymd"}
    numbers = {letter: sql.whole(f"split_part({day}, '-', {place[letter]})") for letter in "ymd"}
    parts = [f"{number} AS {letter}{i}" for letter, number in numbers.items()]
    by4, by100, by400 = (f"{y} = {every} * FLOOR({y} / {sql.number(every)})" for every in (4, 100, 400))
    leap = f"({by4} AND (NOT {by100} OR {by400}))"
    february = f"CASE WHEN {leap} THEN 29 ELSE 28 END"
    length = f"CASE WHEN {m} = 2 THEN {february} WHEN {m} IN (4, 6, 9, 11) THEN 30 ELSE 31 END"
    is_day = f"{m} BETWEEN 1 AND 12 AND {d} BETWEEN 1 AND {length}"
    clock = f"CASE WHEN {k} = '' THEN {sql.number(0)} ELSE {_clock(sql, k)} END"
    days = _days(sql, f"e{i}", f"f{i}", f"g{i}")
    return [
        [f"CAST({plain} AS {sql.double}) AS n{i}"],
        [f"{is_missing} AS q{i}", f"{found} AS t{i}"],
        [*parts, f"split_part(t{i}, ' ', 2) AS {k}"],
        [
            # A year that begins in March has its leap day at the end.
            f"CASE WHEN {m} <= 2 THEN {y} - 1 ELSE {y} END AS e{i}",
            f"CASE WHEN {m} <= 2 THEN {m} + 9 ELSE {m} - 3 END AS f{i}",
            f"CASE WHEN {is_day} THEN {d} END AS g{i}",
            f"{clock} AS h{i}",
            f"{_offset(sql, k)} AS z{i}",
        ],
        [f"COALESCE(n{i}, {days}) * {sql.number(DAY)} + COALESCE(h{i}, {sql.number(0)}) AS s{i}"],
        [f"CASE WHEN q{i} THEN NULL WHEN z{i} IS NULL THEN s{i} ELSE {wall} END AS r{i}"],
    ]


def value_of_text(sql: "Dialect", i: int) -> tuple[str, str]:
    """The seconds that text names, and whether there is text that names none."""
    return f"r{i}", f"(NOT q{i} AND {_is_unread(sql, f'r{i}')})"


def value_of_type(sql: "Dialect", column: MomentColumn, x: str, kind: ValueKind) -> tuple[str, str]:
    """The seconds of a typed value, and whether there is a value without any."""
    seconds = sql.seconds(x, kind)
    if kind == "instant":
        zone = column.offsets if isinstance(column, DateColumn) else None
        seconds = f"CAST(NULL AS {sql.double})" if zone is None else _on_the_wall(sql, seconds, zone)
    return seconds, f"({x} IS NOT NULL AND {_is_unread(sql, seconds)})"


def bin_in_circle(sql: "Dialect", column: MomentColumn, v: str) -> str:
    """The weekday from Monday on, or the hour of the day."""
    if column.by == "weekday":
        days = f"(FLOOR({v} / {sql.number(DAY)}) + 3)"  # 1970 began on a Thursday
        return f"CAST({days} - 7 * FLOOR({days} / {sql.number(7)}) AS BIGINT)"
    hours = f"FLOOR({v} / {sql.number(3600)})"
    return f"CAST({hours} - 24 * FLOOR({v} / {sql.number(DAY)}) AS BIGINT)"


def _is_unread(sql: "Dialect", seconds: str) -> str:
    low, high = sql.number(EARLIEST), sql.number(LATEST)
    return f"COALESCE({seconds} < {low} OR {seconds} > {high}, TRUE)"


def _days(sql: "Dialect", year: str, month: str, day: str) -> str:
    leaps = " ".join(
        f"{sign} FLOOR({year} / {sql.number(every)})" for sign, every in (("+", 4), ("-", 100), ("+", 400))
    )
    return f"(365 * {year} {leaps} + FLOOR((153 * {month} + 2) / {sql.number(5)}) + {day} - 719469)"


def _clock(sql: "Dialect", k: str) -> str:
    """Seconds since midnight of a text such as 10:30 or 10:30:59.5+02:00."""
    second = (
        f"CASE WHEN SUBSTR({k}, 6, 1) = ':' THEN {sql.whole(f'SUBSTR({k}, 7, 2)')} ELSE {sql.number(0)} END"
    )
    return f"({sql.whole(f'SUBSTR({k}, 1, 2)')} * 3600 + {sql.whole(f'SUBSTR({k}, 4, 2)')} * 60 + {second})"


def _offset(sql: "Dialect", k: str) -> str:
    """Seconds that the clock is ahead of Greenwich; NULL where the text does not say."""
    digits = f"RIGHT(REPLACE({k}, ':', ''), 5)"
    size = f"({sql.whole(f'SUBSTR({digits}, 2, 2)')} * 3600 + {sql.whole(f'SUBSTR({digits}, 4, 2)')} * 60)"
    return (
        f"CASE WHEN RIGHT({k}, 1) = 'Z' THEN {sql.number(0)} WHEN {sql.matches(k, OFFSET_PATTERN)} "
        f"THEN CASE WHEN LEFT({digits}, 1) = '-' THEN -{size} ELSE {size} END END"
    )


def _on_the_wall(sql: "Dialect", instant: str, zone: Offsets) -> str:
    """The time that a clock in the zone shows at this instant, by bisection."""

    def bisect(known: Sequence[tuple[int, int]]) -> str:
        if len(known) == 1:
            return sql.number(known[0][1])
        middle = len(known) // 2
        start = sql.number(known[middle][0])
        return (
            f"CASE WHEN {instant} < {start} THEN {bisect(known[:middle])} ELSE {bisect(known[middle:])} END"
        )

    return f"({instant} + {bisect(zone)})"
