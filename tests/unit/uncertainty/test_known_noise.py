"""Error bars of models whose noise is known exactly, and of those that leave a part to the model."""

import warnings

import numpy as np
import pytest

import sidelight as sl
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import UnrecordedWarning
from sidelight.measurement import Measurement
from sidelight.models.residuals import Residuals
from sidelight.queries.query import Fourier, answer
from sidelight.testing import SeededNoise
from sidelight.uncertainty.calibration import Calibration, Level
from sidelight.uncertainty.count_errors import CountErrors

BINARY = Domain.of(dict.fromkeys("abcde", 2))


def table(records=2000):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, records)
    columns = [np.where(rng.random(records) < 0.8, first, 1 - first) for _ in BINARY.attrs]
    return Table.of_codes(BINARY, np.stack(columns, axis=1).astype(np.uint8))


def released(mechanism, *, seed=0, epsilon=0.3, **settings):
    return sl.release(
        table(), schema=sl.Schema.from_domain(BINARY), epsilon=epsilon, delta=1e-9, mechanism=mechanism,
        workload="3-way", noise=SeededNoise(seed), progress=False, **settings,
    )  # fmt: skip


def test_fourier_coefficients_are_residuals():
    private = table()
    sets = [(), ("a",), ("c",), ("a", "c")]
    made = [Measurement(Fourier(attrs), answer(Fourier(attrs), private), 3.0) for attrs in sets]

    known = Residuals.of(BINARY, made)

    assert known.count(("a", "c")) == pytest.approx(private.count(("a", "c")))
    # A cell is a quarter of the sum of four coefficients, each with the same sign or the other one.
    assert known.variance(("a", "c")) == pytest.approx(4 * 3.0**2 / 16)
    assert not known.holds(("b",))


@pytest.mark.filterwarnings("ignore::sidelight.errors.UnrecordedWarning")
def test_intervals_of_barak_are_those_of_its_noise():
    private, held = table(), []
    for seed in range(6):
        made = released("barak", seed=seed)
        for attrs in (("a", "b", "c"), ("c", "d", "e")):
            bars = made.error_bars(attrs)
            assert bars.unbiased is not None
            low, high = bars.interval()
            held.append((low <= private.count(attrs)) & (private.count(attrs) <= high))

    assert 0.88 <= np.mean(held) <= 1.0


@pytest.mark.filterwarnings("ignore::sidelight.errors.UnrecordedWarning")
def test_what_ladder_left_to_the_model_is_off_by_more_where_more_records_are():
    made = released("ladder", epsilon=0.05)
    measured = {made.query.attrs for made in made.measurements}
    attrs = ("a", "b", "c")
    assert attrs not in measured

    bars = made.error_bars(attrs)

    assert bars.source == "model"
    most, least = bars.estimate.argmax(), bars.estimate.argmin()
    assert bars.standard_error.flat[most] > bars.standard_error.flat[least]


SURVEY = Domain.of({"age": 7, "sex": 2, "region": 4, "work": 4, "income": 8})
ONE_AND_TWO = [
    attrs for degree in (1, 2) for attrs in sl.Workload.marginals(SURVEY, degree=degree).attribute_sets
]


def survey(seed):
    """Of a survey of 5,000 people LADDER measures three pairs at ε = 0.1, and leaves age × income out."""
    rng = np.random.default_rng(0)
    age = rng.integers(0, 7, 5000)
    work = np.where(age > 5, 2, rng.choice(4, 5000, p=[0.7, 0.15, 0.05, 0.1]))
    income = np.clip(rng.poisson(1 + age / 2), 0, 7)
    sex, region = rng.integers(0, 2, 5000), rng.choice(4, 5000, p=[0.27, 0.45, 0.28, 0.0])
    private = Table.of_codes(SURVEY, np.stack([age, sex, region, work, income], axis=1).astype(np.uint8))
    return sl.release(
        private, schema=sl.Schema.from_domain(SURVEY), epsilon=0.1, delta=1e-9, mechanism="ladder",
        workload="2-way", noise=SeededNoise(seed), progress=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def surveys():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnrecordedWarning)
        return [survey(seed) for seed in range(6)]


def test_no_error_is_said_to_be_above_the_noise_of_least_squares(surveys):
    """Measured quality is noisy; that one pair was left out must not make known noise larger."""
    for made in surveys:
        exact = [bars for bars in map(made.error_bars, ONE_AND_TWO) if bars.unbiased is not None]
        assert len(exact) == 8
        for bars in exact:
            for part in (bars, bars.sum(bars.estimate >= np.median(bars.estimate))):
                sigma = np.sqrt(part.unbiased.noise.variance)
                assert np.all(part.standard_error <= 1.0001 * sigma)
                assert part.noise_error == pytest.approx(part.standard_error)
                assert np.all(np.asarray(part.model_error) == 0)
            most = np.sqrt(2 / np.pi) * np.sqrt(bars.unbiased.noise.variance).sum() / bars.total
            assert bars.expected_error <= 1.0001 * most


@pytest.mark.filterwarnings("ignore::sidelight.errors.UnrecordedWarning")
@pytest.mark.parametrize("mechanism", ["hdmm", "barak"])
def test_nor_by_other_mechanisms_whose_noise_is_known(mechanism):
    for seed in range(3):
        made = released(mechanism, seed=seed)
        for attrs in (("a",), ("c", "e"), ("a", "b", "c")):
            bars = made.error_bars(attrs)
            assert np.all(bars.standard_error <= 1.0001 * np.sqrt(bars.unbiased.noise.variance))


def test_a_pair_that_was_left_out_does_not_bear_all_the_noise_of_the_measured_mean(surveys):
    said = [made.error_bars(("age", "income")).expected_error for made in surveys]

    assert all(made.error_bars(("age", "income")).source == "model" for made in surveys)
    assert max(said) < 3 * min(said)


def test_the_card_of_an_older_release_cannot_make_known_noise_larger(surveys):
    made = surveys[0]
    wide = Calibration(degrees={"1": Level(known=100.9, model=0.0)}, attributes={})
    bars = CountErrors(made.model, made.measurements, made.card.model_error, wide).bars(("region",))

    assert bars.standard_error == pytest.approx(np.sqrt(bars.unbiased.noise.variance))
