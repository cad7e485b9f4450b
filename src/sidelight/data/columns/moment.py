"""What one value means as a date, a moment or a time of day, whatever holds it.

A date or moment is the number of whole seconds from the beginning of 1970 to it, as the clock on the wall
shows it; a time of day is the number of whole seconds since midnight. Fractions of a second are cut off.

    dates and moments   dates, timestamps, and text such as 2020-01-31, 2020-01-31T10:30 or, where a schema
                        declares format = "dmy" or "mdy", 31.1.2020 or 1/31/2020; a time may follow
    instants            the same with a zone, or with an offset such as Z or +02:00: what the clock showed in
                        the zone that the schema declares; without a declared zone they mean nothing
    times of day        times, and text such as 10:30 or 10:30:59.5

PRIVACY: like all of ``value``, this looks at one value at a time. The order of day and month is declared,
never found out: 1/2/2020 alone does not tell, and another record must not decide.
"""

import math
import re
from bisect import bisect_right
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from sidelight.data.columns.value import is_missing, text_of

Format = Literal["ymd", "dmy", "mdy"]
Offsets = tuple[tuple[int, int], ...]
"""From which instant on which offset from Greenwich holds in a zone, both in seconds."""
FORMATS: tuple[Format, ...] = ("ymd", "dmy", "mdy")
DAY = 86_400
EARLIEST, LATEST = -62_135_596_800, 253_402_300_799
"""The first second of the year 1 and the last one of 9999: moments beyond them are not read."""

_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]+)?)?"
_OFFSET = "(Z|[+-](0[0-9]|1[0-4]):?[0-5][0-9])"
_DAYS = {
    "ymd": "[0-9]{4}[./-][0-9]{1,2}[./-][0-9]{1,2}",
    "dmy": "[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}",
}
_DAYS["mdy"] = _DAYS["dmy"]
CLOCK_PATTERN = f"^{_CLOCK}$"
MOMENT_PATTERN = {order: f"^{day}([T ]{_CLOCK}{_OFFSET}?)?$" for order, day in _DAYS.items()}
"""Regular expressions without backslashes, which mean the same in every engine; of trimmed text."""
OFFSET_PATTERN = "[+-][0-9]{2}:?[0-9]{2}$"
_DAYS_OF_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def seconds_of(value: object, order: Format = "ymd", zone: Offsets | None = None) -> float | None:
    """A date or moment in seconds, NaN for a missing one; None where the value is none.

    >>> seconds_of("1970-01-02T00:00:01"), seconds_of("2.1.1970", "dmy"), seconds_of("soon")
    (86401.0, 86400.0, None)
    >>> seconds_of("1970-01-01T00:00Z"), seconds_of("1970-01-01T00:00Z", zone=offsets("Asia/Tokyo", 0, DAY))
    (None, 32400.0)
    """
    value = text_of(value) if isinstance(value, bytes) else value
    if is_missing(value) or (isinstance(value, str) and not value.strip(" ")):
        return math.nan
    seconds = _seconds(value, order, zone)
    return seconds if seconds is not None and EARLIEST <= seconds <= LATEST else None


def _seconds(value: object, order: Format, zone: Offsets | None) -> float | None:
    if isinstance(value, str):
        return _seconds_of_text(value.strip(" "), order, zone)
    if isinstance(value, np.datetime64):
        return float(value.astype("datetime64[s]").astype(np.int64))
    if isinstance(value, datetime):
        # The wall's clock of a pandas moment too, which is a datetime with nanoseconds.
        whole = value.replace(microsecond=0, tzinfo=None)
        seconds = (datetime(*whole.timetuple()[:6]) - datetime(1970, 1, 1)) // timedelta(seconds=1)
        offset = value.utcoffset()
        return float(seconds) if offset is None else _on_the_wall(seconds - _whole(offset), zone)
    if isinstance(value, date):
        return float((value - date(1970, 1, 1)).days * DAY)
    return None


