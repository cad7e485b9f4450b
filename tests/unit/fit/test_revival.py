"""Cells that were driven to 0 come back when measurements ask for them, and a fit waits for them."""

import numpy as np
import pytest

from sidelight.data.domain import Combination, Domain
from sidelight.fit import private_pgm as mirror_descent
from sidelight.fit.private_pgm import MirrorDescent
from sidelight.measurement import Measurement
from sidelight.queries.query import Marginal

DOMAIN = Domain.of({"a": 4, "b": 5})
TOTAL = 1000.0
LONG = MirrorDescent(max_steps=10_000, tolerance=1e-12)


def first_measurements(seed):
    """The last value of a has a noisy count far below 0."""
    rng = np.random.default_rng(seed)
    return [
        Measurement(Marginal(("a",)), np.array([600.0, 500.0, 200.0, -300.0]), 10.0),
        Measurement(Marginal(("a", "b")), rng.normal(50, 60, 20), 60.0),
    ]


def later_measurements(seed):
    """And is found to be there after all."""
    rng = np.random.default_rng(100 + seed)
    return [
        *first_measurements(seed),
        Measurement(Marginal(("b",)), rng.normal(200, 5, 5), 5.0),
        Measurement(Marginal(("a",)), np.array([400.0, 350.0, 200.0, 50.0]), 3.0),
    ]


def fitted(measurements, *, method=None, start=None, **settings):
    method = MirrorDescent() if method is None else method
    return method.estimate(DOMAIN, measurements, total=TOTAL, start=start, **settings)


def excess(seed, start):
    best = fitted(later_measurements(seed), method=LONG).fit.objective
    fit = fitted(later_measurements(seed), start=start).fit
    assert fit.converged
    return fit.objective / best - 1


@pytest.mark.parametrize("seed", range(4))
def test_a_warm_start_ends_within_a_thousandth_of_a_long_run_though_it_began_with_empty_cells(seed):
    start = fitted(first_measurements(seed))
    assert start.count(("a",))[3] < 1e-6

    assert excess(seed, start) <= 0.001


@pytest.mark.parametrize("seed", range(4))
def test_a_start_from_nothing_ends_within_a_thousandth_of_a_long_run_though_measurements_disagree(seed):
    assert excess(seed, None) <= 0.001


def test_without_all_this_the_same_warm_start_would_stop_too_soon(monkeypatch):
    monkeypatch.setattr(mirror_descent, "_MOST_REVIVALS", 0)
    monkeypatch.setattr(mirror_descent, "sparing", lambda squares, slope, shares: slope)
    start = fitted(first_measurements(0))

    assert excess(0, start) > 0.01


def test_cells_that_belong_at_zero_stay_there_and_sink_little_further(monkeypatch):
    spared = fitted(first_measurements(0))
    monkeypatch.setattr(mirror_descent, "sparing", lambda squares, slope, shares: slope)
    pushed = fitted(first_measurements(0))

    assert max(model.count(("a",))[3] for model in (spared, pushed)) < 1e-6
    assert spared.fit.objective == pytest.approx(pushed.fit.objective, rel=1e-3)
    least = [min(table.min() for table in model.potentials.values()) for model in (spared, pushed)]
    assert least[0] > -100 > -500 > least[1]


def test_what_is_impossible_is_never_brought_back():
    domain = Domain(DOMAIN.attrs, DOMAIN.shape, (Combination(("a", "b"), ((3,), tuple(range(5)))),))

    model = MirrorDescent().estimate(domain, later_measurements(0), total=TOTAL)

    assert model.count(("a",))[3] == 0.0
    assert model.fit.converged


@pytest.mark.slow
def test_torch_brings_the_same_cells_back():
    pytest.importorskip("torch", reason="torch is not installed: pip install 'sidelight[torch]'")
    start = fitted(first_measurements(0))

    plain, torch = (
        fitted(later_measurements(0), method=MirrorDescent(arrays=name), start=start)
        for name in ("numpy", "torch:cpu")
    )

    np.testing.assert_allclose(torch.count(("a", "b")), plain.count(("a", "b")), rtol=1e-5, atol=1e-5)
