"""The curator: what it charges, and that it never looks before it has paid."""

from fractions import Fraction

import numpy as np
import pytest

from sidelight.curator.curator import Curator
from sidelight.curator.journal import Journal
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import BudgetExhausted, CheckpointError, SettingError
from sidelight.models.graphical import GraphicalModel
from sidelight.models.support import Support
from sidelight.privacy.budget import Budget, Epsilon, Rho
from sidelight.privacy.event import Exponential, Gaussian, Laplace, PermuteAndFlip
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Linear, Marginal
from sidelight.select.judgement import Contest, LeastError
from sidelight.select.score import CellError, ModelError
from sidelight.testing import SeededNoise

RHO = Rho(Fraction(1, 10))


class Watched:
    """A table that notes, each time it is looked at, how many events the ledger already holds."""

    def __init__(self, table, ledger):
        self.domain, self.records, self.is_in_memory = table.domain, table.records, True
        self.seen: list[int] = []
        self._table, self._ledger = table, ledger

    def count(self, attrs):
        self.seen.append(len(tuple(self._ledger.events())))
        return self._table.count(attrs)

    def count_many(self, wanted, tell=None):
        return [self.count(attrs) for attrs in wanted]


def test_the_ledger_holds_the_event_before_the_table_is_looked_at(toy):
    _, ledger = toy.curator()
    watched = Watched(toy.table, ledger)
    curator = Curator(watched, allotment=Rho(1), unit=Unit("replace"), ledger=ledger, noise=SeededNoise(1))

    curator.measure(Marginal(("a",)), RHO)
    curator.select(toy.workload, ModelError(toy.table), RHO)
    curator.measure(Marginal(("b",)), RHO)

    assert watched.seen[0] == 1
    assert set(watched.seen[1:-1]) == {2}
    assert watched.seen[-1] == 3


def test_a_refused_event_neither_charges_nor_looks(toy):
    _, ledger = toy.curator()
    watched = Watched(toy.table, ledger)
    curator = Curator(watched, allotment=RHO, unit=Unit("replace"), ledger=ledger, noise=SeededNoise(1))

    with pytest.raises(BudgetExhausted):
        curator.measure(Marginal(("a",)), Rho(Fraction(1, 5)))

    assert watched.seen == []
    assert curator.remaining == RHO
    assert curator.events == ()


def test_the_total_is_free_under_replacement_and_paid_for_otherwise(toy):
    fixed, _ = toy.curator(unit=Unit("replace"))
    moving, _ = toy.curator(unit=Unit("add-or-remove"))

    assert fixed.total(RHO) == toy.table.records
    assert fixed.events == ()

    noisy = moving.total(RHO)
    assert moving.events[0].cost == RHO
    assert noisy != toy.table.records or moving.events


@pytest.mark.parametrize(
    ("unit", "l2_squared", "l1"),
    [(Unit("replace"), 2, 2), (Unit("add-or-remove"), 1, 1), (Unit("replace", records=3), 18, 6)],
)
def test_a_marginal_is_charged_with_the_units_sensitivity(toy, unit, l2_squared, l1):
    zcdp, _ = toy.curator(unit=unit)
    pure, _ = toy.curator(unit=unit, epsilon="1")

    zcdp.measure(Marginal(("a", "b")), RHO)
    pure.measure(Marginal(("a", "b")), Epsilon(Fraction(1, 2)))

    (gaussian,), (laplace,) = zcdp.events, pure.events
    assert isinstance(gaussian, Gaussian)
    assert float(gaussian.variance) == pytest.approx(l2_squared / (2 * 0.1))
    assert isinstance(laplace, Laplace)
    assert float(laplace.scale) == pytest.approx(l1 / 0.5)


def test_a_linear_query_is_measured_on_its_grid(toy):
    query = Linear.of(("c",), [1.0, -1.0, 0.5, 0.25])
    curator, _ = toy.curator(rho="1000000")

    measured = curator.measure(query, Rho(1_000_000))

    exact = float(query.apply(toy.table.count(("c",)))[0])
    assert measured.answer[0] == pytest.approx(exact, abs=0.02)
    assert measured.stddev == pytest.approx(2 / np.sqrt(2e6), rel=1e-6)
    assert (measured.answer[0] * 2**20) == int(measured.answer[0] * 2**20)


