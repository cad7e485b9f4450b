"""A ledger that is moved, backed up or restored keeps every line, and its promise is never spent twice."""

import secrets
import shutil
import sqlite3
from contextlib import nullcontext
from fractions import Fraction

import pytest

from sidelight.errors import LedgerError
from sidelight.privacy import moving
from sidelight.privacy.budget import Budget
from sidelight.privacy.chain import Sums
from sidelight.privacy.event import Gaussian
from sidelight.privacy.moving import back_up, compare, move, restore
from sidelight.privacy.pages import Pen
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.sql_location import Location
from sidelight.privacy.unit import Unit

BUDGET = Budget(epsilon=1.0, delta=1e-9)
PROMISE = Promise(BUDGET, Unit("replace"), "people")
TENTH = BUDGET.rho() / 10


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDELIGHT_STATE", str(tmp_path / "state"))


@pytest.fixture(params=["sqlite to sqlite", "sqlite to postgres", "postgres to sqlite"])
def places(request, tmp_path):
    """Where a ledger is, and where it is to go."""

    def place(kind, name):
        if kind == "sqlite":
            return str(tmp_path / f"{name}.ledger")
        return f"{request.getfixturevalue('postgres').url}#{name}_{secrets.token_hex(4)}"

    old, new = request.param.split(" to ")
    return place(old, "old"), place(new, "new")


def pay(ledger, run, nth=None):
    payment = ledger.append(Gaussian.at(TENTH, what="age", l2_squared=Fraction(2)), run=run, nth=nth)
    return ledger.draw(payment, run=run)


def filled(where):
    """A ledger with a policy, a table, a closed run, a repeat, and a run that is open."""
    ledger = SqlLedger.create(where, PROMISE, policy={"most": {"month": 1.0}})
    ledger.for_table({"file": "aa"})
    first = ledger.begin(TENTH * 2, label="Größe")
    pay(ledger, first, 0)
    pay(ledger, first, 0)
    ledger.close(first)
    run = ledger.begin(TENTH * 3, label="open")
    pay(ledger, run)
    return ledger, run


def test_everything_goes_on_where_the_ledger_was_moved_to(places):
    old, new = places
    ledger, run = filled(old)
    before = ledger.runs(), ledger.spent, ledger.payments(run), ledger.policy, ledger.key

    found = move(old, new)

    there = SqlLedger.open(new)
    assert found.is_whole
    assert (found.first, found.second) == (found.same, found.same + 1)
    assert (there.runs(), there.spent, there.payments(run), there.policy, there.key) == before
    pay(there, run)
    there.close(run)
    there.verify()
    assert compare(old, new).is_whole


def test_the_old_ledger_spends_no_more_and_says_where_it_went(places):
    old, new = places
    ledger, run = filled(old)
    move(old, new)

    for book in (ledger, SqlLedger.open(old)):
        for spend in (
            lambda book=book: book.begin(TENTH, label="once more"),
            lambda book=book: pay(book, run),
            lambda book=book: book.close(run),
            lambda book=book: book.set_policy(None),
        ):
            with pytest.raises(LedgerError, match=r"was moved to .*goes on there"):
                spend()
    assert len(SqlLedger.open(old).runs()) == 2  # it can still be read
    with pytest.raises(LedgerError, match="was moved"):
        move(old, f"{old}2")


def test_a_move_that_dies_leaves_nobody_to_spend_and_goes_on_when_it_is_repeated(places, monkeypatch):
    old, new = places
    _, run = filled(old)
    create = Location.create

    class Died(BaseException):
        pass

    def dies(location, fill):
        def fill_and_die(pages):
            fill(pages)
            raise Died  # the old ledger is marked by now, the new one is not committed

        return create(location, fill_and_die)

    monkeypatch.setattr(Location, "create", dies)
    with pytest.raises(Died):
        move(old, new)
    monkeypatch.undo()
    monkeypatch.setenv("SIDELIGHT_STATE", "")

    with pytest.raises(LedgerError, match="was moved to"):
        pay(SqlLedger.open(old), run)
    with pytest.raises(LedgerError):
        SqlLedger.open(new)
    with pytest.raises(LedgerError, match="was moved to"):
        move(old, f"{new}2")  # elsewhere than was said

    assert move(old, new).is_whole
    pay(SqlLedger.open(new), run)


