import itertools

import numpy as np
import pytest

from sidelight.models.fold import Fold

ATTRS = ("a", "b", "c", "d", "e")
SHAPE = (2, 3, 2, 4, 2)


@pytest.fixture
def weights():
    return np.random.default_rng(3).random(SHAPE)


def test_every_marginal_is_the_sum_over_the_other_axes(weights):
    fold = Fold(ATTRS, weights)

    for degree in range(len(ATTRS) + 1):
        for axes in itertools.combinations(range(len(ATTRS)), degree):
            others = tuple(axis for axis in range(len(ATTRS)) if axis not in axes)
            expected = weights.sum(axis=others)
            np.testing.assert_allclose(fold.count(tuple(ATTRS[a] for a in axes)), expected, rtol=1e-12)


def test_axes_come_in_the_order_asked(weights):
    fold = Fold(ATTRS, weights)

    np.testing.assert_allclose(fold.count(("e", "a", "d")), weights.sum(axis=(1, 2)).transpose(2, 0, 1))


def test_multiplying_touches_each_cell_by_its_marginal_cell_and_forgets_old_sums(weights):
    fold = Fold(ATTRS, weights.copy())
    fold.count(("a",))
    factor = np.random.default_rng(4).random((4, 2))  # d, b's neighbour c

    fold.multiply(("d", "c"), factor)

    expected = weights * factor.T[None, None, :, :, None]
    np.testing.assert_allclose(fold.weights, expected)
    np.testing.assert_allclose(fold.count(("a",)), expected.sum(axis=(1, 2, 3, 4)))


def test_one_attribute_alone_works_too():
    fold = Fold(("x",), np.arange(4.0))

    fold.multiply(("x",), np.array([1.0, 2.0, 1.0, 1.0]))

    assert fold.count(("x",)).tolist() == [0.0, 2.0, 2.0, 3.0]
    assert float(fold.count(())) == 7.0


def test_a_copy_is_independent(weights):
    fold = Fold(ATTRS, weights)
    other = fold.copy()

    other.multiply(("a",), np.zeros(2))

    assert fold.weights.sum() > 0
