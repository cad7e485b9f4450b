"""Intervals reach up to where misplaced records may be; errors of cells that sum to n have a mean of 0."""

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.measurement import Measurement
from sidelight.models.histogram import Histogram
from sidelight.queries.query import Marginal
from sidelight.uncertainty.calibration import Calibration, Level
from sidelight.uncertainty.count_errors import CountErrors
from sidelight.uncertainty.error_bars import ErrorBars
from sidelight.uncertainty.misplaced import Misplaced, skew
from sidelight.uncertainty.model_error import ModelDispersion

N = 10_000.0
DOMAIN = Domain.of({"a": 5, "b": 8})
MODEL = Histogram.of_counts(DOMAIN, np.random.default_rng(1).dirichlet(np.full(40, 0.5)) * N, total=N)
TOLD = ModelDispersion(levels={"unmet": 9.0}, trials={"unmet": 4})
SINGLES = tuple(
    Measurement(Marginal((attr,)), np.asarray(MODEL.count((attr,))).reshape(-1), 20.0)
    for attr in DOMAIN.attrs
)


def bars(attrs, *, model: float = 9.0, public: bool = True) -> ErrorBars:
    level = Calibration(degrees={"1": Level(known=1.0, model=model)}, attributes={})
    return CountErrors(MODEL, SINGLES, TOLD, level, total_is_public=public).bars(attrs)


def test_where_the_model_speaks_alone_the_interval_reaches_further_up_than_down():
    found = bars(("a", "b"))
    low, high = found.interval()

    inside = low > 0
    assert inside.any()
    assert np.all((high - found.estimate)[inside] > (found.estimate - low)[inside])


def test_the_upper_end_holds_a_record_s_cell_as_often_as_it_says():
    """Gamma counts, each cell drawn in proportion to its records; a symmetric interval holds less."""
    rng = np.random.default_rng(0)
    mean, variance = 100.0, 2.0 * 100.0**2
    x = rng.gamma(mean**2 / variance, variance / mean, 200_000)
    room = Misplaced(np.array([mean]), np.zeros(1))
    reach = float(room.reach(1.96, np.array([variance]), np.array([variance**0.5]))[0])

    assert x[x <= mean + reach].sum() / x.sum() >= 0.95
    assert x[x <= mean + 1.96 * variance**0.5].sum() / x.sum() < 0.85


def test_a_table_that_is_off_by_much_leaves_no_cell_out_of_reach():
    empty = np.zeros(100)
    empty[0] = N

    close, far = (Misplaced.of(empty, N, share=share).variance[1] ** 0.5 for share in (0.05, 0.8))

    assert close < 1e-3 * N / 1
    assert far > 0.02 * N


def test_sums_of_cells_have_room_and_variance_of_their_own():
    found = bars(("a", "b"))
    summed = found.sum(np.ones((5, 8)), kept=1)

    assert summed.misplaced.room == pytest.approx(found.misplaced.room.sum(axis=1))
    assert summed.misplaced.variance == pytest.approx(found.misplaced.variance.sum(axis=1))
    assert np.all(summed.interval()[1] > summed.estimate)


def test_a_public_number_of_records_takes_a_part_out_of_the_noise():
    known, unknown = (bars(("a",), public=public) for public in (True, False))

    assert known.noise_variance == pytest.approx(np.full(5, 400.0 * 4 / 5))
    assert unknown.noise_variance == pytest.approx(np.full(5, 400.0))
    some, everything = np.array([True, True, False, False, False]), np.ones(5, dtype=bool)
    assert known.sum(some).noise_variance == pytest.approx(400 * (2 - 4 / 5))
    assert known.sum(everything).noise_variance == pytest.approx(0.0)


def test_what_is_off_elsewhere_is_multiplied_by_an_attribute_that_nothing_told_of():
    told = ModelDispersion(levels={}, trials={}, untold=("b",), told_by_public=())
    (parts,) = CountErrors(MODEL, SINGLES[:1], told).parts([("a", "b")])
    (alone,) = CountErrors(MODEL, SINGLES[:1], told).parts([("b",)])

    assert alone.known == pytest.approx((skew(8) - 1) * alone.estimate**2)
    assert np.all(parts.known >= (skew(8) - 1) * parts.estimate**2)


def test_a_number_of_records_that_is_itself_measured_bounds_no_interval():
    """Of 20 releases of a constant column under add-or-remove, the interval of its one value held in 7."""
    known, unknown = (bars(("a",), public=public) for public in (True, False))
    everything = np.ones(5, dtype=bool)

    assert known.sum(everything).interval()[1] == pytest.approx(known.total)
    assert unknown.sum(everything).interval()[1] > unknown.total + 20
    assert unknown.at(np.array([[0]])).is_total_public is False
