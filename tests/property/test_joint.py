"""JAM's score against every possible change of one record."""

import itertools

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sidelight.privacy.unit import Unit
from sidelight.select.joint import JointCandidate, JointError

CELLS = 3


class Fixed:
    """A model whose answers are given."""

    def __init__(self, answer):
        self.answer = answer

    def count_each(self, wanted):
        return enumerate(self.answer for _ in wanted)


def neighbours(counts, relation):
    """The same counts with one record elsewhere, or with one more or one less."""
    unit = np.eye(len(counts), dtype=int)
    for out, into in itertools.permutations(range(len(counts)), 2):
        if relation == "replace" and counts[out]:
            yield counts - unit[out] + unit[into]
    for cell in range(len(counts)):
        if relation == "add-or-remove":
            yield counts + unit[cell]
            if counts[cell]:
                yield counts - unit[cell]


numbers = st.lists(st.floats(-20, 40, allow_nan=False), min_size=CELLS, max_size=CELLS).map(np.array)
tables = st.lists(st.integers(0, 20), min_size=CELLS, max_size=CELLS).map(np.array)


@settings(max_examples=150, deadline=None)
@given(tables, numbers, numbers, st.sampled_from(["replace", "add-or-remove"]))
@example(np.array([5, 5, 0]), np.array([9.0, 1.0, 0.0]), np.array([1.0, 9.0, 0.0]), "replace")
def test_no_neighbour_moves_the_score_further_than_its_sensitivity(counts, model, proxy, relation):
    unit = Unit(relation)
    score = JointError(Fixed(model), {("a",): proxy}, cell_noise=1.5)
    candidates = [JointCandidate(("a",), is_public) for is_public in (False, True)]

    for place, one in score.each(candidates):
        most = float(score.sensitivity(unit, candidates[place]))
        for other in neighbours(counts, relation):
            assert abs(one(other) - one(counts)) <= most + 1e-9


def test_the_bound_is_attained_under_both_units():
    model, proxy = np.array([9.0, 1.0, 0.0]), np.array([1.0, 9.0, 0.0])
    score = JointError(Fixed(model), {("a",): proxy}, cell_noise=1.5)
    public = JointCandidate(("a",), is_public=True)
    ((_, one),) = score.each([public])
    counts = np.array([5, 5, 0])

    for relation, bound in (("replace", 4), ("add-or-remove", 2)):
        moved = max(abs(one(other) - one(counts)) for other in neighbours(counts, relation))
        assert moved == bound == score.sensitivity(Unit(relation), public)
