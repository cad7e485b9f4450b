"""Counting through nested projections gives what counting one by one gives."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidelight.data.domain import Domain
from sidelight.models import projections as module
from sidelight.models.projections import Projections


def one_by_one(domain, records, weights, attrs):
    counts = np.zeros(domain.project(attrs).shape)
    np.add.at(counts, tuple(records[:, domain.index([a])[0]] for a in attrs), weights)
    return counts.reshape(-1)


def some_records(sizes, number, seed):
    rng = np.random.default_rng(seed)
    domain = Domain.of({f"a{i}": size for i, size in enumerate(sizes)})
    drawn = np.stack([rng.integers(0, size, number) for size in sizes], axis=1)
    return domain, np.unique(drawn, axis=0), rng


@pytest.fixture(autouse=True)
def many_nodes(monkeypatch):
    """Small examples build trees as deep as large tables do."""
    monkeypatch.setattr(module, "_NODE_STEPS", 0)


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    number=st.integers(1, 60),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_every_marginal_of_every_degree_is_counted(sizes, number, seed):
    domain, records, rng = some_records(sizes, number, seed)
    marginals = [c for k in range(1, len(sizes) + 1) for c in itertools.combinations(domain.attrs, k)]
    weights = rng.random(len(records))

    projections = Projections(domain, records, marginals)
    answers = projections.count(weights)

    for attrs in marginals:
        expected = one_by_one(domain, records, weights, attrs)
        np.testing.assert_allclose(answers[projections.places[attrs]], expected, atol=1e-12)


def test_axes_stand_in_the_order_asked():
    domain, records, rng = some_records([2, 3], 6, 0)
    weights = rng.random(len(records))

    projections = Projections(domain, records, [("a1", "a0")])

    expected = one_by_one(domain, records, weights, ("a1", "a0"))
    np.testing.assert_allclose(projections.count(weights), expected)


@pytest.mark.parametrize("touched_share", [0.02, 0.3, 1.0])
def test_a_change_gives_what_a_recount_gives(touched_share):
    domain, records, rng = some_records([7, 5, 4, 3, 2], 400, 1)
    marginals = list(itertools.combinations(domain.attrs, 3))
    projections = Projections(domain, records, marginals)
    weights = rng.random(len(records))
    answers = projections.count(weights)
    number = max(1, int(touched_share * len(records)))
    touched = np.sort(rng.choice(len(records), number, replace=False))
    change = rng.normal(size=number)

    projections.add(answers, touched, change)

    weights[touched] += change
    np.testing.assert_allclose(answers, projections.count(weights), atol=1e-12)


def test_without_room_for_a_cache_the_answers_are_the_same():
    domain, records, rng = some_records([7, 5, 4, 3], 300, 2)
    marginals = list(itertools.combinations(domain.attrs, 2))
    weights = rng.random(len(records))

    cached = Projections(domain, records, marginals)
    bare = Projections(domain, records, marginals, max_cache_mb=1e-9)

    assert bare.cache_bytes == 0 < cached.cache_bytes
    np.testing.assert_array_equal(bare.count(weights), cached.count(weights))


def test_the_cache_stays_within_its_limit():
    domain, records, _ = some_records([7, 5, 4, 3], 300, 3)
    marginals = list(itertools.combinations(domain.attrs, 2))

    projections = Projections(domain, records, marginals, max_cache_mb=0.004)

    assert 0 < projections.cache_bytes <= 0.004 * 2**20


def test_a_domain_beyond_64_bits_is_no_obstacle():
    domain, records, rng = some_records([1000] * 8, 50, 4)
    weights = rng.random(len(records))

    projections = Projections(domain, records, [domain.attrs[:1], domain.attrs[3:4], ("a0", "a7")])

    np.testing.assert_allclose(
        projections.count(weights)[projections.places["a0", "a7"]],
        one_by_one(domain, records, weights, ("a0", "a7")),
    )


def test_the_total_is_a_marginal_too():
    domain, records, rng = some_records([3, 2], 20, 5)
    weights = rng.random(len(records))

    projections = Projections(domain, records, [(), ("a0",)])

    assert projections.count(weights)[projections.places[()]] == pytest.approx([weights.sum()])
