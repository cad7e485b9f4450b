"""How far a model is off is learned from noisy answers, whatever their noise."""

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.measurement import Measurement
from sidelight.models.histogram import Histogram
from sidelight.queries.query import Cell, Fourier, Marginal
from sidelight.uncertainty.dispersion import Trial, level, variance_at_one
from sidelight.uncertainty.model_error import Dispersion, model_error

N = 10_000.0
DOMAIN = Domain.of({"a": 2, "b": 2, "c": 2})
UNIFORM = Histogram.uniform(DOMAIN, total=N)


def trials_of(*spreads, stddev, seed=0, cells=200):
    """One trial for each s, of a model with uneven counts."""
    rng = np.random.default_rng(seed)
    made = []
    for s in spreads:
        counts = rng.dirichlet(np.full(cells, 0.3)) * N
        variance = variance_at_one(counts, total=N, cells=cells)
        gap = rng.normal(0, np.sqrt(s * variance)) + rng.normal(0, stddev, cells)
        made.append(Trial.of(gap, variance, stddev))
    return made


def measured(attrs, answer, stddev=1.0):
    return Measurement(Marginal(tuple(attrs)), np.asarray(answer, dtype=float), stddev)


def tried(attrs, answer, stddev=1.0, *, model=UNIFORM):
    return measured(attrs, answer, stddev).against(model)


def told(*measurements, domain=DOMAIN, total=N, **settings):
    return model_error(domain, measurements, total=total, **settings)


@pytest.mark.parametrize("s", [1.0, 20.0, 400.0])
@pytest.mark.parametrize("stddev", [0.5, 20.0])
def test_a_steady_spread_is_found_under_any_noise(s, stddev):
    found = level(trials_of(*[s] * 12, stddev=stddev), N)

    assert 0.7 * s < found < 1.5 * s


def test_noise_is_not_taken_for_a_spread():
    swamped = trials_of(*[0.0] * 12, stddev=300.0)

    assert level(swamped, N) < 30  # each cell's noise alone would read as an s of about 1,800


def test_noise_that_is_understated_is_taken_for_a_spread():
    honest = trials_of(*[0.0] * 12, stddev=60.0)
    rng = np.random.default_rng(0)
    variance = variance_at_one(np.full(200, N / 200), total=N, cells=200)
    understated = [Trial.of(rng.normal(0, 120.0, 200), variance, 60.0) for _ in range(12)]

    assert level(understated, N) > 20 * level(honest, N)


def test_the_level_is_that_of_the_last_rounds():
    falling = level(trials_of(3000, 1000, 300, 100, 30, *[5.0] * 6, stddev=5.0), N)
    rising = level(trials_of(*[5.0] * 6, 30, 100, 300, 1000, 3000, stddev=5.0), N)

    assert 3 < falling < 12
    assert rising > 1000


def test_a_trial_that_noise_swamps_says_nothing():
    known = trials_of(*[8.0] * 10, stddev=2.0)
    swamped = trials_of(0.0, stddev=5000.0, seed=1)

    assert level([*known, *swamped], N) == pytest.approx(level(known, N), rel=0.35)


def test_one_cell_can_test_a_model():
    cells = [Measurement(Cell(("a", "b"), (0, 1)), np.array([y]), 1.0) for y in (2700.0, 2300.0, 2600.0)]

    levels = told(*(cell.against(UNIFORM) for cell in cells), public_attrs=DOMAIN.attrs).levels

    assert 2 < levels["met"] < 200
    assert 2 < levels["unmet"] < 1000


def test_marginals_whose_attributes_met_are_kept_apart_from_the_rest():
    pairs = [tried(pair, [3500, 1500, 1500, 3500]) for pair in ("ab", "bc", "ca")]

    found = told(measured("a", [5000, 5000]), *pairs, tried("abc", [1250] * 8))

    assert found.trials == {"met": 1, "unmet": 3}
    assert found.levels["unmet"] > 100 * found.levels["met"]


def test_a_measurement_without_a_prediction_tries_nothing_and_counts_as_met():
    before = told(measured("ab", [2500] * 4), tried("ab", [3500, 1500, 1500, 3500]))

    assert before.trials == {"met": 1, "unmet": 0}


def test_queries_that_count_no_records_test_nothing():
    wave = Measurement(Fourier(("a",)), np.array([900.0]), 1.0)

    assert told(wave.against(UNIFORM)) is None
    assert told(wave.against(UNIFORM), measured("b", [5000, 5000])).levels == {}


def test_what_nothing_told_of_is_named():
    found = told(tried("a", [6000, 4000]), public_attrs=("c",), dispersions={("a",): (2.0, 1.5)})

    assert found.untold == ("b",)
    assert found.trials == {"met": 0, "unmet": 1}
    assert found.spreads == (Dispersion(attrs=("a",), s=2.0, sampling=1.5),)
    assert set(found.levels) == {"unmet"}


def test_a_marginal_of_one_cell_tries_nothing():
    domain = Domain.of({"a": 1})
    made = tried("a", [N], model=Histogram.uniform(domain, total=N))

    assert told(made, domain=domain).levels == {}


def test_a_total_of_one_record_does_no_harm():
    made = tried("abc", np.zeros(8), 50.0, model=Histogram.uniform(DOMAIN, total=1.0))

    assert np.isfinite(told(made, total=1.0).levels["unmet"])
