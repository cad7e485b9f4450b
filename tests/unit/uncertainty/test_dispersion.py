"""The spread of the truth around the model, learned from noisy answers."""

import numpy as np
import pytest

from sidelight.measurement import Measurement
from sidelight.queries.query import Marginal
from sidelight.uncertainty.dispersion import Evidence, SpreadPrior


def evidence(answer, predicted, stddev):
    made = Measurement(Marginal(("a",)), answer, stddev, predicted)
    return Evidence(made, total=float(predicted.sum()))


def evidence_of(spread, stddev=5.0, cells=2000, seed=0):
    rng = np.random.default_rng(seed)
    mass = rng.gamma(1.0, 50.0, cells) + 1
    gap = rng.normal(0.0, np.sqrt(spread * mass + stddev**2))
    return evidence(mass + gap, mass, stddev)


def likelihood_of(made, prior):
    logs = made.log_likelihood(prior.grid)
    return np.exp(logs - logs.max())


@pytest.mark.parametrize("spread", [0.3, 3.0, 100.0])
def test_the_spread_that_made_the_answers_is_found(spread):
    prior = SpreadPrior(10_000, 0.0)
    likelihood = likelihood_of(evidence_of(spread), prior)

    found = prior.pooled([likelihood]).median(likelihood)

    assert found == pytest.approx(spread, rel=0.3)


def test_an_answer_that_is_all_noise_leaves_the_prior_belief():
    prior = SpreadPrior(10_000, 0.0)
    likelihood = likelihood_of(evidence_of(1.0, stddev=1e5, cells=20), prior)

    found = prior.pooled([likelihood]).median(likelihood)

    assert 0.3 < found < 3.0


def test_marginals_that_stray_teach_what_to_expect_of_the_next():
    prior = SpreadPrior(10_000, 0.0)
    straying = [likelihood_of(evidence_of(200.0, seed=seed), prior) for seed in range(5)]

    before, after = prior.pooled([]).middle, prior.pooled(straying).middle

    assert before < 2.0
    assert after > 50.0


def test_trust_grows_from_none_to_all():
    one = evidence_of(1.0)

    assert one.trust(1e-12) == pytest.approx(0.0, abs=1e-6)
    assert one.trust(1e12) == pytest.approx(1.0, abs=1e-6)


def test_the_expected_error_lies_below_that_of_the_noise_and_that_of_the_model():
    one = evidence_of(2.0)
    noise = np.sqrt(2 / np.pi) * one.stddev * one.mass.size
    model = np.sqrt(2 / np.pi) * np.sqrt(2.0 * one.mass).sum()

    assert one.expected_error(2.0) < min(noise, model)
