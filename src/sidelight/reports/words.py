"""Numbers and names as people read them on the page."""

import itertools
import math
import unicodedata
from collections.abc import Iterable

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float) -> str:
    """A count or a width: rounded to a whole number when large, with a decimal when small.

    >>> number(12345.6), number(12.34), number(0.01234), number(0.0)
    ('12,346', '12.3', '0.012', '0')
    """
    size = abs(value)
    if not math.isfinite(value):
        return "unknown"
    if size >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 0.95 else f"{value:.2g}"


def percent(share: float) -> str:
    """A share in per cent.

    >>> percent(0.5), percent(0.0123), percent(0.0), percent(0.00001)
    ('50%', '1.2%', '0%', '<0.1%')
    """
    if 0 < share < 0.001:
        return "<0.1%"
    return f"{share * 100:.1f}".rstrip("0").rstrip(".") + "%"


def chance(probability: float) -> str:
    """A small probability in words.

    >>> chance(1e-9), chance(0.0)
    ('1 in 1,000,000,000', 'none')
    """
    if probability <= 0:
        return "none"
    odds = 1 / probability
    return f"1 in {odds:,.0f}" if odds < 1e16 else f"1 in {odds:.0e}"


def tiny(probability: float) -> str:
    """A small probability such as δ, as a power of ten.

    >>> tiny(1e-9), tiny(2.5e-6), tiny(0.0), tiny(0.01)
    ('10⁻⁹', '2.5·10⁻⁶', '0', '0.01')
    """
    if probability == 0 or probability >= 1e-3:
        return f"{probability:g}"
    mantissa, _, exponent = f"{probability:.3e}".partition("e")
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPT)
    return power if float(mantissa) == 1 else f"{float(mantissa):g}·{power}"


def joined(attrs: Iterable[str]) -> str:
    """The name of a marginal: its attributes joined by ×, each shortened to 48 columns.

    >>> joined(("age", "sex"))
    'age × sex'
    """
    return " × ".join(shortened(attr, 48) for attr in attrs) or "total"


def width(text: str) -> int:
    """How many columns of a terminal or table a text takes; wide characters take two.

    >>> width("age"), width("年齢")
    (3, 4)
    """
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def shortened(text: str, most: int) -> str:
    """The text, cut to so many columns, on one line.

    >>> shortened("never married", 8)
    'never m…'
    """
    line = " ".join(text.split())
    if width(line) <= most:
        return line
    taken = itertools.accumulate(width(char) for char in line)
    kept = sum(1 for _ in itertools.takewhile(lambda columns: columns < most, taken))
    return line[:kept] + "…"
