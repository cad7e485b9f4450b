import numpy as np
import pytest

from sidelight.data.domain import Combination, Domain
from sidelight.errors import DataError, SettingError, WorkloadError
from sidelight.fit.private_pgm import MirrorDescent
from sidelight.measurement import Measurement
from sidelight.queries.query import Cell, Fourier, Linear, Marginal, Range
from sidelight.trees.sum_product import Calibrator

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4})
EXACT = MirrorDescent(max_steps=3000, tolerance=1e-10)
KINDS = [MirrorDescent(), MirrorDescent(accelerate=False, tolerance=1e-3)]


def joint(seed=0, total=1000.0):
    p = np.random.default_rng(seed).dirichlet(np.full(24, 0.7)).reshape(DOMAIN.shape)
    return total * p


def marginal_of(counts, attrs):
    left = counts.sum(axis=tuple(i for i, a in enumerate(DOMAIN.attrs) if a not in attrs))
    kept = DOMAIN.canonical(attrs)
    return np.transpose(left, [kept.index(a) for a in attrs])


def measure(counts, attrs, stddev=1.0, noise=0.0, seed=0):
    exact = marginal_of(counts, attrs).reshape(-1)
    return Measurement(
        Marginal(attrs), exact + noise * np.random.default_rng(seed).normal(size=exact.size), stddev
    )


def noisy(seed=0, noise=20.0):
    counts = joint(seed)
    return [
        measure(counts, attrs, stddev, noise, seed=i)
        for i, (attrs, stddev) in enumerate(
            [(("a",), 5.0), (("b", "a"), 20.0), (("b", "c"), 20.0), (("c", "a"), 40.0)]
        )
    ]


def test_exact_one_way_marginals_give_the_product_distribution():
    counts = joint()

    model = EXACT.estimate(DOMAIN, [measure(counts, (attr,)) for attr in DOMAIN.attrs], total=1000.0)

    a, b, c = (marginal_of(counts, (attr,)) / 1000.0 for attr in DOMAIN.attrs)
    np.testing.assert_allclose(
        model.count(("a", "b", "c")), 1000.0 * np.einsum("i,j,k->ijk", a, b, c), atol=1e-4
    )


def test_two_exact_marginals_that_agree_give_their_conditional_product():
    counts = joint()

    model = EXACT.estimate(DOMAIN, [measure(counts, ("a", "b")), measure(counts, ("c", "b"))], total=1000.0)

    ab, bc, b = (marginal_of(counts, attrs) for attrs in (("a", "b"), ("b", "c"), ("b",)))
    expected = ab[:, :, None] * bc[None] / b[None, :, None]
    np.testing.assert_allclose(model.count(("a", "b", "c")), expected, atol=1e-3)
    assert model.fit.objective == pytest.approx(0.0, abs=1e-6)


def test_two_measurements_of_one_marginal_meet_at_the_inverse_variance_mean():
    first = Measurement(Marginal(("b",)), np.array([60.0, 30.0, 10.0]), stddev=1.0)
    second = Measurement(Marginal(("b",)), np.array([40.0, 30.0, 30.0]), stddev=2.0)

    model = EXACT.estimate(DOMAIN, [first, second], total=100.0)

    np.testing.assert_allclose(model.count(("b",)), [56.0, 30.0, 14.0], atol=1e-5)
    assert model.fit.objective == pytest.approx(0.5 * (4.0**2 + 16.0**2 / 4 + 4.0**2 + 16.0**2 / 4), rel=1e-6)


def test_a_measurement_outside_the_simplex_is_projected_onto_it():
    model = EXACT.estimate(
        DOMAIN, [Measurement(Marginal(("b",)), np.array([70.0, 50.0, -30.0]), 1.0)], total=100.0
    )

    np.testing.assert_allclose(model.count(("b",)), [60.0, 40.0, 0.0], atol=1e-3)


@pytest.mark.parametrize("method", KINDS, ids=["accelerated", "plain"])
def test_the_objective_is_within_a_thousandth_of_a_long_run(method):
    measurements = noisy()
    best = EXACT.estimate(DOMAIN, measurements, total=1000.0).fit.objective

    fit = method.estimate(DOMAIN, measurements, total=1000.0).fit

    assert fit.converged
    assert best - 1e-9 <= fit.objective <= best * 1.001
    assert fit.steps < method.max_steps


