"""The quantile's law against its exact distribution, and mixed medians over many trials."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from personal_quantile import personalised_quantile_place, personalised_stretches
from sidelight.privacy.budget import Epsilon
from sidelight.privacy.event import Exponential
from sidelight.statistics.grid import Grid
from sidelight.statistics.group import Group
from sidelight.statistics.mixed_quantile import mixed_quantile
from sidelight.statistics.quantile import exponential_quantile, stretches
from sidelight.testing import SeededNoise
from stretch_law import chances

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

TABLES = {
    "spread": ([0.2, 0.5, 0.9], Fraction(1, 2)),
    "ties": ([0.4, 0.4, 0.4, 0.7], Fraction(1, 2)),
    "all equal": ([0.25] * 6, Fraction(1, 3)),
    "one": ([0.8], Fraction(9, 10)),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_draws_follow_the_exact_law_and_not_that_of_another_epsilon(table, epsilon):
    values, share = TABLES[table]
    places = Grid(0.0, 1.0, 12).places(np.array(values))
    noise, draws = SeededNoise(7), 12_000
    event = Exponential.at(
        Epsilon(Fraction(epsilon)), what="quantile", sensitivity=Fraction(1), candidates=2**12
    )

    drawn = [exponential_quantile(noise, places, share, event, bits=12) for _ in range(draws)]

    edges, lengths = stretches(places, bits=12)
    counts = np.bincount(np.searchsorted(edges[1:], drawn, side="right"), minlength=lengths.size)

    def p_value(at: float) -> float:
        law = chances(lengths, at * np.abs(np.arange(lengths.size) - float(share) * len(values)) / 2)
        return float(chisquare(counts[lengths > 0], draws * law[lengths > 0]).pvalue)

    assert counts[lengths == 0].sum() == 0
    assert p_value(epsilon) > 1e-4
    if table in ("spread", "ties") and epsilon == 2.0:
        assert max(p_value(0.85 * epsilon), p_value(1.15 * epsilon)) < 1e-3


def test_within_a_run_every_place_is_equally_likely():
    places = np.array([16])
    event = Exponential.at(Epsilon(Fraction(1, 100)), what="median", sensitivity=Fraction(1), candidates=32)
    noise = SeededNoise(7)

    drawn = [exponential_quantile(noise, places, Fraction(1, 2), event, bits=5) for _ in range(9600)]

    assert chisquare(np.bincount(drawn, minlength=32)).pvalue > 1e-4


def test_personalised_draws_follow_their_exact_law():
    grid, epsilons = Grid(0.0, 1.0, 12), [Fraction(1), Fraction(2), Fraction(1, 2)]
    private = [grid.places(np.array([value])) for value in (0.2, 0.5, 0.9)]
    noise, draws = SeededNoise(7), 12_000

    drawn = [
        personalised_quantile_place(noise, private, epsilons, [], Fraction(1, 2), bits=12)
        for _ in range(draws)
    ]

    edges, lengths, steps = personalised_stretches(private, epsilons, [], Fraction(1, 2), bits=12)
    counts = np.bincount(np.searchsorted(edges[1:], drawn, side="right"), minlength=lengths.size)
    assert chisquare(counts, draws * chances(lengths, steps / 2**31)).pvalue > 1e-4
    assert chisquare(counts, draws * chances(lengths, steps / 2**30)).pvalue < 1e-6  # twice the ε


def test_the_median_varies_as_its_rank_noise_says():
    """Lap(2/ε) in ranks, through 1/(n·f): a tenth more or less is told apart."""
    fixed = np.linspace(0, 1, 20_001)
    groups = [Group(fixed, epsilon=0.05) for _ in range(2000)]

    answer = mixed_quantile(groups, 0.5, bounds=(0, 1), density=1.0, noise=SeededNoise(1))

    shown = np.array([group.estimate for group in answer.groups])
    predicted = math.sqrt(2) * 2 / 0.05 / 20_001
    assert 0.93 < shown.std() / predicted < 1.07
    assert abs(shown.mean() - np.median(fixed)) < 0.2 * predicted


def test_rank_weights_beat_the_papers_where_groups_differ():
    rng, noise = np.random.default_rng(2), SeededNoise(2)
    errors: dict[str, list[float]] = {"rank": [], "mean": []}
    for _ in range(800):
        groups = [Group(rng.normal(0, 1, 900), epsilon=0.1), Group(rng.normal(0, 1, 100), epsilon=1.0)]
        for weights, off in errors.items():
            answer = mixed_quantile(
                groups, 0.5, bounds=(-5, 5), weights=weights, variance=1.0, density=0.4, noise=noise
            )
            off.append(answer.estimate)

    squares = {name: np.mean(np.square(off)) for name, off in errors.items()}
    assert squares["rank"] < squares["mean"]
