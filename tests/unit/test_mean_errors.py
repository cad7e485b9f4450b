"""Which mean errors are measured: the sets of marginals, and who gets how much of the cost."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

from sidelight import mean_errors
from sidelight.data.domain import Domain
from sidelight.mean_errors import MeanErrors
from sidelight.privacy.accountant import Accountant
from sidelight.privacy.budget import Epsilon, Rho
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload

UNIT = Unit("replace")


def test_every_degree_up_to_three_is_measured_and_every_attribute():
    domain = Domain.of(dict.fromkeys("abcde", 2))

    asked = MeanErrors.of(Workload.marginals(domain, degree=4).attribute_sets, domain, Rho)

    assert [(part.name, len(part.places), part.of) for part in asked.sets] == [
        ("3", 10, 10), ("2", 10, 10), ("1", 5, 5), *((attr, 6, 6) for attr in "abcde"),
    ]  # fmt: skip


def test_an_attribute_is_judged_by_the_highest_degree_that_it_is_in():
    domain = Domain.of(dict.fromkeys("abcd", 2))

    asked = MeanErrors.of([("a", "b", "c"), ("d",)], domain, Rho)

    of_d = next(part for part in asked.sets if part.name == "d")
    assert [asked.marginals[place] for place in of_d.places] == [("d",)]


def test_one_attribute_alone_has_no_mean_beside_the_headline():
    asked = MeanErrors.of([("a",)], Domain.of({"a": 2, "b": 2}), Rho)

    assert [part.name for part in asked.sets] == ["1"]


def test_a_workload_of_the_total_alone_has_nothing_to_judge():
    assert MeanErrors.of([()], Domain.of({"a": 2}), Rho) is None


@pytest.mark.parametrize("currency", [Rho, Epsilon])
def test_the_headline_gets_most_of_the_cost(currency):
    domain = Domain.of({f"x{i}": 3 for i in range(15)})
    asked = MeanErrors.of(Workload.marginals(domain, degree=3).attribute_sets, domain, currency)

    event = asked.event(currency(Fraction(1, 100)), UNIT)

    weight = [part.steps ** (2 if currency is Rho else 1) for part in asked.sets]
    assert 0.5 < weight[0] / sum(weight) < 0.7
    assert isinstance(event, Gaussian if currency is Rho else Laplace)


def test_many_marginals_are_represented_by_an_even_part_of_them():
    domain = Domain.of({f"x{i:02}": 2 for i in range(40)})
    triples = list(itertools.combinations(domain.attrs, 3))

    asked = MeanErrors.of(triples, domain, Rho)

    headline = asked.sets[0]
    assert (len(headline.places), headline.of) == (mean_errors.MOST_MARGINALS, len(triples))
    held = [len(part.places) for part in asked.sets if part.kind == "attribute"]
    # A thousand triples of forty attributes: 75 for each, give or take what chance gives.
    assert len(held) == 40
    assert 40 < min(held) <= max(held) < 115


def test_the_even_part_does_not_depend_on_the_order_of_the_workload():
    domain = Domain.of({f"x{i:02}": 2 for i in range(30)})
    triples = list(itertools.combinations(domain.attrs, 3))
    shuffled = random.Random(1).sample(triples, len(triples))

    first, second = (MeanErrors.of(supports, domain, Rho) for supports in (triples, shuffled))

    assert set(first.marginals) == set(second.marginals)


def test_a_marginal_too_large_to_count_is_left_out_and_said_to_be():
    domain = Domain.of({"a": 2**13, "b": 2**13, "c": 2})

    asked = MeanErrors.of([("a", "b"), ("b", "c")], domain, Rho)

    assert ("a", "b") not in asked.marginals
    assert (len(asked.sets[0].places), asked.sets[0].of) == (1, 2)


def test_an_error_beyond_what_sums_exactly_is_cut_and_still_fits():
    asked = MeanErrors.of([("a",)], Domain.of({"a": 2}), Rho)

    counted = asked.counted({0: 2.0**35})

    assert counted.tolist() == [2**35 * asked.sets[0].steps]
    assert counted.dtype == np.int64


def test_what_is_set_aside_cannot_be_spent_before_it_is_freed():
    accountant = Accountant(Rho(Fraction(1)), set_aside=Rho(Fraction(1, 50)))

    assert accountant.remaining == accountant.allotment == Rho(Fraction(49, 50))
    assert accountant.free() == Rho(Fraction(1, 50))
    assert accountant.remaining == accountant.allotment == Rho(Fraction(1))
    assert accountant.free() == Rho(Fraction(0))