def test_the_objective_is_that_of_the_model_returned():
    measurements = noisy()

    model = MirrorDescent().estimate(DOMAIN, measurements, total=1000.0)

    loss = sum(
        0.5 * m.precision * ((model.count(m.query.attrs).reshape(-1) - m.answer) ** 2).sum()
        for m in measurements
    )
    assert model.fit.objective == pytest.approx(loss, rel=1e-9)


def test_a_warm_start_needs_fewer_steps_and_keeps_what_is_not_measured():
    measurements = noisy()
    before = MirrorDescent().estimate(DOMAIN, measurements, total=1000.0)

    again = MirrorDescent(polish_steps=0).estimate(DOMAIN, measurements, total=1000.0, start=before)
    other = EXACT.estimate(DOMAIN, [], total=1000.0, start=before)

    cold = MirrorDescent(polish_steps=0).estimate(DOMAIN, measurements, total=1000.0)
    assert again.fit.steps < cold.fit.steps
    np.testing.assert_allclose(other.count(("a", "c")), before.count(("a", "c")))


def test_a_warm_start_may_have_another_structure():
    counts = joint()
    start = {("c", "b"): np.log(marginal_of(counts, ("c", "b")))}

    model = EXACT.estimate(DOMAIN, [measure(counts, ("a", "b"))], total=1000.0, start=start)

    np.testing.assert_allclose(model.count(("a", "b")), marginal_of(counts, ("a", "b")), atol=1e-3)
    ratio = model.count(("c", "b")) / marginal_of(counts, ("c", "b"))
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape), rtol=1e-6)


def test_attributes_measured_by_nobody_stay_uniform():
    model = MirrorDescent().estimate(DOMAIN, [measure(joint(), ("a",))])

    np.testing.assert_allclose(model.count(("c",)), np.full(4, 250.0))


def test_no_measurements_give_the_uniform_model():
    model = MirrorDescent().estimate(DOMAIN, [], total=24.0)

    np.testing.assert_allclose(model.count(("a", "b", "c")), np.ones(DOMAIN.shape))


def test_cells_and_sums_of_cells_are_fitted_too():
    counts = joint()
    queries = [
        Range((("c", 1, 2), ("a", 0, 0))),
        Cell(("b", "a"), (2, 1)),
        Linear.of(("c",), np.array([0.0, 0.25, 0.5, 1.0])),
        Fourier(("a",)),
        Marginal(("b",)),
    ]
    measurements = [Measurement(q, q.apply(marginal_of(counts, q.attrs)).astype(float), 1.0) for q in queries]

    model = EXACT.estimate(DOMAIN, measurements, total=1000.0)

    for m in measurements:
        np.testing.assert_allclose(m.query.apply(model.count(m.query.attrs)), m.answer, atol=1e-3)


def test_precision_may_differ_from_cell_to_cell():
    measured = Measurement(Marginal(("b",)), np.array([50.0, 50.0, 50.0]), 1.0)

    model = EXACT.estimate(DOMAIN, [measured], total=100.0, precisions=[np.array([1.0, 1.0, 2.0])])

    # The excess of 50 is shared out against precision: 20, 20 and 10.
    np.testing.assert_allclose(model.count(("b",)), [30.0, 30.0, 40.0], atol=1e-4)


def test_the_total_is_the_inverse_variance_mean_of_the_sums():
    measurements = [
        Measurement(Marginal(("a",)), np.array([40.0, 60.0]), 1.0),
        Measurement(Marginal(("c",)), np.array([30.0, 30.0, 30.0, 30.0]), 2.0),
    ]

    model = MirrorDescent().estimate(DOMAIN, measurements)

    assert model.total == pytest.approx((100 / 2 + 120 / 16) / (1 / 2 + 1 / 16))
    assert (
        MirrorDescent().estimate(DOMAIN, [Measurement(Marginal(("a",)), np.array([-9.0, 1.0]), 1.0)]).total
        == 1.0
    )


def test_what_is_impossible_stays_without_mass_while_fitting():
    combinations = (Combination(("a", "b"), ((0,), (0,))), Combination(("a", "b"), ((1,), (2,))))

    model = EXACT.estimate(Domain(DOMAIN.attrs, DOMAIN.shape, combinations), noisy(), total=1000.0)

    assert model.count(("a", "b"))[[0, 1], [0, 2]].tolist() == [0.0, 0.0]
    assert model.count(()) == pytest.approx(1000.0)


