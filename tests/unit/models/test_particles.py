"""Particles of a model: whole where the domain is small, drawn where it is not, and never what cannot be."""

import numpy as np
import pytest

from sidelight.data.domain import Combination, Domain
from sidelight.models.graphical import GraphicalModel
from sidelight.models.particles import particles, raked, room_for, thinned

SMALL = Domain.of({"a": 2, "b": 3, "c": 4})
WIDE = Domain.of({f"a{i}": 6 for i in range(8)})


def model_of(domain, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    pairs = list(zip(domain.attrs, domain.attrs[1:], strict=False))
    potentials = {pair: rng.normal(0, scale, domain.project(pair).shape) for pair in pairs}
    return GraphicalModel(domain, 500.0, potentials)


def test_a_small_domain_is_taken_whole_and_exactly():
    model = model_of(SMALL)

    found = particles(model, room=24, seed=0)

    assert len(found.records) == 24
    assert found.count(SMALL.attrs) == pytest.approx(model.count(SMALL.attrs), rel=1e-12)


def test_of_a_wide_domain_records_are_drawn_close_to_the_model():
    model = model_of(WIDE)

    few, many = (particles(model, room=room, seed=0) for room in (2000, 50_000))

    def distance(found):
        pairs = [("a0", "a1"), ("a3", "a4"), ("a0", "a7")]
        return sum(np.abs(found.count(pair) - model.count(pair)).sum() for pair in pairs)

    assert many.weights.sum() == pytest.approx(500.0)
    assert distance(many) < 0.5 * distance(few)
    assert distance(many) < 0.05 * 500
    assert len(np.unique(many.records, axis=0)) == len(many.records)


def test_raked_particles_are_closer_to_the_model_on_what_they_are_raked_to():
    model = model_of(WIDE)
    like = [("a0", "a3", "a6"), ("a1", "a4", "a7"), ("a2", "a5")]

    plain = particles(model, room=3000, seed=0)
    after = raked(plain, model, like)

    def distance(found):
        return sum(np.abs(found.count(attrs) - model.count(attrs)).sum() for attrs in like)

    assert distance(after) < 0.3 * distance(plain)
    assert after.weights.sum() == pytest.approx(500.0)
    assert np.array_equal(after.records, plain.records)


def test_where_few_records_are_distinct_more_are_drawn():
    narrow = model_of(WIDE, scale=6.0)

    once = len(np.unique(narrow.sample(3000, seed=0).codes(), axis=0))
    found = len(particles(narrow, room=3000, seed=0).records)

    assert once < 1500
    assert found > 1.2 * once


def test_thinned_records_are_few_and_say_about_the_same():
    many = particles(model_of(WIDE), room=20_000, seed=0)

    few = thinned(many, most=3000, seed=0)

    one = WIDE.attrs[:1]
    assert len(few.records) <= 3000
    assert few.weights.sum() == pytest.approx(500.0)
    assert few.count(one) == pytest.approx(many.count(one), rel=0.1)
    assert thinned(few, most=3000, seed=0) is few


@pytest.mark.parametrize("room", [10, 10**6])
def test_what_the_schema_declares_impossible_is_never_a_particle(room):
    domain = Domain(SMALL.attrs, SMALL.shape, (Combination.of({"a": [0], "b": [1, 2]}),))
    found = particles(GraphicalModel.uniform(domain, total=100.0), room=room, seed=0)

    assert not ((found.records[:, 0] == 0) & (found.records[:, 1] > 0)).any()
    assert found.weights.sum() == pytest.approx(100.0)


def test_room_is_counted_in_bytes_of_codes_and_a_weight():
    assert room_for(Domain.of({"a": 256, "b": 3}), 1.0) == 2**20 // 10
    assert room_for(Domain.of({"a": 257, "b": 3}), 1.0) == 2**20 // 12
    assert room_for(SMALL, 1e-9) == 1
    assert room_for(SMALL, 1e6) == 250_000


def test_draws_that_were_put_together_weigh_as_often_as_they_were_drawn():
    narrow = model_of(WIDE, scale=6.0)

    found = particles(narrow, room=3000, seed=0)

    codes = np.concatenate([narrow.sample(3000, seed=seed).codes() for seed in range(4)])
    records, times = np.unique(codes, axis=0, return_counts=True)
    np.testing.assert_array_equal(found.records, records)
    np.testing.assert_allclose(found.weights, times * (500 / 12_000), rtol=1e-12)
