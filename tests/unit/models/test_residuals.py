"""Reconstruction against dense least squares, with its variances (spec 7.5)."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import ReleaseError, SettingError
from sidelight.fit.residuals import ResidualReconstruction
from sidelight.measurement import Measurement
from sidelight.models.reconstruction import Reconstruction
from sidelight.models.residuals import Residuals
from sidelight.queries.query import Marginal, Prefix

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4})
SETS = [("a", "b"), ("c", "b"), ("b",), ("a", "c"), ("b", "a")]
STDDEVS = [3.0, 5.0, 2.0, 7.0, 4.0]


def matrix(attrs):
    """The marginal as a matrix over all cells of the domain, its lines in the order of ``attrs``."""
    cells = np.eye(DOMAIN.size()).reshape(*DOMAIN.shape, DOMAIN.size())
    aside = tuple(axis for axis, attr in enumerate(DOMAIN.attrs) if attr not in attrs)
    kept = [attr for attr in DOMAIN.attrs if attr in attrs]
    summed = cells.sum(axis=aside)
    turned = summed.transpose([*(kept.index(attr) for attr in attrs), summed.ndim - 1])
    return turned.reshape(-1, DOMAIN.size())


def measured(seed=0, *, scale=1.0):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 8, DOMAIN.size())
    return [
        Measurement(
            Marginal(attrs), matrix(attrs) @ table + scale * rng.normal(0, stddev, DOMAIN.size(attrs)), stddev
        )
        for attrs, stddev in zip(SETS, STDDEVS, strict=True)
    ]


def dense(made):
    """The precision-weighted least-squares solution of least norm, and its covariance."""
    lines = np.concatenate([matrix(one.query.attrs) / one.stddev for one in made])
    answers = np.concatenate([one.answer / one.stddev for one in made])
    inverse = np.linalg.pinv(lines)
    return inverse @ answers, inverse @ inverse.T


@pytest.mark.parametrize("attrs", [("a", "b"), ("b", "a"), ("c", "b"), ("c",), ("a",), (), ("a", "c")])
@pytest.mark.parametrize("seed", range(3))
def test_marginals_and_variances_are_those_of_dense_least_squares(attrs, seed):
    made = measured(seed)
    solution, covariance = dense(made)

    known = Residuals.of(DOMAIN, made)

    lines = matrix(attrs)
    assert np.allclose(known.count(attrs).reshape(-1), lines @ solution)
    assert np.allclose(known.variance(attrs), np.diag(lines @ covariance @ lines.T))
    weights = np.random.default_rng(seed).normal(size=DOMAIN.project(attrs).shape)
    exact = weights.reshape(-1) @ lines @ covariance @ lines.T @ weights.reshape(-1)
    assert known.variance_of_sum(attrs, weights) == pytest.approx(exact)


def test_without_noise_every_marginal_is_exact():
    made = measured(scale=0.0)

    known = Residuals.of(DOMAIN, made)

    table = np.random.default_rng(0).integers(0, 8, DOMAIN.size())
    for attrs in SETS:
        assert np.allclose(known.count(attrs).reshape(-1), matrix(attrs) @ table)


def test_a_total_that_is_given_is_exact_and_has_no_variance():
    known = Residuals.of(DOMAIN, measured(), total=100.0)

    assert known.count(("a", "b")).sum() == pytest.approx(100)
    assert known.variance(()) == 0
    assert known.variance_of_sum(("a", "c"), np.ones((2, 4))) == pytest.approx(0)


def test_what_is_known_is_told():
    known = Residuals.of(DOMAIN, measured()[:2])

    assert known.holds(("b", "a"))
    assert known.holds(("c",))
    assert not known.holds(("a", "c"))
    assert {frozenset(attrs) for attrs in known.maximal} == {frozenset("ab"), frozenset("bc")}


def test_measurements_may_come_one_after_another():
    made = measured()

    together, apart = Residuals.of(DOMAIN, made), Residuals.of(DOMAIN, made[:2]).adding(made[2:])

    assert np.allclose(together.count(("a", "c")), apart.count(("a", "c")))
    assert together.variance(("a", "c")) == pytest.approx(apart.variance(("a", "c")))


def test_other_queries_are_refused():
    with pytest.raises(SettingError, match="whole marginals"):
        Residuals.of(DOMAIN, [Measurement(Prefix("c", 1), np.array([3.0]), 1.0)])


def test_attributes_of_one_value_have_no_residual():
    domain = Domain.of({"a": 2, "one": 1})
    made = Measurement(Marginal(("one", "a")), np.array([3.0, 5.0]), 2.0)

    known = Residuals.of(domain, [made])

    assert known.count(("a", "one")).tolist() == [[3.0], [5.0]]
    assert known.variance(("one", "a")) == pytest.approx(4)
    assert known.variance_of_sum(("one", "a"), [[1.0, 0.0]]) == pytest.approx(4)


def test_empty_cells_of_large_marginals_leave_single_attributes_as_they_are():
    domain, rng = Domain.of(dict.fromkeys("abcdef", 6)), np.random.default_rng(0)
    codes = np.minimum(rng.geometric(0.4, (3000, 1)) - 1 + rng.integers(0, 2, (3000, 6)), 5)
    table = Table.of_codes(domain, codes)
    made = []
    for attrs in itertools.combinations("abcdef", 3):
        answer = table.count(attrs).reshape(-1) + rng.normal(0, 8.0, 216)
        made.append(Measurement(Marginal(attrs), answer, 8.0))

    def errors(**settings):
        model = ResidualReconstruction(**settings).estimate(domain, made, total=3000.0)
        return [
            np.mean(
                [
                    np.abs(model.count(attrs) - table.count(attrs)).sum() / 3000
                    for attrs in itertools.combinations("abcdef", degree)
                ]
            )
            for degree in (1, 2, 3)
        ]

    for ours, unbiased in zip(errors(), errors(constraint="least-squares"), strict=True):
        assert ours < 0.95 * unbiased


@pytest.mark.parametrize("seed", range(3))
def test_the_non_negative_fit_is_that_of_a_general_solver(seed):
    made = measured(seed, scale=3.0)
    estimator = ResidualReconstruction(max_steps=2000, tolerance=1e-7)
    known = Residuals.of(DOMAIN, made, total=80.0)
    largest = [attrs for attrs in known.maximal if attrs]
    below = [attrs for attrs in known.parts if attrs]

    def objective(table):
        ours = Residuals.of(DOMAIN, [Measurement(Marginal(DOMAIN.attrs), table, 1.0)])
        return sum(
            float(((ours.parts[attrs].values - known.parts[attrs].values) ** 2).sum())
            * sum(set(attrs) <= set(above) for above in largest)
            / known.parts[attrs].variance
            for attrs in below
        )

    model = estimator.estimate(DOMAIN, made, total=80.0)

    held = np.concatenate([matrix(attrs) for attrs in largest])
    solved = minimize(
        objective, np.full(DOMAIN.size(), 80.0 / DOMAIN.size()), method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda table: held @ table},
            {"type": "eq", "fun": lambda table: table.sum() - 80.0},
        ],
        options={"maxiter": 500, "ftol": 1e-10},
    )  # fmt: skip
    assert min(known.count(attrs).min() for attrs in largest) < -1
    for attrs in largest:
        found = model.known.count(attrs)
        assert found.min() > -1e-3
        assert np.allclose(found.reshape(-1), matrix(attrs) @ solved.x, atol=0.05)


def test_marginals_of_a_non_negative_fit_agree_with_each_other():
    model = ResidualReconstruction().estimate(DOMAIN, measured(), total=80.0)

    known = model.known
    assert np.allclose(known.count(("a", "b")).sum(axis=0), known.count(("b", "c")).sum(axis=1))
    for attrs in SETS:
        assert model.count(attrs).min() >= 0
        assert model.count(attrs).sum() == pytest.approx(80)


def test_a_marginal_that_is_not_known_has_the_largest_entropy():
    """a and c given b are independent where only ab and bc are known."""
    table = np.random.default_rng(3).integers(1, 9, DOMAIN.shape).astype(float)
    made = [
        Measurement(Marginal(("a", "b")), table.sum(axis=2).reshape(-1), 1.0),
        Measurement(Marginal(("b", "c")), table.sum(axis=0).reshape(-1), 1.0),
    ]

    model = ResidualReconstruction().estimate(DOMAIN, made)

    ab, bc, b = table.sum(axis=2), table.sum(axis=0), table.sum(axis=(0, 2))
    expected = ab[:, :, None] * bc[None, :, :] / b[None, :, None]
    assert np.allclose(model.count(("a", "b", "c")), expected, rtol=1e-4)


@pytest.mark.slow
def test_samples_follow_the_known_marginals_of_a_wide_table():
    """Far more cells than particles; a chain of pairs, and one that closes a cycle."""
    domain = Domain.of({f"x{place}": 4 for place in range(12)})
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (30_000, 12))
    for place in range(1, 12):
        same = rng.random(30_000) < 0.5
        codes[same, place] = codes[same, place - 1]
    pairs = [(f"x{i}", f"x{j}") for i, j in itertools.combinations(range(12), 2)]
    made = []
    for a, b in pairs:
        counts = np.zeros((4, 4))
        np.add.at(counts, (codes[:, int(a[1:])], codes[:, int(b[1:])]), 1)
        made.append(Measurement(Marginal((a, b)), counts.reshape(-1), 5.0))

    model = ResidualReconstruction().estimate(domain, made, total=30_000.0)
    drawn = model.sample(30_000, seed=1)

    for pair in pairs:
        assert np.abs(drawn.count(pair) - model.count(pair)).sum() < 0.01 * 30_000


@pytest.mark.parametrize("constraint", ["non-negative", "least-squares"])
def test_a_saved_model_comes_back(constraint):
    model = ResidualReconstruction(constraint=constraint).estimate(DOMAIN, measured(), total=80.0)

    again = Reconstruction.from_state(DOMAIN, model.state())

    for attrs in (*SETS, ("a", "b", "c")):
        assert np.allclose(again.count(attrs), model.count(attrs))
    assert again.known.variance(("a", "b")) == pytest.approx(model.known.variance(("a", "b")))


@pytest.mark.parametrize(
    "damage",
    [
        lambda meta, arrays: arrays["values"].__setitem__(0, np.nan),
        lambda meta, arrays: meta["residuals"][1].__setitem__(1, -1.0),
        lambda meta, arrays: meta["residuals"][1].__setitem__(1, "x"),
        lambda meta, arrays: meta["residuals"].pop(),
        lambda meta, arrays: meta["residuals"].append([["a", "b", "c"], 1.0]),
    ],
)
def test_an_edited_model_is_refused(damage):
    state = ResidualReconstruction().estimate(DOMAIN, measured(), total=80.0).state()
    damage(state.meta, state.arrays)

    with pytest.raises(ReleaseError, match="edited"):
        Reconstruction.from_state(DOMAIN, state)


def test_counts_that_contradict_each_other_need_few_sweeps(monkeypatch):
    """Cutting off counts below 0 leaves pairs that disagree about an attribute: no table has both."""
    made = [
        Measurement(Marginal(("a", "b")), np.array([40.0, 30, -20, 20, 10, 20]), 1.0),
        Measurement(Marginal(("b", "c")), np.array([30.0, 20, 10, 0, 20, 10, 5, 5, -10, 5, 3, 2]), 1.0),
    ]
    model = ResidualReconstruction(max_steps=0).estimate(DOMAIN, made, total=100.0)
    patient = model.of_largest_entropy(("a", "b", "c"))
    monkeypatch.setattr("sidelight.models.reconstruction._SWEEPS", 2)

    assert not np.allclose(model.count(("a", "b")).sum(axis=0), model.count(("b", "c")).sum(axis=1))
    assert model.of_largest_entropy(("a", "b", "c")) == pytest.approx(patient, abs=1e-9)


def test_what_a_model_gives_out_again_cannot_be_changed():
    model = ResidualReconstruction(max_steps=0).estimate(DOMAIN, measured())

    with pytest.raises(ValueError, match="read-only"):
        model.count(("a",))[0] = 7.0
    assert model.count(("a",)) is model.count(("a",))


def test_where_n_is_private_what_is_kept_is_counted_anew_once_more_is_known_of_n():
    """A resumed run has nothing kept: both have to say the same."""
    model = ResidualReconstruction(max_steps=0).estimate(DOMAIN, measured())
    model.count(("b", "c"))
    more = [Measurement(Marginal(("a",)), np.array([700.0, 100.0]), 1.0)]

    later, fresh = model.with_measured(more), replace(model, kept={}).with_measured(more)

    assert later.total != model.total
    assert np.array_equal(later.count(("b", "c")), fresh.count(("b", "c")))


def test_what_is_kept_is_counted_anew_even_where_the_noisy_n_is_below_one_before_and_after():
    made = [Measurement(Marginal(("b",)), np.array([9.0, -20.0, -2.0]), 1.0)]
    model = ResidualReconstruction(max_steps=0).estimate(DOMAIN, made)
    model.count(("b",))
    more = [Measurement(Marginal(("a",)), np.array([-1.0, -1.0]), 1.0)]

    later, fresh = model.with_measured(more), replace(model, kept={}).with_measured(more)

    assert later.total == model.total == 1.0
    assert np.array_equal(later.count(("b",)), fresh.count(("b",)))
