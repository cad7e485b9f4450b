"""A ledger that was touched by anything but sidelight is refused, and the refusal says where."""

import hashlib
import json
import sqlite3
from fractions import Fraction

import pytest

from sidelight.errors import LedgerError, MissingExtraError
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.chain import Line
from sidelight.privacy.event import Gaussian
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit

BUDGET = Budget(epsilon=1.0, delta=1e-9)
PROMISE = Promise(BUDGET, Unit("replace"), "adult")


@pytest.fixture(autouse=True)
def unseen(monkeypatch):
    """The forger's machine has not seen the ledger before: test_seen.py is about one that has."""
    monkeypatch.setenv("SIDELIGHT_STATE", "")


@pytest.fixture
def path(tmp_path):
    """A ledger of six lines: promise, begin, three events, close."""
    path = tmp_path / "adult.ledger"
    ledger = SqlLedger.create(path, PROMISE)
    run = ledger.begin(BUDGET.rho() / 2, label="first")
    for what in ("age", "sex", "job"):
        ledger.append(Gaussian.at(BUDGET.rho() / 20, what=what, l2_squared=Fraction(2)), run=run)
    ledger.close(run)
    return path


def forge(path, *statements):
    """Change a ledger behind its back: without the triggers that would refuse."""
    connection = sqlite3.connect(path)
    for verb in ("update", "delete"):
        connection.execute(f"DROP TRIGGER IF EXISTS sidelight_ledger_no_{verb}")
    for statement, *values in statements:
        connection.execute(statement, values)
    connection.commit()
    connection.close()


def rewrite(path, number, change):
    """Edit a line's text and give every line from there on a fitting hash: a careful forger."""
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER IF EXISTS sidelight_ledger_no_update")
    lines = connection.execute("SELECT line, text, hash FROM sidelight_ledger ORDER BY line").fetchall()
    previous = ""
    for line, text, _ in lines:
        body = json.loads(text)
        if line == number:
            change(body)
        body["previous"] = previous
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256(text.encode()).hexdigest()
        edit = "UPDATE sidelight_ledger SET text = ?, hash = ? WHERE line = ?"
        connection.execute(edit, (text, previous, line))
    connection.commit()
    connection.close()


def test_an_untouched_ledger_opens(path):
    ledger = SqlLedger.open(path)

    assert ledger.promise == PROMISE
    assert ledger.spent == BUDGET.capacity * Fraction(3, 20)
    assert [event.what for event in ledger.events()] == ["age", "sex", "job"]


def test_a_ledger_rewritten_from_the_start_is_seen_by_whoever_knows_the_head(path):
    head = SqlLedger.open(path).head
    rewrite(path, 3, lambda body: body["event"].update(what="something harmless"))

    forged = SqlLedger.open(path)  # a chain alone cannot tell

    with pytest.raises(LedgerError, match="which it once held"):
        forged.verify(head=head)


@pytest.mark.parametrize("verb", ["UPDATE sidelight_ledger SET text = ''", "DELETE FROM sidelight_ledger"])
def test_the_database_itself_refuses_to_change_a_line(path, verb):
    connection = sqlite3.connect(path)

    with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
        connection.execute(verb)

    connection.close()


def test_an_edited_line_is_found(path):
    forge(path, ("UPDATE sidelight_ledger SET text = replace(text, 'sex', 'age') WHERE line = 4",))

    with pytest.raises(LedgerError, match=r"adult\.ledger is refused: line 4 was edited"):
        SqlLedger.open(path)


def test_an_edited_hash_is_found(path):
    forge(path, ("UPDATE sidelight_ledger SET hash = ? WHERE line = 3", "0" * 64))

    with pytest.raises(LedgerError, match="line 3 was edited"):
        SqlLedger.open(path)


def test_an_edited_line_with_a_fitting_hash_breaks_the_chain(path):
    text = "{}"
    forge(
        path,
        (
            "UPDATE sidelight_ledger SET text = ?, hash = ? WHERE line = 4",
            text,
            hashlib.sha256(text.encode()).hexdigest(),
        ),
    )

    with pytest.raises(LedgerError, match="line 4 was moved or edited"):
        SqlLedger.open(path)


@pytest.mark.parametrize("number", [1, 2, 4])
def test_a_removed_line_is_found(path, number):
    forge(path, ("DELETE FROM sidelight_ledger WHERE line = ?", number))

    with pytest.raises(LedgerError, match=f"line {number} is missing"):
        SqlLedger.open(path)


def test_a_removed_line_is_found_though_the_others_move_up(path):
    forge(
        path,
        ("DELETE FROM sidelight_ledger WHERE line = 4",),
        ("UPDATE sidelight_ledger SET line = 4 WHERE line = 5",),
        ("UPDATE sidelight_ledger SET line = 5 WHERE line = 6",),
    )

    with pytest.raises(LedgerError, match="line 4 was moved"):
        SqlLedger.open(path)


