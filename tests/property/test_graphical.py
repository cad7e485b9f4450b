"""Random small models against the sum over every cell."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidelight.data.domain import Domain
from sidelight.errors import InputError
from sidelight.models.graphical import GraphicalModel
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.triangulation import SizeOracle

NAMES = ("a", "b", "c", "d", "e", "f")


@st.composite
def domains(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    return Domain(NAMES[: len(sizes)], tuple(sizes))


@st.composite
def attribute_sets(draw, domain, most=6):
    one = st.lists(st.sampled_from(domain.attrs), min_size=1, max_size=3, unique=True).map(tuple)
    return draw(st.lists(one, max_size=most, unique_by=frozenset))


@st.composite
def models(draw):
    domain = draw(domains())
    scale = draw(st.sampled_from([0.0, 1.0, 30.0, 400.0, 5000.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    potentials = {
        attrs: scale * rng.normal(size=domain.project(attrs).shape) for attrs in draw(attribute_sets(domain))
    }
    impossible = tuple(
        (attrs, rng.random(domain.project(attrs).shape) < 0.3)
        for attrs in draw(attribute_sets(domain, most=2))
    )
    return GraphicalModel(domain, 7.0, potentials, impossible)


def every_cell(model):
    """The exponent of every cell, and the greatest."""
    domain = model.domain
    exponent = np.zeros(domain.shape)
    for attrs, table in [
        *model.potentials.items(),
        *((a, np.where(m, -np.inf, 0.0)) for a, m in model.impossible),
    ]:
        turned = np.transpose(table, [attrs.index(a) for a in domain.canonical(attrs)])
        exponent = exponent + turned.reshape([domain.sizes[a] if a in attrs else 1 for a in domain.attrs])
    return exponent


def summed(p, domain, attrs):
    left = p.sum(axis=tuple(i for i, a in enumerate(domain.attrs) if a not in attrs))
    kept = domain.canonical(attrs)
    return np.transpose(left, [kept.index(a) for a in attrs])


@settings(max_examples=150, deadline=None)
@given(models(), st.integers(0, 2**32))
def test_marginals_and_log_partition_are_those_of_the_sum_over_every_cell(model, seed):
    exponent = every_cell(model)
    peak = exponent.max()
    if not np.isfinite(peak):
        with pytest.raises(InputError, match="exclude every record"):
            model.count(())
        return
    p = np.exp(exponent - peak)
    expected_log_partition = peak + np.log(p.sum())
    p /= p.sum()
    every = [w for k in range(len(model.domain) + 1) for w in itertools.permutations(model.domain.attrs, k)]
    chosen = np.random.default_rng(seed).permutation(len(every))[:25]
    wanted = [every[i] for i in chosen]

    answers = dict(model.count_each(wanted))

    assert model.log_partition == pytest.approx(expected_log_partition, rel=1e-9, abs=1e-9)
    for place, attrs in enumerate(wanted):
        np.testing.assert_allclose(answers[place], 7.0 * summed(p, model.domain, attrs), atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_the_predicted_size_is_the_size_of_the_tables(data):
    domain = data.draw(domains())
    measured = data.draw(attribute_sets(domain))
    candidates = data.draw(attribute_sets(domain))
    oracle = SizeOracle(domain, measured)

    predicted = oracle.cells_with_each(candidates)

    assert oracle.cells == JunctionTree.of(domain, measured).cells
    for candidate, cells in zip(candidates, predicted, strict=True):
        potentials = {attrs: np.zeros(domain.project(attrs).shape) for attrs in {*measured, candidate}}
        model = GraphicalModel(domain, 1.0, potentials)
        tables = [model.count(clique) for clique in model.tree.cliques]
        assert cells == sum(table.size for table in tables) == model.tree.cells


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_every_set_has_a_home_and_every_attribute_is_connected(data):
    domain = data.draw(domains())
    measured = data.draw(attribute_sets(domain))

    tree = JunctionTree.of(domain, measured)

    assert all(tree.home(attrs) is not None for attrs in measured)
    assert not any(set(c) < set(d) for c in tree.cliques for d in tree.cliques)
    for attr in domain.attrs:
        holding = {i for i, clique in enumerate(tree.cliques) if attr in clique}
        # Running intersection: all but the topmost of them share the attribute with their parent.
        assert sum(tree.parents[i] not in holding for i in holding) == 1


@settings(max_examples=60, deadline=None)
@given(models(), st.integers(0, 300), st.integers(0, 2**32))
def test_sampled_records_are_possible_and_as_many_as_asked(model, records, seed):
    if not np.isfinite(every_cell(model).max()):
        return

    codes = np.asarray(model.sample(records, seed=seed).codes())

    assert codes.shape == (records, len(model.domain))
    assert (codes < np.array(model.domain.shape)).all()
    for attrs, mask in model.impossible:
        assert not mask[tuple(codes[:, i] for i in model.domain.index(attrs))].any()
