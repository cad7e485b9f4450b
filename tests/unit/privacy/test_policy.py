"""A policy divides a promise beforehand: what it does not allow is refused, and costs nothing."""

import json
from fractions import Fraction

import pytest

from sidelight.errors import LedgerError, PolicyError, SettingError
from sidelight.privacy.budget import Budget, Epsilon, Rho
from sidelight.privacy.chain import Line, Sums
from sidelight.privacy.event import Gaussian
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.policy import Policy
from sidelight.privacy.promise import Promise
from sidelight.privacy.purpose import Purpose
from sidelight.privacy.unit import Unit

DELTA = 1e-9
PROMISE = Promise(Budget(epsilon=10.0, delta=DELTA), Unit("replace"), "people")
WHOLE = {
    "most": {"release": 0.5, "month": 1.0, "project": 2.0},
    "projects": {"flu": 1.5, "census": True},
    "allow": {"mechanisms": ["aim", "mean"]},
    "approval": {"by": ["A. Ito", "B. Okafor", "C. Lund"], "needed": 2, "above": 0.25},
}


def rho(epsilon):
    return Budget(epsilon=epsilon, delta=DELTA).rho()


class Clocked(MemoryLedger):
    """A ledger whose clock a test sets."""

    def at(self, when):
        self._pages.now = lambda: f"{when}T12:00:00.000+00:00"
        return self


@pytest.fixture
def ledger():
    return Clocked(PROMISE).at("2026-11-03")


def purpose(**said):
    return Purpose.of(**{"mechanism": "aim", "project": "flu", "approved_by": ["A. Ito", "C. Lund"], **said})


def test_a_policy_comes_back_from_its_file_and_from_its_line(tmp_path, ledger):
    (tmp_path / "policy.toml").write_text(
        "[most]\nrelease = 0.5\nmonth = 1\nproject = 2.0\n[projects]\nflu = 1.5\ncensus = true\n"
        '[allow]\nmechanisms = ["aim", "mean"]\n'
        '[approval]\nby = ["A. Ito", "B. Okafor", "C. Lund"]\nneeded = 2\nabove = 0.25\n'
    )

    read = Policy.read(tmp_path / "policy.toml")
    ledger.set_policy(read)

    assert read == Policy.from_json(WHOLE) == ledger.policy
    assert read.as_json() == WHOLE
    assert json.loads(json.dumps(read.as_json())) == WHOLE
    assert len(list(read.sentences())) == 6


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mots": {}}, "no 'mots'"),
        ({"most": {"year": 1}}, "no 'year'"),
        ({"most": {"month": 0}}, "most.month must be an ε"),
        ({"most": {"month": "1"}}, "most.month must be an ε"),
        ({"most": {"month": True}}, "most.month must be an ε"),
        ({"projects": ["flu"]}, "holds names"),
        ({"projects": {"flu": False}}, "projects.flu must be an ε"),
        ({"projects": {" flu": 1}}, "holds names"),
        ({"allow": {"mechanisms": "aim"}}, "a list of different names"),
        ({"approval": {"by": ["A", "A"]}}, "a list of different names"),
        ({"approval": {"by": ["A. Ito", "a.  ito"]}}, "approval.by names one person twice"),
        ({"approval": {"by": ["A"], "needed": 2}}, "from 1 to the 1 people"),
        ({"approval": {"needed": 1}}, "from 1 to the 0 people"),
        ({"approval": {"by": ["A"], "needed": 0}}, "from 1 to the 1 people"),
        ({"approval": {"by": ["postgresql://bob:4711@host/db"]}}, "a list of different names"),
    ],
)
def test_what_no_policy_can_be_is_refused(change, said):
    with pytest.raises(SettingError, match=said):
        Policy.from_json(change)


def test_a_limit_that_cannot_be_counted_in_is_refused_when_it_is_set():
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=1e-300), Unit("replace"), "people"))
    head = ledger.head

    with pytest.raises(SettingError, match="too little"):
        ledger.set_policy({"most": {"month": 1e-200}})

    assert ledger.head == head


