"""The roles that the guide to databases creates can do what they must, and nothing else."""

import re
from pathlib import Path

import psycopg
import pytest

import sidelight as sl
from sidelight.errors import SidelightError
from sidelight.privacy.budget import Budget
from sidelight.privacy.chain import Line, Sums
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "databases.md"
ROLES = ("survey_reader", "ledger_owner", "analyst", "auditor")
SCHEMA = sl.Schema.from_domain({"age": 4, "sex": 2})


def statements(title):
    found = re.search(rf'^```sql title="{title}"\n(.*?)^```$', PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return [line for line in found[1].split(";\n") if line.strip()]


@pytest.fixture
def office(postgres):
    """A database with people in it, and the roles as the guide makes them."""
    with postgres.database() as url:
        rows = ", ".join(f"({place % 4}, {place % 2})" for place in range(200))
        postgres.run(
            "CREATE TABLE people (age int, sex int)", "CREATE TABLE others (age int)",
            f"INSERT INTO people VALUES {rows}", *statements("reader.sql"), *statements("ledger_roles.sql"),
            url=url,
        )  # fmt: skip
        name = postgres.run("SELECT current_database()", url=url)[0][0]

        def of(role):
            return postgres.to(name, user=role)

        promise = Promise(Budget(epsilon=10.0, delta=1e-9), Unit("replace"), "people")
        sl.SqlLedger.create(f"{of('ledger_owner')}#people", promise)
        postgres.run(*statements("ledger_rights.sql"), url=url)
        yield of
        postgres.run(*(f"DROP OWNED BY {role}" for role in ROLES), url=url)
    postgres.run(*(f"DROP ROLE {role}" for role in ROLES))


def refused(url, statement):
    with psycopg.connect(url, autocommit=True) as connection, pytest.raises(psycopg.Error) as error:
        connection.execute(statement)
    return error.value.sqlstate


def released(office, **more):
    return sl.release(
        f"{office('survey_reader')}#people",
        schema=SCHEMA,
        epsilon=5,
        workload="1-way",
        ledger=f"{office('analyst')}#people",
        progress=False,
        **more,
    )


def test_the_roles_of_the_guide_release_and_can_do_no_more(office):
    reader, analyst = office("survey_reader"), office("analyst")

    release = released(office)

    assert release.card.ledger.name == "people"
    with pytest.raises(SidelightError, match="others cannot be read: this role lacks the right"):
        sl.Table.read(f"{reader}#others", SCHEMA)
    for statement in ("DELETE FROM people", "CREATE TABLE mine (a int)", "CREATE TEMP TABLE mine (a int)"):
        assert refused(reader, statement) in ("25006", "42501")
    for statement in (
        "DELETE FROM sidelight_ledger_people",
        "TRUNCATE sidelight_ledger_people",
        "DROP TABLE sidelight_ledger_people",
        "UPDATE sidelight_ledger_people SET text = ''",
        "ALTER TABLE sidelight_ledger_people DISABLE TRIGGER ALL",
        "DROP TRIGGER sidelight_ledger_people_order ON sidelight_ledger_people",
        "CREATE OR REPLACE FUNCTION sidelight_ledger_people_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN RETURN NEW; END$$",
        "UPDATE sidelight_ledger_people_key SET key = ''",
        "SET session_replication_role = replica",
    ):
        assert refused(analyst, statement) == "42501", statement
    for verb in ("UPDATE sidelight_ledger_people SET text = ''", "DELETE FROM sidelight_ledger_people"):
        assert refused(office("ledger_owner"), verb) == "P0001"  # the trigger's
    with pytest.raises(SidelightError, match="this role lacks the right"):
        sl.SqlLedger.open(f"{reader}#people")


def line_after(url, kind, facts, *, change=None):
    """The statement that adds a line behind sidelight's back, with whatever change to the row."""
    with sl.SqlLedger.open(url)._transaction(to_write=False) as pages:
        last = pages.last()
    line = Line.after(last, kind, facts, total=last.total, of_run=Sums())
    row = {"line": line.number, "run": line.run, "text": line.text, "hash": line.hash} | (change or {})
    values = ", ".join(f"'{value}'" for value in row.values())
    return f"INSERT INTO sidelight_ledger_people (line, run, text, hash) VALUES ({values})"


@pytest.mark.parametrize(
    "change",
    [{"line": 1}, {"line": 9}, {"run": "x"}, {"hash": "0" * 64}, {"text": "{}"}, {"text": "no JSON"}],
    ids=lambda change: " ".join(f"{name} {str(value)[:8]}" for name, value in change.items()),
)
def test_nobody_can_add_a_line_out_of_place(office, change):
    analyst = office("analyst")

    added = line_after(f"{analyst}#people", "table", {"marks": {"file": "aa"}}, change=change)

    assert refused(analyst, added) in ("P0001", "22P02", "23505")
    sl.SqlLedger.open(f"{analyst}#people").verify()


def test_an_analyst_cannot_decide_for_everybody_and_the_owner_can(office):
    analyst, owner = (sl.SqlLedger.open(f"{office(role)}#people") for role in ("analyst", "ledger_owner"))

    for decide in (
        lambda ledger: ledger.set_policy({"most": {"release": 9.0}}),
        lambda ledger: ledger.rebind({"file": "aa"}),
    ):
        with pytest.raises(SidelightError, match="this role lacks the right"):
            decide(analyst)
        decide(owner)
    url = office("analyst")
    for kind in ("promise", "policy", "moved", "arrived", "restored"):
        assert refused(url, line_after(f"{url}#people", kind, {})) == "42501"
    path = "SET search_path = mine, pg_catalog; "
    sly = line_after(f"{url}#people", "policy", {"policy": None})
    assert refused(url, path + sly.replace("sidelight", "public.sidelight", 1)) == "42501"
    analyst.verify()


def test_a_policy_that_the_owner_sets_binds_the_analyst(office):
    sl.SqlLedger.open(f"{office('ledger_owner')}#people").set_policy({"projects": {"flu": 5.0}})

    with pytest.raises(SidelightError, match="name one with --project: flu"):
        released(office)
    assert released(office, project="flu", approved_by="A. Ito").card.ledger.project == "flu"
    with pytest.raises(SidelightError, match=r"flu holds 5\.00"):
        released(office, project="flu")


def test_an_auditor_reads_and_verifies_and_cannot_spend(office):
    release = released(office)
    ledger = sl.SqlLedger.open(f"{office('auditor')}#people")

    ledger.verify(head=release.card.ledger.head)

    assert [run.id for run in ledger.runs()] == [release.card.ledger.run]
    with pytest.raises(SidelightError, match="this role lacks the right"):
        ledger.close(ledger.begin(release.card.events[0].cost, label="a look"))
    assert refused(office("auditor"), "SELECT * FROM sidelight_ledger_people_key") == "42501"
