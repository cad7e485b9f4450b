"""Everything that spends, under units of every kind: the claim holds, and half the noise is found.

`make audit` runs more of each, and keeps its figures; here each subject has one unit, in turn.
"""

import pytest

import torched
from sidelight.audit.row import audited
from sidelight.audit.subjects import SUBJECTS

pytestmark = pytest.mark.statistical

RUNS = {"aperture": 100, "gem": 100, "gem-pub": 100}
"""On each table; 200 of all others."""


def each():
    """Each subject with a unit of its own, so that all units come up."""
    for place, (name, subject) in enumerate(SUBJECTS.items()):
        unit = subject.units[place % len(subject.units)]
        yield pytest.param(name, unit, marks=torched.torched(name), id=f"{name}: {unit}")


@pytest.mark.parametrize(("name", "unit"), list(each()))
def test_the_claim_holds_and_the_planted_bug_is_found(name, unit):
    honest, planted = (
        audited(name, SUBJECTS[name], unit, is_planted=bug, runs=RUNS.get(name, 200), confidence=0.99)
        for bug in (False, True)
    )

    assert not honest.is_refuted
    assert planted.found > 1.5 * honest.found
