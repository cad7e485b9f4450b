"""Sample in the form that is private, and a demonstration that the published one is not."""

import itertools
import math

import numpy as np
import pytest

from personalised import (
    best_threshold,
    mixed_variance,
    personalised_quantile,
    sample_chances,
    sample_mean,
    sample_variance,
    threshold_mean,
)
from sidelight.errors import SettingError
from sidelight.statistics.group import Group
from sidelight.statistics.weights import laplace_variances, mean_variances
from sidelight.testing import SeededNoise

EPSILONS = (10, 0.05, 0.1, 0.01, 0.25, 0.15)


def sizes(n: int) -> tuple[int, ...]:
    return (n, 100, 500, 1000, 5000, 10000)


@pytest.mark.parametrize(
    ("n", "variances"),
    [
        (1000, (0.64708161, 0.00434037, 0.01757801, 0.02519642)),
        (100, (0.71862562, 0.00489240, 0.04515505, 0.26959163)),
        (10000, (0.28360139, 0.00192412, 0.00240539, 0.00250196)),
    ],
)
def test_the_published_form_has_the_papers_predicted_variances(n, variances):
    predicted = [
        sample_variance(sizes(n), EPSILONS, t, variance=25, width=100, form="published")
        for t in (0.01, 0.25, 1.76, 10)
    ]

    assert predicted == pytest.approx(variances, abs=6e-9)


def test_the_published_form_keeps_people_as_often_as_the_paper_says():
    expected = (1, 0.18051587, 0.37028700, 0.03538475, 1, 0.56978789)

    assert sample_chances(EPSILONS, 0.25, form="published") == pytest.approx(expected, abs=6e-9)


@pytest.mark.parametrize(
    ("n", "width", "best"),
    [(n, 100, 0.25) for n in (100, 1000, 5000, 10000)]
    + [(n, 25, 0.15) for n in (100, 1000, 5000, 10000)]
    + [(1000, 78, 0.25), (1000, 334, 0.25), (10000, 63, 0.25), (10000, 108, 0.25)],
)
def test_the_optimised_threshold_is_exactly_the_papers(n, width, best):
    assert best_threshold(sizes(n), EPSILONS, variance=25, width=width, form="published") == best


@pytest.mark.parametrize(("n", "width"), [(1000, 77), (1000, 335), (10000, 62), (10000, 109)])
def test_outside_the_specifications_range_another_threshold_is_better(n, width):
    assert best_threshold(sizes(n), EPSILONS, variance=25, width=width, form="published") != 0.25


def test_with_several_private_groups_sample_can_beat_the_mixed_mean():
    mixed = mixed_variance(mean_variances(sizes(1000), 25.0, laplace_variances(EPSILONS, 100.0)))

    assert sample_variance(sizes(1000), EPSILONS, 0.25, variance=25, width=100, form="published") < mixed


def test_with_one_private_and_one_public_group_the_mixed_mean_is_never_worse():
    for epsilon in (0.05, 0.5, 3.0):
        mixed = mixed_variance(mean_variances([200, 300], 4.0, laplace_variances([epsilon, math.inf], 10.0)))
        for t in np.linspace(epsilon, 10, 40):
            predicted = sample_variance(
                [200, 300], [epsilon, math.inf], t, variance=4.0, width=10, form="published"
            )
            assert mixed <= predicted * (1 + 1e-12)


# The audits enumerate the sampling coins of three people and compare densities of the released number.

AUDITED = (0.2, 1.0, 2.0)


OUTPUTS = np.concatenate([np.linspace(-3, 3, 1201), [-30.0, 30.0]])


def samples(values, chances):
    """Every outcome of the coins: its probability, how many were kept, and their sum."""
    for kept in itertools.product((0, 1), repeat=3):
        chance = math.prod(c if k else 1 - c for c, k in zip(chances, kept, strict=True))
        yield chance, sum(kept), sum(v for v, k in zip(values, kept, strict=True) if k)


def strict_density(values, t):
    """Of Σ kept y + Lap(R/t), with y in [−1, 1] and so R = 2."""
    outcomes = samples(values, sample_chances(AUDITED, t))
    return sum(chance * t / 4 * np.exp(-np.abs(OUTPUTS - total) * t / 2) for chance, _, total in outcomes)


