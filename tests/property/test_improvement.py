"""The score of APERTURE moves by no more than its sensitivity between any two neighbours."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.select.improvement import ExpectedImprovement, Profile, Prospect

POSITIVE = st.floats(1e-6, 1e6)
QUERY = Marginal(("a",))


class Answering:
    """A model with one answer to everything."""

    def __init__(self, counts):
        self.counts = counts

    def count_each(self, wanted):
        return [(place, self.counts) for place in range(len(wanted))]


@st.composite
def neighbours(draw):
    """Counts, the same with one record elsewhere, and any public surroundings."""
    cells = draw(st.integers(2, 12))
    exact = np.array(draw(st.lists(st.integers(0, 10_000), min_size=cells, max_size=cells)))
    exact[0] += 1
    other = exact.copy()
    other[0] -= 1
    other[draw(st.integers(1, cells - 1))] += 1
    expected = np.array(draw(st.lists(st.floats(0, 1e4), min_size=cells, max_size=cells)))
    variance = np.array(draw(st.lists(POSITIVE, min_size=cells, max_size=cells)))
    precision = draw(st.one_of(st.just(0.0), POSITIVE))
    weight = draw(st.floats(1e-3, 1.0))
    prospect = Prospect(Profile.of(variance), precision, weight)
    total = float(max(exact.sum(), 1))
    score = ExpectedImprovement(
        Answering(expected), lambda attrs, counts: prospect, stddev=draw(POSITIVE), total=total
    )
    return exact, other, score


@given(neighbours())
def test_replacing_a_record_moves_the_score_by_at_most_its_sensitivity(case):
    exact, other, score = case

    ((_, one),) = score.each([QUERY])
    moved = abs(Fraction(one(exact)) - Fraction(one(other)))

    assert moved <= score.sensitivity(Unit("replace"), QUERY)


@given(neighbours(), st.integers(0, 11))
def test_removing_a_record_moves_the_score_by_at_most_its_sensitivity(case, place):
    exact, _, score = case
    fewer = exact.copy()
    fewer[place % len(exact)] -= 1

    ((_, one),) = score.each([QUERY])
    moved = abs(Fraction(one(exact)) - Fraction(one(fewer)))

    assert moved <= score.sensitivity(Unit("add-or-remove"), QUERY)


@given(neighbours())
def test_the_gain_is_never_negative_nor_more_than_the_error(case):
    exact, _, score = case
    ((_, expected),) = score.model.count_each([QUERY.attrs])
    ((_, one),) = score.each([QUERY])

    found = one(exact) / score.prospect(QUERY.attrs, expected).weight

    error = min(np.abs(exact - expected).sum(), 4 * score.total)
    assert -1e-6 * max(1.0, error) <= found <= error * (1 + 1e-9)
