"""Measured quality under attack: the right noise withstands it, half the sensitivity does not."""

import numpy as np
import pytest

from sidelight.audit import attack
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mean_errors import MeanErrors, Subgroup, Tables
from sidelight.models.histogram import Histogram
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

pytestmark = pytest.mark.statistical

DOMAIN = Domain.of({"a": 2, "b": 2, "c": 2})
RECORDS = 12
SUBGROUP = MeanErrors((), ()).also({"a = 0": Tables((("a", "b"), ("a", "c")), Subgroup("a", 0))}, DOMAIN, Rho)
"""The mean of a criterion about everybody with a = 0."""


def worst_case(unit, *, keeps=0):
    """Everybody alike and a model that is right; one person's records go elsewhere, or away.

    Records that keep their first attribute stay in its subgroup, whose mean then moves by all that it can.
    """
    codes = np.zeros((RECORDS, 3), dtype=int)
    other = codes.copy()
    other[: unit.records, keeps:] = 1
    if unit.relation == "add-or-remove":
        other = codes[unit.records :]
    return Table.of_codes(DOMAIN, codes), Table.of_codes(DOMAIN, other)


def model():
    counts = np.zeros(DOMAIN.shape)
    counts[0, 0, 0] = RECORDS
    return Histogram.of_counts(DOMAIN, counts, total=float(RECORDS))


@pytest.mark.parametrize(
    "unit", [Unit("replace"), Unit("add-or-remove", records=3)], ids=["replace", "add or remove 3"]
)
@pytest.mark.parametrize(
    ("budget", "supports"),
    [
        # All means together; and one alone, since a vector of Laplace noise seldom shows all that it may.
        (Budget(epsilon=1.5, delta=0.05), Workload.marginals(DOMAIN, degree=2).attribute_sets),
        (Budget(epsilon=1.0, delta=0.0), [("a",)]),
        (Budget(epsilon=1.5, delta=0.05), None),
    ],
    ids=["zcdp", "pure", "subgroup"],
)
def test_the_means_withstand_the_attack_and_half_the_sensitivity_does_not(budget, supports, unit, halved):
    tables = worst_case(unit, keeps=0 if supports else 1)

    allotment = budget.pure() if budget.is_pure else budget.rho()

    def audited(who):
        asked = MeanErrors.of(supports, DOMAIN, type(allotment)) if supports else SUBGROUP
        first, second = (np.array(exact_means(asked, table)) for table in tables)

        def likelihood_ratio(table, seed):
            curator = Curator(
                table, allotment=allotment, set_aside=allotment, unit=who,
                ledger=MemoryLedger(Promise(budget, who, "audit")), noise=SeededNoise(seed),
            )  # fmt: skip
            found = curator.mean_errors(asked, model())
            noisy, stddev = np.array(found.means), np.array(found.stddevs)
            if budget.is_pure:
                return float(((np.abs(noisy - first) - np.abs(noisy - second)) / stddev).sum())
            return float((((noisy - first) ** 2 - (noisy - second) ** 2) / stddev**2).sum())

        return attack(likelihood_ratio, tables, delta=budget.delta, runs=2000)

    honest, broken = audited(unit), audited(halved(unit.relation, unit.records))

    assert not honest.contradicts(allotment)
    # The attack has teeth: it sees a good part of what a correct run gives away.
    assert honest.found(allotment) > 0.2 * float(allotment)
    assert broken.contradicts(allotment)


def exact_means(asked, table):
    errors = {
        place: error(table.count(asked.marginals[place]).reshape(-1)) for place, error in asked.each(model())
    }
    return [k / part.steps for k, part in zip(asked.counted(errors), asked.sets, strict=True)]
