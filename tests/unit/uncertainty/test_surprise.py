"""How far a model is off is learned from noisy answers, whatever their noise."""

import json

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.measurement import Measurement
from sidelight.models.histogram import Histogram
from sidelight.queries.query import Cell, Fourier, Marginal
from sidelight.uncertainty.surprise import Surprises, Trial, level, variance_at_one

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
    surprises = Surprises(DOMAIN, told=DOMAIN.attrs)
    for value in (2700.0, 2300.0, 2600.0):
        surprises.note(Measurement(Cell(("a", "b"), (0, 1)), np.array([value]), 1.0), UNIFORM, total=N)

    assert 2 < surprises.levels()["met"] < 200
    assert 2 < surprises.levels()["unmet"] < 1000


def test_marginals_whose_attributes_met_are_kept_apart_from_the_rest():
    surprises = Surprises(DOMAIN, [measured("a", [5000, 5000])])
    assert surprises.kind(("a",)) == "met"
    assert surprises.kind(("b",)) == surprises.kind(("a", "b")) == "unmet"

    for pair in ("ab", "bc", "ca"):
        surprises.note(measured(pair, [3500, 1500, 1500, 3500]), UNIFORM, total=N)
    surprises.note(measured("abc", [1250] * 8), UNIFORM, total=N)

    assert surprises.kind(("a", "b", "c")) == "met"
    levels = surprises.levels()
    assert levels["unmet"] > 100 * levels["met"]


def test_queries_that_count_no_records_test_nothing():
    surprises = Surprises(DOMAIN)
    surprises.note(Measurement(Fourier(("a",)), np.array([900.0]), 1.0), UNIFORM, total=N)

    assert surprises.levels() == {}


def test_the_card_is_plain_and_names_what_nothing_told_of():
    surprises = Surprises(DOMAIN)
    surprises.note(measured("a", [6000, 4000]), UNIFORM, total=N)
    surprises.tell(("c",))

    told = json.loads(json.dumps(surprises.card(spreads={("a",): (2.0, 1.5)})))["model_error"]

    assert told["untold"] == ["b"]
    assert told["trials"] == {"met": 0, "unmet": 1}
    assert told["spreads"] == [{"attrs": ["a"], "s": 2.0, "sampling": 1.5}]
    assert set(told["levels"]) == {"unmet"}


def test_a_marginal_of_one_cell_tries_nothing():
    domain = Domain.of({"a": 1})
    surprises = Surprises(domain)
    surprises.note(measured("a", [N]), Histogram.uniform(domain, total=N), total=N)

    assert surprises.levels() == {}


def test_a_total_of_one_record_does_no_harm():
    one = Surprises(DOMAIN)
    one.note(measured("abc", np.zeros(8), 50.0), Histogram.uniform(DOMAIN, total=1.0), total=1.0)

    assert np.isfinite(one.levels()["unmet"])
