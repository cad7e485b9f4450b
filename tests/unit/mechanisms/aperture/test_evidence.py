"""Answers that came at once: each is held against what those before it explain."""

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


def taken_in(answers, *, at_once=False):
    prior = public()
    beliefs = Beliefs(prior, N)
    start = GraphicalModel(DOMAIN, N, prior.model.potentials)
    if at_once:
        for answer in answers:
            beliefs.add(answer.against(start))
    else:
        beliefs.add_all(answers, start, beliefs.estimate)
    return beliefs


OFF_IN_A = [
    measured(B, np.array([0.2, 0.8]) @ B_GIVEN_A), measured(A, [0.2, 0.8]), measured(C, [0.5, 0.5])
]  # fmt: skip


def test_what_another_answer_explains_is_not_held_against_public_data_twice():
    explained, at_once = taken_in(OFF_IN_A).spreads(), taken_in(OFF_IN_A, at_once=True).spreads()

    # Off by 0.3 in a, of which b's 0.21 follow.
    assert at_once[B] > 20
    assert explained[B] < 3
    assert explained[A] > 20


def test_what_no_other_answer_explains_is_believed():
    answers = [measured(B, [0.1, 0.8, 0.1]), measured(A, [0.2, 0.8]), measured(C, [0.5, 0.5])]

    spreads = taken_in(answers).spreads()

    assert spreads[A] > 20
    assert spreads[B] > 20
    assert spreads[C] < 5


def test_the_order_in_which_answers_are_given_does_not_matter():
    forth, back = taken_in(OFF_IN_A), taken_in(OFF_IN_A[::-1])

    assert forth.spreads() == pytest.approx(back.spreads(), rel=1e-6)
    assert next(iter(forth.held)) == A


def test_repeats_count_as_one_answer():
    beliefs = taken_in([*OFF_IN_A, measured(A, [0.3, 0.7])])

    assert beliefs.held[A].answers.answer == pytest.approx([0.25 * N, 0.75 * N])
    assert beliefs.held[A].answers.stddev == pytest.approx(100 / np.sqrt(2))


def test_no_model_is_fitted_for_answers_that_tell_of_nothing():
    beliefs = Beliefs(public(), N)
    start = GraphicalModel(DOMAIN, N, public().model.potentials)
    answers = [measured(c, start.count(c) / N) for c in (A, B, C)]

    def follow(model):
        raise AssertionError("nothing to follow")

    assert beliefs.add_all(answers, start, follow) is start
    assert set(beliefs.held) == {A, B, C}


def test_in_a_wide_table_only_the_most_telling_are_followed_one_by_one():
    domain = Domain.of({f"x{i}": 2 for i in range(40)})
    prior = Prior(GraphicalModel.uniform(domain, total=1.0), dict.fromkeys(domain.attrs, 1000.0), 1000.0)
    beliefs = Beliefs(prior, N)
    start = GraphicalModel.uniform(domain, total=N)
    followed = []

    def follow(model):
        followed.append(list(beliefs.held)[-1])
        return model

    answers = [measured((attr,), [0.1 + 0.005 * i, 0.9 - 0.005 * i]) for i, attr in enumerate(domain.attrs)]
    beliefs.add_all(answers, start, follow)

    assert followed == [(attr,) for attr in domain.attrs[:16]]
    assert set(beliefs.held) == {(attr,) for attr in domain.attrs}
