from fractions import Fraction

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.privacy.unit import Unit
from sidelight.queries.numbers import Batch, by_attributes, numbers, part
from sidelight.queries.query import Cell, Fourier, Linear, Marginal, Range
from sidelight.queries.workload import Workload
from sidelight.select.score import CellError

DOMAIN = Domain.of({"a": 5, "b": 4, "c": 2})
COUNTS = np.random.default_rng(2).integers(0, 50, (5, 4))


@pytest.mark.parametrize("attrs", [("a",), ("a", "b")])
def test_a_batch_of_ranges_answers_what_each_range_answers(attrs):
    workload = Workload.ranges(DOMAIN, attrs)
    counts = COUNTS if len(attrs) == 2 else COUNTS.sum(axis=1)
    (batch,) = by_attributes(workload)

    answers = batch.apply(counts)

    assert answers.dtype == np.int64
    assert answers.tolist() == [int(query.apply(counts)[0]) for query in workload]


def test_cells_and_ranges_share_a_batch():
    batch = Batch(("a", "b"), (Cell(("a", "b"), (2, 3)), Range((("a", 0, 4), ("b", 1, 2)))))

    assert batch.apply(COUNTS).tolist() == [COUNTS[2, 3], COUNTS[:, 1:3].sum()]


def test_linear_queries_are_weighed_together():
    members = (Linear.of(("c",), [0.5, -1.0]), Fourier(("c",)), Range((("c", 1, 1),)))
    batch = Batch(("c",), members)

    assert batch.apply(np.array([10, 4])).tolist() == [1.0, 6.0, 4.0]
    assert batch.transpose(np.array([1.0, 2.0, 3.0]), (2,)).tolist() == [2.5, 0.0]


def test_a_single_number_of_a_marginal_is_a_cell_and_of_a_batch_its_member():
    batch = by_attributes(Workload.prefixes(DOMAIN, "a"))[0]

    assert part(Marginal(("b", "c")), 5, DOMAIN) == Cell(("b", "c"), (2, 1))
    assert part(batch, 3, DOMAIN) == Range((("a", 0, 3),))


def test_marginals_stay_and_scalars_are_gathered_by_their_attributes():
    ranges = [*Workload.prefixes(DOMAIN, "a"), *Workload.prefixes(DOMAIN, "b")]

    grouped = by_attributes([Marginal(("a", "b")), *ranges])

    assert [type(query).__name__ for query in grouped] == ["Marginal", "Batch", "Batch"]
    assert numbers(grouped, DOMAIN) == 20 + 5 + 4


@pytest.mark.parametrize(("relation", "widest"), [("replace", 2), ("add-or-remove", 1)])
def test_selection_counts_the_widest_member_and_measuring_all_counts_their_sum(relation, widest):
    batch = Batch(("c",), (Fourier(("c",)), Cell(("c",), (0,))))
    unit = Unit(relation, records=3)

    assert CellError(None).sensitivity(unit, batch) == 3 * widest
    assert batch.l1(unit) == 3 * (widest + 1)


def test_a_cell_of_a_marginal_moves_by_one_under_either_relation():
    for relation in ("replace", "add-or-remove"):
        assert CellError(None).sensitivity(Unit(relation), Marginal(("a",))) == Fraction(1)
