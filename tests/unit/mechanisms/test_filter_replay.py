"""Which marginals fit the model follows from what a release tells: anyone can work it out again, exactly."""

import numpy as np
import pytest

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.candidates import tractable
from sidelight.mechanisms.jam import JAM
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.event import Exponential
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

DOMAIN = Domain.of({"a": 4, "b": 5, "c": 6, "d": 3, "e": 7})
WORKLOAD = Workload.marginals(DOMAIN, degree=3)
LIMIT = 0.003
"""In MB: about 400 cells, of 2,520."""


def table(records, seed):
    rng = np.random.default_rng(seed)
    return Table.of_codes(DOMAIN, np.stack([rng.integers(0, k, records) for k in DOMAIN.shape], axis=1))


def released(mechanism, relation, public=None):
    unit = Unit(relation)
    ledger = MemoryLedger(Promise(Budget(epsilon=1e6, delta=1e-9), unit, "toy"))
    curator = Curator(table(500, 1), allotment=Rho("1/3"), unit=unit, ledger=ledger, noise=SeededNoise(3))
    return mechanism.run(curator, WORKLOAD, public=public), curator.allotment.value


def offered(release):
    return [event.candidates for event in release.events if isinstance(event, Exponential)]


@pytest.mark.parametrize("relation", ["replace", "add-or-remove"])
def test_jams_filter_can_be_replayed(relation):
    release, rho = released(JAM(rounds=8, max_model_mb=LIMIT), relation, public=table(200, 2))
    rounds = release.rounds
    closure = list(WORKLOAD.closure(DOMAIN))

    events = iter(release.events)
    spent = next(events).cost.value if relation == "add-or-remove" else 0
    replayed = []
    for t, chosen in enumerate(rounds):
        limit = LIMIT * (float(spent / rho) if t else 1 / len(rounds))
        before = [earlier.marginal for earlier in rounds[:t]]
        allowed = tractable(DOMAIN, before, closure, limit_mb=limit)
        assert chosen.marginal in allowed
        replayed.append(2 * len(allowed))
        spent += next(events).cost.value
        if chosen.source == "private":
            spent += next(events).cost.value

    assert offered(release) == replayed
    assert len(set(replayed)) > 2  # the limit did grow with the budget


@pytest.mark.parametrize("relation", ["replace", "add-or-remove"])
def test_aims_filter_can_be_replayed(relation):
    release, rho = released(AIM(rounds_per_attribute=3, max_model_mb=LIMIT), relation)
    closure = list(WORKLOAD.closure(DOMAIN))
    measured = [m.query.attrs for m in release.measurements]

    one_ways = len(DOMAIN)
    spent = sum(event.cost.value for event in release.events[:one_ways])
    replayed = []
    for number, start in enumerate(range(one_ways, len(release.events), 2)):
        select, measure = release.events[start : start + 2]
        spent += select.cost.value + measure.cost.value
        before = measured[: one_ways + number]
        allowed = tractable(DOMAIN, before, closure, limit_mb=LIMIT * float(spent / rho))
        assert measured[one_ways + number] in allowed
        replayed.append(len(allowed))

    assert spent == rho
    assert offered(release) == replayed
    assert len(set(replayed)) > 1
