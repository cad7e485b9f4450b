"""Who asked and who approved stands in the first line of a run, and old ledgers are read as before."""

import json
from fractions import Fraction
from hashlib import sha256

import pytest

from sidelight.errors import LedgerError, PolicyError, SettingError
from sidelight.privacy.approval import Approval, same_person
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.chain import Line
from sidelight.privacy.event import Gaussian
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.purpose import Purpose
from sidelight.privacy.replay import replayed
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.statement import Statement
from sidelight.privacy.unit import Unit

PROMISE = Promise(Budget(epsilon=1.0, delta=1e-9), Unit(), "people")
COST = Rho(Fraction(1, 1000))
BOTH = Approval(digest="ab" * 32, asked_by="Ada Lovelace", names=("Grace Hopper",))


def test_a_run_remembers_who_asked_and_who_approved(tmp_path):
    ledger = SqlLedger.create(tmp_path / "people.ledger", PROMISE)
    named = ledger.begin(COST, label="with", purpose=Purpose().approved(BOTH))
    by_herself = Purpose().approved(Approval(digest="0" * 64, asked_by="Ada"))
    alone = ledger.begin(COST, label="alone", purpose=by_herself)
    plain = ledger.begin(COST, label="without")

    again = SqlLedger.open(tmp_path / "people.ledger")

    assert again.run(named).approval == BOTH
    assert again.run(named).as_json()["approved_by"] == "Grace Hopper"
    assert again.run(alone).approval.names == ()
    assert again.run(plain).approval is None
    assert "asked_by" not in again.run(plain).as_json()
    assert Statement.of(again).runs[0].approval == BOTH


def lines_with(facts):
    """A promise and one run whose first line holds these facts, as somebody may have written them."""
    ledger = MemoryLedger(PROMISE)
    ledger.begin(COST, label="a run", run="r")
    with ledger._transaction(to_write=False) as pages:
        promise, begin = pages.lines()
    body = {**begin.body, **facts}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return [promise, Line(2, "r", text, sha256(text.encode()).hexdigest(), body)]


def test_a_line_without_the_field_and_one_with_it_are_read():
    replayed(lines_with({}), where="here")
    replayed(lines_with({"approval": BOTH.as_json()}), where="here")


def test_names_alone_approve_no_plan():
    lines = lines_with({"approval": {"names": ["Grace Hopper"]}})

    replayed(lines, where="here")

    assert lines[1].purpose.approval is None
    assert lines[1].purpose.approved_by == ("Grace Hopper",)


@pytest.mark.parametrize(
    "approval",
    [
        None,
        "Grace",
        {},
        {"digest": "ab" * 32, "names": []},
        {"digest": "ab" * 32, "asked_by": "Ada"},
        {"digest": "short", "asked_by": "Ada", "names": []},
        {"digest": "ab" * 32, "asked_by": "", "names": []},
        {"digest": "ab" * 32, "asked_by": "Ada\nGrace", "names": []},
        {"digest": "ab" * 32, "asked_by": "Ada", "names": ["ADA"]},
        {"digest": "ab" * 32, "asked_by": "Ada", "names": ["Grace", "grace"]},
        {"digest": "ab" * 32, "asked_by": "Ada", "names": [7]},
        {"digest": "ab" * 32, "asked_by": "Ada", "names": "Grace"},
        {"digest": "ab" * 32, "asked_by": "Ada", "names": [], "more": "x"},
        {"digest": "ab" * 32, "asked_by": "postgresql://ada:4711@host/db", "names": []},
    ],
)
def test_a_field_that_cannot_be_is_refused(approval):
    with pytest.raises(LedgerError, match="line 2 cannot be"):
        replayed(lines_with({"approval": approval}), where="here")


def test_nobody_approves_what_they_asked_for():
    with pytest.raises(SettingError, match="cannot approve it"):
        Approval(digest="0" * 64, asked_by="Ada Lovelace", names=("ada  lovelace",))
    assert not same_person("Ada", "Adam")


def test_each_ledger_has_an_origin_of_its_own_that_stays():
    one, other = MemoryLedger(PROMISE), MemoryLedger(Promise(PROMISE.budget, PROMISE.unit, "others"))
    before = one.origin
    one.begin(COST, label="a run")

    assert one.origin == before != other.origin
    assert one.head != before


def test_an_approval_serves_one_run_unless_that_came_to_nothing(tmp_path):
    ledger = SqlLedger.create(tmp_path / "people.ledger", PROMISE)
    purpose, event = Purpose().approved(BOTH), Gaussian.at(COST, what="age", l2_squared=Fraction(2))
    first = ledger.begin(COST, label="fails", purpose=purpose)

    def refused():
        before = ledger.head
        for again in (
            lambda: ledger.require(COST, purpose),
            lambda: ledger.begin(COST, label="again", purpose=purpose),
        ):
            with pytest.raises(PolicyError, match=r"was carried out before, by run .* serves one run"):
                again()
        assert ledger.head == before

    refused()  # it is open, and may still pay
    ledger.close(first)
    second = ledger.begin(COST, label="pays", purpose=purpose)
    ledger.append(event, run=second)
    refused()
    ledger.close(second)
    refused()
    other = Purpose().approved(Approval(digest="cd" * 32, asked_by="Ada Lovelace"))
    ledger.begin(COST, label="another plan", purpose=other)
    ledger.verify()


def test_whoever_uses_an_approval_twice_without_asking_is_found_out(monkeypatch):
    ledger, purpose = MemoryLedger(PROMISE), Purpose().approved(BOTH)
    ledger.begin(COST, label="once", purpose=purpose)
    monkeypatch.setattr(ledger, "_allow", lambda *asked: None)
    ledger.begin(COST, label="twice", purpose=purpose)

    with pytest.raises(LedgerError, match="line 3 cannot be: its approval served another run before"):
        ledger.verify()
