"""How well the size of errors is known decides how far intervals reach, and what measured quality changes."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.mean_errors import MeanErrors, NoisyMeans
from sidelight.measurement import Measurement
from sidelight.models.histogram import Histogram
from sidelight.privacy.budget import Rho
from sidelight.queries.query import Marginal
from sidelight.uncertainty.calibration import calibrated
from sidelight.uncertainty.count_errors import CountErrors
from sidelight.uncertainty.model_error import Dispersion, ModelDispersion

N = 10_000.0
DOMAIN = Domain.of({"a": 4, "b": 5, "c": 3, "d": 6})
MODEL = Histogram.of_counts(DOMAIN, np.random.default_rng(0).dirichlet(np.ones(360)) * N, total=N)
PAIRS = list(itertools.combinations(DOMAIN.attrs, 2))
TOLD = ModelDispersion(levels={"unmet": 9.0, "met": 9.0}, trials={"unmet": 4, "met": 4})


def measured(sets, stddev):
    return tuple(
        Measurement(Marginal(attrs), np.asarray(MODEL.count(attrs)).reshape(-1), stddev) for attrs in sets
    )


SINGLES = measured([(attr,) for attr in DOMAIN.attrs], 20.0)


def fitted(made, told=TOLD, *, mean=None, factor=1.0, stddev):
    """Error bars after every mean error was measured as this, or as this many times the guess."""
    guess = CountErrors(MODEL, made, told, total_is_public=True)
    asked = MeanErrors.of(PAIRS, DOMAIN, Rho)
    values = []
    for part in asked.sets:
        guessed = [guess.bars(asked.marginals[place]).expected_error for place in part.places]
        values.append(N * (factor * np.mean(guessed) if mean is None else mean))
    noisy = NoisyMeans(tuple(values), (N * stddev,) * len(values))
    level = calibrated(guess.parts, asked, noisy, DOMAIN, N)
    return guess, CountErrors(MODEL, made, told, level, total_is_public=True)


def test_intervals_of_what_is_left_to_the_model_are_wider_where_quality_says_little():
    (_, clear), (_, drowned) = (fitted(SINGLES, factor=0.7, stddev=stddev) for stddev in (1e-5, 1.0))
    left, single = ("a", "b"), ("a",)

    assert drowned.bars(left).quantile(0.95) > 1.3 * clear.bars(left).quantile(0.95)
    assert drowned.bars(single).quantile(0.95) == pytest.approx(clear.bars(single).quantile(0.95), rel=0.01)


def test_of_more_attributes_than_the_workload_has_less_is_known():
    _, errors = fitted(SINGLES, factor=0.7, stddev=1e-5)

    assert errors.bars(("a", "b", "c")).quantile(0.95) > 1.3 * errors.bars(("a", "b")).quantile(0.95)


def test_a_table_left_to_the_model_is_not_thought_exact_because_measured_ones_err_less_than_their_noise():
    """Five pairs of six are measured, and err by seven tenths of their noise: it says little of the sixth."""
    guess, errors = fitted((*SINGLES, *measured(PAIRS[1:], 60.0)), factor=0.7, stddev=1e-5)
    left = PAIRS[0]
    said = [one.bars(left).expected_error for one in (guess, errors)]

    assert guess.bars(left).source == "model"
    assert said[1] > 0.5 * said[0]
    assert np.mean([errors.bars(attrs).expected_error for attrs in PAIRS]) == pytest.approx(
        0.7 * np.mean([guess.bars(attrs).expected_error for attrs in PAIRS]), rel=0.02
    )


def test_errors_of_measured_tables_are_known_from_their_noise_better_than_from_an_imprecise_mean():
    """The measured mean of single attributes is 1.6 times the guess, and known to six tenths of it."""
    plain = CountErrors(MODEL, SINGLES, TOLD, total_is_public=True)
    before = np.mean([plain.bars((attr,)).expected_error for attr in DOMAIN.attrs])
    _, errors = fitted(SINGLES, mean=1.6 * before, stddev=0.6 * before)
    after = np.mean([errors.bars((attr,)).expected_error for attr in DOMAIN.attrs])

    assert 0.8 * before < after < 1.15 * before


@pytest.mark.parametrize("mean", [-1.0, 0.1])
def test_pairs_are_off_by_the_noise_in_their_attributes_where_nothing_tried_the_model(mean):
    """Nothing was measured but single attributes, and quality drowns in its noise."""
    singles = tuple(replace(one, stddev=1500.0) for one in SINGLES)
    _, errors = fitted(singles, ModelDispersion(levels={}, trials={}), mean=mean, stddev=3.0)
    single, pair = errors.bars(("a",)).expected_error, errors.bars(("a", "b")).expected_error

    assert pair > single > 0.3


def test_where_public_data_are_weighed_against_an_answer_what_they_add_is_what_the_answer_left():
    """One attribute's answer has hardly any noise, another's is all noise; both priors are off by as much."""
    made = (replace(SINGLES[0], stddev=1.0), *(replace(one, stddev=2000.0) for one in SINGLES[1:]))
    spreads = tuple(Dispersion(attrs=(attr,), s=30.0, sampling=2.0) for attr in DOMAIN.attrs)
    told = replace(TOLD, spreads=spreads, told_by_public=DOMAIN.attrs)

    _, errors = fitted(made, told, factor=1.0, stddev=1e-3)

    assert errors.bars(("a",)).expected_error < 0.1 * errors.bars(("b",)).expected_error


def test_without_measured_quality_intervals_reach_up_where_the_model_knows_little():
    """Two hundred records, and a model made of noise: what is large is in cells that it says are empty."""
    domain, held = Domain.of({"a": 6, "b": 8}), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = Histogram.of_counts(domain, rng.dirichlet(np.full(48, 0.1)) * 200, total=200.0)
        exact = rng.multinomial(200, rng.dirichlet(np.full(48, 1.0))).reshape(6, 8)
        single = Measurement(Marginal(("a",)), np.asarray(model.count(("a",))).reshape(-1), 500.0)
        told = ModelDispersion(levels={"unmet": 24.0}, trials={"unmet": 2})
        low, high = CountErrors(model, (single,), told, total_is_public=True).bars(("a", "b")).interval()
        held += ((low <= exact) & (exact <= high))[exact >= 5].tolist()

    assert len(held) > 200
    assert 0.95 < np.mean(held) < 1