def test_lines_in_another_order_are_found(path):
    forge(
        path,
        ("UPDATE sidelight_ledger SET line = 100 WHERE line = 3",),
        ("UPDATE sidelight_ledger SET line = 3 WHERE line = 4",),
        ("UPDATE sidelight_ledger SET line = 4 WHERE line = 100",),
    )

    with pytest.raises(LedgerError, match="line 3 was moved"):
        SqlLedger.open(path)


def test_lines_of_two_ledgers_do_not_chain(path, tmp_path):
    other = SqlLedger.create(tmp_path / "other.ledger", PROMISE)
    other.begin(BUDGET.rho() / 4, label="elsewhere")
    forge(
        path,
        ("ATTACH ? AS other", str(tmp_path / "other.ledger")),
        ("DELETE FROM sidelight_ledger WHERE line > 1",),
        ("INSERT INTO sidelight_ledger SELECT * FROM other.sidelight_ledger WHERE line = 2",),
    )

    with pytest.raises(LedgerError, match="line 2 does not follow line 1"):
        SqlLedger.open(path)


@pytest.mark.parametrize(
    ("number", "change", "said"),
    [
        (2, lambda body: body.update(allotment={"rho": "1"}), "more is set aside than was promised"),
        (2, lambda body: body.update(allotment={"rho": "1/200"}), "the sums in line 2 are wrong"),
        (3, lambda body: body["event"].update(cost={"rho": "1/9999999"}), "owes"),
        (3, lambda body: body["event"].update(event="telepathy"), "unknown event"),
        (
            3,
            lambda body: body["event"].update(cost={"rho": "1/120"}),
            "line 3 cannot be: 'age' needs|line 3 adds up",
        ),
        (3, lambda body: body.update(kind="gift"), "unknown kind 'gift'"),
        (3, lambda body: body["total"].update(priced="0"), "the sums in line 3 are wrong"),
        (4, lambda body: body["of_run"].update(rho="1/0"), "the sums in line 4 are wrong"),
        (6, lambda body: body["total"].update(rho="0", priced="0"), "the sums in line 6 are wrong"),
        (1, lambda body: body.update(epsilon=-1.0), "promise cannot be read"),
        (1, lambda body: body.update(kind="begin"), "the first line holds no promise"),
    ],
)
def test_a_forger_who_makes_every_hash_fit_must_still_add_up(path, number, change, said):
    rewrite(path, number, change)

    with pytest.raises(LedgerError, match=said):
        SqlLedger.open(path)


def test_a_newer_format_is_refused_and_says_to_update(path):
    rewrite(path, 1, lambda body: body.update(format=3))

    with pytest.raises(LedgerError, match=r"adult\.ledger is refused: it has format 3.*update sidelight"):
        SqlLedger.open(path)


def test_lines_cut_off_the_end_are_seen_by_whoever_knows_the_head(path):
    head = SqlLedger.open(path).head
    forge(path, ("DELETE FROM sidelight_ledger WHERE line > 4",))

    shortened = SqlLedger.open(path)  # a chain alone cannot tell

    with pytest.raises(LedgerError, match="which it once held"):
        shortened.verify(head=head)


def test_lines_cut_off_under_an_open_ledger_stop_it_from_spending(path):
    ledger = SqlLedger.open(path)
    forge(path, ("DELETE FROM sidelight_ledger WHERE line > 4",))

    with pytest.raises(LedgerError, match="lost lines"):
        ledger.begin(BUDGET.rho() / 4, label="second")


def test_verify_reads_everything_again(path):
    ledger = SqlLedger.open(path)
    ledger.verify()
    forge(path, ("UPDATE sidelight_ledger SET run = 'x' WHERE line = 3",))

    with pytest.raises(LedgerError, match="line 3 was moved or edited"):
        ledger.verify()


def test_an_emptied_ledger_is_refused(path):
    forge(path, ("DELETE FROM sidelight_ledger",))

    with pytest.raises(LedgerError, match="holds no lines"):
        SqlLedger.open(path)


def test_a_missing_file_is_refused_and_not_made(tmp_path):
    with pytest.raises(LedgerError, match="there is no ledger"):
        SqlLedger.open(tmp_path / "nowhere.ledger")

    assert list(tmp_path.iterdir()) == []


