"""Mixed means over many trials: scale, bias, coverage, and what a biased public group can do."""

import math

import numpy as np
import pytest

from personalised import sample_mean, sample_variance, threshold_mean
from sidelight.statistics.group import Group
from sidelight.statistics.grouped_mean import grouped_mean
from sidelight.statistics.mixed_mean import mixed_mean
from sidelight.testing import SeededNoise

pytestmark = [pytest.mark.statistical, pytest.mark.slow]


@pytest.mark.parametrize(("unit", "width"), [("replace", 10.0), ("add-or-remove", 5.0)])
def test_the_noise_of_a_sum_has_the_scale_that_was_paid_for(unit, width):
    """b = Δ/ε is accepted; ten per cent less or more is rejected."""
    groups = [Group(np.full(1, 5.0), epsilon=0.5) for _ in range(4000)]

    answer = mixed_mean(groups, bounds=(0, 10), unit=unit, size_share=0.5, noise=SeededNoise(7))

    shown = np.array([group.estimate - 5.0 for group in answer.groups])
    sizes = np.array([group.records for group in answer.groups])
    epsilon = 0.5 if unit == "replace" else 0.25
    # E|z| = b, to within 1/√n.
    ratio, room = float(np.abs(shown * sizes).mean()) * epsilon / width, 4 / math.sqrt(4000)
    assert abs(ratio - 1) < room
    assert abs(ratio - 0.9) > room / 2
    assert abs(ratio - 1.1) > room / 2


def test_the_mixed_mean_is_unbiased_and_varies_as_it_says():
    rng, noise = np.random.default_rng(1), SeededNoise(1)
    values = [rng.normal(0, 5, n) for n in (1000, 500, 200)]
    exact = [float(part.mean()) for part in values]
    groups = [Group(v, epsilon=e) for v, e in zip(values, (0.5, 0.2, 3.0), strict=True)]

    answers = [mixed_mean(groups, bounds=(-50, 50), variance=25.0, noise=noise) for _ in range(1500)]

    # The data are fixed: the noise alone is left, around the weighted mean of the groups' own means.
    target = float(np.dot(answers[0].weights, exact))
    estimates = np.array([answer.estimate for answer in answers])
    predicted = sum(
        (w * 100 / (e * n)) ** 2 * 2
        for w, e, n in zip(answers[0].weights, (0.5, 0.2, 3.0), (1000, 500, 200), strict=True)
    )
    assert abs(estimates.mean() - target) < 4 * math.sqrt(predicted / 1500)
    assert abs(estimates.mean() - target) < 0.1 * math.sqrt(predicted)
    assert 0.87 < estimates.var() / predicted < 1.13


def test_the_sample_mean_is_unbiased_and_varies_as_predicted():
    rng, noise = np.random.default_rng(2), SeededNoise(2)
    sizes, epsilons = (400, 300), (0.3, 1.0)
    estimates = []
    for _ in range(3000):
        groups = [Group(rng.normal(2, 3, n), epsilon=e) for n, e in zip(sizes, epsilons, strict=True)]
        estimates.append(sample_mean(groups, bounds=(-10, 10), threshold=0.8, noise=noise).estimate)

    predicted = sample_variance(sizes, epsilons, 0.8, variance=9.0, width=20.0, offset=2.0)
    assert (
        abs(np.mean(estimates) - 2.0) < 4 * math.sqrt(predicted / 3000) + 0.01
    )  # values are clamped a little
    assert 0.9 < np.var(estimates) / predicted < 1.1


def test_thresholding_varies_as_it_says():
    rng, noise = np.random.default_rng(3), SeededNoise(3)
    answers = []
    for _ in range(2000):
        groups = [Group(rng.normal(0, 3, 300), epsilon=e) for e in (0.1, 0.5, 1.0)]
        answers.append(threshold_mean(groups, bounds=(-15, 15), threshold=0.5, variance=9.0, noise=noise))

    ratio = np.var([answer.estimate for answer in answers]) / answers[0].standard_error ** 2
    assert 0.9 < ratio < 1.1


@pytest.mark.parametrize("bias", [0.0, 0.6, 5.0])
def test_a_biased_public_group_never_costs_more_than_the_stated_factor(bias):
    """F = 1.5 is kept at every bias; without the option a large bias breaks it, which is the control."""
    rng, noise = np.random.default_rng(4), SeededNoise(4)
    errors: dict[str, list[float]] = {"ignored": [], "measured": [], "trusted": []}
    for _ in range(600):
        private = Group(rng.normal(50, 5, 1000), epsilon=0.3)
        public = Group(rng.normal(50 + bias, 5, 1000), public=True)
        options = {"bounds": (0, 100), "variance": 25.0, "noise": noise}
        errors["ignored"].append(mixed_mean([private], alone=True, **options).estimate - 50)
        errors["measured"].append(mixed_mean([private, public], bias="measure", **options).estimate - 50)
        errors["trusted"].append(mixed_mean([private, public], **options).estimate - 50)

    rmse = {name: math.sqrt(np.mean(np.square(off))) for name, off in errors.items()}
    assert rmse["measured"] < 1.5 * rmse["ignored"]
    assert rmse["measured"] < 1.25 * rmse["ignored"]  # √(1 + 0.5²) = 1.12, with room for 600 trials
    if bias == 0:
        assert rmse["measured"] < 0.9 * rmse["ignored"]
    if bias == 5:
        assert rmse["trusted"] > 1.5 * rmse["ignored"]


def test_grouped_intervals_cover_on_average_over_cells():
    rng, noise = np.random.default_rng(5), SeededNoise(5)
    covered, claimed, squares = [], [], []
    for _ in range(150):
        shift = rng.normal(0, 3, 12)
        region = rng.integers(0, 12, 6000)
        shown = rng.integers(0, 12, 1200)
        base = 40 + 2 * np.arange(12)
        private = {"x": rng.normal((base + shift)[region], 5), "region": region}
        public = {"x": rng.normal((base - 4)[shown], 5), "region": shown}
        answer = grouped_mean(
            private,
            "x",
            by="region",
            public=public,
            cells=list(range(12)),
            bounds=(0, 100),
            epsilon=1.0,
            noise=noise,
        )
        for cell, mean in enumerate(answer.cells):
            exact = base[cell] + shift[cell]
            covered.append(mean.interval[0] <= exact <= mean.interval[1])
            claimed.append(mean.standard_error**2)
            squares.append((mean.estimate - exact) ** 2)

    assert 0.92 < np.mean(covered) < 0.98
    assert 0.8 < math.sqrt(np.mean(squares) / np.mean(claimed)) < 1.2


@pytest.mark.parametrize(("epsilon", "n"), [(0.05, 500), (2.0, 1000)])
def test_intervals_cover_19_times_in_20(epsilon, n):
    rng, noise = np.random.default_rng(6), SeededNoise(6)
    covered = []
    for _ in range(1200):
        groups = [Group(rng.normal(50, 5, n), epsilon=epsilon), Group(rng.normal(50, 5, 20), public=True)]
        low, high = mixed_mean(groups, bounds=(0, 100), variance=25.0, noise=noise).interval
        off, half = abs(50 - (low + high) / 2), (high - low) / 2
        covered.append((off <= half, off <= 0.85 * half))

    full, shorter = np.mean(covered, axis=0)
    assert 0.935 < full < 0.967
    assert shorter < 0.935  # an interval a seventh shorter is found out
