"""What every source of random words must do."""

from fractions import Fraction

import numpy as np
import pytest

from sidelight.privacy.noise import NoiseSource, SystemNoise, discrete_gaussian, discrete_laplace
from sidelight.testing import SeededNoise

SOURCES = [SystemNoise(), SeededNoise(7)]


@pytest.fixture(params=SOURCES, ids=lambda source: type(source).__name__)
def source(request: pytest.FixtureRequest) -> NoiseSource:
    return request.param


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_words_are_as_many_as_asked_and_64_bits_wide(source, count):
    words = source.words(count)

    assert words.shape == (count,)
    assert words.dtype == np.uint64


def test_every_bit_is_set_half_of_the_time(source):
    words = source.words(40_000)

    shares = [float(((words >> np.uint64(bit)) & np.uint64(1)).mean()) for bit in range(64)]

    assert max(abs(share - 0.5) for share in shares) < 6 * 0.5 / 200


def test_words_do_not_come_twice(source):
    first, second = source.words(100), source.words(100)

    assert np.unique(np.concatenate([first, second])).size == 200


def test_only_the_operating_system_is_private(source):
    assert source.is_private == isinstance(source, SystemNoise)
    assert ("NOT PRIVATE" in source.name) == (not source.is_private)


@pytest.mark.parametrize("size", [0, 1, 5])
def test_both_samplers_run_on_it(source, size):
    assert discrete_gaussian(source, Fraction(5, 2), size).shape == (size,)
    assert discrete_laplace(source, Fraction(5, 2), size).dtype == np.int64
