"""The judgement of mixtures moves by no more than its sensitivity between any two neighbours."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.aperture.arbiter import cut_off, odds_of_cuts, sets_to_cut
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.select.judgement import Contest, LeastError

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
SETS = [("a",), ("b", "c"), ("c", "a"), ("a", "b", "c")]
RECORD = st.tuples(*(st.integers(0, size - 1) for size in DOMAIN.shape))


class Answering:
    """A model with any answers at all."""

    def __init__(self, seed, scale):
        rng = np.random.default_rng(seed)
        self.counts = {attrs: rng.exponential(scale, DOMAIN.project(attrs).shape) for attrs in SETS}

    def count_each(self, wanted):
        return [(place, self.counts[attrs]) for place, attrs in enumerate(wanted)]


@st.composite
def judged(draw):
    """Records, one of them to go or to change, and any public surroundings."""
    records = draw(st.lists(RECORD, min_size=1, max_size=40))
    seed, scale = draw(st.integers(0, 2**32)), draw(st.floats(1e-3, 1e3))
    sets = draw(st.lists(st.sampled_from(SETS), min_size=1, unique=True))
    judgement = LeastError(
        (Answering(seed, scale), Answering(seed + 1, scale)),
        [(1 - share, share) for share in draw(st.lists(st.floats(0, 1), min_size=1, max_size=4))],
        weights={attrs: draw(st.floats(1e-6, 1e6)) for attrs in sets},
        # Where n is private it is noisy, so it may be anything.
        total=draw(st.floats(1.0, 100.0)),
    )
    return np.array(records), draw(st.integers(0, len(records) - 1)), [Marginal(c) for c in sets], judgement


def moved(judgement, queries, *tables):
    """The most that any option's score differs by."""
    found = []
    for codes in tables:
        table = Table.of_codes(DOMAIN, codes)
        scores = np.zeros(judgement.options)
        for place, added in judgement.each(queries):
            scores += added(table.count(queries[place].attrs).reshape(-1))
        found.append([Fraction(score) for score in scores.tolist()])
    return max(abs(one - other) for one, other in zip(*found, strict=True))


@given(judged(), RECORD)
def test_replacing_a_record_moves_no_score_by_more_than_the_sensitivity(case, record):
    codes, place, queries, judgement = case
    other = codes.copy()
    other[place] = record

    assert moved(judgement, queries, codes, other) <= judgement.sensitivity(Unit("replace"), queries)


@given(judged())
def test_removing_a_record_moves_no_score_by_more_than_the_sensitivity(case):
    codes, place, queries, judgement = case
    fewer = np.delete(codes, place, axis=0)

    assert moved(judgement, queries, codes, fewer) <= judgement.sensitivity(Unit("add-or-remove"), queries)


@given(st.lists(RECORD, min_size=1, max_size=40), RECORD, st.integers(0, 2**32), st.floats(1e-3, 1e3))
def test_no_set_that_may_be_cut_off_moves_by_more_than_the_sensitivity(records, record, seed, scale):
    """The arbiter's contest at the start, of every set of attributes and of one more model."""
    codes = np.array(records)
    other = codes.copy()
    other[0] = record
    queries = [Marginal(attrs) for attrs in SETS]
    contest = Contest(
        (Answering(seed, scale), Answering(seed + 1, scale)), cut_off(DOMAIN, "abc", sets_to_cut(3), 1),
        weights=dict.fromkeys(SETS, 1.0), total=float(len(codes)), log_odds=odds_of_cuts(sets_to_cut(3), 1),
    )  # fmt: skip

    assert contest.options == len(sets_to_cut(3)) + 1
    assert moved(contest, queries, codes, other) <= contest.sensitivity(Unit("replace"), queries)


@given(judged(), st.lists(RECORD, min_size=2, max_size=2))
def test_replacing_two_records_of_one_person_moves_no_score_by_more_than_the_sensitivity(case, both):
    codes, place, queries, judgement = case
    other = codes.copy()
    for k, record in enumerate(both):
        other[(place + k) % len(other)] = record

    unit = Unit("replace", records=2)
    assert moved(judgement, queries, codes, other) <= judgement.sensitivity(unit, queries)