@pytest.mark.parametrize(
    ("cost", "said", "why"),
    [
        (rho(0.5), purpose(), None),
        (Epsilon("0.5"), purpose(), None),
        (rho(0.25), purpose(approved_by=None), None),
        (rho(0.5), purpose(mechanism="mwem"), "'mwem' is not allowed; name one that is: aim, mean"),
        (rho(0.5), purpose(mechanism=""), "names no mechanism"),
        (rho(0.5), purpose(project=None), "name one with --project: census, flu"),
        (rho(0.5), purpose(project="fly"), "'fly' is not one of census, flu"),
        (rho(0.26), purpose(approved_by=None), "2 of A. Ito, .* must approve .*; none of them did"),
        (rho(0.5), purpose(approved_by="A. Ito"), "A. Ito did$"),
        (rho(0.5), purpose(approved_by=["A. Ito", "Bob"]), "A. Ito did, and Bob cannot"),
        (rho(0.5), purpose(approved_by=["a.  ito"]), "letter by letter: write 'A. Ito'"),
        (rho(0.5), purpose(approved_by=["A. Ito", "A. Ito"]), "A. Ito did$"),
        (rho(0.51), purpose(), "a release +ε = 0.5 at most; this asks for 0.51, and --epsilon 0.5 would fit"),
        (Epsilon("0.5000001"), purpose(), "a release"),
    ],
)
def test_a_run_begins_if_it_meets_every_rule_and_else_costs_nothing(ledger, cost, said, why):
    ledger.set_policy(WHOLE)
    before = ledger.head, ledger.spent

    if why is None:
        ledger.require(cost, said)
        run = ledger.begin(cost, label="a run", purpose=said)
        assert ledger.run(run).purpose == said
    else:
        for refused in (
            ledger.require,
            lambda *given: ledger.begin(given[0], label="a run", purpose=given[1]),
        ):
            with pytest.raises(PolicyError, match=f"(?m){why}") as refusal:
                refused(cost, said)
            assert "Nothing was read and nothing was charged" in str(refusal.value)
        assert refusal.value.exit_code == 3
        assert (ledger.head, ledger.spent) == before
    ledger.verify()


def test_what_a_month_holds_counts_open_runs_whole_and_closed_ones_as_spent(ledger):
    ledger.set_policy({"most": {"month": 1.0}})
    month = rho(1.0)
    run = ledger.begin(month * Fraction(3, 4), label="first")

    with pytest.raises(PolicyError, match=r"a month .*2026-11 holds 0.86.*--epsilon"):
        ledger.begin(month / 2, label="second")
    ledger.append(Gaussian.at(month / 4, what="age", l2_squared=Fraction(2)), run=run)
    ledger.close(run)
    ledger.begin(month * Fraction(3, 4), label="the rest, to the last bit")

    with pytest.raises(PolicyError, match="nothing more fits"):
        ledger.begin(Rho(Fraction(1, 10**40)), label="a crumb")
    ledger.at("2026-12-01").begin(month, label="another month")
    ledger.verify()


def test_a_clock_that_is_set_back_gets_no_earlier_month(ledger):
    ledger.set_policy({"most": {"month": 1.0}})
    ledger.at("2026-12-30").begin(rho(1.0), label="December's")

    for when in ("2026-11-30", "2026-12-31", "1999-01-01"):
        with pytest.raises(PolicyError, match=r"2026-12 holds 1.00"):
            ledger.at(when).begin(rho(0.5), label="once more")

    ledger.at("2027-01-01").begin(rho(1.0), label="January's")
    ledger.verify()


def test_a_project_has_its_own_limit_or_everybodys(ledger):
    ledger.set_policy({"most": {"project": 2.0}, "projects": {"flu": 0.5, "census": True}})

    for project, most in (("flu", 0.5), ("census", 2.0)):
        with pytest.raises(PolicyError, match=f"a project +ε = {most:g} at most"):
            ledger.begin(rho(most + 0.1), label="too much", purpose=purpose(project=project))
        ledger.begin(rho(most), label="all of it", purpose=purpose(project=project))
        with pytest.raises(PolicyError, match=rf"{project} holds {most:.2f}"):
            ledger.begin(rho(0.1), label="more", purpose=purpose(project=project))
    ledger.verify()


def test_pure_and_zcdp_runs_of_a_month_add_up(ledger):
    ledger.set_policy({"most": {"month": 1.0}})
    ledger.begin(rho(1.0) / 2, label="noise")

    with pytest.raises(PolicyError):
        ledger.begin(Epsilon("0.5"), label="pure")
    ledger.begin(Epsilon("0.1"), label="pure")
    ledger.verify()


def test_a_promise_of_pure_epsilon_has_pure_limits():
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), Unit("replace"), "people"))
    ledger.set_policy({"most": {"month": 0.3}})
    ledger.begin(Epsilon("0.2"), label="first")

    with pytest.raises(PolicyError, match=r"--epsilon 0.1 would fit"):
        ledger.begin(Epsilon("0.2"), label="second")
    ledger.begin(Epsilon("0.1"), label="second")
    ledger.verify()


def test_a_policy_holds_for_what_is_paid_again(ledger):
    ledger.set_policy({"most": {"release": 0.5, "month": 1.0}})
    whole, event = rho(0.5), Gaussian.at(rho(0.5) / 2, what="age", l2_squared=Fraction(2))
    run = ledger.begin(whole, label="lost an answer")
    ledger.append(event, run=run, nth=0)
    before = ledger.head

    for again in (
        lambda: ledger.append(event, run=run, nth=0),
        lambda: ledger.require_again([event.cost], run=run),
    ):
        with pytest.raises(PolicyError, match=f"run {run} to pay again(?s:.*)a release +ε = 0.5 at most"):
            again()
    assert ledger.head == before

    ledger.set_policy({"most": {"month": 1.0}})
    ledger.append(event, run=run, nth=0)
    ledger.verify()
    with pytest.raises(PolicyError, match="a month"):
        ledger.begin(rho(1.0) - event.cost - whole + Rho(Fraction(1, 10**9)), label="what is not left")


