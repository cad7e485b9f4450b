"""A table that a small tree cannot hold: every pair of attributes goes together."""

from fractions import Fraction

import numpy as np

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

REPLACE = Unit("replace")
DOMAIN = Domain.of(dict.fromkeys("abcde", 3))
WORKLOAD = Workload.marginals(DOMAIN, degree=2)
CELLS = 36
"""Room for single attributes and two or three pairs, of ten."""


def table_of(records, seed):
    """Every pair goes together, since each attribute tells of one thing that no column has."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 3, records)
    columns = [np.where(rng.random(records) < 0.6, hidden, rng.integers(0, 3, records)) for _ in range(5)]
    return Table.of_codes(DOMAIN, np.stack(columns, axis=1))


PRIVATE = table_of(2000, seed=1)


def ledger_of(unit):
    return MemoryLedger(Promise(Budget(epsilon=1e7, delta=1e-9), unit, "toy"))


def curator_of(rho, *, seed=0, unit=REPLACE, kind=Curator, **settings):
    settings = {"ledger": ledger_of(unit), "noise": SeededNoise(seed)} | settings
    return kind(PRIVATE, allotment=Rho(Fraction(rho)), unit=unit, **settings)


def error(model):
    """The mean workload error of a model or a release."""
    gaps = [model.count(q.attrs) - PRIVATE.count(q.attrs) for q in WORKLOAD]
    return np.mean([np.abs(gap).sum() for gap in gaps]) / PRIVATE.records
