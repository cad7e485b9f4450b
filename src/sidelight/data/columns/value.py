"""What one value means, whatever holds it: as text, or as a number.

PRIVACY: a record is read by itself. Containers give a whole column one type, and one odd record can change
that type: 1 becomes 1.0 beside a missing value, and "1" beside an "x". So the meaning of a value depends on
the value alone, and is the same in every type that can hold it:

    bytes      the text that they are in UTF-8: one record of bytes makes bytes of a whole column of text
    missing    None, NaN, NaT and NA; for numbers and booleans also empty or blank text, and the text "nan"
    text       text as it is; whole numbers by their digits, 1.0 as "1"; other real numbers
               (decimals too) as the shortest text of the float64, such as "0.1"; true and false; dates by
               ISO 8601, "2020-01-31", with a time of day after a T, "2020-01-31T10:00:00.5", but not midnight
    number     a float64; text is read as a decimal number, with an exponent or "inf" if need be;
               true is 1 and false is 0
    boolean    1 and 0; text true, t, yes, y, 1, false, f, no, n, 0 in any case

Columns of dates and times have their own meanings: see ``moment``. A value of any other type (a list, a
duration, …) has a meaning in no column.
"""

import math
import re
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

NO_TEXT = "\0"
"""Stands for a value without text. No label holds a null character, so it matches none."""

_NUMBER = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?|[+-]?inf(inity)?")
TRUTHS = {
    **dict.fromkeys(("true", "t", "1", "yes", "y"), 1.0),
    **dict.fromkeys(("false", "f", "0", "no", "n"), 0.0),
}
"""How true and false are spelled, in lower case; a schema may add other spellings as aliases."""


def is_missing(value: object) -> bool:
    """Whether there is no value.

    >>> [is_missing(value) for value in (None, math.nan, np.datetime64("NaT"), 0, "")]
    [True, True, True, False, False]
    """
    if value is None:
        return True
    if isinstance(value, (float, Decimal, np.floating, np.datetime64, datetime)):
        return bool(value != value)  # NaN and NaT alone differ from themselves
    return type(value).__name__ in ("NAType", "MaskedConstant")


def text_of(value: object) -> str | None:
    """The value as text; None for a missing one.

    >>> [text_of(value) for value in ("01", 1, 1.0, Decimal("1.50"), True, date(2020, 1, 31), None)]
    ['01', '1', '1', '1.5', 'true', '2020-01-31', None]
    """
    if is_missing(value):
        return None
    if isinstance(value, str):
        return str(value) if is_unicode(value) else NO_TEXT
    if isinstance(value, bytes):
        return _text_of_bytes(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        try:
            return str(int(value))
        except ValueError:  # Python prints no number of thousands of digits
            return NO_TEXT
    if isinstance(value, (date, np.datetime64)):
        return _text_of_moment(value)
    number = number_of(value)
    if number is None:
        return NO_TEXT
    # Whole, or too large to have a fraction: its digits are those of the integer.
    return str(int(number)) if number.is_integer() else repr(number)


def number_of(value: object, *, is_truth: bool = False) -> float | None:
    """The value as a float64, NaN for a missing one; None where it cannot be read.

    >>> number_of("1e3"), number_of(" 07"), number_of("seven"), number_of(10**400)
    (1000.0, 7.0, None, inf)
    """
    if is_missing(value):
        return math.nan
    value = text_of(value) if isinstance(value, bytes) else value
    if isinstance(value, str):
        text = value.strip(" ").lower()
        if text in ("", "nan"):
            return math.nan
        if is_truth:
            return TRUTHS.get(text)
        return float(text) if _NUMBER.fullmatch(text) else None
    if isinstance(value, (complex, np.complexfloating)):
        # NumPy and pandas make all numbers of a column complex if one is.
        return None if value.imag else number_of(float(value.real))
    if isinstance(value, (bool, int, float, Decimal, Fraction, np.bool_, np.integer, np.floating)):
        try:
            return float(value)
        except OverflowError:  # as it would be as text
            return math.inf if value > 0 else -math.inf
    return None


def moment_of(text: str) -> str | None:
    """The date or time that an ISO 8601 text names, spelled as ``text_of`` would; None if it names none.

    >>> moment_of("2020-01-31 00:00"), moment_of("20200131T103000"), moment_of("soon")
    ('2020-01-31', '2020-01-31T10:30:00', None)
    """
    try:
        moment = text_of(datetime.fromisoformat(text.strip(" ")))
    except ValueError:
        return None
    return None if moment == NO_TEXT else moment


def _text_of_moment(value: Any) -> str:
    if isinstance(value, np.datetime64):
        unit = np.datetime_data(value.dtype)[0]
        coarse = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}
        text = str(value.astype(f"datetime64[{coarse[unit]}]") if unit in coarse else value)
    elif isinstance(value, datetime):
        if value.tzinfo is not None:
            return NO_TEXT
        text = value.isoformat()
    else:
        return value.isoformat()  # type: ignore[no-any-return]  # a date
    day, _, time = text.partition("T")
    whole, _, fraction = time.partition(".")
    fraction = fraction.rstrip("0")
    if whole in ("", "00:00:00") and not fraction:
        return day
    return f"{day}T{whole}.{fraction}" if fraction else f"{day}T{whole}"


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return NO_TEXT


def is_unicode(text: str) -> bool:
    """Whether it can be written at all: half a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
