"""Columns of dates, moments and times of day, in bins of the calendar.

Inside, a date or moment is a number of seconds since 1970, and a time of day one since midnight: see
``moment``. Bins are days, weeks, months, quarters or years, equal parts, or between given edges. Two ways of
counting go round in a circle, so that a bin holds many days: by weekday, and by hour of the day.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sidelight._check import brief
from sidelight.data.columns.column import BinnedColumn, Label, LabelKind
from sidelight.data.columns.moment import (
    DAY,
    FORMATS,
    Format,
    Offsets,
    check_zone,
    clock_of,
    offsets,
    seconds_of,
    text_of_clock,
    text_of_seconds,
)
from sidelight.errors import SchemaError

Moment = date | datetime | time | str
"""A bound or an edge, as a person or a TOML file writes it."""

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LENGTH = {"day": 1, "week": 7, "month": 28, "quarter": 90, "year": 365}
"""Days that a period has at least, so that a large number of bins is refused before they are made."""


@dataclass(frozen=True)
class MomentColumn(BinnedColumn):
    """A column of dates, moments or times."""

    outsides: ClassVar[tuple[str, ...]] = ("refuse", "other", "clamp")
    periods: ClassVar[tuple[str, ...]]
    """The choices for ``by``."""
    step: ClassVar[int] = 1
    """Seconds from one synthetic value to the next."""

    low: Moment | None = None
    high: Moment | None = None
    by: str | None = None
    bins: int | None = None
    edges: tuple[Moment, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_bins(self.bins)
        self._check_codes(self.bins or len(self.edges or ()), "bins")
        for key in ("low", "high"):
            said = getattr(self, key)
            object.__setattr__(self, key, None if said is None else self._read(said, key))
        if self.edges is not None:
            object.__setattr__(self, "edges", tuple(self._read(edge, "edges") for edge in self.edges))
        self._check_bins_declared()
        if self.by is not None and self.by not in self.periods:
            raise self._wrong(f"by must be one of {', '.join(map(repr, self.periods))}; got {brief(self.by)}")
        if self.edges is not None:
            self._check_bounds()
            return
        first, last = self.ends
        if last < first:
            raise self._wrong(f"low must not be above high; got {self.low} and {self.high}")
        if self.by in _LENGTH:
            self._check_codes(int(last - first) // (DAY * _LENGTH[self.by]), f"bins, one a {self.by}")
        if self.bins is not None and self.bins > (last - first) // self.step + 1:
            raise self._wrong(f"{self.bins} bins are more than there are values between low and high")
        if self.is_circular:
            self._check_circle()
        else:
            self._check_bounds()

    def _check_bins_declared(self) -> None:
        if self.edges is not None:
            if any(said is not None for said in (self.low, self.high, self.by, self.bins)):
                raise self._wrong("edges already say where the bins lie: leave out low, high, by and bins")
        elif self.low is None or self.high is None:
            raise self._wrong("declare low and high, or edges")
        elif (self.by is None) == (self.bins is None):
            raise self._wrong(f"declare either by ({', '.join(self.periods)}) or bins")

    def _check_circle(self) -> None:
        first, last = self.ends
        days = (last + 1 - first) / DAY
        if self.outside == "clamp":
            raise self._wrong(f'by = "{self.by}" has no nearest bin: outside cannot be "clamp"')
        if days < (7 if self.by == "weekday" else 1) or first % DAY or (last + 1) % DAY:
            least = "seven days" if self.by == "weekday" else "one day"
            raise self._wrong(f'by = "{self.by}" needs whole days between low and high, at least {least}')

    def _read(self, said: object, key: str) -> Moment:
        """A bound in its canonical form; what is wrong with it is told of its key."""
        try:
            return self._canonical(said)
        except SchemaError as error:
            error.key = key
            raise

    @abstractmethod
    def _canonical(self, said: object) -> Moment:
        """A bound in the one form in which it is kept and written; refused if it is none."""

    @abstractmethod
    def _start(self, said: Moment) -> int:
        """The number at which what a bound names begins."""

    def _end(self, said: Moment) -> int:
        """The number just beyond what a bound names, which belongs to the column."""
        return self._start(said) + self.step

    @property
    def is_circular(self) -> bool:
        """Whether bins are weekdays or hours of the day, and so not in one piece."""
        return False

    @property
    def ends(self) -> tuple[float, float]:
        if self.edges is not None:
            return self._start(self.edges[0]), self._start(self.edges[-1]) - 1
        assert self.low is not None  # checked on creation, as the next one
        assert self.high is not None
        return self._start(self.low), self._end(self.high) - 1

    @cached_property
    def bounds(self) -> npt.NDArray[np.int64]:
        if self.edges is not None:
            return np.array([self._start(edge) for edge in self.edges], dtype=np.int64)
        first, beyond = int(self.ends[0]), int(self.ends[1]) + 1
        if self.is_circular:
            return np.arange(8 if self.by == "weekday" else 25, dtype=np.int64)
        if self.bins is not None:
            steps = (beyond - first) // self.step
            cuts = [first + self.step * (i * steps // self.bins) for i in range(self.bins + 1)]
            return np.array([*cuts[:-1], beyond], dtype=np.int64)
        assert self.by is not None  # checked on creation
        starts = [start for start in _starts(self.by, first, beyond) if first < start < beyond]
        return np.array([first, *starts, beyond], dtype=np.int64)

    @property
    def declared(self) -> int:
        return len(self.bounds) - 1

    def code_labels(self) -> tuple[Label, ...]:
        pairs = list(pairwise(int(bound) for bound in self.bounds))
        return (*(self._bin_label(left, right) for left, right in pairs), *self._special_labels())

    def _bin_label(self, left: int, right: int) -> str:
        if self.is_circular:
            return WEEKDAYS[left] if self.by == "weekday" else f"{left:02d}:00–{left:02d}:59"
        if self.by in ("day", "month", "quarter", "year"):
            return _period(self.by, left)
        first, last = self._written(left), self._written(right - self.step)
        return first if first == last else f"{first}–{last}"

    @abstractmethod
    def _written(self, seconds: int) -> str: ...


@dataclass(frozen=True)
class DateColumn(MomentColumn):
    """Days from low to high, both included.

    >>> DateColumn("born", "2019-12-30", "2020-02-01", "month").code_labels()
    ('2019-12', '2020-01', '2020-02')
    >>> DateColumn("seen", edges=("2020-01-01", "2020-07-01", "2021-01-01")).code_labels()
    ('2020-01-01–2020-06-30', '2020-07-01–2020-12-31')
    """

    kind: ClassVar[str] = "date"
    periods: ClassVar[tuple[str, ...]] = ("day", "week", "month", "quarter", "year", "weekday")
    step: ClassVar[int] = DAY

    format: Format = field(default="ymd", kw_only=True)
    """In which order text writes year, month and day. Typed dates are read whatever it is."""

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            listed = ", ".join(map(repr, FORMATS))
            raise self._wrong(f"format must be one of {listed}; got {brief(self.format)}")
        super().__post_init__()

    def _canonical(self, said: object) -> Moment:
        seconds = None if isinstance(said, datetime) else seconds_of(said)
        if seconds is None or seconds % DAY:  # NaN too
            raise self._wrong(f"bounds must be dates such as 2020-01-31; got {brief(said)}")
        return (datetime(1970, 1, 1) + timedelta(seconds=seconds)).date()

    def _start(self, said: Moment) -> int:
        return int(seconds_of(said))  # type: ignore[arg-type]  # canonical by now

    @property
    def is_circular(self) -> bool:
        return self.by in ("weekday", "hour")

    @property
    def offsets(self) -> Offsets | None:
        """The offsets of the declared zone; dates have none."""
        return None

    def number_of(self, value: object) -> float | None:
        return seconds_of(value, self.format, self.offsets)

    @property
    def value_kind(self) -> LabelKind:
        return "date"

    def _written(self, seconds: int) -> str:
        return text_of_seconds(seconds)[:10]


@dataclass(frozen=True)
class DatetimeColumn(DateColumn):
    """Moments from low to high; a bound that is a date includes the whole of its day.

    >>> DatetimeColumn("admitted", "2020-01-01", "2020-12-31", "quarter").code_labels()
    ('2020-Q1', '2020-Q2', '2020-Q3', '2020-Q4')
    """

    kind: ClassVar[str] = "datetime"
    periods: ClassVar[tuple[str, ...]] = (*DateColumn.periods, "hour")
    step: ClassVar[int] = 1

    zone: str | None = field(default=None, kw_only=True)
    """The zone of its clock, such as Europe/Berlin; then values may have a zone, and synthetic ones do."""

    def __post_init__(self) -> None:
        if self.zone is not None and not check_zone(self.zone):
            raise self._wrong(f"zone must name a time zone such as Europe/Berlin; got {brief(self.zone)}")
        super().__post_init__()

    def _canonical(self, said: object) -> Moment:
        seconds = seconds_of(said)
        if seconds is None or seconds != seconds:
            raise self._wrong(f"bounds must be dates or times such as 2020-01-31T10:30; got {brief(said)}")
        is_day = isinstance(said, date) and not isinstance(said, datetime)
        moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)
        return moment.date() if is_day or (isinstance(said, str) and len(said.strip(" ")) <= 10) else moment

    def _end(self, said: Moment) -> int:
        return self._start(said) + (1 if isinstance(said, datetime) else DAY)

    @cached_property
    def offsets(self) -> Offsets | None:
        if self.zone is None:
            return None
        first, last = self.ends
        return offsets(self.zone, int(first) - 2 * DAY, int(last) + 2 * DAY)

    @property
    def value_kind(self) -> LabelKind:
        return "datetime"

    def _written(self, seconds: int) -> str:
        return text_of_seconds(seconds)


@dataclass(frozen=True)
class TimeColumn(MomentColumn):
    """Times of day; the whole day, hour by hour, unless declared otherwise.

    >>> TimeColumn("born").declared
    24
    >>> TimeColumn("born", edges=("00:00", "08:00", "24:00")).code_labels()
    ('00:00:00–07:59:59', '08:00:00–23:59:59')
    """

    kind: ClassVar[str] = "time"
    periods: ClassVar[tuple[str, ...]] = ("hour",)

    def __post_init__(self) -> None:
        if self.edges is None:
            for key, usual in (("low", "00:00"), ("high", "23:59:59")):
                if getattr(self, key) is None:
                    object.__setattr__(self, key, usual)
            if self.by is None and self.bins is None:
                object.__setattr__(self, "by", "hour")
        super().__post_init__()

    def _canonical(self, said: object) -> Moment:
        if said == "24:00":
            return "24:00"
        seconds = clock_of(said)
        if seconds is None or seconds != seconds:
            raise self._wrong(f"bounds must be times such as 10:30, at the end 24:00; got {brief(said)}")
        return text_of_clock(seconds)

    def _start(self, said: Moment) -> int:
        return DAY if said == "24:00" else int(clock_of(said))  # type: ignore[arg-type]  # canonical by now

    def _end(self, said: Moment) -> int:
        return DAY if said == "24:00" else self._start(said) + 1

    def number_of(self, value: object) -> float | None:
        return clock_of(value)

    @property
    def value_kind(self) -> LabelKind:
        return "time"

    def _written(self, seconds: int) -> str:
        return text_of_clock(seconds)


def _starts(by: str, first: int, beyond: int) -> list[int]:
    """The numbers at which periods begin, about those between first and beyond."""
    if by in ("day", "week", "hour"):
        length = {"day": DAY, "week": 7 * DAY, "hour": 3600}[by]
        # 1970-01-05 was a Monday.
        shift = 4 * DAY if by == "week" else 0
        begin = (first - shift) // length * length + shift
        return list(range(begin, beyond, length))
    months = {"month": 1, "quarter": 3, "year": 12}[by]
    epoch = date(1970, 1, 1)
    low, high = (epoch + timedelta(days=number // DAY) for number in (first, beyond - 1))
    places = range((low.year * 12 + low.month - 1) // months * months, high.year * 12 + high.month, months)
    return [(date(place // 12, place % 12 + 1, 1) - epoch).days * DAY for place in places]


def _period(by: str, seconds: int) -> str:
    day = text_of_seconds(seconds)[:10]
    if by == "quarter":
        return f"{day[:4]}-Q{(int(day[5:7]) + 2) // 3}"
    return day[: {"day": 10, "month": 7, "year": 4}[by]]
