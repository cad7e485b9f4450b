"""The best-mixture error comes out for every table, with its proof, whatever the solver does."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize

from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.evaluation import mixture_bounds
from sidelight.evaluation.best_mixture import exact, frequencies_of, tolerance_for
from sidelight.evaluation.matrix_game import solve_game
from sidelight.evaluation.mixture_bounds import Problem
from sidelight.evaluation.screening import screen
from sidelight.models.support import Support
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

linprog = optimize.linprog


def table(domain, records):
    return Table.of_codes(domain, np.array(records, dtype=np.int64).reshape(-1, len(domain)))


def digits(words):
    return [[int(digit) for digit in word] for word in words.split()]


def whole_program(support, marginals, frequencies):
    """f by the whole linear program, written out and solved at once."""
    rows = []
    for attrs, share in zip(marginals, frequencies, strict=True):
        codes = tuple(support.records[:, support.domain.index(attrs)].T)
        flat = np.ravel_multi_index(codes, share.shape)
        rows.append(flat == np.arange(share.size)[:, None])
    counted = np.concatenate(rows).astype(float)
    target, ones = np.concatenate([share.reshape(-1) for share in frequencies]), np.ones((len(counted), 1))
    return linprog(
        np.append(np.zeros(counted.shape[1]), 1.0),
        A_ub=np.block([[counted, -ones], [-counted, -ones]]),
        b_ub=np.concatenate([target, -target]),
        A_eq=np.append(np.ones(counted.shape[1]), 0.0)[None],
        b_eq=[1.0],
    ).fun


def certified(private, public, workload):
    """The value that would go to the noise, after its proof was checked against the whole program."""
    support, (marginals, frequencies) = Support.of_table(public, total=1.0), frequencies_of(private, workload)
    tolerance = tolerance_for(private.records)
    found = exact(support, marginals, frequencies, tolerance=tolerance)
    assert Fraction(found.high) - Fraction(found.low) <= tolerance
    assert found.low - 1e-9 <= whole_program(support, marginals, frequencies) <= found.high + 1e-9
    return found.high


def random_tables(number, seed):
    """Small random tables, and each with one record replaced: the projections stall on one in fifty."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        shape = rng.integers(2, 5, int(rng.integers(3, 5))).tolist()
        domain = Domain.of({f"a{i}": size for i, size in enumerate(shape)})
        records = rng.integers(0, shape, (int(rng.integers(8, 60)), len(shape)))
        public = rng.integers(0, shape, (int(rng.integers(5, 50)), len(shape)))
        neighbour = records.copy()
        neighbour[int(rng.integers(len(records)))] = rng.integers(0, shape)
        yield domain, table(domain, records), table(domain, neighbour), table(domain, public)


def check_random_tables(number, seed):
    for domain, one, other, public in random_tables(number, seed):
        workload = Workload.of("2-way", domain)
        moved = abs(certified(one, public, workload) - certified(other, public, workload))
        assert moved <= 1 / one.records + 2 * tolerance_for(one.records)


def test_small_random_tables_are_certified_and_their_neighbours_too():
    check_random_tables(40, seed=33)


@pytest.mark.slow
def test_thousands_of_small_random_tables_are_certified_and_their_neighbours_too():
    check_random_tables(3000, seed=6)


PAIR = Domain.of({"a0": 3, "a1": 2, "a2": 2, "a3": 4})
COMMON = "2001 0101 1013 1001 0102 1112 0112 1110 1002 1011 2002 1012 0013 0011 1113 0012 1002 0001"
PUBLIC = (
    "0010 1012 2003 1003 2001 1001 0111 0110 2000 0002 0002 1003 1000 0000 1003 1001 2003 1112 1111 2013 "
    "2112 2110 1002 1103 0111 1113 2001 1102 2000 2111 0112 2001 0113 1101 0003 0100 2003 2110 1012 0111"
)


def test_two_neighbours_of_which_one_made_the_projections_stall_both_get_an_answer():
    one, other = (table(PAIR, digits(f"{COMMON} {last}")) for last in ("2103", "1112"))
    public, workload = table(PAIR, digits(PUBLIC)), Workload.of("2-way", PAIR)

    values = [certified(private, public, workload) for private in (one, other)]

    assert abs(values[0] - values[1]) <= 1 / 19 + 2 * tolerance_for(19)
    for private in (one, other):
        (found,) = screen(private, {"P": public}, epsilon=0.01, workload="2-way", noise=SeededNoise(1))
        assert found.mixture.stddev > 0


def larger_tables(rng, n, records, attributes):
    """Another population's records, each attribute with its own frequencies."""
    shape = rng.integers(2, 6, attributes).tolist()
    domain = Domain.of({f"a{i}": size for i, size in enumerate(shape)})

    def people(number):
        return np.stack([rng.choice(size, number, p=rng.dirichlet(np.ones(size))) for size in shape], axis=1)

    return domain, table(domain, people(n)), table(domain, people(records))


def test_tables_of_three_thousand_records_are_certified():
    rng = np.random.default_rng(17)
    for _ in range(3):
        domain, private, public = larger_tables(rng, 3000, 500, 6)

        certified(private, public, Workload.of("2-way", domain))


