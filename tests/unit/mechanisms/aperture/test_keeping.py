"""Answers to single attributes are kept: how far a release moves to be within their noise."""

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.keeping import kept, within
from sidelight.models.graphical import GraphicalModel
from sidelight.models.support import Support
from sidelight.queries.query import Marginal

DOMAIN = Domain.of({"a": 2, "b": 3})
N = 600.0


def answered(attr, counts, stddev=5.0):
    return Measurement(Marginal((attr,)), np.array(counts, dtype=np.float64), stddev)


def tree():
    """Related, so that moving one attribute would move the other."""
    return GraphicalModel(DOMAIN, N, {("a", "b"): np.log([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])})


def records():
    every = np.indices(DOMAIN.shape).reshape(2, -1).T
    return Support(DOMAIN, every, tree().count(("a", "b")).reshape(-1), N)


MODELS = {"tree": tree, "records": records}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()


def test_what_noise_explains_stays_as_it_is(model):
    answers = [
        answered("a", model.count(("a",)) + np.array([6.0, -6.0])),
        answered("b", model.count(("b",)) - 2.0),
    ]

    assert kept(model, answers) is model


def test_a_release_that_strays_is_within_the_noise_of_every_answer_and_keeps_its_relations(model):
    answers = [answered("a", [400.0, 200.0]), answered("b", model.count(("b",)))]

    found = kept(model, answers)

    assert isinstance(found, type(model))
    squares = []
    for answer in answers:
        off = (found.count(answer.query.attrs) - answer.answer) / answer.stddev
        assert np.abs(off).max() < 4.1
        squares += (off**2).tolist()
    assert sum(squares) < (3 + np.sqrt(18 * 3)) * 1.05
    assert found.count(("a",)).sum() == pytest.approx(N)
    odds = [table[0, 0] * table[1, 2] / (table[0, 2] * table[1, 0]) for table in (
        model.count(("a", "b")), found.count(("a", "b"))
    )]  # fmt: skip
    assert odds[1] == pytest.approx(odds[0], rel=1e-3)


def test_several_answers_to_an_attribute_count_as_one():
    answers = [answered("a", [400.0, 200.0], 1e6), answered("a", [300.0, 300.0])]

    assert kept(tree(), answers).count(("a",)) == pytest.approx(tree().count(("a",)))


def test_a_rare_value_comes_back_to_four_standard_deviations_of_its_answer():
    counts = np.array([580.0] + [0.0] + [2.5] * 8)
    answer = answered("a", [540.0] + [40.0] + [2.5] * 8, 4.0)

    moved = within({("a",): answer}, {("a",): counts})[("a",)]

    assert moved[1] >= 40.0 - 4.05 * 4.0
    assert moved.sum() == pytest.approx(counts.sum())


@pytest.mark.filterwarnings("error")
def test_records_without_the_only_value_that_was_answered_stay_as_they_are():
    """All records have the first value, or next to nothing of the second, and the answer says the second."""
    for second in (0.0, 1e-310):
        held = Support(DOMAIN, np.array([[0, 0], [0, 1], [1, 0]]), np.array([400.0, 200.0, second]), N)

        found = kept(held, [answered("a", [0.0, 600.0])])

        assert found.count(("b",)) == pytest.approx([400.0, 200.0, 0.0])