def test_selection_is_charged_by_its_method(toy):
    curator, _ = toy.curator()

    curator.select(toy.workload, ModelError(toy.table), RHO)
    curator.select(toy.workload, ModelError(toy.table), RHO, method="permute-and-flip")

    exponential, flipped = curator.events
    assert isinstance(exponential, Exponential)
    assert float(exponential.epsilon) == pytest.approx(np.sqrt(8 * 0.1))
    assert exponential.sensitivity == 2
    assert isinstance(flipped, PermuteAndFlip)
    assert float(flipped.epsilon) == pytest.approx(np.sqrt(2 * 0.1))


def test_with_much_budget_the_worst_candidate_and_cell_are_selected():
    domain = Domain.of({"a": 3, "b": 2})
    table = Table.of_codes(domain, np.repeat([[0, 0], [1, 1], [2, 0]], [70, 20, 10], axis=0))
    model = Table.of_codes(domain, np.repeat([[0, 0], [1, 1], [2, 0]], [40, 20, 40], axis=0))
    toy_curator = Curator(
        table, allotment=Rho(10_000), unit=Unit("replace"), ledger=_ledger(), noise=SeededNoise(2)
    )

    query, cell = toy_curator.select_cell([Marginal(("b",)), Marginal(("a",))], CellError(model), Rho(1000))

    assert query == Marginal(("a",))
    assert cell in (0, 2)
    assert toy_curator.events[0].sensitivity == 1


def test_nothing_to_select_from_is_an_error(toy):
    curator, _ = toy.curator()
    with pytest.raises(SettingError, match="nothing to select from"):
        curator.select([], ModelError(toy.table), RHO)


def test_a_journal_answers_what_was_paid_for_before(toy, tmp_path):
    first = Journal.open(tmp_path, run="r", settings={})
    curator, _ = toy.curator(journal=first, noise=SeededNoise(1))
    before = curator.measure(Marginal(("a",)), RHO)
    first.close()

    with Journal.open(tmp_path, run="r", settings={}) as second:
        again, _ = toy.curator(journal=second, noise=SeededNoise(2))
        after = again.measure(Marginal(("a",)), RHO)
        fresh = again.measure(Marginal(("b",)), RHO)

    assert np.array_equal(before.answer, after.answer)
    assert len(again.events) == 2
    assert fresh.answer.size == 3


def test_a_paid_output_that_was_never_journalled_is_drawn_without_paying_again(toy, tmp_path):
    ledger = _ledger()
    run = ledger.begin(Rho(1), label="crashed")
    paid = Gaussian.at(RHO, what="a", l2_squared=Fraction(2))
    ledger.append(paid, run=run)
    with Journal.open(tmp_path, run=run, settings={}) as journal:
        curator = Curator(
            toy.table, allotment=Rho(1), unit=Unit("replace"), ledger=ledger, run=run, noise=SeededNoise(1),
            journal=journal,
        )  # fmt: skip

        curator.measure(Marginal(("a",)), RHO)

    assert tuple(ledger.events(run)) == (paid,)


def test_what_was_drawn_and_never_journalled_is_paid_for_again_out_of_the_promise(toy, tmp_path):
    ledger = _ledger()
    run = ledger.begin(RHO, label="crashed in the worst moment")
    paid = Gaussian.at(RHO, what="a", l2_squared=Fraction(2))
    ledger.draw(ledger.append(paid, run=run), run=run)
    with Journal.open(tmp_path, run=run, settings={}) as journal:
        curator = Curator(
            toy.table, allotment=RHO, unit=Unit("replace"), ledger=ledger, run=run, noise=SeededNoise(1),
            journal=journal,
        )  # fmt: skip

        curator.measure(Marginal(("a",)), RHO)

    assert curator.events == (paid,)
    assert tuple(ledger.events(run)) == (paid, paid)
    assert ledger.spent == 2 * RHO.value
    assert ledger.run(run).repeats == 1
    ledger.verify()


def test_an_old_copy_that_the_promise_cannot_pay_for_is_refused_before_anything_is_drawn(toy, tmp_path):
    budget = Budget(epsilon=1.0, delta=1e-9)
    ledger = MemoryLedger(Promise(budget, Unit("replace"), "toy"))
    run = ledger.begin(budget.rho() * Fraction(9, 10), label="went on elsewhere")
    for _ in range(2):
        paid = Gaussian.at(budget.rho() / 10, what="a", l2_squared=Fraction(2))
        ledger.draw(ledger.append(paid, run=run), run=run)
    before = ledger.head

    with (
        Journal.open(tmp_path, run=run, settings={}) as journal,
        pytest.raises(BudgetExhausted, match=f"pay again for 2 answers(?s:.*)ledger close LEDGER {run}"),
    ):
        Curator(
            toy.table, allotment=budget.rho() * Fraction(9, 10), unit=Unit("replace"), ledger=ledger, run=run,
            journal=journal,
        )  # fmt: skip
    assert ledger.head == before


