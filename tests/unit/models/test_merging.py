"""Rare values merged, and a model of what is left expanded again."""

import numpy as np
import pytest

from sidelight.data.domain import Combination, Domain
from sidelight.measurement import Measurement
from sidelight.models.graphical import GraphicalModel
from sidelight.models.merging import Merging
from sidelight.queries.merged import Merged
from sidelight.queries.query import Marginal

DOMAIN = Domain.of({"a": 5, "b": 2, "c": 3})


def one_way(attr, answer, stddev=10.0):
    return Measurement(Marginal((attr,)), np.array(answer, dtype=float), stddev)


def merging():
    return Merging.of(DOMAIN, [one_way("a", [300, 5, 29, -40, 31]), one_way("b", [10, 200])], threshold=3.0)


def test_values_below_the_threshold_are_merged_and_a_single_one_is_left_alone():
    made = merging()

    assert made.groups["a"] == (0, 2, 2, 2, 1)
    assert made.groups["b"] == (0, 1)
    assert made.merged == {"a": 3}
    assert made.domain.shape == (3, 2, 3)


def test_only_marginals_that_hold_merged_values_are_asked_for_in_groups():
    made = merging()

    assert made.query(("b", "c")) == Marginal(("b", "c"))
    assert isinstance(made.query(("a", "c")), Merged)


def test_shares_follow_the_noisy_answers_and_none_is_0():
    shares = merging().shares["a"]

    assert shares[[1, 2, 3]].sum() == pytest.approx(1)
    assert shares[2] > shares[1] > shares[3] > 0
    # The mean of a normal of mean 0.5 and σ = 1, given that it is not below 0.
    low, high = 0.5 + 0.3520653 / 0.6914625, 2.9 + 0.0059525 / 0.9981342
    assert shares[2] / shares[1] == pytest.approx(high / low, rel=1e-5)


def test_answers_far_below_0_have_shares_too():
    made = Merging.of(DOMAIN, [one_way("a", [300, -1e12, -1e5, 0, 31], 1.0)], threshold=3.0)

    assert np.isfinite(made.shares["a"]).all()
    assert (made.shares["a"] > 0).all()


def test_an_expanded_model_has_the_small_models_counts_on_groups_and_shares_within():
    made = merging()
    rng = np.random.default_rng(0)
    potentials = {("a", "b"): rng.normal(size=(3, 2)), ("b", "c"): rng.normal(size=(2, 3))}
    small = GraphicalModel(made.domain, 100.0, potentials)

    large = made.expanded(small)

    for attrs in (("a", "b"), ("b", "c"), ("a", "c")):
        grouped = Merged(attrs, tuple(made.groups[attr] for attr in attrs)).apply(large.count(attrs))
        assert np.allclose(grouped, small.count(attrs).reshape(-1))
    counts = large.count(("a",))
    assert np.allclose(counts[[1, 2, 3]] / counts[[1, 2, 3]].sum(), made.shares["a"][[1, 2, 3]])


def test_a_one_way_answer_is_summed_over_groups_with_the_variance_of_the_sum():
    answer = one_way("a", [300, 5, 29, -40, 31])

    inside, precision = merging().inside(answer)

    assert inside.answer.tolist() == [300, 31, -6]
    assert np.allclose(1 / precision, [100, 100, 300])


def test_values_that_impossible_combinations_name_are_never_merged():
    domain = Domain(("a", "b", "c"), (5, 2, 3), (Combination.of({"a": [1, 3], "b": [0]}),))

    made = Merging.of(domain, [one_way("a", [300, 5, 2, -40, 1])], threshold=3.0)

    assert made.groups["a"] == (0, 1, 3, 2, 3)
    assert made.domain.impossible[0].values == ((1, 2), (0,))