def test_what_is_no_ledger_is_refused(tmp_path):
    empty, text, foreign = tmp_path / "empty", tmp_path / "text.csv", tmp_path / "foreign.db"
    empty.touch()
    text.write_text("age,sex\n" * 10)
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE people (age INTEGER)")
    connection.commit()
    connection.close()
    before = foreign.read_bytes(), text.read_bytes()

    for path, said in [
        (empty, "is empty"),
        (text, "is not an SQLite file"),
        (foreign, "holds no ledger"),
        (tmp_path, "is a folder"),
    ]:
        with pytest.raises(LedgerError, match=said):
            SqlLedger.open(path)
    assert (foreign.read_bytes(), text.read_bytes()) == before


def test_a_table_of_the_same_name_is_no_ledger(tmp_path):
    connection = sqlite3.connect(tmp_path / "foreign.db")
    connection.execute("CREATE TABLE sidelight_ledger (age INTEGER)")
    connection.commit()
    connection.close()

    with pytest.raises(LedgerError, match="not those of a ledger"):
        SqlLedger.open(tmp_path / "foreign.db")


def test_a_damaged_file_is_refused(path):
    data = bytearray(path.read_bytes())
    data[100:4096] = bytes(3996)
    path.write_bytes(data)

    with pytest.raises(LedgerError, match=r"adult\.ledger"):
        SqlLedger.open(path)


def test_an_existing_ledger_is_never_created_again(path):
    before = path.read_bytes()

    with pytest.raises(LedgerError, match="exists already"):
        SqlLedger.create(path, PROMISE)

    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(LedgerError, match="cannot be created: No such file or directory"):
        SqlLedger.create(tmp_path / "nowhere" / "adult.ledger", PROMISE)


def test_a_url_of_a_file_is_that_file(path):
    assert SqlLedger.open(f"sqlite:///{path}").promise == PROMISE
    with pytest.raises(LedgerError, match="in memory only"):
        SqlLedger.create("sqlite://", PROMISE)


def test_odd_file_names_are_taken_as_they_are(tmp_path):
    path = tmp_path / "50% of #1?.ledger"

    SqlLedger.create(path, PROMISE)

    assert SqlLedger.open(path).promise == PROMISE
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_addresses_that_cannot_be_are_refused():
    with pytest.raises(LedgerError, match="letters, digits"):
        SqlLedger.open("postgresql://localhost/db#drop table")
    with pytest.raises((LedgerError, MissingExtraError)):
        SqlLedger.open("://")


def test_a_write_that_fails_leaves_the_ledger_usable(path, monkeypatch):
    ledger = SqlLedger.open(path)
    monkeypatch.setattr("sidelight.privacy.sql_pages.SqlPages.add", _disk_full)
    with pytest.raises(LedgerError, match="database or disk is full"):
        ledger.begin(BUDGET.rho() / 4, label="second")
    monkeypatch.undo()

    ledger.begin(Rho(BUDGET.capacity / 4), label="third")

    assert [run.label for run in ledger.runs()] == ["first", "third"]


def _disk_full(pages, line):
    """A limit of as many pages as the file has: SQLite's own words for a full disk."""
    pages._connection.exec_driver_sql("PRAGMA max_page_count = 1")
    for _ in range(100):
        pages._connection.exec_driver_sql(
            "INSERT INTO sidelight_ledger SELECT max(line) + 1, 'x', ?, 'x' FROM sidelight_ledger",
            ("x" * 9999,),
        )


# --- draws -------------------------------------------------------------------------------------------------


@pytest.fixture
def drawn(tmp_path):
    """Nine lines: promise, begin, a payment and its draw for places 0, 0 again and 1, close."""
    path = tmp_path / "adult.ledger"
    ledger = SqlLedger.create(path, PROMISE)
    run = ledger.begin(BUDGET.rho() / 2, label="first")
    for nth in (0, 0, 1):
        paid = Gaussian.at(BUDGET.rho() / 5, what="age", l2_squared=Fraction(2))
        ledger.draw(ledger.append(paid, run=run, nth=nth), run=run)
    ledger.close(run)
    return path


def test_a_ledger_with_draws_opens(drawn):
    ledger = SqlLedger.open(drawn)

    assert [payment.nth for payment in ledger.payments(ledger.runs()[0].id)] == [0, 0, 1]
    assert ledger.spent == BUDGET.capacity * Fraction(3, 5)