def test_a_run_that_pays_again_needs_approval_for_all_that_it_then_holds(ledger):
    ledger.set_policy({"approval": {"by": ["A. Ito"], "above": 0.25}})
    event = Gaussian.at(rho(0.25), what="age", l2_squared=Fraction(2))
    run, approved = (
        ledger.begin(rho(0.25), label="lost an answer", purpose=purpose(approved_by=by))
        for by in (None, "A. Ito")
    )
    for each in (run, approved):
        ledger.append(event, run=each, nth=0)
    before = ledger.head

    for again in (
        lambda: ledger.append(event, run=run, nth=0),
        lambda: ledger.require_again([event.cost], run=run),
    ):
        with pytest.raises(PolicyError, match=r"to pay again(?s:.*)approval +1 of A. Ito must approve"):
            again()
    assert ledger.head == before

    ledger.append(event, run=approved, nth=0)
    ledger.verify()
    with ledger._transaction(to_write=False) as pages:
        sums = pages.last().total.counted_apart(PROMISE.budget.tally(event.cost))
    of_run = (
        Sums(open_runs=1).charged(PROMISE.budget.tally(event.cost)).charged_apart(event.cost, repeats=True)
    )
    facts = {"event": event.as_json(), "place": 0, "apart": True}
    forged(ledger, "event", facts, total=sums, run=run, of_run=of_run)
    with pytest.raises(LedgerError, match="policy did not allow to pay again"):
        ledger.verify()


def test_one_person_approves_once_however_often_they_are_named(ledger):
    ledger.set_policy({"approval": {"by": ["A. Ito", "B. Okafor"], "needed": 2}})
    twice = Purpose(mechanism="aim", approved_by=("A. Ito", "A. Ito"))

    assert twice.approved_by == ("A. Ito",)
    with pytest.raises(PolicyError, match=r"2 of A. Ito, B. Okafor must approve"):
        ledger.begin(rho(0.1), label="a run", purpose=twice)
    with pytest.raises(SettingError, match=r"names one person twice, as 'A. Ito' and 'a.  ITO'"):
        Purpose(approved_by=("A. Ito", "a.  ITO"))


def test_a_changed_policy_is_a_line_and_a_withdrawn_one_too(ledger):
    ledger.set_policy({"most": {"release": 0.1}})
    ledger.set_policy({"most": {"release": 1.0}})
    ledger.begin(rho(1.0), label="allowed by the second")
    ledger.set_policy(None)
    ledger.begin(rho(2.0), label="allowed by the promise")

    with ledger._transaction(to_write=False) as pages:
        told = [line.body["policy"] for line in pages.lines() if line.kind == "policy"]
    assert told == [{"most": {"release": 0.1}}, {"most": {"release": 1.0}}, None]
    assert ledger.policy is None
    ledger.verify()


def forged(ledger, kind, facts, **sums):
    """A line as somebody writes it who may add lines, and asks nobody."""
    with ledger._transaction(to_write=True) as pages:
        last = pages.last()
        pages.add(Line.after(last, kind, facts, **{"total": last.total, "of_run": Sums(), **sums}))


def test_whoever_begins_without_asking_the_policy_is_found_out(ledger):
    ledger.set_policy({"most": {"release": 0.1}})
    cost = rho(0.5)
    facts = {"label": "sly", "allotment": {"rho": str(cost.value)}}
    total = Sums().begun(PROMISE.budget.tally(cost))
    forged(ledger, "begin", facts, total=total, run="sly", of_run=Sums(open_runs=1))

    with pytest.raises(LedgerError, match="line 3 cannot be: the ledger's policy did not allow it"):
        ledger.verify()


@pytest.mark.parametrize("policy", [{"most": {"month": -1}}, 7, "missing"])
def test_a_policy_line_that_holds_no_policy_is_found(ledger, policy):
    forged(ledger, "policy", {} if policy == "missing" else {"policy": policy})

    with pytest.raises(LedgerError, match="line 2 cannot be"):
        ledger.verify()


def test_names_that_cannot_be_shown_are_refused():
    for name in ("", " flu", "flu\nshot", "x" * 201, "postgresql://bob:4711@host/db", 7):
        with pytest.raises(SettingError, match="needs a name"):
            Purpose.of("aim", project=name)
        with pytest.raises(SettingError, match="needs a name"):
            Purpose.of("aim", approved_by=[name])


def test_a_run_of_an_older_version_has_no_purpose(ledger):
    run = ledger.begin(rho(1.0), label="old")

    assert ledger.run(run).purpose == Purpose()
    with ledger._transaction(to_write=False) as pages:
        assert set(pages.first(run).body) & {"mechanism", "project", "approval"} == set()
