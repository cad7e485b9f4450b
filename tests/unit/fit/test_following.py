"""A tree after noisy answers: the optimum of relative entropy and pulls, found one marginal at a time."""

import numpy as np
import pytest
from scipy.optimize import minimize

from sidelight.data.domain import Domain
from sidelight.fit import following as tree_following
from sidelight.fit.following import Pulled, following
from sidelight.models.graphical import GraphicalModel

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
N = 200.0
PRIOR = {
    ("a", "b"): np.array([[0.0, -1.0, -0.5], [-0.7, 0.2, -2.0]]),
    ("b", "c"): np.array([[0.0, -0.3], [-1.0, 0.4], [0.1, 0.0]]),
}
ANSWERS = {
    ("a",): Pulled(np.array([150.0, 61.0]), 0.3),
    ("a", "b"): Pulled(np.array([90.0, 20, 31, 2, 44, 8]), 0.05),
    ("a", "c"): Pulled(np.array([60.0, 70, 35, 40]), 0.5),
}


@pytest.fixture
def exact(monkeypatch):
    monkeypatch.setattr(tree_following, "_SWEEPS", 300)
    monkeypatch.setattr(tree_following, "_CLOSE", 1e-9)


def optimum():
    """All cells at once, by another method."""
    q = GraphicalModel(DOMAIN, 1.0, PRIOR).count(DOMAIN.attrs).reshape(-1)

    def objective(logs):
        p = np.exp(logs - logs.max())
        p /= p.sum()
        counts = N * p.reshape(DOMAIN.shape)
        value = N * float(p @ np.log(p / q))
        for attrs, one in ANSWERS.items():
            away = tuple(axis for axis, name in enumerate(DOMAIN.attrs) if name not in attrs)
            value += 0.5 * one.pull * float(((counts.sum(axis=away).reshape(-1) - one.answer) ** 2).sum())
        return value

    found = minimize(objective, np.log(q), method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}).x
    p = np.exp(found - found.max())
    return N * (p / p.sum()).reshape(DOMAIN.shape)


def test_it_is_the_optimum(exact):
    start = GraphicalModel(DOMAIN, N, PRIOR)

    model = following(start, PRIOR, ANSWERS, total=N)

    assert model.count(DOMAIN.attrs) == pytest.approx(optimum(), abs=1e-3)


def test_where_it_starts_makes_no_difference(exact):
    some = {attrs: ANSWERS[attrs] for attrs in (("a",), ("a", "c"))}
    half_way = following(GraphicalModel(DOMAIN, N, PRIOR), PRIOR, some, total=N)

    model = following(half_way, PRIOR, ANSWERS, total=N)

    assert model.count(DOMAIN.attrs) == pytest.approx(optimum(), abs=1e-3)


def test_without_pull_the_prior_stays_and_with_all_of_it_the_answer_is_met(exact):
    start = GraphicalModel(DOMAIN, N, PRIOR)
    answer = np.array([70.0, 30, 20, 80])

    def after(pull):
        return following(start, PRIOR, {("a", "c"): Pulled(answer, pull)}, total=N)

    assert after(1e-12).count(DOMAIN.attrs) == pytest.approx(start.count(DOMAIN.attrs), rel=1e-6)
    assert after(1e6).count(("a", "c")).reshape(-1) == pytest.approx(answer, rel=1e-4)


def test_as_it_is_set_it_comes_close():
    model = following(GraphicalModel(DOMAIN, N, PRIOR), PRIOR, ANSWERS, total=N)

    assert np.abs(model.count(DOMAIN.attrs) - optimum()).sum() < 0.01 * N
