"""A ledger that was touched by anything but sidelight is refused, and the refusal says where."""

import hashlib
import json
import sqlite3
from fractions import Fraction

import pytest

from sidelight.errors import LedgerError, MissingExtraError
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.event import Gaussian
from sidelight.privacy.ledger import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit

BUDGET = Budget(epsilon=1.0, delta=1e-9)
PROMISE = Promise(BUDGET, Unit("replace"), "adult")


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
    connection.execute("DROP TRIGGER sidelight_ledger_no_update")
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
        (2, lambda body: body.update(allotment={"rho": "1/200"}), "line 2 adds up wrongly"),
        (3, lambda body: body["event"].update(cost={"rho": "1/9999999"}), "owes"),
        (3, lambda body: body["event"].update(event="telepathy"), "unknown event"),
        (
            3,
            lambda body: body["event"].update(cost={"rho": "1/120"}),
            "line 3 cannot be: 'age' needs|line 3 adds up",
        ),
        (3, lambda body: body.update(kind="gift"), "unknown kind 'gift'"),
        (3, lambda body: body["total"].update(priced="0"), "line 3 adds up wrongly"),
        (4, lambda body: body["of_run"].update(rho="1/0"), "line 4 adds up wrongly"),
        (6, lambda body: body["total"].update(rho="0", priced="0"), "line 6 adds up wrongly"),
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
    monkeypatch.setattr("sidelight.privacy.sql_ledger._SqlPages.add", _disk_full)
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
