"""The noise has the law it claims: the right scale is accepted, ten per cent off either way is rejected."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, chisquare, kstest, laplace, norm

from sidelight.privacy.budget import Epsilon, Rho
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.noise import discrete_gaussian, discrete_laplace
from sidelight.testing import SeededNoise

pytestmark = pytest.mark.statistical

ACCEPTED, REJECTED = 1e-4, 1e-12
DRAWS = 1_000_000

Law = Callable[[NDArray[np.float64], float], NDArray[np.float64]]


def gaussian_law(z: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Pr[z], summed out far enough that nothing is missing."""
    reach = np.arange(-math.ceil(40 * sigma) - 2, math.ceil(40 * sigma) + 3)
    return np.exp(-(z**2) / (2 * sigma**2)) / np.exp(-(reach**2) / (2 * sigma**2)).sum()


def laplace_law(z: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    return np.tanh(1 / (2 * scale)) * np.exp(-np.abs(z) / scale)


def p_value(drawn: NDArray[np.int64], law: Law, scale: float) -> float:
    """Chi-square of the draws against the law, cells of fewer than 20 expected joined with the tails."""
    edge = 0
    while drawn.size * float(law(np.array([edge + 1.0]), scale)[0]) >= 20:
        edge += 1
    middle = np.arange(-edge, edge + 1)
    inside = law(middle.astype(np.float64), scale)
    beyond = 1 - inside.sum()
    counts = np.bincount(np.clip(drawn, -edge - 1, edge + 1) + edge + 1, minlength=2 * edge + 3)
    observed = np.append(counts[1:-1], counts[0] + counts[-1])
    expected = drawn.size * np.append(inside, beyond)
    if expected[-1] < 5:
        observed = np.append(observed[:-2], observed[-2] + observed[-1])
        expected = np.append(expected[:-2], expected[-2] + expected[-1])
    return float(chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


CASES = [(discrete_gaussian, gaussian_law, s) for s in ("0.3", "1", "3.7", "50")] + [
    (discrete_laplace, laplace_law, s) for s in ("0.3", "1", "3.7", "50")
]


def draw(sampler, scale: Fraction, *, seed: int = 11, size: int = DRAWS) -> NDArray[np.int64]:
    return sampler(SeededNoise(seed), scale**2 if sampler is discrete_gaussian else scale, size)


@pytest.mark.parametrize(("sampler", "law", "scale"), CASES)
def test_draws_follow_the_exact_law_and_no_other_scale(sampler, law, scale):
    drawn = draw(sampler, Fraction(scale))

    p = {factor: p_value(drawn, law, factor * float(scale)) for factor in (0.9, 1.0, 1.1)}

    assert p[1.0] > ACCEPTED
    assert max(p[0.9], p[1.1]) < REJECTED


@pytest.mark.parametrize(("sampler", "law", "scale"), CASES)
def test_a_sampler_of_half_the_variance_is_found_out(sampler, law, scale):
    planted = draw(sampler, Fraction(scale) * Fraction(7071, 10_000))

    assert p_value(planted, law, float(scale)) < REJECTED


@pytest.mark.parametrize("scale", [1000, 10**6, 10**9])
@pytest.mark.parametrize(("sampler", "limit"), [(discrete_gaussian, norm), (discrete_laplace, laplace)])
def test_large_scales_are_told_from_ten_per_cent_more_or_less(sampler, limit, scale):
    drawn = draw(sampler, Fraction(scale), size=200_000)
    spread = (
        drawn + SeededNoise(4).words(drawn.size) / 2.0**64 - 0.5
    )  # integers have ties; the limit has none

    p = {factor: kstest(spread, limit(scale=factor * scale).cdf).pvalue for factor in (0.9, 1.0, 1.1)}

    assert p[1.0] > ACCEPTED
    assert max(p[0.9], p[1.1]) < REJECTED


@pytest.mark.parametrize("scale", [50, 1000, 10**6])
def test_no_place_inside_a_block_is_preferred(scale):
    """Remainders modulo the block size are uniform, since the law is flat across a block or two."""
    drawn = draw(discrete_gaussian, Fraction(scale))

    for modulus in (2, 4, 8):
        assert chisquare(np.bincount(drawn % modulus)).pvalue > ACCEPTED


@pytest.mark.parametrize(
    ("sampler", "at_zero"), [(discrete_gaussian, 0.39894228), (discrete_laplace, 0.46211716)]
)
def test_zero_comes_as_often_as_the_specification_says(sampler, at_zero):
    zeros = (draw(sampler, Fraction(1)) == 0).mean()

    assert abs(zeros - at_zero) < 4 * math.sqrt(at_zero * (1 - at_zero) / DRAWS)


@pytest.mark.parametrize(("sampler", "law", "scale"), CASES)
def test_both_signs_are_alike_and_the_variance_is_right(sampler, law, scale):
    drawn = draw(sampler, Fraction(scale), seed=12)
    reach = np.arange(-60 * math.ceil(float(scale)), 60 * math.ceil(float(scale)) + 1).astype(np.float64)
    weights = law(reach, float(scale))
    variance, fourth = (reach**2 * weights).sum(), (reach**4 * weights).sum()

    positive, negative = int((drawn > 0).sum()), int((drawn < 0).sum())

    assert abs(positive - negative) < 4 * math.sqrt(positive + negative)
    assert abs((drawn.astype(float) ** 2).mean() - variance) < 4 * math.sqrt((fourth - variance**2) / DRAWS)


@pytest.mark.parametrize("sampler", [discrete_gaussian, discrete_laplace])
def test_one_draw_at_a_time_has_the_law_of_many_at_once(sampler):
    noise = SeededNoise(21)
    one_by_one = np.concatenate([sampler(noise, Fraction(1), 1) for _ in range(20_000)])
    law = gaussian_law if sampler is discrete_gaussian else laplace_law

    assert p_value(one_by_one, law, 1.0) > ACCEPTED
    assert p_value(one_by_one, law, 1.25) < REJECTED


@pytest.mark.parametrize("scale", [1.0, 20.0])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_an_independent_exact_sampler_has_the_same_law(kind, scale):
    """OpenDP's samplers come from other mathematics; a two-sample test cannot tell them from ours."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    metric = dp.l2_distance(T=float) if kind == "gaussian" else dp.l1_distance(T=int)
    then = dp.m.then_gaussian if kind == "gaussian" else dp.m.then_laplace
    theirs = np.array(((dp.vector_domain(dp.atom_domain(T=int)), metric) >> then(scale))([0] * 40_000))
    sampler = discrete_gaussian if kind == "gaussian" else discrete_laplace

    def same(ours: NDArray[np.int64]) -> float:
        edge = int(3 * scale)
        cells = np.arange(-edge, edge + 2, max(1, edge // 10))
        table = [np.histogram(np.clip(side, -edge, edge), cells)[0] for side in (ours, theirs)]
        return float(chi2_contingency(np.array(table) + 1e-9).pvalue)

    # OpenDP cannot be seeded: one run in a million may fail here by chance.
    assert same(draw(sampler, Fraction(scale), size=200_000)) > 1e-6
    assert same(draw(sampler, Fraction(scale) * Fraction(9, 10), size=200_000)) < 1e-6
    assert same(draw(sampler, Fraction(scale) * Fraction(11, 10), size=200_000)) < 1e-6


def test_measured_counts_carry_the_noise_that_was_paid_for():
    from sidelight.measurement import gaussian as measure_gaussian
    from sidelight.measurement import laplace as measure_laplace

    exact = np.arange(400_000, dtype=np.int64).reshape(400, 1000)
    gaussian = Gaussian.at(Rho(Fraction(1, 18)), what="a marginal", l2_squared=Fraction(1))
    laplacian = Laplace.at(Epsilon(Fraction(1, 2)), what="a marginal", l1=Fraction(1))

    by_gaussian = (measure_gaussian(SeededNoise(1), exact, gaussian) - exact).ravel()
    by_laplace = (measure_laplace(SeededNoise(1), exact, laplacian) - exact).ravel()

    assert p_value(by_gaussian, gaussian_law, 3.0) > ACCEPTED
    assert p_value(by_gaussian, gaussian_law, 2.7) < REJECTED
    assert p_value(by_gaussian, gaussian_law, 3.3) < REJECTED
    assert p_value(by_laplace, laplace_law, 2.0) > ACCEPTED
    assert p_value(by_laplace, laplace_law, 1.8) < REJECTED
    assert p_value(by_laplace, laplace_law, 2.2) < REJECTED