def test_measurements_that_contradict_each_other_are_averaged():
    measurements = [
        Measurement(Marginal(("a",)), np.array([1e6, -1e6]), 1e-3),
        Measurement(Marginal(("a",)), np.array([-1e6, 1e6]), 1e-3),
        Measurement(Marginal(("a", "b")), np.full(6, 1e9), 1.0),
    ]

    model = MirrorDescent().estimate(DOMAIN, measurements, total=10.0)

    np.testing.assert_allclose(model.count(("a",)), [5.0, 5.0], atol=1e-6)


def test_bad_input_is_refused():
    fit = MirrorDescent().estimate
    with pytest.raises(WorkloadError, match="unknown attribute 'z'"):
        fit(DOMAIN, [Measurement(Marginal(("z",)), np.zeros(2), 1.0)], total=1.0)
    with pytest.raises(DataError, match="finite answers"):
        fit(DOMAIN, [Measurement(Marginal(("a",)), np.array([1.0, np.nan]), 1.0)], total=1.0)
    with pytest.raises(DataError, match="2 answers; got 3"):
        fit(DOMAIN, [Measurement(Marginal(("a",)), np.zeros(3), 1.0)], total=1.0)
    with pytest.raises(SettingError, match="total must be given"):
        fit(DOMAIN, [Measurement(Cell(("a",), (0,)), np.array([3.0]), 1.0)])
    with pytest.raises(SettingError, match="precisions must be one for each"):
        fit(DOMAIN, noisy(), total=1.0, precisions=[1.0])


@pytest.mark.slow
def test_torch_fits_the_same_model_as_numpy():
    pytest.importorskip("torch", reason="torch is not installed: pip install 'sidelight[torch]'")
    measurements = [*noisy(), Measurement(Range((("c", 1, 2),)), np.array([300.0]), 5.0)]

    plain, torch = (
        MirrorDescent(arrays=name).estimate(DOMAIN, measurements, total=1000.0)
        for name in ("numpy", "torch:cpu")
    )

    np.testing.assert_allclose(
        torch.count(("a", "b", "c")), plain.count(("a", "b", "c")), rtol=1e-6, atol=1e-6
    )


def test_sets_that_share_a_carrier_only_in_part_can_be_fitted():
    """Titanic's attributes, with sets whose union carries only some of its axes."""
    sizes = {"s": 3, "p": 3, "x": 2, "a": 91, "b": 9, "h": 7, "f": 32, "e": 3, "c": 9}
    domain = Domain.of(sizes)
    measured = [
        "s",
        "p",
        "x",
        "a",
        "b",
        "h",
        "f",
        "e",
        "c",
        "pah",
        "paf",
        "xaf",
        "xe",
        "bhe",
        "xbc",
        "sph",
        "pa",
        "xbf",
        "ahf",
        "pxf",
        "sfe",
        "xbh",
        "spe",
        "ahe",
        "spx",
    ]
    prior = [
        "phf",
        "pec",
        "bfc",
        "sxh",
        "xfc",
        "bhc",
        "paf",
        "she",
        "spc",
        "xbc",
        "bhe",
        "sfe",
        "hfe",
        "sxc",
        "bfe",
        "ah",
        "shc",
    ]
    flat = [
        Measurement(Marginal(tuple(s)), np.full(domain.size(s), 1000 / domain.size(s)), 1.0) for s in measured
    ]

    model = MirrorDescent(max_steps=3, polish_steps=0).estimate(
        domain,
        flat,
        total=1000.0,
        start={tuple(s): np.zeros(domain.project(s).shape) for s in prior},
    )

    assert np.allclose(model.count(("p", "x")), 1000 / 6)


@pytest.mark.parametrize("at", [3, 5, 8])
def test_a_step_that_went_beyond_all_numbers_is_taken_back(at, monkeypatch):
    measurements = noisy()
    expected = MirrorDescent().estimate(DOMAIN, measurements, total=1000.0).fit
    marginals, calls = Calibrator.marginals, []

    def overflowing(self):
        calls.append(1)
        found = marginals(self)
        return [np.full_like(table, np.inf) for table in found] if len(calls) == at else found

    monkeypatch.setattr(Calibrator, "marginals", overflowing)
    with np.errstate(invalid="ignore"):
        model = MirrorDescent().estimate(DOMAIN, measurements, total=1000.0)

    assert model.fit.objective == pytest.approx(expected.objective, rel=1e-3)
