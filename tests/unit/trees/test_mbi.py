"""Agreement with ``mbi``, the engine of Private-PGM's authors, on the same measurements.

``mbi`` runs in a process of its own, since it brings JAX along: SIDELIGHT_MBI_PYTHON names an interpreter
that has it (``python -m venv mbi && mbi/bin/pip install mbi``); without one, this interpreter is tried.
"""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.fit.private_pgm import MirrorDescent
from sidelight.measurement import Measurement
from sidelight.queries.query import Marginal

pytestmark = pytest.mark.slow

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 3})
TOTAL = 1000.0
STRUCTURES = {
    "a chain": [("a",), ("a", "b"), ("b", "c"), ("c", "d")],
    "a cycle": [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")],
    "a repeat, and a set inside another": [("a", "b", "c"), ("b", "a"), ("d",), ("a", "b", "c")],
}

THEIR_SIDE = """
import json, sys
import jax
jax.config.update("jax_enable_x64", True)
import mbi, numpy as np

asked = json.load(sys.stdin)
domain = mbi.Domain(tuple(asked["attrs"]), tuple(asked["shape"]))
found = []
for measured in asked["problems"]:
    given = [
        mbi.LinearMeasurement(np.array(m["answer"]), tuple(m["attrs"]), stddev=m["stddev"]) for m in measured
    ]
    loss = mbi.marginal_loss.from_linear_measurements(given, domain)
    model = mbi.estimation.InteriorGradient().estimate(domain, loss, known_total=asked["total"], iters=20_000)
    tables = [model.project(m.clique).transpose(m.clique).datavector() for m in given]
    cliques = mbi.CliqueVector(domain, list(loss.cliques), {c: model.project(c) for c in loss.cliques})
    found.append({"marginals": [np.asarray(t).tolist() for t in tables], "objective": float(loss(cliques))})
json.dump(found, sys.stdout)
"""


def problem(structure, seed):
    """Noisy marginals of a random table; some noisy counts are below 0."""
    rng = np.random.default_rng(seed)
    counts = TOTAL * rng.dirichlet(np.full(DOMAIN.size(), 0.7)).reshape(DOMAIN.shape)
    measured = []
    for attrs in structure:
        kept = DOMAIN.canonical(attrs)
        exact = counts.sum(axis=tuple(i for i, a in enumerate(DOMAIN.attrs) if a not in attrs))
        exact = np.transpose(exact, [kept.index(a) for a in attrs]).reshape(-1)
        stddev = float(rng.uniform(3.0, 15.0))
        measured.append(Measurement(Marginal(attrs), exact + rng.normal(0, stddev, exact.size), stddev))
    return measured


@pytest.fixture(scope="module")
def theirs():
    """What mbi finds for every problem, in one process: compiling takes longer than fitting."""
    python = os.environ.get("SIDELIGHT_MBI_PYTHON")
    if python is None and importlib.util.find_spec("mbi") is None:
        pytest.skip("mbi is not installed: let SIDELIGHT_MBI_PYTHON name an interpreter that has it")
    asked = {
        "attrs": DOMAIN.attrs,
        "shape": DOMAIN.shape,
        "total": TOTAL,
        "problems": [
            [{"attrs": m.query.attrs, "answer": m.answer.tolist(), "stddev": m.stddev} for m in measured]
            for measured in problems()
        ],
    }
    done = subprocess.run(
        [python or sys.executable, "-W", "ignore", "-c", THEIR_SIDE],
        input=json.dumps(asked), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(STRUCTURES, json.loads(done.stdout), strict=True))


def problems():
    return [problem(structure, seed) for seed, structure in enumerate(STRUCTURES.values())]


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_fit_is_that_of_mbi(name, theirs):
    measured = dict(zip(STRUCTURES, problems(), strict=True))[name]

    ours = MirrorDescent(max_steps=20_000, tolerance=1e-14).estimate(DOMAIN, measured, total=TOTAL)

    for m, expected in zip(measured, theirs[name]["marginals"], strict=True):
        shares = ours.count(m.query.attrs).reshape(-1) / TOTAL
        np.testing.assert_allclose(shares, np.array(expected) / TOTAL, atol=1e-6)
    assert ours.fit.objective == pytest.approx(theirs[name]["objective"], rel=1e-6)
