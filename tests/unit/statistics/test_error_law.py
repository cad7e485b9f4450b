import math

import numpy as np
import pytest

from sidelight.statistics.error_law import ErrorLaw


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_one_laplace_error_has_its_own_quantile(confidence):
    half = ErrorLaw(np.array([0.0]), np.array([3.0])).half_width(confidence)

    assert half == pytest.approx(-3 * math.log(1 - confidence), rel=2e-3)


def test_a_sum_of_gaussian_and_laplace_errors_covers_as_often_as_it_says():
    rng = np.random.default_rng(1)
    law = ErrorLaw(np.array([1.0]), np.array([0.7, 0.2]))
    errors = rng.normal(0, 1, 400_000) + rng.laplace(0, 0.7, 400_000) + rng.laplace(0, 0.2, 400_000)

    half = law.half_width(0.95)

    assert (np.abs(errors) <= half).mean() == pytest.approx(0.95, abs=0.0015)
    assert law.stddev == pytest.approx(errors.std(), rel=0.01)


def test_an_uncertain_scale_widens_the_interval():
    known = ErrorLaw(np.array([1.0])).half_width(0.95)
    unsure = ErrorLaw(np.array([0.5, 1.0, 1.5])).half_width(0.95)

    assert unsure > known * 1.1


def test_an_offset_is_covered_too():
    half = ErrorLaw(np.array([1.0])).half_width(0.95, offset=2.0)

    assert half == pytest.approx(2 + 1.645, abs=1e-3)


def test_many_small_laplace_errors_are_nearly_gaussian():
    half = ErrorLaw(np.array([0.0]), np.full(1000, 1 / math.sqrt(2000))).half_width(0.95)

    assert half == pytest.approx(1.96, abs=0.01)
