"""Each function rounds the way its name says, and not far."""

from fractions import Fraction

import pytest

from sidelight.privacy.rational import round_down, round_up, sqrt_down

VALUES = [
    Fraction(1, 3),
    Fraction(2, 7 * 10**30),
    Fraction(10**40, 3),
    Fraction(5),
    Fraction(2**90 + 1, 2**90),
]


@pytest.mark.parametrize("value", VALUES)
def test_up_is_up_and_down_is_down_by_less_than_one_part_in_ten_to_the_eleven(value):
    low, high = round_down(value), round_up(value)

    assert low <= value <= high
    assert high - low <= value / 10**11


@pytest.mark.parametrize("value", VALUES)
def test_the_result_is_short(value):
    for rounded in (round_down(value), round_up(value), sqrt_down(value)):
        odd = rounded.numerator // (rounded.numerator & -rounded.numerator)
        assert odd.bit_length() <= 41
        assert rounded.denominator & (rounded.denominator - 1) == 0


@pytest.mark.parametrize("value", VALUES)
def test_below_zero_the_directions_hold_too(value):
    assert round_up(-value) == -round_down(value)
    assert round_down(-value) == -round_up(value)


@pytest.mark.parametrize("value", VALUES)
def test_a_root_is_never_too_large_and_hardly_too_small(value):
    root = sqrt_down(value)

    assert root**2 <= value < (root * (1 + Fraction(1, 10**11))) ** 2


@pytest.mark.parametrize("root", [Fraction(0), Fraction(1, 10), Fraction(7, 3), Fraction(10**20, 3)])
def test_the_root_of_a_square_is_exact(root):
    assert sqrt_down(root**2) == root


def test_zero_stays_zero():
    assert round_up(Fraction(0)) == round_down(Fraction(0)) == 0