@pytest.mark.parametrize("has_died", [False, True])
def test_a_ledger_is_moved_to_one_place_though_others_have_the_same_name(tmp_path, monkeypatch, has_died):
    filled(tmp_path / "old")
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
    with monkeypatch.context() as patch:
        if has_died:
            patch.setattr(moving, "compare", lambda *places: pytest.fail("died"))
        with pytest.raises(pytest.fail.Exception) if has_died else nullcontext():
            move(tmp_path / "old", tmp_path / "x" / "new")
    monkeypatch.setenv("SIDELIGHT_STATE", "")  # another machine

    with pytest.raises(LedgerError, match="was moved to new"):
        move(tmp_path / "old", tmp_path / "y" / "new")

    assert not (tmp_path / "y" / "new").exists()
    if has_died:  # the new ledger lives, and the old one does not know: the same call says so
        assert move(tmp_path / "old", tmp_path / "x" / "new").is_whole
    (tmp_path / "x" / "new").rename(tmp_path / "elsewhere")
    with pytest.raises(LedgerError, match="was moved to new"):
        move(tmp_path / "old", tmp_path / "x" / "new")
    assert not (tmp_path / "x" / "new").exists()
    SqlLedger.open(tmp_path / "elsewhere").verify()


def test_a_move_that_was_begun_is_not_ended_where_later_lines_were_seen(tmp_path):
    filled(tmp_path / "old")
    shutil.copy(tmp_path / "old", tmp_path / "copy")
    ledger = SqlLedger.open(tmp_path / "copy")
    begin = moving._marked_as_moved
    with ledger._transaction(to_write=True) as pages:
        begin(pages, ledger, Location(tmp_path / "new"))
    SqlLedger.open(tmp_path / "old").begin(TENTH, label="since")
    SqlLedger.open(tmp_path / "old").begin(TENTH, label="since")

    with pytest.raises(LedgerError, match="older copy"):
        move(tmp_path / "copy", tmp_path / "new")

    assert not (tmp_path / "new").exists()


def test_whoever_saw_the_end_of_the_old_ledger_still_opens_the_new_one(tmp_path, monkeypatch):
    filled(tmp_path / "old")
    move(tmp_path / "old", tmp_path / "new")
    monkeypatch.setenv("SIDELIGHT_STATE", str(tmp_path / "another"))

    assert SqlLedger.open(tmp_path / "old").runs() == SqlLedger.open(tmp_path / "new").runs()
    with pytest.raises(LedgerError, match="was moved to new"):
        SqlLedger.open(tmp_path / "old").begin(TENTH, label="once more")


def test_a_move_of_an_older_version_is_read_and_never_goes_on(tmp_path):
    ledger, _ = filled(tmp_path / "old")
    ledger._change(lambda pen: pen.write("moved", {"to": "new", "token": "ab"}, of_run=Sums()))

    assert len(SqlLedger.open(tmp_path / "old").runs()) == 2
    with pytest.raises(LedgerError, match="was moved to new"):
        move(tmp_path / "old", tmp_path / "new")


@pytest.mark.parametrize(
    "facts",
    [
        {"to": "new", "place": "p", "token": "another", "arrived": True},
        {"to": "new", "place": "p", "token": "ab"},
    ],
)
def test_nothing_but_its_end_follows_a_move(tmp_path, facts):
    ledger, _ = filled(tmp_path / "old")
    first = {"to": "new", "place": "p", "token": "ab"}
    ledger._change(lambda pen: pen.write("moved", first, of_run=Sums()))
    with ledger._transaction(to_write=True) as pages:
        Pen(pages, pages.last()).write("moved", facts, of_run=Sums())

    with pytest.raises(LedgerError, match="cannot be"):
        SqlLedger.open(tmp_path / "old")


def test_a_place_is_known_by_host_port_database_and_table_and_by_no_password():
    same, *others = (
        Location(f"postgresql://ada{rest}").identity
        for rest in ("@h/d#t", ":4711@h/d#t", "@g/d#t", "@h:5433/d#t", "@h/e#t", "@h/d#u", "@h/d?host=g#t")
    )

    assert same == others.pop(0)
    assert len({same, *others}) == 6


