"""Rational numbers, rounded to the private side.

A cost is an exact fraction. Noise needs its square root, or a fraction short enough for the exact
samplers. Each function says in its name which way it rounds.
"""

import math
import re
from fractions import Fraction

_BITS = 40
"""Relative precision 2⁻⁴⁰: noise is larger than owed by less than one part in 10¹²."""
_FRACTION = re.compile(r"-?[0-9]{1,4000}(/[0-9]{1,4000})?")


def parse_fraction(text: object) -> Fraction:
    """The fraction that ``str`` wrote. Decimal exponents are refused: ``1e999999999`` takes all memory.

    >>> parse_fraction("1/20")
    Fraction(1, 20)
    >>> parse_fraction("1e999999999")
    Traceback (most recent call last):
    ValueError: a fraction must be written as in 3/20
    """
    if not isinstance(text, str) or not _FRACTION.fullmatch(text):
        raise ValueError("a fraction must be written as in 3/20")
    return Fraction(text)


def round_up(value: Fraction) -> Fraction:
    """The next fraction at or above ``value`` with a numerator of about 40 bits.

    >>> round_up(Fraction(1, 3)) >= Fraction(1, 3)
    True
    >>> float(round_up(Fraction(1, 3)) * 3 - 1) < 2**-39
    True
    """
    return _rounded(value, up=True)


def round_down(value: Fraction) -> Fraction:
    """The next fraction at or below ``value`` with a numerator of about 40 bits."""
    return _rounded(value, up=False)


def sqrt_down(value: Fraction) -> Fraction:
    """A fraction at or just below √value.

    >>> sqrt_down(Fraction(8, 800))
    Fraction(1, 10)
    >>> sqrt_down(Fraction(2)) ** 2 <= 2
    True
    """
    exact = math.isqrt(value.numerator) ** 2 == value.numerator
    if exact and math.isqrt(value.denominator) ** 2 == value.denominator:
        return Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    shift = 2 * max(0, 2 * _BITS - (value.numerator.bit_length() - value.denominator.bit_length()))
    root = math.isqrt((value.numerator << shift) // value.denominator)
    return round_down(Fraction(root, 1 << (shift // 2)))


def float_up(value: Fraction) -> float:
    """The nearest float at or above ``value``."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


def _rounded(value: Fraction, *, up: bool) -> Fraction:
    if value == 0:
        return value
    shift = _BITS - (value.numerator.bit_length() - value.denominator.bit_length())
    unit = Fraction(1, 1 << shift) if shift >= 0 else Fraction(1 << -shift)
    steps = value / unit
    return unit * (math.ceil(steps) if up else math.floor(steps))
