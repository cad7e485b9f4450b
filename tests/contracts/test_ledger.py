"""What every ledger must do, whatever keeps its lines."""

import secrets
from fractions import Fraction

import pytest

from sidelight.errors import BudgetExhausted, LedgerError, PolicyError, SettingError
from sidelight.privacy.accountant import Accountant
from sidelight.privacy.budget import Budget, Epsilon, Rho
from sidelight.privacy.chained_ledger import new_run
from sidelight.privacy.event import Exponential, Gaussian, Laplace
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.purpose import Purpose
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit

BUDGET = Budget(epsilon=1.0, delta=1e-9)
PROMISE = Promise(BUDGET, Unit("replace"), "adult")
PURE = Promise(Budget(epsilon=1.0, delta=0.0), Unit("add-or-remove", records=2), "adult")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def open_ledger(request, tmp_path):
    """Makes a ledger of each kind."""
    database = request.getfixturevalue("postgres").url if request.param == "postgres" else None

    def make(promise):
        if request.param == "memory":
            return MemoryLedger(promise)
        if request.param == "sqlite":
            return SqlLedger.create(tmp_path / "adult.ledger", promise)
        return SqlLedger.create(f"{database}#test_{secrets.token_hex(6)}", promise)

    return make


@pytest.fixture
def ledger(open_ledger):
    return open_ledger(PROMISE)


def gaussian(cost, what="age"):
    return Gaussian.at(cost, what=what, l2_squared=Fraction(2))


def laplace(cost):
    return Laplace.at(cost, what="age", l1=Fraction(2))


def test_a_new_ledger_holds_its_promise_and_nothing_else(ledger):
    assert ledger.promise == PROMISE
    assert ledger.spent == 0
    assert ledger.left == BUDGET.capacity
    assert tuple(ledger.events()) == ()
    assert ledger.runs() == ()
    ledger.verify()


def test_an_open_run_counts_with_all_of_its_allotment(ledger):
    half = BUDGET.rho() / 2

    run = ledger.begin(half, label="first")
    ledger.append(gaussian(half / 10), run=run)

    assert ledger.spent == half.value
    assert ledger.allotment(run) == half
    assert ledger.is_open(run)


def test_a_closed_run_counts_with_what_its_events_cost(ledger):
    half = BUDGET.rho() / 2
    run = ledger.begin(half, label="first")
    ledger.append(gaussian(half / 10), run=run)

    ledger.close(run)

    assert ledger.spent == (half / 10).value
    assert ledger.left == BUDGET.capacity - ledger.spent
    assert not ledger.is_open(run)


def test_closing_twice_is_closing_once(ledger):
    run = ledger.begin(BUDGET.rho() / 2, label="first")
    ledger.close(run)
    head = ledger.head

    ledger.close(run)

    assert ledger.head == head
    assert ledger.left == BUDGET.capacity


def test_a_run_that_was_named_beforehand_begins_once_under_that_name(ledger):
    name = new_run()
    begun = ledger.begin(BUDGET.rho() / 4, label="first", run=name)

    with pytest.raises(LedgerError, match="has begun already"):
        ledger.begin(BUDGET.rho() / 4, label="again", run=name)
    with pytest.raises(LedgerError, match="has begun already"):
        ledger.begin(BUDGET.rho() / 4, label="nameless", run="")

    assert begun == name
    assert ledger.knows(name)
    assert ledger.spent == (BUDGET.rho() / 4).value
    ledger.verify()


def test_events_come_back_as_the_accountant_saw_them(ledger):
    accountant = Accountant(BUDGET.rho() / 3)
    run = ledger.begin(accountant.allotment, label="first")
    other = ledger.begin(accountant.allotment, label="at the same time")
    events = [
        Exponential.at(BUDGET.rho() / 70, what="1 of 9", sensitivity=Fraction(2), candidates=9),
        gaussian(BUDGET.rho() / 7, "age × sex"),
        gaussian(BUDGET.rho() / 70, "Größe"),
    ]

    for event in events:
        accountant.charge(event)
        ledger.append(event, run=run)
        ledger.append(gaussian(BUDGET.rho() / 100), run=other)

    assert tuple(ledger.events(run)) == accountant.events == tuple(events)
    assert len(tuple(ledger.events(other))) == 3
    assert tuple(ledger.events())[::2] == accountant.events


