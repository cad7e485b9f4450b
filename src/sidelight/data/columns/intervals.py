"""Bins as public tables write them, such as ``20-24``, ``[20, 25)`` or ``85+``, over a schema's own bins.

Bins finer than the schema's lie within one of them; coarser ones are spread over several, in proportion to
how much of each they cover.
"""

import math
import re

import numpy as np
import numpy.typing as npt

from sidelight.data.columns.column import NumericColumn

_NUMBER = r"([+-]?\d+(?:\.\d+)?)"
_BRACKETS = re.compile(rf"([\[(])\s*{_NUMBER}\s*[,;]\s*{_NUMBER}\s*([\])])")
_FROM_TO = re.compile(rf"{_NUMBER}\s*(?:-|–|—|to)\s*{_NUMBER}")
_FROM = re.compile(rf"(?:(?:>=|≥|from)\s*{_NUMBER}|{_NUMBER}\s*(?:\+|and over|and older|or more|or older))")
_BELOW = re.compile(rf"(?:<|under|below|less than)\s*{_NUMBER}")
_MONEY = re.compile(r"[$€£]|(?<=\d),(?=\d{3}\b)")


def interval_of(text: str, *, whole: bool) -> tuple[float, float] | None:
    """The interval [low, high) that a text names; None where it names none.

    Of whole numbers ``20-24`` holds both ends; of real ones its upper end belongs to the next bin.

    >>> interval_of("20–24", whole=True), interval_of("[20, 25)", whole=True), interval_of("85+", whole=False)
    ((20.0, 25.0), (20.0, 25.0), (85.0, inf))
    """
    said = text.strip().lower()
    one = 1.0 if whole else 0.0
    if found := _BRACKETS.fullmatch(said):
        opening, low, high, closing = found.groups()
        return float(low) + one * (opening == "("), float(high) + one * (closing == "]")
    said = _MONEY.sub("", said)
    if found := _FROM_TO.fullmatch(said):
        return float(found[1]), float(found[2]) + one
    if found := _FROM.fullmatch(said):
        return float(found[1] or found[2]), math.inf
    if found := _BELOW.fullmatch(said):
        return -math.inf, float(found[1])
    return None


def covered(column: NumericColumn, text: str) -> npt.NDArray[np.float64] | None:
    """How much of each bin of the column the text's interval covers; None where it covers nothing.

    >>> from sidelight.data.columns.column import IntegerColumn
    >>> covered(IntegerColumn("age", edges=(0, 10, 20, 40)), "15-24")
    array([0., 5., 5.])
    """
    interval = interval_of(text, whole=column.kind == "integer")
    if interval is None:
        return None
    edges = column.bounds.astype(np.float64)
    share = np.minimum(edges[1:], interval[1]) - np.maximum(edges[:-1], interval[0])
    share = np.maximum(share, 0.0)
    return share if share.any() else None
