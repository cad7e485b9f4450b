"""Best-mixture error: known values, brute force, certificates, sensitivity and its private release."""

import itertools
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import linprog

import sidelight as sl
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import BudgetExhausted, DataError, SettingError, WorkloadError
from sidelight.evaluation.best_mixture import bracketed, exact, frequencies_of
from sidelight.evaluation.screening import best_mixture_error, error_without_public, screen
from sidelight.evaluation.screening_curator import NoisyMixture
from sidelight.models.support import Support
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Cell
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

PAIR = Domain.of({"x1": 2, "x2": 2})
CUBE = Domain.of({"a": 3, "b": 2, "c": 2})


def table(domain, records):
    return Table.of_codes(domain, np.array(records, dtype=np.int64).reshape(-1, len(domain)))


def random_table(rng, domain, number):
    return table(domain, np.stack([rng.integers(0, size, number) for size in domain.shape], axis=1))


def brute_force(private, public, workload):
    """The whole linear program, written out."""
    support = Support.of_table(public, total=1.0)
    rows, target = [], []
    for query in workload:
        shape = public.domain.project(query.attrs).shape
        columns = [public.domain.index([attr])[0] for attr in query.attrs]
        share = private.count(query.attrs) / private.records
        for cell in np.ndindex(*shape):
            rows.append((support.records[:, columns] == cell).all(axis=1).astype(float))
            target.append(share[cell])
    rows, target = np.array(rows), np.array(target)
    ones = np.ones((len(rows), 1))
    found = linprog(
        np.append(np.zeros(rows.shape[1]), 1.0),
        A_ub=np.vstack([np.hstack([rows, -ones]), np.hstack([-rows, -ones])]),
        b_ub=np.concatenate([target, -target]),
        A_eq=np.append(np.ones(rows.shape[1]), 0.0)[None],
        b_eq=[1.0],
    )
    return found.fun


def both(private, public, workload, tolerance=1e-7):
    marginals, frequencies = frequencies_of(private, workload)
    support = Support.of_table(public, total=1.0)
    return exact(support, marginals, frequencies, tolerance=tolerance), bracketed(
        support, marginals, frequencies
    )


def test_the_specifications_example():
    """Support {00, 11}, P(x1 = 1) = 0.5, P(x2 = 1) = 0.2: f = 0.15, with 0.35 on 11 (spec 10.3)."""
    private = table(PAIR, [[1, 0]] * 3 + [[1, 1]] * 2 + [[0, 0]] * 5)
    public = table(PAIR, [[0, 0], [1, 1]])

    found, _ = both(private, public, Workload.of("1-way", PAIR))

    assert found.low == pytest.approx(0.15, abs=1e-6)
    assert found.high == pytest.approx(0.15, abs=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_the_exact_value_is_that_of_the_whole_program(seed):
    rng = np.random.default_rng(seed)
    private, public = random_table(rng, CUBE, 25), random_table(rng, CUBE, rng.integers(1, 7))
    workload = Workload.of("2-way", CUBE)

    found, bracket = both(private, public, workload)

    expected = brute_force(private, public, workload)
    assert found.low - 1e-9 <= expected <= found.high + 1e-9
    assert found.high - found.low <= 1e-7
    assert bracket.low - 1e-9 <= expected <= bracket.high + 1e-9


def test_a_public_table_that_is_the_private_one_errs_by_nothing():
    private = random_table(np.random.default_rng(1), CUBE, 40)

    found, bracket = both(private, private, Workload.of("2-way", CUBE))

    assert found.high == pytest.approx(0.0, abs=1e-12)
    assert bracket.high == pytest.approx(0.0, abs=1e-12)


def test_more_public_records_never_hurt():
    rng = np.random.default_rng(2)
    private, records = random_table(rng, CUBE, 30), random_table(rng, CUBE, 8).distinct()[0]
    workload = Workload.of("2-way", CUBE)

    values = [both(private, table(CUBE, records[:k]), workload)[0].high for k in range(1, len(records) + 1)]

    assert all(later <= earlier + 1e-7 for earlier, later in itertools.pairwise(values))


@pytest.mark.parametrize("seed", range(15))
def test_replacing_one_record_moves_it_by_at_most_one_nth(seed):
    rng = np.random.default_rng(seed)
    n, tolerance = 12, 1e-7
    records = rng.integers(0, [3, 2, 2], (n, 3))
    neighbour = records.copy()
    neighbour[rng.integers(n)] = rng.integers(0, [3, 2, 2])
    public, workload = random_table(rng, CUBE, 4), Workload.of("2-way", CUBE)

    one, _ = both(table(CUBE, records), public, workload, tolerance)
    other, _ = both(table(CUBE, neighbour), public, workload, tolerance)

    assert abs(one.high - other.high) <= 1 / n + 2 * tolerance


def test_some_neighbours_are_exactly_one_nth_apart():
    """So a sensitivity below 1/n would be wrong."""
    public, workload = table(PAIR, [[0, 0]]), Workload.of("1-way", PAIR)

    one, _ = both(table(PAIR, [[0, 0]] * 10), public, workload)
    other, _ = both(table(PAIR, [[0, 0]] * 9 + [[1, 0]]), public, workload)

    assert other.high - one.high == pytest.approx(0.1, abs=1e-6)


def test_an_exact_value_says_that_it_is_private():
    private = random_table(np.random.default_rng(3), CUBE, 20)

    found = best_mixture_error(private, private, workload="1-way")

    assert found.is_private
    assert str(found).startswith("PRIVATE")


def test_a_released_value_is_charged_and_may_be_published():
    rng = np.random.default_rng(4)
    private, public = random_table(rng, CUBE, 200), random_table(rng, CUBE, 5)
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), Unit("replace"), "toy"))

    found = best_mixture_error(
        private, public, workload="1-way", epsilon=0.25, ledger=ledger, noise=SeededNoise(1)
    )

    assert isinstance(found, NoisyMixture)
    assert not found.is_private
    assert float(ledger.left) == pytest.approx(0.75)
    (event,) = ledger.events()
    # k/n + 2τ and one step for rounding, on a grid of 1/64n.
    assert event.l1 == Fraction(64 * 11, 10) + 1


