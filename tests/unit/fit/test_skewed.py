"""Counts of single attributes, freed from noise: less error than the noise, on skewed and on even ones."""

import numpy as np
import pytest

from sidelight.fit.skewed import Noisy, denoised


def off(counts, exact):
    return float(((counts - exact) ** 2).mean())


@pytest.mark.parametrize("exact", [[960.0, 30, 5, 3, 2, 0, 0, 0], [130.0, 120, 125, 128, 122, 126, 124, 125]])
def test_less_is_left_than_there_was_noise(exact):
    exact, stddev = np.array(exact), 30.0
    noisy, clean, said = [], [], []
    for seed in range(20):
        answer = exact + np.random.default_rng(seed).normal(0, stddev, exact.size)
        (found,) = denoised([Noisy.of(answer, stddev, total=1000.0)])
        noisy.append(off(np.maximum(answer, 0.0), exact))
        clean.append(off(found.counts, exact))
        said.append(found.variance)

    assert np.mean(clean) < 0.7 * np.mean(noisy)
    assert 0.3 < np.mean(said) / np.mean(clean) < 3


def test_answers_without_noise_stay_and_the_total_is_kept():
    exact = np.array([70.0, 20.0, 10.0, 0.0])

    (sure,) = denoised([Noisy.of(exact, 1e-3, total=100.0)])
    (lost,) = denoised([Noisy.of(exact[::-1].copy(), 1e4, total=100.0)])

    assert sure.counts == pytest.approx(exact, abs=0.5)
    assert lost.counts == pytest.approx(np.full(4, 25.0), abs=1.0)
    assert lost.counts.sum() == pytest.approx(100.0)


def test_attributes_lend_each_other_their_skew():
    skewed = Noisy.of(np.array([400.0, 0, 0, 0, 0, 0, 0, 0]), 5.0, total=400.0)
    unclear = Noisy.of(np.array([110.0, 40, 45, 38, 42, 39, 44, 42]), 40.0, total=400.0)

    alone = denoised([unclear])[0].counts[0]
    beside = denoised([unclear, *[skewed] * 20])[0].counts[0]

    assert beside > alone + 5


def test_nothing_gives_nothing():
    assert denoised([]) == []
