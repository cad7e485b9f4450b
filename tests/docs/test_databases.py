"""The roles that the guide to databases creates can do what they must, and nothing else."""

import re
from pathlib import Path

import psycopg
import pytest

import sidelight as sl
from sidelight.errors import SidelightError
from sidelight.privacy.budget import Budget
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "databases.md"
ROLES = ("survey_reader", "ledger_owner", "ledger_writer")
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


def test_the_roles_of_the_guide_release_and_can_do_no_more(office):
    reader, writer = office("survey_reader"), office("ledger_writer")

    release = sl.release(
        f"{reader}#people",
        schema=SCHEMA,
        epsilon=5,
        workload="1-way",
        ledger=f"{writer}#people",
        progress=False,
    )

    assert release.card.ledger.name == "people"
    with pytest.raises(SidelightError, match="others cannot be read: this role lacks the right"):
        sl.Table.read(f"{reader}#others", SCHEMA)
    for statement in ("DELETE FROM people", "CREATE TABLE mine (a int)", "CREATE TEMP TABLE mine (a int)"):
        assert refused(reader, statement) in ("25006", "42501")
    for verb in ("DELETE FROM", "TRUNCATE", "DROP TABLE"):
        assert refused(writer, f"{verb} sidelight_ledger_people") == "42501"
    assert refused(writer, "UPDATE sidelight_ledger_people SET text = ''") == "P0001"  # the trigger's
    with pytest.raises(SidelightError, match="this role lacks the right"):
        sl.SqlLedger.open(f"{reader}#people")