def test_a_journal_that_the_ledger_contradicts_is_refused(toy, tmp_path):
    ledger = _ledger()
    run = ledger.begin(Rho(1), label="edited")
    settings = {"allotment": Rho(1), "unit": Unit("replace"), "ledger": ledger, "run": run}
    with Journal.open(tmp_path, run=run, settings={}) as journal:
        curator = Curator(toy.table, **settings, journal=journal, noise=SeededNoise(1))
        curator.measure(Marginal(("a",)), RHO)
        curator.measure(Marginal(("b",)), RHO)
    path = tmp_path / "journal.jsonl"
    first, one, two = path.read_bytes().splitlines(keepends=True)

    path.write_bytes(first + two + one)
    with (
        Journal.open(tmp_path, run=run, settings={}) as journal,
        pytest.raises(CheckpointError, match="contradicts the ledger"),
    ):
        Curator(toy.table, **settings, journal=journal)

    path.write_bytes(first + one + one)
    with pytest.raises(CheckpointError, match="was edited"):
        Journal.open(tmp_path, run=run, settings={})


def test_a_ledger_that_forgot_a_draw_is_charged_for_it_and_knows_it_from_then_on(toy, tmp_path):
    """It was put back from a backup, or is another one."""
    with Journal.open(tmp_path, run="r", settings={}) as journal:
        curator, _ = toy.curator(journal=journal)
        curator.measure(Marginal(("a",)), RHO)
    forgetful = _ledger()
    forgetful.begin(Rho(Fraction(1, 2)), label="put back", run="r")

    for _ in range(2):
        with Journal.open(tmp_path, run="r", settings={}) as journal:
            again, _ = toy.curator(journal=journal, ledger=forgetful, run="r")
            again.measure(Marginal(("a",)), RHO)

        (payment,) = forgetful.payments("r")
        assert payment.ticket == journal.outputs[0].ticket
    forgetful.verify()


def test_two_copies_of_a_journal_cannot_draw_for_one_payment(toy, tmp_path):
    ledger = _ledger()
    run = ledger.begin(Rho(1), label="copied")
    paid = Gaussian.at(RHO, what="a", l2_squared=Fraction(2))
    ledger.append(paid, run=run)
    settings = {"allotment": Rho(1), "unit": Unit("replace"), "ledger": ledger, "run": run}
    with (
        Journal.open(tmp_path / "one", run=run, settings={}) as one,
        Journal.open(tmp_path / "two", run=run, settings={}) as two,
    ):
        curators = [Curator(toy.table, **settings, journal=journal) for journal in (one, two)]
        for curator in curators:  # both have seen the payment
            curator.measure(Marginal(("a",)), RHO)

    assert [payment.nth for payment in ledger.payments(run)] == [0, 0]
    assert all(payment.ticket for payment in ledger.payments(run))
    assert ledger.run(run).spent == RHO * 2


def test_a_journal_is_for_its_owner_alone(tmp_path):
    Journal.open(tmp_path / "a" / "run", run="r", settings={}).close()
    journal = tmp_path / "a" / "run" / "journal.jsonl"

    assert journal.stat().st_mode & 0o777 == 0o600
    assert journal.parent.stat().st_mode & 0o777 == 0o700

    journal.chmod(0o644)  # as a copy may have it
    Journal.open(tmp_path / "a" / "run", run="r", settings={}).close()
    assert journal.stat().st_mode & 0o777 == 0o600


def test_a_journal_of_an_older_sidelight_says_what_to_do(tmp_path):
    (tmp_path / "journal.jsonl").write_text('{"format": 1, "run": "r", "fingerprint": "0"}\n')

    with pytest.raises(CheckpointError, match=r"Finish the run with that version; or close it"):
        Journal.read_run(tmp_path, {})