def clock_of(value: object) -> float | None:
    """A time of day in seconds since midnight, NaN for a missing one; None where the value is none.

    >>> clock_of("10:30"), clock_of(time(23, 59, 59, 999_999)), clock_of("24:00")
    (37800.0, 86399.0, None)
    """
    value = text_of(value) if isinstance(value, bytes) else value
    if is_missing(value) or (isinstance(value, str) and not value.strip(" ")):
        return math.nan
    if isinstance(value, str):
        text = value.strip(" ")
        return float(_clock(text)) if re.fullmatch(CLOCK_PATTERN[1:-1], text) else None
    if isinstance(value, time) and value.tzinfo is None:
        return float(value.hour * 3600 + value.minute * 60 + value.second)
    return None


def text_of_seconds(seconds: float) -> str:
    """A moment as text, by which any engine reads it."""
    return (datetime(1970, 1, 1) + timedelta(seconds=int(seconds))).isoformat()


def text_of_clock(seconds: float) -> str:
    """A time of day as text, by which any engine reads it."""
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def days_of(year: int, month: int, day: int) -> int | None:
    """Days from 1970-01-01 to this day, before or after; None where there is no such day.

    >>> days_of(1970, 3, 1), days_of(2019, 2, 29), days_of(2020, 2, 29)
    (59, None, 18321)
    """
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if (
        not 1 <= month <= 12
        or not 1 <= day <= _DAYS_OF_MONTHS[month - 1]
        or (month, day, is_leap) == (2, 29, False)
    ):
        return None
    # Years that begin in March have their leap day at the end.
    year, month = (year - 1, month + 9) if month <= 2 else (year, month - 3)
    leaps = year // 4 - year // 100 + year // 400
    return 365 * year + leaps + (153 * month + 2) // 5 + day - 719_469


def check_zone(zone: str) -> bool:
    """Whether this names a time zone, such as Europe/Berlin."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        return False
    return True


@lru_cache(maxsize=64)
def offsets(zone: str, first: int, last: int) -> Offsets:
    """The offsets of a zone between these two instants.

    >>> offsets("Europe/Berlin", 1577836800, 1609459199)
    ((-62135596800, 3600), (1585443600, 7200), (1603587600, 3600))
    """
    own = ZoneInfo(zone)

    def offset(instant: int) -> int:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=instant)
        return _whole(moment.astimezone(own).utcoffset() or timedelta())

    # No offset holds for less than four weeks and is then undone; a day at the margins is in no zone.
    first, last = max(first, EARLIEST + 2 * DAY), min(last, LATEST - 2 * DAY)
    steps = [*range(first, last, 28 * DAY), last]
    found = [(EARLIEST, offset(first))]
    for left, right in pairwise(steps):
        if offset(left) != offset(right):
            low, high = left, right
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == offset(left) else (low, middle)
            found.append((high, offset(high)))
    return tuple(found)


def _seconds_of_text(text: str, order: Format, zone: Offsets | None) -> float | None:
    if not re.fullmatch(MOMENT_PATTERN[order][1:-1], text):
        return None
    said, _, clock = text.replace("T", " ").partition(" ")
    parts = [int(part) for part in re.split("[./-]", said)]
    year, month, day = (parts[order.index(letter)] for letter in "ymd")
    days = days_of(year, month, day)
    if days is None:
        return None
    seconds = days * DAY + (_clock(clock) if clock else 0)
    offset = clock.replace(":", "")[-5:]
    if clock.endswith("Z"):
        return _on_the_wall(seconds, zone)
    if clock and re.search(OFFSET_PATTERN, clock):
        shift = int(offset[1:3]) * 3600 + int(offset[3:5]) * 60
        return _on_the_wall(seconds + shift if offset[0] == "-" else seconds - shift, zone)
    return float(seconds)


def _clock(text: str) -> int:
    second = int(text[6:8]) if text[5:6] == ":" else 0
    return int(text[:2]) * 3600 + int(text[3:5]) * 60 + second


def _on_the_wall(instant: int, zone: Offsets | None) -> float | None:
    if zone is None:
        return None
    place = bisect_right(zone, instant, key=lambda known: known[0]) - 1
    return float(instant + zone[max(place, 0)][1])


def _whole(offset: timedelta) -> int:
    return offset // timedelta(seconds=1)