def test_a_run_may_spend_its_allotment_to_the_last_bit_and_no_further(ledger):
    third = BUDGET.rho() / 3
    run = ledger.begin(third, label="thirty rounds")

    for _ in range(30):
        ledger.append(gaussian(third / 30), run=run)

    before = ledger.head
    with pytest.raises(BudgetExhausted, match="Nothing was read and nothing was charged"):
        ledger.append(gaussian(Rho(Fraction(1, 10**40))), run=run)
    assert ledger.head == before


def test_three_thirds_fit_and_nothing_fits_beside_them(ledger):
    for label in ("one", "two", "three"):
        ledger.begin(BUDGET.rho() / 3, label=label)

    assert ledger.left == 0
    with pytest.raises(BudgetExhausted, match=r"'adult' has 0\.00000 of 0\.01497 left"):
        ledger.begin(Rho(Fraction(1, 10**40)), label="a crumb")
    assert len(ledger.runs()) == 3


def test_a_refusal_changes_nothing(ledger):
    ledger.begin(BUDGET.rho() / 2, label="first")
    before = ledger.head, ledger.spent, ledger.runs()

    with pytest.raises(BudgetExhausted):
        ledger.begin(BUDGET.rho(), label="too much")

    assert (ledger.head, ledger.spent, ledger.runs()) == before


def test_the_refusal_tells_events_and_open_runs(ledger):
    run = ledger.begin(BUDGET.rho() / 2, label="first")
    ledger.append(gaussian(BUDGET.rho() / 2), run=run)

    with pytest.raises(BudgetExhausted, match="in 1 event and 1 open run"):
        ledger.begin(BUDGET.rho(), label="too much")

    ledger.close(run)
    with pytest.raises(BudgetExhausted, match=r"spent      ε = 0\.70 in 1 event \("):
        ledger.begin(BUDGET.rho(), label="too much")


def test_what_is_given_back_may_be_spent_again(ledger):
    run = ledger.begin(BUDGET.rho(), label="first")
    ledger.append(gaussian(BUDGET.rho() / 4), run=run)
    ledger.close(run)

    ledger.begin(BUDGET.rho() - BUDGET.rho() / 4, label="the rest")

    assert ledger.left == 0


def test_pure_and_zcdp_runs_share_one_promise(ledger):
    ledger.begin(BUDGET.rho() / 2, label="gaussian")
    run = ledger.begin(Epsilon(Fraction(1, 4)), label="laplace")
    for _ in range(25):
        ledger.append(laplace(Epsilon(Fraction(1, 100))), run=run)

    reserved = ledger.spent
    ledger.close(run)

    assert reserved == BUDGET.capacity / 2 + BUDGET.price(Epsilon(Fraction(1, 4)))
    assert ledger.spent == BUDGET.capacity / 2 + 25 * BUDGET.price(Epsilon(Fraction(1, 100))) < reserved


def test_all_of_epsilon_may_be_spent_purely_under_a_promise_with_delta(ledger):
    ledger.begin(BUDGET.pure(), label="pure")

    assert ledger.left == 0
    assert BUDGET.epsilon_of(ledger.tally) == 1.0
    with pytest.raises(BudgetExhausted):
        ledger.begin(Rho(Fraction(1, 10**40)), label="a crumb of noise")
    ledger.verify()


def test_a_run_is_paid_in_the_currency_of_its_allotment(ledger):
    run = ledger.begin(Epsilon(Fraction(1, 4)), label="laplace")

    with pytest.raises(SettingError, match="accounted in ε"):
        ledger.append(gaussian(BUDGET.rho() / 100), run=run)

    assert tuple(ledger.events(run)) == ()


