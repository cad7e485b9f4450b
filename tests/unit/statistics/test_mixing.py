import numpy as np
import pytest

from sidelight.statistics.error_law import ErrorLaw
from sidelight.statistics.group import Group
from sidelight.statistics.mixed_mean import mixed_mean
from sidelight.statistics.mixed_quantile import mixed_quantile
from sidelight.statistics.mixing import Part, mix
from sidelight.statistics.settings import MixSettings
from sidelight.testing import SeededNoise

PRIVATE = Part(10.0, ErrorLaw(np.array([1.0])))


def public(estimate: float, stddev: float = 0.5) -> Part:
    return Part(estimate, ErrorLaw(np.array([stddev])))


def test_without_bias_the_mix_is_the_inverse_variance_one():
    mixed = mix(PRIVATE, public(11.0), MixSettings(bias=None))

    assert mixed.weight == pytest.approx(0.8)
    assert mixed.estimate == pytest.approx(10.8)
    assert mixed.standard_error**2 == pytest.approx(0.2)


@pytest.mark.parametrize("bound", [0.0, 0.3, 1.0, 10.0, 1000.0])
def test_a_bounded_bias_is_never_worse_than_ignoring_the_public_groups(bound):
    mixed = mix(PRIVATE, public(11.0), MixSettings(bias=bound))

    worst = (1 - mixed.weight) ** 2 + mixed.weight**2 * (0.25 + bound**2)
    assert worst <= 1.0
    assert mixed.standard_error**2 == pytest.approx(worst)


@pytest.mark.parametrize("estimate", [10.0, 10.2, 12.0, 1e6, -1e6])
def test_a_measured_bias_pulls_no_further_than_the_factor_allows(estimate):
    mixed = mix(PRIVATE, public(estimate), MixSettings(bias="measure"))

    assert abs(mixed.estimate - 10.0) <= 0.5 + 1e-12
    assert mixed.interval == pytest.approx((10 - 1.959964, 10 + 1.959964))


def test_a_biased_public_group_moves_neither_mean_nor_quantile_by_much():
    rng = np.random.default_rng(1)
    groups = [Group(rng.normal(50, 5, 2000), epsilon=1.0), Group(rng.normal(80, 5, 2000), public=True)]

    trusting = mixed_mean(groups, bounds=(0, 100), variance=25.0, noise=SeededNoise(7))
    wary = mixed_mean(groups, bounds=(0, 100), variance=25.0, bias="measure", noise=SeededNoise(7))
    bounded = mixed_mean(groups, bounds=(0, 100), variance=25.0, bias=40.0, noise=SeededNoise(7))
    median = mixed_quantile(groups, 0.5, bounds=(0, 100), bias="measure", noise=SeededNoise(7))

    assert abs(trusting.estimate - 50) > 10
    assert abs(wary.estimate - 50) < 1
    assert abs(bounded.estimate - 50) < 1
    assert abs(median.estimate - 50) < 1


def test_a_bounded_bias_widens_the_interval_by_an_offset():
    narrow = mix(PRIVATE, public(10.0), MixSettings(bias=0.0))
    wide = mix(PRIVATE, public(10.0), MixSettings(bias=1.0))

    assert wide.interval[1] - wide.interval[0] > narrow.interval[1] - narrow.interval[0]
