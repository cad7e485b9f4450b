"""What noisy answers say of the public model: taken in, merged, and followed."""

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.models.graphical import GraphicalModel
from sidelight.public.prior import Prior
from sidelight.queries.query import Marginal

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
N = 10_000.0
A, B, C = ("a",), ("b",), ("c",)
B_GIVEN_A = np.array([[0.8, 0.15, 0.05], [0.1, 0.2, 0.7]])


def public(share_of_a=0.5):
    """b follows a, c stands alone."""
    joint = np.array([1 - share_of_a, share_of_a])[:, None] * B_GIVEN_A
    potentials = {("a", "b"): np.log(joint), C: np.log([0.5, 0.5])}
    model = GraphicalModel(DOMAIN, 1.0, potentials)
    return Prior(model, dict.fromkeys(DOMAIN.attrs, 1000.0), 1000.0)


def measured(attrs, shares, stddev=100.0):
    return Measurement(Marginal(attrs), N * np.asarray(shares, dtype=np.float64), stddev)


def taken_in(answers):
    beliefs = Beliefs(public(), N)
    beliefs.add_singles(answers, beliefs.start)
    return beliefs


OFF_IN_A = [
    measured(B, np.array([0.2, 0.8]) @ B_GIVEN_A), measured(A, [0.2, 0.8]), measured(C, [0.5, 0.5])
]  # fmt: skip


def test_what_no_other_answer_explains_is_believed():
    answers = [measured(B, [0.1, 0.8, 0.1]), measured(A, [0.2, 0.8]), measured(C, [0.5, 0.5])]

    spreads = taken_in(answers).spreads()

    assert spreads[A] > 20
    assert spreads[B] > 20
    assert spreads[C] < 5


def test_the_order_in_which_answers_are_given_does_not_matter():
    forth, back = taken_in(OFF_IN_A), taken_in(OFF_IN_A[::-1])

    assert forth.spreads() == pytest.approx(back.spreads(), rel=1e-6)


def test_repeats_count_as_one_answer():
    beliefs = taken_in([*OFF_IN_A, measured(A, [0.3, 0.7])])

    assert beliefs.held[A].answers.answer == pytest.approx([0.25 * N, 0.75 * N])
    assert beliefs.held[A].answers.stddev == pytest.approx(100 / np.sqrt(2))


def untold_and_measured(prior):
    """Coarse answers about single attributes; then a close one about a pair, whose relation is weak."""
    beliefs = Beliefs(prior, N)
    singles = [measured(A, [0.1, 0.9], 500.0), measured(B, [0.3, 0.3, 0.4], 500.0)]
    beliefs.add_singles(singles, beliefs.start)
    model = beliefs.estimate(beliefs.start)
    pair = measured(("a", "b"), np.outer([0.12, 0.88], [0.3, 0.3, 0.4]).reshape(-1), 10.0)
    beliefs.add(pair.against(beliefs.estimate(model)))
    return beliefs


def test_an_attribute_that_no_public_data_tell_of_is_known_from_what_was_measured_with_it():
    beliefs = untold_and_measured(Prior.nothing(DOMAIN))

    pulled = beliefs.pulled()[A]

    # The pair's answer is some eight hundred times as precise, in a, as that about a alone.
    assert pulled.answer == pytest.approx([0.12 * N, 0.88 * N], abs=10)
    assert beliefs.estimate(beliefs.start, last=True).count(A) == pytest.approx([1200, 8800], abs=20)


def test_where_public_data_tell_of_an_attribute_each_answer_pulls_by_itself():
    beliefs = untold_and_measured(public())

    assert beliefs.pulled()[A].answer == pytest.approx([0.1 * N, 0.9 * N])