def test_a_pure_promise_takes_no_zcdp_run(open_ledger):
    ledger = open_ledger(PURE)

    with pytest.raises(SettingError, match="δ = 0"):
        ledger.begin(Rho(Fraction(1, 100)), label="gaussian")

    run = ledger.begin(Epsilon(1), label="laplace")
    ledger.append(laplace(Epsilon(1)), run=run)
    assert ledger.left == 0


def test_an_unknown_or_closed_run_is_refused(ledger):
    run = ledger.begin(BUDGET.rho() / 2, label="first")
    ledger.close(run)

    with pytest.raises(LedgerError, match="is closed"):
        ledger.append(gaussian(BUDGET.rho() / 100), run=run)
    for stranger in ("", "0" * 16):
        for ask in (ledger.allotment, ledger.is_open, ledger.close, ledger.events):
            with pytest.raises(LedgerError, match="holds no run"):
                ask(stranger)
        with pytest.raises(LedgerError, match="holds no run"):
            ledger.append(gaussian(BUDGET.rho() / 100), run=stranger)


def test_an_empty_allotment_is_refused(ledger):
    with pytest.raises(SettingError, match="must be above 0"):
        ledger.begin(Rho(0), label="nothing")


def test_runs_are_summed_up_in_the_order_they_began(ledger):
    first = ledger.begin(BUDGET.rho() / 4, label="first 'look'")
    second = ledger.begin(BUDGET.rho() / 4, label="zweiter Blick")
    ledger.append(gaussian(BUDGET.rho() / 8), run=second)
    ledger.close(first)

    one, two = ledger.runs()

    assert (one.id, one.label, one.spent, one.is_open, one.events) == (
        first,
        "first 'look'",
        Rho(0),
        False,
        0,
    )
    assert (two.id, two.label, two.spent, two.is_open, two.events) == (
        second,
        "zweiter Blick",
        BUDGET.rho() / 8,
        True,
        1,
    )
    assert two.allotment == BUDGET.rho() / 4
    assert one.when <= two.when
    assert one.when.endswith("+00:00")


def test_every_line_moves_the_head_and_an_old_head_is_still_known(ledger):
    heads = [ledger.head]
    run = ledger.begin(BUDGET.rho() / 2, label="first")
    heads.append(ledger.head)
    ledger.append(gaussian(BUDGET.rho() / 4), run=run)
    heads.append(ledger.head)
    ledger.close(run)
    heads.append(ledger.head)

    assert len(set(heads)) == 4
    for head in heads:
        ledger.verify(head=head)
    with pytest.raises(LedgerError, match="which it once held"):
        ledger.verify(head="0" * 64)


def test_a_ledger_keeps_to_the_table_of_its_first_run(ledger):
    ledger.for_table({"file": "aa", "records x": "11"})
    ledger.close(ledger.begin(BUDGET.rho() / 4, label="first"))
    before = ledger.spent, ledger.head

    ledger.for_table({"file": "bb"})
    with pytest.raises(LedgerError, match=r"another table.*ledger rebind.*Nothing was charged"):
        ledger.begin(BUDGET.rho() / 4, label="of somebody else")

    assert (ledger.spent, ledger.head) == before
    ledger.for_table({"file": "bb", "records x": "11"})  # the same records in another file
    ledger.begin(BUDGET.rho() / 4, label="second")
    ledger.verify()


def test_a_refused_run_leaves_no_mark_of_its_table(ledger):
    ledger.for_table({"file": "aa"})
    with pytest.raises(BudgetExhausted):
        ledger.begin(BUDGET.rho() * 2, label="too much")

    ledger.for_table({"file": "bb"})
    ledger.begin(BUDGET.rho(), label="its own")


