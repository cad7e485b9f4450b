"""Distinct records, packed into numbers and sorted."""

import numpy as np
import pytest

from sidelight.data.engines.distinct import distinct_records, distinct_weights

ADULT = [85, 9, 16, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2, 8]


@pytest.mark.parametrize("shape", [[3, 2], [1, 1, 3], [100] * 15, [2**16] * 5, [2**32, 2**32, 2], ADULT])
@pytest.mark.parametrize("records", [1, 5000])
def test_they_are_those_of_sorting_whole_records(shape, records):
    rng = np.random.default_rng(0)
    # Few values, at both ends: many records are equal, and no word may overflow.
    columns = [np.where(rng.random(records) < 0.6, 0, size - 1) for size in shape]

    codes, counts = distinct_records(shape, columns, records=records)

    expected, times = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
    np.testing.assert_array_equal(codes, expected)
    np.testing.assert_array_equal(counts, times)


def test_no_records_and_no_attributes():
    codes, counts = distinct_records([2, 3], [np.empty(0, dtype=np.uint8)] * 2, records=0)
    assert codes.shape == (0, 2)
    assert counts.size == 0
    codes, counts = distinct_records([], [], records=4)
    assert codes.shape == (1, 0)
    assert counts.tolist() == [4]


@pytest.mark.parametrize("shape", [[3, 2], [100] * 15, [2**32, 2**32, 2], ADULT])
def test_the_weights_of_copies_are_added_up(shape):
    rng = np.random.default_rng(1)
    columns = [np.where(rng.random(5000) < 0.6, 0, size - 1) for size in shape]
    weights = rng.random(5000)

    codes, together = distinct_weights(shape, columns, weights)

    expected, which = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    np.testing.assert_array_equal(codes, expected)
    np.testing.assert_allclose(together, np.bincount(which.reshape(-1), weights), rtol=1e-12)


def test_no_weighted_records():
    codes, together = distinct_weights([2, 3], [np.empty(0, dtype=np.uint8)] * 2, np.zeros(0))

    assert codes.shape == (0, 2)
    assert together.size == 0