def test_the_noise_is_a_few_per_cent_above_one_nth_over_epsilon():
    private = random_table(np.random.default_rng(5), CUBE, 1000)

    found = best_mixture_error(
        private,
        random_table(np.random.default_rng(60), CUBE, 50),
        workload="1-way",
        epsilon=0.1,
        noise=SeededNoise(2),
    )

    assert found.stddev == pytest.approx(np.sqrt(2) * 1.116 / (1000 * 0.1), rel=0.01)


def test_a_budget_that_is_spent_says_no_before_looking():
    private = random_table(np.random.default_rng(6), CUBE, 50)
    ledger = MemoryLedger(Promise(Budget(epsilon=0.1, delta=0.0), Unit("replace"), "toy"))

    with pytest.raises(BudgetExhausted):
        best_mixture_error(
            private,
            random_table(np.random.default_rng(60), CUBE, 50),
            workload="1-way",
            epsilon=0.2,
            ledger=ledger,
        )


def test_add_or_remove_is_refused():
    private = random_table(np.random.default_rng(7), CUBE, 50)

    with pytest.raises(SettingError, match="under unit 'add-or-remove' it is private"):
        best_mixture_error(
            private,
            random_table(np.random.default_rng(60), CUBE, 50),
            workload="1-way",
            epsilon=1.0,
            unit="add-or-remove",
        )


def test_queries_that_are_no_marginals_are_refused():
    private = random_table(np.random.default_rng(8), CUBE, 50)

    with pytest.raises(WorkloadError, match="whole marginals"):
        best_mixture_error(private, private, workload=[Cell(("a",), (0,))])


def test_screening_ranks_a_good_table_before_a_bad_one_and_says_why():
    rng = np.random.default_rng(9)
    domain = Domain.of({"a": 4, "b": 3})
    private, good = random_table(rng, domain, 20_000), random_table(rng, domain, 5_000)
    bad = table(domain, [[0, 0], [0, 1]])

    ranked = screen(private, {"bad": bad, "good": good}, epsilon=5.0, workload="2-way", noise=SeededNoise(3))

    assert [found.name for found in ranked] == ["good", "bad"]
    assert ranked[0].verdict in ("as good as a second sample", "worth using")
    assert ranked[1].verdict == "not worth using"
    assert "without public data, ε = 1 would err by about" in ranked[1].sentence


def test_screening_that_cannot_see_says_so():
    rng = np.random.default_rng(10)
    private, public = random_table(rng, CUBE, 300), random_table(rng, CUBE, 200)

    (found,) = screen(private, {"some": public}, epsilon=0.01, workload="2-way", noise=SeededNoise(4))

    assert found.verdict in ("cannot tell", "not worth using")


def test_screening_shares_its_epsilon_among_the_tables():
    rng = np.random.default_rng(11)
    private, public = random_table(rng, CUBE, 300), random_table(rng, CUBE, 20)
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), Unit("replace"), "toy"))

    screen(private, {"one": public, "two": public}, epsilon=0.5, workload="1-way", ledger=ledger)

    assert [float(event.cost) for event in ledger.events()] == [0.25, 0.25]