def test_a_table_that_was_corrected_is_the_ledgers_own_once_somebody_says_so(ledger):
    ledger.for_table({"file": "aa"})
    run = ledger.begin(BUDGET.rho() / 4, label="first")
    ledger.append(gaussian(BUDGET.rho() / 4), run=run)
    ledger.close(run)
    spent = ledger.spent

    ledger.rebind({"file": "bb"})

    assert ledger.spent == spent
    ledger.for_table({"file": "bb"})
    ledger.begin(BUDGET.rho() / 4, label="second")
    ledger.for_table({"file": "aa"})
    with pytest.raises(LedgerError, match="another table"):
        ledger.begin(BUDGET.rho() / 4, label="the old one")
    ledger.verify()


def test_the_key_of_marks_stays_and_stands_in_no_line(ledger):
    key = ledger.key
    ledger.for_table({"file": "aa"})
    ledger.begin(BUDGET.rho() / 4, label="first")

    assert ledger.key == key
    assert len(bytes.fromhex(key)) == 32
    with ledger._transaction(to_write=False) as pages:
        assert not any(key in line.text for line in pages.lines())


# --- drawing: one payment, one draw ------------------------------------------------------------------------


def test_a_payment_is_used_up_once(ledger):
    run = ledger.begin(BUDGET.rho() / 2, label="first")
    payment = ledger.append(gaussian(BUDGET.rho() / 10), run=run, nth=0)
    before = ledger.spent

    ticket = ledger.draw(payment, run=run)

    assert ticket
    assert ledger.draw(payment, run=run) is None
    assert [(paid.line, paid.nth, paid.ticket) for paid in ledger.payments(run)] == [(payment, 0, ticket)]
    assert ledger.spent == before
    ledger.verify()


def test_only_a_payment_of_the_same_open_run_can_be_used_up(ledger):
    mine, other = (ledger.begin(BUDGET.rho() / 4, label=label) for label in ("mine", "other"))
    payment = ledger.append(gaussian(BUDGET.rho() / 10), run=mine)
    head = ledger.head

    for number in (payment, 1, 10**6):
        with pytest.raises(LedgerError, match="made no payment"):
            ledger.draw(number, run=other)
    assert ledger.head == head

    ledger.close(mine)
    with pytest.raises(LedgerError, match="closed; nothing was drawn"):
        ledger.draw(payment, run=mine)


def test_a_place_that_is_paid_for_again_is_paid_out_of_the_promise(ledger):
    tenth = BUDGET.rho() / 10
    run = ledger.begin(tenth * 2, label="drawn again")
    ledger.draw(ledger.append(gaussian(tenth), run=run, nth=0), run=run)

    ledger.draw(ledger.append(gaussian(tenth), run=run, nth=0), run=run)

    assert ledger.spent == (tenth * 3).value  # the allotment is whole, for the rest of the path
    ledger.append(gaussian(tenth), run=run, nth=1)
    summary = ledger.run(run)
    assert (summary.events, summary.repeats, summary.spent) == (3, 1, tenth * 3)
    with pytest.raises(BudgetExhausted):
        ledger.append(gaussian(BUDGET.rho()), run=run, nth=2)

    ledger.close(run)
    assert ledger.spent == (tenth * 3).value
    assert ledger.run(run) == ledger.runs()[0]
    ledger.verify()


def test_what_the_promise_cannot_pay_again_is_refused_and_changes_nothing(ledger):
    run = ledger.begin(BUDGET.rho(), label="all of it")
    ledger.append(gaussian(BUDGET.rho() / 10), run=run, nth=0)
    before = ledger.head, ledger.spent

    with pytest.raises(BudgetExhausted, match=r"pay again for 1 answer(?s:.*)nothing was charged"):
        ledger.append(gaussian(BUDGET.rho() / 10), run=run, nth=0)
    with pytest.raises(BudgetExhausted, match="pay again for 2 answers"):
        ledger.require_again([BUDGET.rho() / 100] * 2, run=run)

    assert (ledger.head, ledger.spent) == before
    ledger.require_again([], run=run)


