"""Releases to report on: a small one through the front door, and wide ones made by hand."""

from fractions import Fraction

import numpy as np
import pytest

from cards import card_of
from sidelight.data.columns.column import CategoricalColumn, IntegerColumn
from sidelight.data.domain import Domain
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.measurement import Measurement
from sidelight.models.components import Components
from sidelight.privacy.budget import Rho
from sidelight.privacy.event import Exponential, Gaussian
from sidelight.queries.query import Marginal
from sidelight.releases.release import Release
from sidelight.releases.run import release
from sidelight.testing import SeededNoise

HOSTILE = '<script>alert("x")</script>'


@pytest.fixture(scope="session")
def people() -> tuple[Schema, Table]:
    """900 records of four attributes, with labels that try to be markup."""
    schema = Schema(
        (
            CategoricalColumn("sex", ("female", "male")),
            CategoricalColumn("<b>色</b>", (HOSTILE, "красный", "أخضر", "&amp;"), missing=True),
            IntegerColumn("age", low=0, high=99),
            IntegerColumn("children", low=0, high=5),
        )
    )
    rng = np.random.default_rng(4)
    sex = rng.integers(0, 2, 900)
    colour = np.minimum(sex + rng.integers(0, 4, 900), 4)
    age = np.clip(rng.normal(40 + 8 * sex, 12, 900), 0, 99).astype(int)
    codes = np.stack([sex, colour, age, rng.integers(0, 6, 900)], axis=1)
    return schema, Table.of_codes(schema.domain, codes)


@pytest.fixture(scope="session")
def released(people) -> Release:
    schema, table = people
    return release(
        table, schema=schema, epsilon=1.0, delta=1e-6, workload="2-way", mechanism="mwem", rounds=4,
        noise=SeededNoise(5), progress=False, bins="as declared",
    )  # fmt: skip


def wide_release(attributes: int, *, values: int = 12, measured: int = 60, letters: int = 0) -> Release:
    """A release of many attributes, with pairs measured around a ring."""
    domain = Domain.of({f"attribute {index:03}{'長' * letters}": values for index in range(attributes)})
    cost = Rho(Fraction(1, 5000))
    rng = np.random.default_rng(attributes)
    measurements, events = [], []
    for index in range(measured):
        pair = (
            domain.attrs[index % attributes],
            domain.attrs[(index + 1 + index // attributes) % attributes],
        )
        paid = Gaussian.at(cost, what=Marginal(pair).describe(), l2_squared=Fraction(2))
        events += [Exponential.at(cost, what="500 candidates", sensitivity=Fraction(2), candidates=500), paid]
        answer = 10_000 / values**2 + rng.normal(0, paid.stddev, values**2)
        measurements.append(Measurement(Marginal(pair), answer, paid.stddev))
    labels = tuple(f"label {value}{'<' * letters}" for value in range(values))
    schema = Schema(tuple(CategoricalColumn(attr, labels) for attr in domain.attrs))
    model = Components.uniform(domain, total=10_000.0)
    return Release(model, tuple(measurements), card_of(model, events), schema)


@pytest.fixture(scope="session")
def wide():
    return wide_release