def test_a_target_that_exists_is_left_alone_and_the_source_too(places):
    old, new = places
    ledger, _ = filled(old)
    head = ledger.head
    other = SqlLedger.create(new, PROMISE)

    with pytest.raises(LedgerError, match="exists already"):
        move(old, new)

    assert (SqlLedger.open(old).head, SqlLedger.open(new).head) == (head, other.head)


def cut(path, number):
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER sidelight_ledger_no_delete")
    connection.execute("DELETE FROM sidelight_ledger WHERE line > ?", (number,))
    connection.commit()
    connection.close()


def test_a_copy_that_lost_lines_is_not_said_to_be_whole(tmp_path, monkeypatch):
    filled(tmp_path / "old")
    shutil.copy(tmp_path / "old", tmp_path / "new")
    cut(tmp_path / "new", 5)

    found = compare(tmp_path / "old", tmp_path / "new")

    assert not found.is_whole
    assert "line 6 of the first is missing" in found.sentence
    assert compare(tmp_path / "new", tmp_path / "old").is_whole


def test_two_ledgers_that_went_apart_are_not_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDELIGHT_STATE", "")
    filled(tmp_path / "old")
    shutil.copy(tmp_path / "old", tmp_path / "new")
    lines = compare(tmp_path / "old", tmp_path / "new").same
    for name in ("old", "new"):
        SqlLedger.open(tmp_path / name).begin(TENTH, label=name)

    found = compare(tmp_path / "old", tmp_path / "new")

    assert (found.same, found.is_whole) == (lines, False)


def test_a_backup_restores_every_line_and_says_so_in_one_more(places, tmp_path):
    old, new = places
    ledger, run = filled(old)
    before = ledger.runs(), ledger.spent, ledger.payments(run), ledger.policy, ledger.key

    lines = back_up(old, tmp_path / "people.backup")
    there = restore(tmp_path / "people.backup", new)

    assert (there.runs(), there.spent, there.payments(run), there.policy, there.key) == before
    found = compare(old, new)
    assert (found.same, found.second) == (lines, lines + 1)
    pay(there, run)
    there.verify()
    assert (tmp_path / "people.backup").stat().st_mode & 0o077 == 0


def test_a_backup_that_is_older_than_what_was_seen_must_be_confirmed(tmp_path):
    ledger, run = filled(tmp_path / "old")
    back_up(tmp_path / "old", tmp_path / "people.backup")
    ledger.close(run)

    lost = moving.gap(tmp_path / "people.backup")
    with pytest.raises(
        LedgerError, match=r"but this machine saw line.*--release FOLDER.*Nothing was written"
    ):
        restore(tmp_path / "people.backup", tmp_path / "new")

    assert lost.seen is not None
    assert not (tmp_path / "new").exists()
    restored = restore(tmp_path / "people.backup", tmp_path / "new", is_confirmed=True)
    SqlLedger.open(tmp_path / "new")
    assert restored.is_open(run)
    with pytest.raises(LedgerError, match="older copy"):
        SqlLedger.open(tmp_path / "old")  # the one that was given up: its lines are not the restored one's


def test_a_backup_of_a_ledger_that_was_moved_cannot_be_brought_back_to_life(tmp_path):
    filled(tmp_path / "old")
    move(tmp_path / "old", tmp_path / "new")
    back_up(tmp_path / "old", tmp_path / "people.backup")

    with pytest.raises(LedgerError, match="was moved to new"):
        restore(tmp_path / "people.backup", tmp_path / "again", is_confirmed=True)


@pytest.mark.parametrize(
    "damage", ["cut", "last line lost", "last line edited", "edited", "empty", "another file", "missing"]
)
def test_a_damaged_backup_is_refused(tmp_path, damage):
    filled(tmp_path / "old")
    backup = tmp_path / "people.backup"
    back_up(tmp_path / "old", backup)
    content = backup.read_text()
    whole, last = content.rstrip("\n").rsplit("\n", 1)
    if damage == "missing":
        backup.unlink()
    else:
        backup.write_text(
            {
                "cut": content[:-20],
                "last line lost": f"{whole}\n",
                "last line edited": f"{whole}\n{last.replace('payment', 'payments')}\n",
                "edited": content.replace("age", "sex"),
                "empty": "",
                "another file": "age,sex\n1,2\n",
            }[damage]
        )

    with pytest.raises(LedgerError):
        restore(backup, tmp_path / "new", is_confirmed=True)

    assert not (tmp_path / "new").exists()