def test_a_path_that_is_dearer_the_second_time_is_paid_for_to_its_end(ledger):
    """Costs may depend on what was drawn: the places that were paid for were cheap, the next one is not."""
    tenth = BUDGET.rho() / 10
    run = ledger.begin(tenth * 4, label="adaptive")
    ledger.append(gaussian(tenth * 3), run=run, nth=0)
    with pytest.raises(BudgetExhausted, match="this run has"):
        ledger.append(gaussian(tenth * 2), run=run, nth=1)

    ledger.append(gaussian(tenth), run=run, nth=0)
    ledger.append(gaussian(tenth * 3), run=run, nth=1)

    assert ledger.run(run).spent == tenth * 7
    assert ledger.spent == (tenth * 8).value
    ledger.close(run)
    assert ledger.spent == (tenth * 7).value
    ledger.verify()


def test_pure_costs_that_are_paid_again_are_priced_one_by_one(ledger):
    epsilon = Epsilon(Fraction(1, 10))
    run = ledger.begin(epsilon * 2, label="laplace")
    for nth in (0, 0, 0, 1):
        ledger.append(laplace(epsilon), run=run, nth=nth)

    assert ledger.spent == BUDGET.price(epsilon * 2) + 2 * BUDGET.price(epsilon)
    ledger.close(run)
    assert ledger.spent == 4 * BUDGET.price(epsilon)
    ledger.verify()


def test_no_place_is_skipped(ledger):
    run = ledger.begin(BUDGET.rho() / 2, label="first")

    with pytest.raises(LedgerError, match="answer 1 cannot be paid for before answer 0"):
        ledger.append(gaussian(BUDGET.rho() / 10), run=run, nth=1)

    assert tuple(ledger.events(run)) == ()


def test_a_ticket_that_was_brought_here_is_brought_once(ledger):
    run = ledger.begin(BUDGET.rho() / 2, label="put back")
    first, second = (ledger.append(gaussian(BUDGET.rho() / 10), run=run, nth=0) for _ in range(2))

    assert ledger.draw(first, run=run, ticket="t") == "t"
    assert ledger.draw(second, run=run, ticket="t") == "t"

    assert [payment.ticket for payment in ledger.payments(run)] == ["t", None]
    ledger.verify()


# --- policies: a line like any other -----------------------------------------------------------------------


def test_a_policy_decides_in_every_kind_of_ledger(ledger):
    ledger.set_policy({"most": {"release": 0.5, "month": 0.5}, "allow": {"mechanisms": ["aim"]}})
    half, aim = Budget(epsilon=0.5, delta=1e-9).rho(), Purpose.of("aim", approved_by="A. Ito")
    before = ledger.head

    with pytest.raises(PolicyError, match="'mwem' is not allowed"):
        ledger.begin(half, label="first", purpose=Purpose.of("mwem"))
    assert ledger.head == before
    run = ledger.begin(half, label="first", purpose=aim)
    with pytest.raises(PolicyError, match="a month"):
        ledger.begin(half / 100, label="second", purpose=aim)
    ledger.append(gaussian(half / 2), run=run, nth=0)
    ledger.close(run)
    ledger.begin(half / 2, label="second", purpose=aim)

    assert ledger.run(run).purpose == aim
    assert [one.purpose for one in ledger.runs()] == [aim, aim]
    ledger.verify()


def test_a_table_is_still_known_after_the_policy_changed(ledger):
    ledger.for_table({"file": "aa"})
    ledger.close(ledger.begin(BUDGET.rho() / 4, label="first"))
    ledger.set_policy({"most": {"release": 0.5}})
    ledger.set_policy(None)

    ledger.for_table({"file": "bb"})
    with pytest.raises(LedgerError, match="another table"):
        ledger.begin(BUDGET.rho() / 4, label="of somebody else")
    assert ledger.has_other_schema({"records x": "1"}) is False
