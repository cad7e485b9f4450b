"""Which single attributes APERTURE asks for again, and what that is worth."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.again import _believed_later, _errors, promise, worth_asking_again
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.models.graphical import GraphicalModel
from sidelight.privacy.event import Exponential, Gaussian
from sidelight.public.prior import Prior
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload
from sidelight.select.improvement import Profile
from sidelight.testing import SeededNoise
from sidelight.uncertainty.dispersion import SpreadPrior

DOMAIN = Domain.of({"a": 2, "b": 4})
N = 10_000.0
A, B = ("a",), ("b",)


def beliefs_of(a, b, *, stddev):
    """After answers to a and b; public data are uniform in both, and as many."""
    prior = Prior(GraphicalModel.uniform(DOMAIN, total=1.0), {"a": N, "b": N}, N, {})
    beliefs = Beliefs(prior, N, least_doubt=0.01)
    start = GraphicalModel.uniform(DOMAIN, total=N)
    for attrs, shares in ((A, a), (B, b)):
        answer = Measurement(Marginal(attrs), N * np.asarray(shares, dtype=np.float64), stddev)
        beliefs.add(answer.against(start))
    return beliefs


def promised(beliefs, attrs, **kwargs):
    return promise(beliefs.held[attrs], beliefs.pooled()[1], **{"rest": 1000.0, "stddev": 100.0} | kwargs)


OFF, EVEN = [0.8, 0.2], [0.25] * 4


def test_the_error_of_an_estimate_is_what_a_simulation_says():
    rng = np.random.default_rng(0)
    variance, noise = np.array([40.0, 90.0, 400.0, 400.0]), 150.0
    for true, believed in ((1.0, 1.0), (9.0, 0.5), (0.1, 20.0)):
        truth = rng.normal(0, np.sqrt(true * variance), (40_000, 4))
        answers = truth + rng.normal(0, np.sqrt(noise), truth.shape)
        estimate = answers * (believed * variance / (believed * variance + noise))
        simulated = np.abs(estimate - truth).sum(axis=1).mean()

        (found,) = _errors(Profile.of(variance), np.array([true]), np.array([believed]), noise=noise)

        assert found == pytest.approx(simulated, rel=0.02)


def test_with_little_noise_the_spread_will_be_known_and_with_much_it_will_not():
    pooled = SpreadPrior(N, 1.0).pooled([])
    profile = Profile.of(np.full(200, 100.0))
    plausible = (pooled.grid > 0.5) & (pooled.grid < 50)

    known = _believed_later(profile, pooled, noise=1.0)
    unknown = _believed_later(profile, pooled, noise=1e12)

    assert known[plausible] == pytest.approx(pooled.grid[plausible], rel=0.3)
    assert unknown == pytest.approx(np.full(unknown.size, pooled.quartiles[1]), rel=0.01)


def test_an_answer_that_is_off_and_noisy_is_worth_more_than_one_that_agrees():
    beliefs = beliefs_of(OFF, EVEN, stddev=1000.0)

    assert promised(beliefs, A) > 5 * promised(beliefs, B) > 0


def test_a_precise_answer_is_worth_little_and_so_is_one_that_others_will_tell():
    noisy, precise = beliefs_of(OFF, EVEN, stddev=1000.0), beliefs_of(OFF, EVEN, stddev=20.0)

    assert promised(precise, A) < 0.01 * promised(noisy, A)
    assert promised(noisy, A, later=1 / 50**2) < 0.05 * promised(noisy, A)


def test_a_lone_cell_far_off_is_worth_asking_again_before_it_is_believed():
    """3.5 standard deviations may be a whim of the noise: then the estimate follows nothing but noise."""
    whim = beliefs_of([0.5, 0.5], [0.25 + 0.07, 0.25, 0.25, 0.25], stddev=200.0)
    agreeing = beliefs_of([0.5, 0.5], EVEN, stddev=200.0)

    assert promised(whim, B) > 3 * promised(agreeing, B)


def test_what_promises_less_than_the_budget_is_worth_elsewhere_is_not_asked():
    beliefs, reach, later = beliefs_of(OFF, EVEN, stddev=1000.0), {A: 0.5, B: 0.5}, {A: 0.0, B: 0.0}

    def worth(stddev, rest=1000.0):
        return worth_asking_again(beliefs, reach, rest=rest, stddev=stddev, later=later)

    assert worth(100.0) == A
    assert worth(100_000.0) is None
    assert worth(100.0, rest=1e6) is None


WIDE = Domain.of({"s": 2, "x": 6, "y": 6, "z": 6, "u": 6, "v": 6})


def table_of(records, share, seed):
    """All of x … v depend on s; s is 1 in this share of the records."""
    rng = np.random.default_rng(seed)
    s = (rng.random(records) < share).astype(int)
    others = [
        np.minimum(rng.integers(0, 4, records) + 2 * s * (rng.random(records) < 0.7), 5) for _ in "xyzuv"
    ]
    return Table.of_codes(WIDE, np.stack([s, *others], axis=1))


TRIPLES = Workload.marginals(WIDE, degree=3)


def released(toy, seed=0, **settings):
    """Public data have s in 0.75 of the records, private ones in 0.25."""
    private = replace(toy, table=table_of(8000, 0.25, 1), workload=TRIPLES)
    curator, _ = private.curator(rho="1/20000", noise=SeededNoise(seed))
    return Aperture(**settings).run(curator, TRIPLES, public=table_of(2000, 0.75, 2)), curator


def test_an_attribute_that_public_data_have_wrong_is_asked_again_without_selecting(toy):
    release, curator = released(toy)

    again = release.aperture.asked_again
    assert again[0] == "s"
    later = curator.events[len(WIDE) :][: len(again)]
    assert tuple(event.what for event in later) == again
    assert all(isinstance(event, Gaussian) for event in later)
    assert any(isinstance(event, Exponential) for event in curator.events)
    assert not curator.remaining
    # A twelfth of what is left each time, of all but the first answers and what chooses the blend.
    assert later[0].cost.value == Fraction(1, 20000) * (1 - Fraction(0.05) - Fraction(0.03)) / 12


@pytest.mark.slow
def test_that_lowers_the_error(toy):
    private = table_of(8000, 0.25, 1)

    def error(seed, **settings):
        release, _ = released(toy, seed, **settings)
        return np.mean(
            [np.abs(release.model.count(q.attrs) - private.count(q.attrs)).sum() / 8000 for q in TRIPLES]
        )

    asked = [error(seed) for seed in range(4)]
    unasked = [error(seed, max_asked_again=0) for seed in range(4)]

    assert np.mean(asked) < 0.8 * np.mean(unasked)