@pytest.mark.slow
def test_many_tables_of_three_thousand_records_are_certified():
    rng = np.random.default_rng(3)
    sizes = [(3000, 500, 6, "2-way"), (500, 60, 5, "2-way"), (1000, 300, 5, "3-way")]
    for n, records, attributes, degree in sizes:
        for _ in range(30):
            domain, private, public = larger_tables(rng, n, records, attributes)

            certified(private, public, Workload.of(degree, domain))


def gives_up(*arguments, **settings):
    return SimpleNamespace(status=4, x=None)


def raises(*arguments, **settings):
    raise ValueError("the matrix is too hard")


def is_no_number(cost, **settings):
    duals = np.full(len(settings["b_eq"]), np.nan)
    return SimpleNamespace(status=0, x=np.full(len(cost), np.nan), eqlin=SimpleNamespace(marginals=duals))


def is_wrong(cost, **settings):
    rng = np.random.default_rng(len(cost))
    duals = rng.normal(size=len(settings["b_eq"]))
    return SimpleNamespace(status=0, x=rng.random(len(cost)), eqlin=SimpleNamespace(marginals=duals))


def is_short(cost, **settings):
    return SimpleNamespace(status=0, x=np.ones(1), eqlin=SimpleNamespace(marginals=np.ones(1)))


@pytest.mark.parametrize("solver", [gives_up, raises, is_no_number, is_wrong, is_short])
def test_a_solver_that_fails_costs_time_and_nothing_else(solver, monkeypatch):
    monkeypatch.setattr(optimize, "linprog", solver)

    check_random_tables(4, seed=7)


def test_a_solver_that_fails_leaves_screening_its_answer_and_its_price(monkeypatch):
    monkeypatch.setattr(optimize, "linprog", gives_up)
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), Unit("replace"), "toy"))
    private, public = table(PAIR, digits(f"{COMMON} 2103")), table(PAIR, digits(PUBLIC))

    (found,) = screen(private, {"P": public}, epsilon=0.25, workload="2-way", ledger=ledger)

    assert found.name == "P"
    assert float(ledger.left) == 0.75


def test_projections_that_overflow_prove_nothing_and_stop_nothing():
    """The least number above 0 grows beyond the largest; what is no number is never nearer to a bound."""
    domain = Domain.of({"a": 2, "b": 2})
    private, workload = table(domain, [[0, 0], [1, 1]] * 5 + [[0, 1]]), Workload.of("1-way", domain)
    support = Support(domain, np.array([[0, 0], [1, 1]]), np.array([1.0, 5e-324]), 1.0)

    found = exact(support, *frequencies_of(private, workload), tolerance=tolerance_for(11))

    assert found.low <= 1 / 22 <= found.high


def test_bounds_hold_for_weights_that_were_computed_with_errors():
    """Any weights, scaled in any way: the bounds that they prove hold of the whole program's value."""
    rng = np.random.default_rng(9)
    for domain, private, _, public in random_tables(30, seed=10):
        support, (marginals, frequencies) = (
            Support.of_table(public, total=1.0),
            frequencies_of(private, Workload.of("2-way", domain)),
        )
        problem, value = (
            Problem(support, marginals, frequencies),
            whole_program(support, marginals, frequencies),
        )
        for scale in (1e-300, 1.0, 1e300):
            assert problem.upper(scale * rng.random(problem.records))[0] >= value - 1e-12
            assert problem.lower(scale * rng.normal(size=problem.target.size)) <= value + 1e-12


@pytest.mark.parametrize("weights", [np.nan, np.inf, 0.0])
def test_what_is_no_mixture_proves_nothing(weights):
    (domain, private, _, public), *_ = random_tables(1, seed=11)
    problem = Problem(
        Support.of_table(public, total=1.0), *frequencies_of(private, Workload.of("1-way", domain))
    )

    assert problem.upper(np.full(problem.records, weights))[0] == 1.0
    assert problem.lower(np.full(problem.target.size, weights)) == 0.0


def test_a_game_is_solved_exactly():
    rng = np.random.default_rng(12)
    for _ in range(100):
        payoffs = rng.integers(-4, 5, rng.integers(1, 8, 2)).astype(object)

        mixture, plays = solve_game(payoffs)

        assert min(mixture) >= 0
        assert min(plays) >= 0
        worst = max(Fraction(int(paid), sum(mixture)) for paid in payoffs @ np.array(mixture, dtype=object))
        best = min(Fraction(int(paid), sum(plays)) for paid in np.array(plays, dtype=object) @ payoffs)
        assert worst == best


def test_the_tolerance_has_a_floor_that_is_public():
    assert tolerance_for(1000) == Fraction(1, 20_000)
    assert tolerance_for(10**9) == Fraction(1, 2**28)


def test_what_is_too_large_to_be_solved_in_whole_is_refused_before_anything_is_charged(monkeypatch):
    monkeypatch.setattr(mixture_bounds, "_MOST_ENTRIES", 100)
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), Unit("replace"), "toy"))
    private, public = table(PAIR, digits(f"{COMMON} 2103")), table(PAIR, digits(PUBLIC))

    with pytest.raises(SettingError, match="fewer marginals, or give a sample"):
        screen(private, {"P": public}, epsilon=0.25, workload="2-way", ledger=ledger)

    assert ledger.left == 1
    assert not list(ledger.runs())