def test_a_closed_run_can_be_replayed_but_not_drawn_from_again(toy, tmp_path):
    ledger = _ledger()
    run = ledger.begin(Rho(1), label="settled by hand")
    ledger.append(Gaussian.at(RHO, what="a", l2_squared=Fraction(2)), run=run)
    ledger.close(run)
    with Journal.open(tmp_path, run=run, settings={}) as journal:
        curator = Curator(
            toy.table, allotment=Rho(1), unit=Unit("replace"), ledger=ledger, run=run, journal=journal
        )

        with pytest.raises(CheckpointError, match="was closed in its ledger"):
            curator.measure(Marginal(("a",)), RHO)


def test_a_checkpoint_of_another_run_is_refused(toy, tmp_path):
    Journal.open(tmp_path, run="r", settings={"rounds": 3}).close()

    assert Journal.read_run(tmp_path, {"rounds": 3}) == "r"
    with pytest.raises(CheckpointError, match="another schema, workload, budget"):
        Journal.read_run(tmp_path, {"rounds": 4})


def test_a_line_cut_off_by_a_crash_is_forgotten(toy, tmp_path):
    journal = Journal.open(tmp_path, run="r", settings={})
    curator, _ = toy.curator(journal=journal)
    curator.measure(Marginal(("a",)), RHO)
    journal.close()
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"event": {"event": "gau')

    with Journal.open(tmp_path, run="r", settings={}) as again:
        assert len(again.outputs) == 1


def test_two_processes_cannot_share_a_checkpoint(tmp_path):
    held = Journal.open(tmp_path, run="r", settings={})

    with pytest.raises(CheckpointError, match="another process"):
        Journal.open(tmp_path, run="r", settings={})

    held.close()
    Journal.open(tmp_path, run="r", settings={}).close()


def _ledger():
    from sidelight.privacy.budget import Budget
    from sidelight.privacy.ledger import MemoryLedger
    from sidelight.privacy.promise import Promise

    return MemoryLedger(Promise(Budget(epsilon=1e7, delta=1e-9), Unit("replace"), "toy"))


def test_scores_belong_to_their_candidates_in_whatever_order_they_are_computed(toy):
    class Backwards(CellError):
        def each(self, candidates):
            yield from reversed(list(super().each(candidates)))

    class Zero:
        def count(self, attrs):
            return np.zeros(toy.table.domain.project(attrs).shape)

    def chosen(score):
        curator, _ = toy.curator(rho="1000", noise=SeededNoise(3))
        return curator.select_cell(toy.workload, score, Rho(Fraction(900)))

    query, cell = chosen(Backwards(Zero()))

    assert (query, cell) == chosen(CellError(Zero()))
    counts = {attrs: toy.table.count(attrs).reshape(-1) for attrs in toy.workload.attribute_sets}
    assert counts[query.attrs][cell] == max(one.max() for one in counts.values())


# --- choosing one of several options by all queries together ---------------------------------------------


class LookedError(Exception):
    """Somebody looked."""


class Locked(Watched):
    """A table that nobody may look at."""

    def count(self, attrs):
        raise LookedError


def between(toy, shares):
    """Mixtures from what is uniform to what is exact."""
    domain, n = toy.table.domain, float(toy.table.records)
    uniform, exact = GraphicalModel.uniform(domain, total=n), Support.of_table(toy.table, total=n)
    return LeastError(
        (uniform, exact),
        [(1 - share, share) for share in shares],
        weights=dict.fromkeys(toy.workload.attribute_sets, 1.0),
        total=n,
    )


@pytest.mark.parametrize("cost", [RHO, Epsilon(Fraction(1, 10))], ids=["zcdp", "pure"])
def test_a_choice_is_paid_for_and_written_before_the_table_is_looked_at(toy, cost):
    _, ledger = toy.curator()
    curator = Curator(Locked(toy.table, ledger), allotment=cost, unit=Unit("replace"), ledger=ledger)

    with pytest.raises(LookedError):
        curator.choose(list(toy.workload), between(toy, (0.0, 0.5, 1.0)), cost)

    (event,) = ledger.events()
    assert isinstance(event, Exponential)
    assert (event.cost, event.candidates, event.what) == (cost, 3, "3 options, by 3 queries")
    assert 2 < event.sensitivity < 2 + Fraction(1, 10**6)
    assert not curator.remaining


def test_a_refused_choice_neither_charges_nor_looks(toy):
    _, ledger = toy.curator()
    watched = Watched(toy.table, ledger)
    curator = Curator(watched, allotment=RHO, unit=Unit("replace"), ledger=ledger, noise=SeededNoise(1))

    with pytest.raises(BudgetExhausted):
        curator.choose(list(toy.workload), between(toy, (0.0, 1.0)), Rho(Fraction(1, 5)))

    assert watched.seen == []
    assert curator.remaining == RHO
    assert tuple(ledger.events()) == ()


@pytest.mark.parametrize("unit", [Unit("replace"), Unit("add-or-remove")], ids=lambda unit: unit.relation)
@pytest.mark.parametrize("best", [0, 1, 2])
def test_with_much_budget_the_best_option_is_chosen(toy, best, unit):
    shares = np.roll([1.0, 0.5, 0.0], best)

    for seed in range(5):
        curator, _ = toy.curator(unit=unit, rho="1000", noise=SeededNoise(seed))
        assert curator.choose(list(toy.workload), between(toy, shares), Rho(1000)) == best


def test_with_hardly_any_budget_every_option_is_chosen_now_and_then(toy):
    chosen = []
    for seed in range(60):
        curator, _ = toy.curator(noise=SeededNoise(seed))
        chosen.append(
            curator.choose(list(toy.workload), between(toy, (0.0, 0.5, 1.0)), Rho(Fraction(1, 10**12)))
        )

    assert min(np.bincount(chosen, minlength=3)) >= 8


@pytest.mark.parametrize("seed", range(4))
def test_a_journal_answers_a_choice_without_another_look(toy, tmp_path, seed):
    judgement, little = between(toy, np.linspace(0, 1, 50)), Rho(Fraction(1, 10**12))
    ledger = _ledger()
    run = ledger.begin(Rho(1), label="again")
    settings = {"allotment": Rho(1), "unit": Unit("replace"), "ledger": ledger, "run": run}
    with Journal.open(tmp_path, run=run, settings={}) as journal:
        curator = Curator(toy.table, **settings, journal=journal, noise=SeededNoise(seed))
        before = curator.choose(list(toy.workload), judgement, little)

    with Journal.open(tmp_path, run=run, settings={}) as journal:
        again = Curator(Locked(toy.table, ledger), **settings, journal=journal, noise=SeededNoise(seed + 100))
        after = again.choose(list(toy.workload), judgement, little)

    assert before == after
    assert len(tuple(ledger.events(run))) == 1
    assert again.remaining == curator.remaining


def test_another_judgement_than_the_journals_is_refused(toy, tmp_path):
    ledger = _ledger()
    run = ledger.begin(Rho(1), label="changed")
    settings = {"allotment": Rho(1), "unit": Unit("replace"), "ledger": ledger, "run": run}
    for shares, refused in [((0.0, 1.0), False), ((0.0, 0.5, 1.0), True)]:
        with Journal.open(tmp_path, run=run, settings={}) as journal:
            curator = Curator(toy.table, **settings, journal=journal, noise=SeededNoise(1))
            if refused:
                with pytest.raises(CheckpointError, match="3 options"):
                    curator.choose(list(toy.workload), between(toy, shares), RHO)
            else:
                curator.choose(list(toy.workload), between(toy, shares), RHO)


# --- selecting several at once ---------------------------------------------------------------------------


class Counted(ModelError):
    """A score that notes how often it is asked."""

    asked = 0

    def score(self, query, exact):
        Counted.asked += 1
        return super().score(query, exact)


def nothing(toy):
    class Zero:
        def count(self, attrs):
            return np.zeros(toy.table.domain.project(attrs).shape)

    return Zero()


def test_several_selections_are_each_paid_for_before_the_one_look_that_they_share(toy):
    _, ledger = toy.curator()
    watched = Watched(toy.table, ledger)
    curator = Curator(watched, allotment=Rho(1), unit=Unit("replace"), ledger=ledger, noise=SeededNoise(1))
    Counted.asked = 0

    chosen = curator.select_many(list(toy.workload), Counted(nothing(toy)), RHO, number=3)

    assert len({query.attrs for query in chosen}) == 3
    assert Counted.asked == len(list(toy.workload))
    assert set(watched.seen) == {1}
    assert [event.cost for event in curator.events] == [RHO] * 3
    assert {event.sensitivity for event in curator.events} == {Fraction(2)}


@pytest.mark.statistical
def test_several_selections_follow_the_law_of_the_exponential_mechanism_without_what_was_chosen(toy):
    candidates = list(toy.workload)
    scores = np.array([float(place) for place in range(len(candidates))])

    class Given(ModelError):
        def score(self, query, exact):
            return scores[[c.attrs for c in candidates].index(query.attrs)]

    cost, runs = Rho(Fraction(1, 2)), 3000
    found = {}
    for seed in range(runs):
        curator, _ = toy.curator(rho="10", noise=SeededNoise(seed))
        pair = tuple(q.attrs for q in curator.select_many(candidates, Given(nothing(toy)), cost, number=2))
        found[pair] = found.get(pair, 0) + 1

    weights = np.exp(float(curator.events[0].epsilon) * scores / (2 * 2))
    for i, first in enumerate(candidates):
        for j, second in enumerate(candidates):
            if i != j:
                chance = weights[i] / weights.sum() * weights[j] / (weights.sum() - weights[i])
                share = found.get((first.attrs, second.attrs), 0) / runs
                assert share == pytest.approx(chance, abs=5 * np.sqrt(chance / runs))


def test_selections_in_the_journal_are_answered_without_a_look(toy, tmp_path):
    def run(ledger, journal, number, run_name):
        curator = Curator(
            toy.table, allotment=Rho(1), unit=Unit("replace"), ledger=ledger, run=run_name,
            noise=noise, journal=journal,
        )  # fmt: skip
        return [
            q.attrs
            for q in curator.select_many(list(toy.workload), Counted(nothing(toy)), RHO, number=number)
        ]

    ledger, noise = _ledger(), SeededNoise(4)
    name = ledger.begin(Rho(1), label="batch")
    with Journal.open(tmp_path, run=name, settings={}) as journal:
        before = run(ledger, journal, 2, name)
    Counted.asked = 0
    with Journal.open(tmp_path, run=name, settings={}) as journal:
        assert run(ledger, journal, 2, name) == before
        assert Counted.asked == 0
    with Journal.open(tmp_path, run=name, settings={}) as journal:
        after = run(ledger, journal, 3, name)

    assert after[:2] == before
    assert len(set(after)) == 3


def test_more_selections_than_candidates_are_refused_and_cost_nothing(toy):
    curator, _ = toy.curator()

    with pytest.raises(SettingError, match="number = 4"):
        curator.select_many(list(toy.workload), ModelError(toy.table), RHO, number=4)
    assert curator.events == ()


def test_which_counts_are_kept_does_not_tell_how_many_cells_are_empty(monkeypatch):
    """Progress shows what is counted, so it must be the same for all tables of a size."""
    monkeypatch.setattr("sidelight.curator.curator._CACHE_BYTES", 260)
    domain = Domain.of({"a": 10, "b": 10, "c": 10})
    full = np.stack([np.arange(100) % 10, np.arange(100) // 10, np.arange(100) % 10], axis=1)
    asked, budget = [[("a", "b")], [("b", "c")], [("a", "c")]], Budget(epsilon=1.0, delta=1e-6)

    def kept(codes):
        curator = Curator(
            Table.of_codes(domain, codes),
            allotment=budget.rho(),
            unit=Unit("replace"),
            ledger=MemoryLedger(Promise(budget, Unit("replace"), "kept")),
        )
        for attrs in asked:
            curator._count_together(attrs)
        return list(curator._counts)

    assert kept(full) == kept(np.zeros_like(full)) == [("a", "b"), ("b", "c")]


def test_exact_counts_are_dropped_once_nobody_can_pay_for_another_look(toy):
    curator, _ = toy.curator()
    half = curator.allotment / 2

    curator.select(toy.workload, ModelError(toy.table), half)
    assert curator._counts
    curator.measure(Marginal(("a",)), curator.remaining)

    assert not curator._counts


class Thirds(Contest):
    """Each query adds the same awkward number to the only option."""

    def __init__(self):
        super().__init__([], lambda *_: ((), np.arange(0)), weights={}, total=1.0, log_odds=[0.0])

    def sensitivity(self, unit, queries):
        return Fraction(1)

    def each(self, queries):
        return ((place, lambda exact: np.array([-1 / 3])) for place, _ in enumerate(queries))


def test_the_scores_of_options_are_rounded_once_however_many_queries_there_are(toy, monkeypatch):
    curator, _ = toy.curator()
    queries, seen = [Marginal(("a",))] * 50_000, []
    monkeypatch.setattr(
        "sidelight.curator.curator.exponential", lambda noise, scores, event: seen.append(scores) or 0
    )

    curator.choose(queries, Thirds(), RHO)

    exact = 50_000 * Fraction(-1 / 3)
    assert abs(Fraction(seen[0][0]) - exact) <= abs(exact) / 2**53
