"""What noisy answers say of the public model: taken in, merged, and followed."""

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture import refitting
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
    if at_once:
        beliefs = Beliefs(public(), N)
        beliefs.add_singles(answers, beliefs.start)
        return beliefs
    return refitting.taken_in(public(), answers, N)[1]


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


def untold_and_measured(prior):
    """Coarse answers about single attributes; then a close one about a pair, whose relation is weak."""
    beliefs = Beliefs(prior, N)
    singles = [measured(A, [0.1, 0.9], 500.0), measured(B, [0.3, 0.3, 0.4], 500.0)]
    beliefs.add_singles(singles, beliefs.start)
    model = beliefs.estimate(beliefs.start)
    pair = measured(("a", "b"), np.outer([0.12, 0.88], [0.3, 0.3, 0.4]).reshape(-1), 10.0)
    beliefs.add(pair.against(beliefs.estimate(model)))
    return beliefs


def test_no_model_is_fitted_for_answers_that_contradict_nothing(monkeypatch):
    fits = []
    estimate = Beliefs.estimate

    def counted(beliefs, start, **settings):
        fits.append(len(beliefs.held))
        return estimate(beliefs, start, **settings)

    monkeypatch.setattr(Beliefs, "estimate", counted)
    taken_in(OFF_IN_A)
    taken_in([measured(c, Beliefs(public(), N).start.count(c) / N) for c in (A, B, C)])

    # After the answer about a, which is off, and after all of them; then only after all of them.
    assert fits == [1, 3, 3]


def test_in_a_wide_table_only_the_worst_are_followed_one_by_one(monkeypatch):
    followed = []
    monkeypatch.setattr(refitting, "_MOST_FITS", 1)
    estimate = Beliefs.estimate

    def counted(beliefs, start, **settings):
        followed.append(list(beliefs.held))
        return estimate(beliefs, start, **settings)

    monkeypatch.setattr(Beliefs, "estimate", counted)
    taken_in([measured(B, [0.1, 0.8, 0.1]), measured(A, [0.2, 0.8]), measured(C, [0.5, 0.5])])

    assert [len(some) for some in followed] == [1, 3]


def test_an_attribute_that_no_public_data_tell_of_is_known_from_what_was_measured_with_it():
    beliefs = untold_and_measured(Prior.nothing(DOMAIN))

    pulled = beliefs.pulled()[A]

    # The pair's answer is some eight hundred times as precise, in a, as that about a alone.
    assert pulled.answer == pytest.approx([0.12 * N, 0.88 * N], abs=10)
    assert beliefs.estimate(beliefs.start, last=True).count(A) == pytest.approx([1200, 8800], abs=20)


def test_where_public_data_tell_of_an_attribute_each_answer_pulls_by_itself():
    beliefs = untold_and_measured(public())

    assert beliefs.pulled()[A].answer == pytest.approx([0.1 * N, 0.9 * N])
