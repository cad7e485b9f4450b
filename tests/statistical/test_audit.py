"""Attacks from outside: a correct mechanism withstands them, a planted bug does not."""

import numpy as np
import pytest

from sidelight.audit import attack, audit_mechanism
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.mwem import MWEM
from sidelight.privacy.budget import Budget
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload

pytestmark = pytest.mark.statistical

DOMAIN = Domain.of({"a": 2})
WORKLOAD = Workload.marginals(DOMAIN, degree=1)


def neighbours(relation):
    codes = np.array([[0]] * 14 + [[1]] * 10)
    other = codes.copy()
    if relation == "replace":
        other[0] = [1]
    else:
        other = other[1:]
    return Table.of_codes(DOMAIN, codes), Table.of_codes(DOMAIN, other)


@pytest.mark.parametrize("relation", ["replace", "add-or-remove"])
@pytest.mark.parametrize(
    ("accounting", "budget", "effort"),
    [
        ("zcdp", Budget(epsilon=4.0, delta=1e-3), {"runs": 1200, "confidence": 0.99}),
        ("pure", Budget(epsilon=2.0, delta=0.0), {"runs": 800, "confidence": 0.99}),
    ],
    ids=["zcdp", "pure"],
)
def test_mwem_withstands_the_attack_and_half_the_sensitivity_does_not(
    accounting, budget, effort, relation, halved
):
    # Most of the budget goes where the attacker looks: into one marginal in which the neighbours differ.
    mechanism = MWEM(rounds=1, select_share=0.05, passes=1, accounting=accounting)
    settings, claim = {"budget": budget, **effort}, mechanism.allotment(budget)

    honest = audit_mechanism(mechanism, neighbours(relation), WORKLOAD, unit=Unit(relation), **settings)
    broken = audit_mechanism(mechanism, neighbours(relation), WORKLOAD, unit=halved(relation), **settings)

    assert not honest.contradicts(claim)
    # The attack has teeth: it sees a good part of what a correct run gives away.
    assert honest.found(claim) > 0.25 * float(claim)
    assert broken.contradicts(claim)


def test_the_attack_finds_the_epsilon_of_randomised_response():
    truth = 1.0
    keep = np.exp(truth) / (1 + np.exp(truth))
    tables = neighbours("replace")

    def respond(table, seed):
        answer = float(table is tables[1])
        return answer if np.random.default_rng(seed).random() < keep else 1 - answer

    found = attack(respond, tables, delta=0.0, runs=20_000)

    assert 0.85 * truth < found.epsilon <= truth


def test_the_attack_refutes_a_claim_that_is_a_quarter_too_small():
    tables = neighbours("replace")

    def respond(table, seed):
        answer = float(table is tables[1])
        return answer if np.random.default_rng(seed).random() < np.e / (1 + np.e) else 1 - answer

    assert attack(respond, tables, delta=0.0, runs=20_000).refutes(Budget(epsilon=0.75, delta=0.0))