@pytest.mark.parametrize(
    ("number", "change", "told"),
    [
        (4, {"payment": 2}, "line 4 cannot be: it draws for what was not paid for"),
        (4, {"payment": 99}, "line 4 cannot be: it draws for what was not paid for"),
        (4, {"place": 1}, "line 4 cannot be: it draws for what was not paid for"),
        (6, {"payment": 3}, "line 6 cannot be: it draws for what was not paid for, or was drawn already"),
        (4, {"ticket": ""}, "line 4 cannot be: its ticket"),
        (4, {"ticket": 7}, "line 4 cannot be: its ticket"),
        (5, {"apart": False}, "line 5 cannot be: it charges the promise where"),
        (5, {"apart": 1}, "line 5 cannot be: it charges the promise where"),
        (7, {"apart": True}, "line 7 cannot be: it charges the promise where"),
        (5, {"place": 1}, "line 5 cannot be: it charges the promise where"),
        (7, {"place": 2}, "line 7 cannot be: answer 2 cannot be paid for before answer 1"),
        (7, {"place": -1}, "line 7 cannot be: no run has an answer"),
        (7, {"place": True}, "line 7 cannot be: no run has an answer"),
        (4, {"kind": "drawn"}, "line 4 cannot be: unknown kind 'drawn'"),
    ],
)
def test_a_draw_or_a_repeat_that_does_not_follow_is_found(drawn, number, change, told):
    rewrite(drawn, number, lambda body: body.update(change))

    with pytest.raises(LedgerError, match=told):
        SqlLedger.open(drawn)


def test_a_ticket_that_is_given_out_twice_is_found(drawn):
    lines = sqlite3.connect(drawn).execute("SELECT text FROM sidelight_ledger WHERE line = 4").fetchone()
    rewrite(drawn, 6, lambda body: body.update(ticket=json.loads(lines[0])["ticket"]))

    with pytest.raises(LedgerError, match="line 6 cannot be: its ticket is missing, or was used before"):
        SqlLedger.open(drawn)


@pytest.mark.parametrize("which", ["of_run", "total"])
def test_a_repeat_that_is_not_added_up_is_found(drawn, which):
    def change(body):
        before = {"of_run": {"events": 2}, "total": {"rho": str(BUDGET.capacity / 2)}}
        body[which] |= before[which]
        body[which].pop("apart", None)

    rewrite(drawn, 5, change)

    with pytest.raises(LedgerError, match="the sums in line 5 are wrong"):
        SqlLedger.open(drawn)


def test_repeats_beyond_the_promise_are_found(tmp_path):
    """As a forger would write them, who adds up rightly."""
    path = tmp_path / "adult.ledger"
    ledger = SqlLedger.create(path, PROMISE)
    run = ledger.begin(BUDGET.rho(), label="first")
    paid = Gaussian.at(BUDGET.rho() / 5, what="age", l2_squared=Fraction(2))
    ledger.append(paid, run=run)
    with ledger._transaction(to_write=True) as pages:
        last = pages.last()
        facts = {"event": paid.as_json(), "place": 0, "apart": True}
        total = last.total.counted_apart(BUDGET.tally(paid.cost))
        of_run = last.of_run.charged_apart(paid.cost, repeats=True)
        pages.add(Line.after(last, "event", facts, total=total, run=run, of_run=of_run))

    with pytest.raises(LedgerError, match="line 4 cannot be: more is paid again than was promised"):
        SqlLedger.open(path)


# --- ledgers that were written before draws had lines ------------------------------------------------------


def test_a_ledger_of_the_first_format_opens_verifies_and_spends(path):
    """Its promise says format 1, and its events do not say for which answer they paid."""
    rewrite(path, 1, lambda body: body.update(format=1))
    for number in (3, 4, 5):
        rewrite(path, number, lambda body: body.pop("place"))

    ledger = SqlLedger.open(path)
    (old,) = ledger.runs()
    assert (old.events, old.repeats, old.spent) == (3, 0, BUDGET.rho() * Fraction(3, 20))
    assert [(payment.nth, payment.ticket) for payment in ledger.payments(old.id)] == [
        (0, ""),
        (1, ""),
        (2, ""),
    ]

    run = ledger.begin(BUDGET.rho() / 2, label="second")
    payment = ledger.append(
        Gaussian.at(BUDGET.rho() / 20, what="age", l2_squared=Fraction(2)), run=run, nth=0
    )
    assert ledger.draw(payment, run=run)

    again = SqlLedger.open(path)
    assert again.spent == BUDGET.capacity * Fraction(13, 20)


def test_an_event_of_the_first_format_counts_as_drawn(tmp_path):
    path = tmp_path / "adult.ledger"
    ledger = SqlLedger.create(path, PROMISE)
    run = ledger.begin(BUDGET.rho() / 2, label="unfinished")
    paid = Gaussian.at(BUDGET.rho() / 20, what="age", l2_squared=Fraction(2))
    payment = ledger.append(paid, run=run)
    rewrite(path, payment, lambda body: body.pop("place"))

    ledger = SqlLedger.open(path)

    assert ledger.draw(payment, run=run) is None
    ledger.draw(ledger.append(paid, run=run, nth=0), run=run)
    assert ledger.run(run).repeats == 1
    ledger.verify()