def published_density(values, t, r):
    """Of (Σ kept x + Lap(r/t)) / number kept; an empty sample gives no number."""
    density = np.zeros_like(OUTPUTS)
    for chance, number, total in samples(values, sample_chances(AUDITED, t, form="published")):
        if number:
            rate = t * number / r
            density += chance * rate / 2 * np.exp(-np.abs(OUTPUTS - total / number) * rate)
    return density


def worst_ratio(density, who):
    """The largest log-ratio over all replacements of one person by an end of the range."""
    worst = 0.0
    for values in itertools.product((-1.0, 0.0, 1.0), repeat=3):
        for other in (-1.0, 1.0):
            changed = (*values[:who], other, *values[who + 1 :])
            worst = max(worst, float(np.abs(np.log(density(values) / density(changed))).max()))
    return worst


@pytest.mark.parametrize("t", [0.2, 0.5, 1.0, 1.7, 2.0])
@pytest.mark.parametrize("who", [0, 1, 2])
def test_sample_as_we_run_it_keeps_each_persons_epsilon_and_wastes_none(t, who):
    loss = worst_ratio(lambda values: strict_density(values, t), who)

    assert loss == pytest.approx(min(AUDITED[who], t), abs=1e-9)


@pytest.mark.parametrize(
    ("t", "r", "leak"), [(1.0, 1.0, 0.502684), (1.0, 2.0, 0.211603), (0.5, 2.0, 0.229054)]
)
def test_sample_as_published_leaks_more_than_the_first_persons_epsilon(t, r, leak):
    loss = worst_ratio(lambda values: published_density(values, t, r), 0)

    assert loss > AUDITED[0] * 1.05
    assert loss == pytest.approx(leak, abs=2e-3)


def test_the_sample_mean_says_what_each_group_lost():
    groups = [Group(np.full(200, 3.0), epsilon=e) for e in (0.1, 0.5, 2.0)] + [Group([3.0] * 5, public=True)]

    answer = sample_mean(groups, bounds=(0, 10), threshold=0.5, noise=SeededNoise(7))

    assert answer.losses == (0.1, 0.5, 0.5, None)
    assert sum(answer.weights) == pytest.approx(1.0)
    assert float(answer.events[0][0].cost) == 0.5


@pytest.mark.parametrize(
    ("rule", "threshold"), [("min", 0.1), ("max", 2.0), ("mean", 2.6 / 3), ("mean-of-people", 1.1)]
)
def test_threshold_rules_follow_the_epsilons_and_sizes(rule, threshold):
    sizes_and_epsilons = ((100, 0.1), (100, 0.5), (200, 1.9))
    groups = [Group(np.full(n, 3.0), epsilon=e) for n, e in sizes_and_epsilons]
    expected = {"min": 0.1, "max": 1.9, "mean": 2.5 / 3, "mean-of-people": 1.1}[rule]

    answer = sample_mean(groups, bounds=(0, 10), threshold=rule, noise=SeededNoise(7))

    assert answer.threshold == pytest.approx(expected)


def test_a_threshold_outside_the_epsilons_is_refused():
    groups = [Group([1.0], epsilon=0.5), Group([1.0], epsilon=1.0)]

    with pytest.raises(SettingError, match="between the least and the greatest"):
        sample_mean(groups, bounds=(0, 10), threshold=2.0)


def test_thresholding_uses_the_groups_at_or_above_it_only():
    groups = [Group(np.full(50, 3.0), epsilon=e) for e in (0.1, 0.5, 2.0)]

    answer = threshold_mean(groups, bounds=(0, 10), threshold=0.5, noise=SeededNoise(7))

    assert answer.events[0] == ()
    assert float(answer.events[1][0].cost) == 0.5
    with pytest.raises(SettingError, match="no private group"):
        threshold_mean(groups, bounds=(0, 10), threshold=3.0)


def test_the_personalised_median_stays_within_the_bounds_and_costs_the_largest_epsilon():
    groups = [Group(np.arange(100.0), epsilon=0.3), Group(np.arange(100.0), epsilon=1.0)]

    answer = personalised_quantile(groups, 0.5, bounds=(0, 100), noise=SeededNoise(7))

    assert 0 <= answer.estimate <= 100
    assert float(answer.events[0][0].cost) == 1.0


def test_personalised_mechanisms_need_people_to_protect():
    with pytest.raises(SettingError, match="nobody to protect"):
        sample_mean([Group([1.0], public=True)], bounds=(0, 1))
