"""A query about groups and its translation to values have the same answer on every table."""

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.data.grouping import Grouping
from sidelight.errors import WorkloadError
from sidelight.queries.grouped import of_values
from sidelight.queries.merged import Merged
from sidelight.queries.query import Cell, Fourier, Marginal, Range

DOMAIN = Domain.of({"age": 6, "sex": 2})
GROUPING = Grouping(DOMAIN, {"age": (0, 0, 1, 1, 1, 2)})
COUNTS = np.arange(12).reshape(2, 6) ** 2
QUERIES = [
    Marginal(("sex", "age")),
    Merged(("sex", "age"), ((0, 0), (0, 1, 0))),
    Cell(("sex", "age"), (1, 1)),
    Range((("sex", 0, 1), ("age", 1, 2))),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
def test_the_answer_is_the_same(query):
    asked = of_values(query, GROUPING)
    asked.check(DOMAIN)

    grouped = GROUPING.summed(("sex", "age"), COUNTS)
    assert np.array_equal(asked.apply(COUNTS), query.apply(grouped))


def test_a_query_about_other_attributes_stays_as_it_is():
    assert of_values(Fourier(("sex",)), GROUPING) == Fourier(("sex",))


def test_a_query_that_groups_cannot_answer_is_refused():
    with pytest.raises(WorkloadError, match="cannot be asked of groups"):
        of_values(Fourier(("age",)), GROUPING)