EMPTY = Table.of_codes(CUBE, np.zeros((0, 3), dtype=np.int64))
OTHER = Table.of_codes(Domain.of({"a": 3, "b": 2, "c": 3}), np.zeros((4, 3), dtype=np.int64))


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"public": {"none": EMPTY}}, DataError, "no records"),
        ({"public": {}}, SettingError, "nothing to screen"),
        ({"public": {"other": OTHER}}, SettingError, "other attributes"),
        ({"private": EMPTY}, DataError, "no records"),
        ({"private": OTHER}, SettingError, "other attributes"),
        ({"workload": [Cell(("a",), (0,))]}, WorkloadError, "whole marginals"),
        ({"workload": [("a",), Cell(("b",), (0,))]}, WorkloadError, "whole marginals"),
        ({"workload": [()]}, WorkloadError, "one attribute or more"),
        ({"workload": [("d",)]}, WorkloadError, "d"),
        ({"epsilon": 1e-12}, SettingError, "too small"),
        ({"for_delta": 0.0}, SettingError, "delta"),
        ({"for_delta": 1.5}, SettingError, "delta"),
        ({"for_epsilon": 1e-300, "for_delta": 1e-300}, SettingError, "too little"),
        ({"for_epsilon": float("nan")}, SettingError, "for_epsilon"),
    ],
)
def test_what_public_facts_forbid_is_refused_before_anything_is_charged(settings, error, words):
    rng = np.random.default_rng(12)
    private, public = random_table(rng, CUBE, 30), random_table(rng, CUBE, 5)
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), Unit("replace"), "toy"))
    asked = {"private": private, "public": {"some": public}, "epsilon": 0.5, "workload": "1-way", **settings}

    with pytest.raises(error, match=words):
        screen(**asked, ledger=ledger)

    assert not ledger.runs()


OTHERS = {"some": random_table(np.random.default_rng(60), CUBE, 50)}


def test_a_ledger_under_which_n_is_private_is_refused_before_anything_is_charged():
    private = random_table(np.random.default_rng(13), CUBE, 30)
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), Unit("add-or-remove"), "toy"))

    with pytest.raises(SettingError, match="under unit 'add-or-remove' it is private"):
        screen(private, OTHERS, epsilon=0.5, workload="1-way", ledger=ledger)

    assert not ledger.runs()


def test_nobody_changes_more_than_all_records():
    private = random_table(np.random.default_rng(14), CUBE, 20)
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), Unit("replace", records=50), "toy"))

    screen(private, OTHERS, epsilon=0.5, workload="1-way", ledger=ledger)

    (event,) = ledger.events()
    assert event.l1 == 64 * (20 + Fraction(1, 10)) + 1


def test_an_exact_value_of_no_records_is_refused():
    with pytest.raises(DataError, match="no records"):
        best_mixture_error(EMPTY, random_table(np.random.default_rng(15), CUBE, 5), workload="1-way")


def test_what_a_budget_achieves_alone_shrinks_with_n():
    workload, unit, budget = Workload.of("2-way", CUBE), Unit("replace"), Budget(epsilon=1.0, delta=1e-9)

    small, large = (error_without_public(CUBE, workload, n, unit, budget) for n in (1_000, 10_000))

    assert large == pytest.approx(small / 10)


def test_a_public_table_without_a_column_errs_as_one_does_on_the_marginals_it_has():
    schema = sl.Schema.from_domain({"a": 3, "b": 2})
    private = pa.table({"a": [0, 0, 1, 2], "b": [0, 1, 1, 1]})
    part, whole = pa.table({"a": [0, 0, 1]}), pa.table({"a": [0, 0, 1], "b": [0, 1, 1]})

    found = sl.best_mixture_error(private, part, schema=schema, workload=[("a",), ("a", "b"), ("b",)])
    known = sl.best_mixture_error(private, whole, schema=schema, workload=[("a",)])

    assert found.high == pytest.approx(known.high) == pytest.approx(0.25, abs=0.02)


def test_a_table_that_tells_of_fewer_columns_ranks_no_better_than_no_public_data():
    schema = sl.Schema.from_domain({"a": 3, "b": 2})
    rng = np.random.default_rng(0)

    def table(n):
        return pa.table({"a": rng.integers(0, 3, n), "b": rng.integers(0, 2, n)})

    private, whole = table(20_000), table(500)
    candidates = {"part": table(5000).drop_columns(["b"]), "whole": whole}

    ranked = sl.screen(private, candidates, schema=schema, epsilon=10, workload="1-way", for_epsilon=0.01)

    assert [one.name for one in ranked] == ["whole", "part"]
    assert ranked[1].left_out == ("b",)
