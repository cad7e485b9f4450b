"""Mixtures of products: their marginals against enumeration, with and without impossible combinations."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from sidelight.data.domain import Combination, Domain
from sidelight.data.impossible import is_possible
from sidelight.errors import ReleaseError
from sidelight.models.load import model_from_state
from sidelight.models.product_mixture import Blocks, ProductMixture

PLAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 2})
JOINED = Domain(PLAIN.attrs, PLAIN.shape, (Combination.of({"a": [0], "c": [1, 3]}),))


def drawn(domain, rows=7, total=50.0, seed=0):
    """A mixture of random rows."""
    rng, blocks = np.random.default_rng(seed), Blocks.of(domain)
    table = rng.random((rows, blocks.width)) * blocks.possible
    for columns in blocks.columns:
        table[:, columns] /= table[:, columns].sum(axis=1, keepdims=True)
    return ProductMixture(blocks, table, total)


def enumerated(model):
    """Every cell of the domain by itself: the mean over the rows of the products of their blocks."""
    domain, cells = model.domain, np.zeros(model.domain.shape)
    for record in itertools.product(*map(range, domain.shape)):
        value = dict(zip(domain.attrs, record, strict=True))
        for row in model.rows:
            chance = 1.0
            for attrs, columns in zip(model.blocks.groups, model.blocks.columns, strict=True):
                place = np.ravel_multi_index([value[a] for a in attrs], domain.project(attrs).shape)
                chance *= row[columns][place]
            cells[record] += model.total * chance / len(model.rows)
    return cells


@pytest.mark.parametrize("domain", [PLAIN, JOINED], ids=["plain", "joined"])
def test_every_marginal_in_every_order_is_that_of_the_enumerated_table(domain):
    model = drawn(domain)
    whole = enumerated(model)

    for degree in range(len(domain) + 1):
        for attrs in itertools.permutations(domain.attrs, degree):
            gone = tuple(k for k, a in enumerate(domain.attrs) if a not in attrs)
            kept = [a for a in domain.attrs if a in attrs]
            expected = whole.sum(axis=gone).transpose([kept.index(a) for a in attrs])
            np.testing.assert_allclose(model.count(attrs), expected, rtol=1e-12, atol=1e-12)


def test_attributes_that_impossible_combinations_join_are_one_block():
    model = drawn(JOINED)

    assert model.blocks.groups == (("a", "c"), ("b",), ("d",))
    assert (model.count(("a", "c"))[0, [1, 3]] == 0).all()
    assert is_possible(JOINED, model.sample(2000, seed=1).codes()).all()


@pytest.mark.parametrize("records", [1, 3, 7, 100])
def test_each_row_gives_as_many_records_as_whole_records_allow(records):
    # Every row is one record of its own.
    domain = Domain.of({"a": 7})
    model = ProductMixture(Blocks.of(domain), np.eye(7), 7.0)

    counts = model.sample(records, seed=2).count(("a",))

    assert counts.sum() == records
    assert counts.max() - counts.min() <= 1


def test_a_network_travels_with_the_model():
    model = replace(drawn(PLAIN), network={"noise": np.ones((7, 2), dtype=np.float32)})

    again = model_from_state(PLAIN, model.state())

    assert again.network["noise"].shape == (7, 2)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            lambda state: state.arrays.update(rows=state.arrays["rows"][:, :-1]),
            "a probability for each value",
        ),
        (lambda state: state.arrays.update(rows=state.arrays["rows"] * 2), "add up to 1"),
        (lambda state: state.arrays.update(rows=-state.arrays["rows"]), "not negative"),
        (lambda state: state.meta.update(groups=[["a"], ["b"], ["c"]]), "every attribute in one block"),
        (lambda state: state.meta.update(total=-1), "number of records"),
    ],
)
def test_an_edited_state_is_refused(edit, said):
    state = drawn(PLAIN).state()
    edit(state)

    with pytest.raises(ReleaseError, match=said):
        model_from_state(PLAIN, state)
