"""What is worth asking: single attributes in doubt, and marginals that noise does not swamp."""

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.refitting import taken_in
from sidelight.mechanisms.aperture.worth import heard, heard_or_single, worth_asking_again
from sidelight.models.graphical import GraphicalModel
from sidelight.public.prior import Prior
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload

DOMAIN = Domain.of({"a": 2, "b": 20, "c": 4})
WORKLOAD = Workload.marginals(DOMAIN, degree=2)
CLOSURE = list(WORKLOAD.closure(DOMAIN))
PAIRS = [attrs for attrs in CLOSURE if len(attrs) == 2]
REACH = {attrs: 2 / 3 for attrs in CLOSURE}
N = 10_000.0


def uniform():
    return GraphicalModel.uniform(DOMAIN, total=N)


def public(records=2000.0):
    related = {attrs: np.zeros(DOMAIN.project(attrs).shape) for attrs in PAIRS}
    return Prior(GraphicalModel(DOMAIN, 1.0, related), dict.fromkeys(DOMAIN.attrs, records), records)


def answers(*, stddev, off=()):
    """Even answers, but for attributes that are off."""
    found = []
    for attr, size in DOMAIN.sizes.items():
        share = np.full(size, 1 / size)
        if attr in off:
            share = np.linspace(0.1, 1.9, size) / size
        found.append(Measurement(Marginal((attr,)), N * share, stddev))
    return found


def asked(prior, *, stddev, off=(), later=1e6):
    model, beliefs = taken_in(prior, answers(stddev=stddev, off=off), N)
    return worth_asking_again(beliefs, model, PAIRS, REACH, stddev=stddev, later=later)


def test_the_attribute_that_public_data_have_wrong_is_asked_again():
    assert asked(public(), stddev=200.0, off=("b",)) == ("b",)


def test_nothing_is_asked_again_where_answers_agree_with_public_data():
    assert asked(public(), stddev=20.0) is None


def test_nothing_is_asked_again_that_later_answers_tell_anyway():
    assert asked(public(), stddev=200.0, off=("b",), later=0.1) is None


def test_without_public_data_an_attribute_is_asked_again_under_much_noise_alone():
    """Relations may move as much as anything, so that single attributes have to be worth a good deal."""
    assert asked(Prior.nothing(DOMAIN), stddev=300.0, off=DOMAIN.attrs) is None
    # Of 20 values one more answer with so much noise would tell little.
    assert asked(Prior.nothing(DOMAIN), stddev=600.0, off=DOMAIN.attrs) == ("c",)


def test_rare_values_hardly_count_as_cells():
    rare = GraphicalModel(DOMAIN, N, {("c",): np.log([0.97, 0.01, 0.01, 0.01])})
    # As much noise as there may be with 60 cells: 20 times 4 are too many, and 20 times less than 2 are not.
    stddev = 4.0 * N / 60

    assert ("b", "c") in heard(rare, CLOSURE, stddev=stddev)
    assert ("b", "c") not in heard(uniform(), CLOSURE, stddev=stddev)


@pytest.mark.parametrize(
    ("stddev", "expected"),
    [
        (1.0, CLOSURE),
        (600.0, [attrs for attrs in CLOSURE if DOMAIN.size(attrs) <= 66]),
        (1e9, []),
    ],
)
def test_what_noise_would_swamp_is_no_candidate(stddev, expected):
    assert set(heard(uniform(), CLOSURE, stddev=stddev)) == set(expected)


def test_where_nothing_is_heard_single_attributes_are_left():
    assert heard_or_single(uniform(), CLOSURE, stddev=600.0) == heard(uniform(), CLOSURE, stddev=600.0)
    assert set(heard_or_single(uniform(), CLOSURE, stddev=1e9)) == {("a",), ("b",), ("c",)}
