"""Scores of any size keep to their sensitivity on the grid: rounding never adds what ε does not pay for."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidelight.privacy.unit import Unit
from sidelight.queries.numbers import Batch
from sidelight.queries.query import Linear, Marginal
from sidelight.select.grid import Gaps
from sidelight.select.joint import JointCandidate, JointError
from sidelight.select.score import CellError, ModelError, WeightedError, l1_error

UNIT = Unit("replace")
QUERY = Marginal(("a",))
CELLS = 400


class Answering:
    """A model with any answers at all."""

    def __init__(self, counts):
        self.counts = counts

    def count(self, attrs):
        return self.counts

    def count_each(self, wanted):
        return [(place, self.counts) for place, _ in enumerate(wanted)]


def scored(score, query, exact):
    ((_, score_of),) = score.each([query])
    return np.atleast_1d(score_of(query.apply(exact)))


def excess(score, query, *neighbours):
    """|k − k'| over what the rate pays for, at most: no more than 1 if ε holds."""
    sensitivity = score.sensitivity(UNIT, query)
    on_grid = []
    for exact in neighbours:
        scores = np.append(scored(score, query, exact), 0.0)  # against a candidate that scores 0 on both
        gaps = Gaps.of(scores, epsilon=Fraction(1), sensitivity=sensitivity)
        on_grid.append(gaps.gaps[-1] - gaps.gaps[:-1])
    return 2 * gaps.rate * int(np.abs(on_grid[0] - on_grid[1]).max())


@st.composite
def cases(draw):
    """Answers of every size up to beyond the grid's bound, and two tables with one record replaced."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = 2.0 ** draw(st.floats(0, 44))
    counts = rng.random(CELLS) * size / CELLS
    exact = np.zeros(CELLS, dtype=np.int64)
    exact[0] = draw(st.integers(1, 2**33))
    exact[2] = draw(st.integers(0, 9))
    counts[0] = exact[0] + rng.random()  # both cells get worse at once: the move is all of Δ
    counts[1] = 0.0
    other = exact.copy()
    other[0] -= 1
    other[1] += 1
    return exact, other, counts, 2.0 ** draw(st.floats(20, 44)) / CELLS, draw(st.floats(0.01, 100.0))


def penalised(counts, penalty, weight):
    """Every score with a penalty per cell."""
    model = Answering(counts)
    return (
        ModelError(model, penalty),
        WeightedError(model, weights={("a",): weight}, cell_penalty=penalty),
        JointError(model, {("a",): counts[::-1]}, cell_noise=penalty),
    )


@given(cases())
def test_a_penalty_of_any_size_adds_nothing_to_the_sensitivity(case):
    exact, other, counts, penalty, weight = case

    for score in penalised(counts, penalty, weight):
        assert excess(score, QUERY, exact, other) <= 1


@given(cases())
def test_a_penalty_near_to_the_error_adds_nothing_to_the_sensitivity(case):
    """The score is small, and so its rounding would be; but that of the error it is left of is not."""
    exact, other, counts, _, weight = case
    penalty = l1_error(exact, counts) / CELLS

    for score in penalised(counts, penalty, weight):
        assert excess(score, QUERY, exact, other) <= 1


def test_no_search_near_the_bound_of_the_grid_finds_an_excess():
    """Errors and penalties about 2³⁴ to 2⁴¹ Δ, alone and against each other, with awkward weights."""
    rng = np.random.default_rng(0)
    for _ in range(1500):
        size, weight = 2.0 ** rng.uniform(34, 41), float(rng.choice([0.1, 0.3, 0.7, 1 / 3, 1.1]))
        exact = np.zeros(CELLS, dtype=np.int64)
        exact[[0, 2]] = 5, rng.integers(0, 9)
        other = exact.copy()
        other[:2] = 4, 1
        counts = rng.random(CELLS) * rng.choice([3.0, size / CELLS])
        counts[:2] = 5 + rng.random(), 0.0
        penalty = rng.choice([size, l1_error(exact, counts)]) / CELLS
        for score in penalised(counts, penalty, weight):
            assert excess(score, QUERY, exact, other) <= 1


@given(cases())
def test_a_public_candidate_has_two_errors_that_add_nothing(case):
    exact, other, counts, _, _ = case
    score = JointError(Answering(counts), {("a",): np.roll(counts, 1)}, cell_noise=1.0)

    assert excess(score, JointCandidate(("a",), is_public=True), exact, other) <= 1


@given(cases())
def test_numbers_of_any_size_add_nothing(case):
    exact, other, counts, _, _ = case

    assert excess(CellError(Answering(counts)), QUERY, exact, other) <= 1


@given(cases(), st.integers(0, 2**20 - 1))
def test_linear_queries_that_hardly_move_add_nothing(case, least):
    """Weights between 1 − 2⁻²⁰·k and 1 move an answer of all records by next to nothing."""
    exact, other, counts, penalty, _ = case
    numerators = (2**20, least, *[2**20] * (CELLS - 2))
    query = Linear(("a",), (CELLS,), numerators)

    assert excess(ModelError(Answering(counts), penalty), query, exact, other) <= 1
    assert excess(CellError(Answering(counts)), Batch(("a",), (query,)), exact, other) <= 1


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.floats(0, 36), st.integers(1, 20_000))
def test_errors_are_summed_exactly_up_to_their_bound(seed, size, cells):
    rng = np.random.default_rng(seed)
    counts = rng.random(cells) * 2.0**size / cells
    exact = rng.integers(0, max(1, int(2.0**size / cells)) + 1, cells)

    found = l1_error(exact, counts)

    steps = [round(Fraction(count) * 2**18) for count in counts.tolist()]
    summed = sum(abs((x << 18) - step) for x, step in zip(exact.tolist(), steps, strict=True))
    assert Fraction(found) == min(Fraction(summed, 2**18), 2**35)


@pytest.mark.parametrize("records", [10, 2**34, 2**40])
def test_linear_answers_are_exact_for_any_number_of_records(records):
    query = Linear.of(("a",), [1 - 2.0**-20, -1.0, 0.5])
    counts = np.array([records + 1, records // 3, 7])

    (found,) = query.apply(counts)
    (together,) = Batch(("a",), (query,)).apply(counts)

    summed = Fraction((2**20 - 1) * (records + 1) - 2**20 * (records // 3) + 2**19 * 7, 2**20)
    assert Fraction(found) == min(summed, Fraction(2**33))
    assert found == together


def test_no_error_of_ten_billion_records_is_cut():
    gaps = Gaps.of(np.array([-1e10, -1e10 + 1, 0.0]), epsilon=Fraction(1), sensitivity=Fraction(1))

    assert gaps.gaps[0] - gaps.gaps[1] == 2**16
    assert math.isclose(gaps.gaps[0] / 2**16, 1e10)
    assert l1_error(np.array([10**10, 0]), np.array([0.0, 1e10])) == 2e10
