import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.errors import SettingError
from sidelight.queries.query import Cell
from sidelight.queries.workload import Workload
from svd_bound import (
    prefix_spectrum,
    product_spectrum,
    range_spectrum,
    spectrum,
    squared_error_bound,
    svd_bound,
)


@pytest.mark.parametrize(("values", "bound"), [(4, 16.312243), (8, 79.172339), (16, 404.482931)])
def test_all_ranges(values, bound):
    assert svd_bound(range_spectrum(values), values) == pytest.approx(bound, abs=5e-7)


@pytest.mark.parametrize(("values", "bound"), [(4, 6.411474), (8, 16.551386), (16, 42.429581)])
def test_all_prefixes(values, bound):
    assert svd_bound(prefix_spectrum(values), values) == pytest.approx(bound, abs=5e-7)


def test_the_identity_costs_one_a_cell():
    domain = Domain.of({"a": 7})
    cells = [Cell(("a",), (value,)) for value in range(7)]

    assert svd_bound(spectrum(cells, domain), 7) == pytest.approx(7)


def test_a_listed_workload_has_the_spectrum_of_its_closed_form():
    domain = Domain.of({"a": 6})

    listed = spectrum(Workload.ranges(domain, ["a"]), domain)

    np.testing.assert_allclose(np.sort(listed)[-6:], np.sort(range_spectrum(6)), rtol=1e-9)


def test_boxes_have_all_products_of_the_ranges_values():
    domain = Domain.of({"a": 4, "b": 3})

    listed = spectrum(Workload.ranges(domain, ["a", "b"]), domain)

    expected = np.sort(product_spectrum(range_spectrum(4), range_spectrum(3)))
    np.testing.assert_allclose(np.sort(listed)[-12:], expected, rtol=1e-9)


def test_fewer_queries_than_cells_give_the_same_values_as_the_large_gram_matrix():
    domain = Domain.of({"a": 50})
    some = Workload.ranges(domain, ["a"], number=10, seed=1)
    matrix = np.array([query.weights((50,)) for query in some], dtype=float)

    few = spectrum(some, domain)

    assert few.sum() == pytest.approx(np.linalg.svd(matrix, compute_uv=False).sum())


def test_the_bound_per_query_has_the_price_of_gaussian_noise():
    bound = squared_error_bound(np.ones(5), cells=5, queries=10, epsilon=0.5, delta=0.01)

    assert bound == pytest.approx(2 * np.log(200) / 0.25 * 5 / 10)
    with pytest.raises(SettingError, match="delta must be a share"):
        squared_error_bound(np.ones(5), cells=5, queries=10, epsilon=0.5, delta=0)
