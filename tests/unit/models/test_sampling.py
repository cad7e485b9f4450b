import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.errors import SettingError
from sidelight.models.graphical import GraphicalModel

DOMAIN = Domain.of({"a": 3, "b": 4, "c": 5, "d": 300})


def model(seed=0):
    rng = np.random.default_rng(seed)
    sets = [("a", "b"), ("b", "c")]
    return GraphicalModel(
        DOMAIN, 500.0, {attrs: rng.normal(size=DOMAIN.project(attrs).shape) for attrs in sets}
    )


def codes_of(records, seed):
    return np.asarray(model().sample(records, seed=seed).codes())


@pytest.mark.parametrize("records", [0, 1, 7, 1000])
def test_there_are_as_many_records_as_asked_all_inside_the_domain(records):
    codes = codes_of(records, seed=1)

    assert codes.shape == (records, 4)
    assert (codes < np.array(DOMAIN.shape)).all()


def test_the_same_seed_gives_the_same_records_and_another_seed_others():
    np.testing.assert_array_equal(codes_of(500, seed=1), codes_of(500, seed=1))
    assert (codes_of(500, seed=1) != codes_of(500, seed=2)).any()


def test_the_first_clique_is_within_one_record_of_the_model():
    source = model()
    first = source.tree.cliques[source.tree.order[0]]

    table = source.sample(10_000, seed=3)

    expected = source.count(first) * 10_000 / source.total
    assert np.abs(table.count(first) - expected).max() < 1
    for attr in first:
        assert np.abs(table.count((attr,)) - source.count((attr,)) * 20).max() < 1


def test_each_cell_of_a_further_clique_is_within_one_record_given_its_separator():
    source = model()
    child = source.tree.order[-1]
    clique, separator = source.tree.cliques[child], source.tree.separators[child]
    other = tuple(attr for attr in clique if attr not in separator)

    table = source.sample(10_000, seed=3)

    share = source.count((*separator, *other)) / source.count(separator)[..., None]
    expected = table.count(separator)[..., None] * share
    assert np.abs(table.count((*separator, *other)) - expected).max() < 1


def test_rounding_strays_less_from_the_model_than_independent_draws():
    source = model()
    expected = source.count(("a", "c")) / source.total
    rng = np.random.default_rng(0)

    ours = np.mean(
        [np.abs(source.sample(2000, seed=s).count(("a", "c")) / 2000 - expected).sum() for s in range(20)]
    )

    drawn = [rng.multinomial(2000, expected.reshape(-1)).reshape(expected.shape) for _ in range(200)]
    independent = np.mean([np.abs(counts / 2000 - expected).sum() for counts in drawn])
    assert 0 < ours < 0.8 * independent


def test_attributes_that_are_independent_in_the_model_are_so_in_the_records():
    table = model().sample(60_000, seed=5)

    joint = table.count(("a", "d")) / 60_000
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    # Independent draws give an expected L1 of about √(2/π · cells / records) = 0.1; alignment would give 1.
    assert np.abs(joint - product).sum() < 0.15


def test_a_negative_number_of_records_is_refused():
    with pytest.raises(SettingError, match="records must be a whole number of at least 0"):
        model().sample(-1, seed=0)
