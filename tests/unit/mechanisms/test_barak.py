import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import TooLargeError, WorkloadError
from sidelight.evaluation.workload_errors import max_error
from sidelight.mechanisms.barak import Barak, coefficients
from sidelight.mechanisms.registry import mechanism_of
from sidelight.privacy.budget import Epsilon
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Fourier, Range
from sidelight.queries.workload import Workload

DOMAIN = Domain.of(dict.fromkeys("abcd", 2))
WORKLOAD = Workload.marginals(DOMAIN, degree=2)


def marginal_of(attrs, values):
    """The marginal on binary attributes that these coefficients determine: 2^{−|b|} Σ_a (−1)^{a·y} φ_a."""
    marginal = np.zeros((2,) * len(attrs))
    for degree in range(len(attrs) + 1):
        for below in itertools.combinations(attrs, degree):
            signs = Fourier(below).weights((2,) * degree)
            marginal += values[below] * signs.reshape([2 if attr in below else 1 for attr in attrs])
    return marginal / 2 ** len(attrs)


@pytest.fixture
def binary(toy):
    rng = np.random.default_rng(6)
    first = rng.integers(0, 2, (400, 1))
    codes = np.concatenate([first, (rng.random((400, 3)) < 0.2 + 0.5 * first)], axis=1)
    return type(toy)(Table.of_codes(DOMAIN, codes.astype(np.uint8)), WORKLOAD)


@pytest.mark.parametrize(("attributes", "degree", "number"), [(16, 2, 137), (16, 3, 697), (3, 2, 7)])
def test_all_marginals_of_a_degree_need_this_many_coefficients(attributes, degree, number):
    domain = Domain.of({f"a{i}": 2 for i in range(attributes)})
    workload = Workload.marginals(domain, degree=degree)

    assert len(coefficients(domain, workload, with_total=True)) == number
    assert number == sum(math.comb(attributes, k) for k in range(degree + 1))


def test_exact_coefficients_give_back_every_marginal(binary):
    table = binary.table
    exact = {
        query.attrs: float(query.apply(table.count(query.attrs))[0])
        for query in coefficients(DOMAIN, Workload.marginals(DOMAIN, degree=3), with_total=True)
    }

    for attrs in itertools.combinations(DOMAIN.attrs, 3):
        np.testing.assert_allclose(marginal_of(attrs, exact), table.count(attrs), atol=1e-9)


@pytest.mark.parametrize(("relation", "scale"), [("replace", 2 * 10), ("add-or-remove", 11)])
def test_the_noise_of_each_coefficient_is_the_papers_for_the_unit(binary, relation, scale):
    curator, _ = binary.curator(unit=Unit(relation), epsilon="1")

    release = Barak(accounting="pure").run(curator, WORKLOAD)

    assert all(isinstance(event, Laplace) for event in release.events)
    assert [float(event.scale) for event in release.events] == pytest.approx([scale] * len(release.events))
    assert sum((event.cost for event in release.events), Epsilon(Fraction(0))) == Epsilon(Fraction(1))


@pytest.mark.parametrize("fit", ["multiplicative-weights", "linear-program"])
def test_much_budget_recovers_the_marginals(binary, fit):
    curator, _ = binary.curator(rho="1000000")

    release = Barak(fit=fit, passes=300).run(curator, WORKLOAD)

    assert {type(event) for event in release.events} == {Gaussian}
    assert release.total == pytest.approx(400)
    assert max_error(binary.table, release, WORKLOAD, total=400) < 0.01


def test_the_linear_program_has_the_least_largest_deviation(binary):
    lp, _ = binary.curator(rho="1/100")
    mw, _ = binary.curator(rho="1/100")

    def deviation(release):
        return max(
            abs(float(made.answer[0] - made.query.apply(release.count(made.query.attrs))[0]))
            for made in release.measurements
        )

    best = deviation(Barak(fit="linear-program").run(lp, WORKLOAD))
    assert best <= deviation(Barak(passes=100).run(mw, WORKLOAD)) + 1e-6


def test_under_add_or_remove_the_total_is_measured_like_any_coefficient(binary):
    curator, _ = binary.curator(unit=Unit("add-or-remove"), rho="10")

    release = Barak().run(curator, WORKLOAD)

    assert release.measurements[0].query.attrs == ()
    assert release.total == max(1.0, release.measurements[0].answer[0])


def test_what_it_cannot_do_is_refused():
    wide = Domain.of({"a": 2, "b": 3})
    large = Domain.of({f"a{i}": 2 for i in range(14)})

    with pytest.raises(WorkloadError, match="Fourier queries need binary attributes; b are not"):
        Barak().check(wide, Workload([("a", "b")]), None)
    with pytest.raises(WorkloadError, match="takes whole marginals"):
        Barak().check(DOMAIN, Workload([Range((("a", 0, 1),))]), None)
    with pytest.raises(WorkloadError, match="the total alone"):
        Barak().check(DOMAIN, Workload([()]), None)
    with pytest.raises(TooLargeError, match="fit='multiplicative-weights'"):
        Barak(fit="linear-program").check(large, Workload([("a1",)]), None)


def test_the_outlook_counts_the_coefficients():
    outlook = Barak(accounting="pure").outlook(
        DOMAIN, WORKLOAD, allotment=Epsilon(Fraction(1)), unit=Unit("replace")
    )

    assert outlook.measurements == 10
    assert outlook.stddev == pytest.approx(math.sqrt(2) * 20, rel=1e-3)


def test_barak_is_found_by_its_name():
    assert isinstance(mechanism_of("barak", {"passes": 5}), Barak)
