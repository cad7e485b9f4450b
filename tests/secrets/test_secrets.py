"""Secrets are planted in every part of every address, in the environment and in values; none comes out again.

A secret is a word that occurs nowhere else. After each command and each call, all that was printed, raised,
shown and written is searched for all of them: as they are, and percent-encoded.
"""

import json
import traceback
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import pytest

import commands
import sidelight as sl
from sidelight.data.table import Table
from sidelight.errors import SidelightError
from sidelight.evaluation.screening import screen
from sidelight.privacy.budget import Budget
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit
from sidelight.reports.report import report

USER, PASSWORD, VALUE = "Uqz7user", "Pqz7/@ss?w#rd", "Vqz7value"
PARAMETERS = ["Aqz7name", "Fqz7file", "Sqz7pass", "Oqz7options"]
ENVIRONMENT = {
    "PGPASSWORD": "Eqz7pass",
    "PGPASSFILE": "/Eqz7file",
    "PGSSLPASSWORD": "Eqz7ssl",
    "PGAPPNAME": "Eqz7app",
}
# A password may be cut where it was not encoded: each part of it is a secret too.
WORDS = [USER, "Pqz7", "rd@", VALUE, *PARAMETERS, "Eqz7", "Hqz7"]
TOML = """
[columns.age]
kind = "integer"
low = 0
high = 9
bins = 5

[columns.sex]
kind = "categorical"
labels = ["f", "m"]
"""
ROWS = [(place % 10, "fm"[place % 3 == 0]) for place in range(60)]


def found_in(text):
    """Which secrets stand in a text."""
    return [word for word in WORDS if word in text or quote(word, safe="") in text]


@pytest.fixture(scope="module")
def database(postgres):
    """A database with a table, one with a value that no schema admits, and a role that is a secret itself."""
    with postgres.database() as url:
        values = ", ".join(str(row) for row in ROWS)
        postgres.run(
            f'CREATE ROLE "{USER}" LOGIN',
            "CREATE TABLE people (age int, sex text)",
            f"INSERT INTO people VALUES {values}",
            "CREATE TABLE survey AS SELECT * FROM people WHERE age < 8",
            "CREATE TABLE strange (age int, sex text)",
            f"INSERT INTO strange VALUES (1, '{VALUE}')",
            f'GRANT SELECT ON people, survey, strange TO "{USER}"',
            f'GRANT CREATE, USAGE ON SCHEMA public TO "{USER}"',
            url=url,
        )
        yield postgres, url
        postgres.run(f'DROP OWNED BY "{USER}"', f'DROP ROLE "{USER}"', url=url)


@pytest.fixture
def scene(tmp_path, monkeypatch, database):
    """A folder with a schema and a table, in which commands run."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SIDELIGHT_DEBUG", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.toml").write_text(TOML)
    lines = "".join(f"{age},{sex}\n" for age, sex in ROWS)
    (tmp_path / "people.csv").write_text("age,sex\n" + lines)
    (tmp_path / "strange.csv").write_text(f"age,sex\n1,{VALUE}\n")
    return Scene(tmp_path, *database)


class Scene:
    def __init__(self, folder, server, url):
        from sqlalchemy import make_url

        self.folder, self.server, self.admin = folder, server, url
        parsed = make_url(url)
        self.host, self.name = quote(parsed.query["host"], safe=""), parsed.database

    def urls(self):
        """Addresses of the database that work: the secrets stand in all parts of them."""
        more = "application_name={}&passfile={}&sslpassword={}&options=-c%20my.x%3D{}".format(*PARAMETERS)
        password, user = quote(PASSWORD, safe=""), quote(USER, safe="")
        encoded = "".join(f"%{ord(letter):02x}" for letter in PASSWORD)
        return [
            f"postgresql://{user}:{password}@/{self.name}?host={self.host}&{more}",
            f"postgresql:///{self.name}?user={user}&password={password}&host={self.host}&{more}",
            f"postgres://{user}:{encoded}@/{self.name}?{more}&host={self.host}",
        ]

    def run(self, *argv):
        """Exit code and output of a command; neither may hold a secret."""
        done = commands.sidelight(*argv)
        assert not found_in(done.said), f"{argv[:2]} said {found_in(done.said)}"
        assert done.returncode in (0, 2, 3), done.said
        return done.returncode, done.said

    def written(self):
        """All files, and all lines of all ledgers in the database, as one text."""
        files = [path for path in self.folder.rglob("*") if path.is_file() and path.name != "strange.csv"]
        tables = self.server.run(
            "SELECT tablename FROM pg_tables WHERE tablename LIKE 'sidelight_ledger%'", url=self.admin
        )
        lines = [self.server.run(f"SELECT * FROM {table}", url=self.admin) for (table,) in tables]
        named = "".join(f"{path}\n{path.read_bytes().decode('latin1')}" for path in files)
        return named + str(lines)


def successes(url, which):
    """Every command that takes a source, as it should be used."""
    ledger, other = f"{url}#led{which}", f"{url}#more{which}"
    table, public = f"{url}#people", f"{url}#survey"
    schema, number = ("--schema", "people.toml"), ("--value", "age", "--bounds", "0", "9", "--epsilon", "5")
    small = ("--workload", "1-way", "--epsilon", "5")
    return [
        ("ledger", "open", ledger, "--epsilon", "50", "--delta", "1e-9", "--yes"),
        ("ledger", "open", other, "--epsilon", "50", "--delta", "1e-9", "--json", "--yes"),
        ("schema", "check", table, *schema),
        ("schema", "check", table, *schema, "--json"),
        ("plan", *schema, *small, "--ledger", ledger, "--public", public),
        ("plan", *schema, *small, "--ledger", ledger, "--json"),
        ("release", table, *schema, *small, "--ledger", ledger, "--out", "r1"),
        ("release", table, *schema, *small, "--ledger", ledger, "--public", public, "--out", "r2", "--json"),
        ("release", table, *schema, *small, "--ledger", ledger, "--dry-run"),
        ("screen", table, *schema, *small, "--ledger", ledger, "--public", public),
        ("screen", table, *schema, *small, "--ledger", ledger, "--public", public, "--json"),
        ("prior", "fit", public, *schema, "--workload", "1-way", "--out", "p1"),
        ("mean", "people.csv", *number, "--ledger", other),
        ("quantile", "people.csv", *number, "--ledger", other),
        ("evaluate", "r1", table, "--workload", "1-way"),
        ("evaluate", "r1", table, "--workload", "1-way", "--json"),
        ("report", "r1", "--to", "r1.html"),
        ("report", "r1", "--to", "r2.html", "--against", table, "--json"),
        ("answer", "r1", "age", "--json"),
        ("sample", "r1", "--seed", "1", "--to", "s.csv"),
        ("ledger", "show", ledger, "--events"),
        ("ledger", "show", ledger, "--json"),
        ("ledger", "verify", ledger),
        ("ledger", "verify", ledger, "--json"),
    ]


def failures(url, ledger="people.ledger"):
    """Every command that takes a source, with one that cannot be read as a table or as a ledger."""
    schema, small = ("--schema", "people.toml"), ("--workload", "1-way", "--epsilon", "5")
    number = ("--value", "age", "--bounds", "0", "9", "--epsilon", "5")
    return [
        ("release", url, *schema, *small, "--ledger", ledger, "--out", "r9"),
        ("release", "people.csv", *schema, *small, "--ledger", url, "--out", "r9"),
        ("release", "people.csv", *schema, *small, "--ledger", ledger, "--public", url, "--out", "r9"),
        ("plan", *schema, *small, "--ledger", url),
        ("plan", *schema, *small, "--delta", "1e-9", "--public", url, "--mechanism", "pmw-pub"),
        ("screen", url, *schema, *small, "--public", "people.csv"),
        ("screen", "people.csv", *schema, *small, "--public", url, "--json"),
        ("mean", url, *number),
        ("mean", "people.csv", *number, "--public", url),
        ("mean", "people.csv", *number, "--ledger", url),
        ("quantile", url, *number, "--json"),
        ("evaluate", url, "people.csv"),
        ("evaluate", "r1", url),
        ("prior", "fit", url, *schema, "--out", "p9"),
        ("schema", "draft", url),
        ("schema", "check", url, *schema),
        ("schema", "check", "people.csv", "--schema", url),
        ("ledger", "open", url, "--epsilon", "1", "--delta", "2"),
        ("ledger", "show", url),
        ("ledger", "verify", url),
        ("ledger", "close", url, "RUN"),
        ("report", url),
        ("report", "r1", "--to", "r9.html", "--against", url),
        ("answer", url, "age"),
        ("sample", url, "--seed", "1", "--to", "s9.csv"),
        ("sample", "r1", "--seed", "1", "--to", url),
        ("demo", url),
        ("answer", "r1", f"--confidence={url}"),
        ("nothing", url),
        (url,),
    ]


def unreadable(name):
    """Addresses with nothing behind them: unreachable, malformed, of another kind."""
    user, password = USER, quote(PASSWORD, safe="")
    return [
        f"postgresql://{user}:{password}@127.0.0.1:1/{name}#people",
        f"postgresql://127.0.0.1:1/{name}?user={user}&password={password}#people",
        f"postgresql://{user}:{password}@127.0.0.1:Hqz7port/{name}#people",
        f"postgresql://{user}:{PASSWORD}@127.0.0.1:1/{name}#people",
        f"postgresql://{user}:{password}@[::1/{name}",
        f"POSTGRESQL+psycopg://{user}:{password}@127.0.0.1:1/{name}?nothing=Aqz7name#people",
        f"mysql://{user}:{password}@Hqz7host/{name}#people",
        f"sqlite://{user}:{password}@/",
        f"s3://{user}:{password}@Hqz7host/people.csv",
        f"https://Hqz7host/people.csv?token={password}",
        f"host=127.0.0.1 port=1 user={user} password={password}",
    ]


def test_commands_that_succeed_print_and_write_no_secret(scene):
    for argv in successes(scene.urls()[0], 1):
        if argv[0] in ("ledger", "schema") or "r1" in argv:
            code, said = scene.run(*argv)
            assert code == 0, said

    card = json.loads((scene.folder / "r1" / "release.json").read_text())["card"]
    assert card["ledger"]["name"] == "led1"
    assert "led1" in (scene.folder / "r1.html").read_text()
    assert not found_in(scene.written())


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1, 2])
def test_all_commands_print_and_write_no_secret_however_the_address_is_written(scene, which):
    for argv in successes(scene.urls()[which], which + 2):
        code, said = scene.run(*argv)
        assert code == 0, said
    assert not found_in(scene.written())


@pytest.mark.parametrize("place", range(len(unreadable("db"))))
def test_commands_that_fail_print_and_write_no_secret(scene, place):
    scene.run("ledger", "open", "people.ledger", "--epsilon", "9", "--delta", "1e-9")
    for argv in failures(unreadable(scene.name)[place]):
        code, said = scene.run(*argv)
        assert code == 2, said
    assert not found_in(scene.written())


@pytest.mark.slow
def test_tables_and_databases_that_are_not_there_are_named_without_a_secret(scene):
    url = scene.urls()[0]
    elsewhere = url.replace(scene.name, "nowhere")
    scene.run("ledger", "open", "people.ledger", "--epsilon", "9", "--delta", "1e-9")
    for address in (f"{url}#nothing", f"{url}#strange", f"{elsewhere}#people", url):
        for argv in failures(address):
            # A public table may have labels that the schema does not know: they are left open.
            is_public = ("--public", address) in pairwise(argv) or argv[:2] == ("prior", "fit")
            if is_public and address.endswith("#strange"):
                # What is said to be public may be spoken about; nothing else may.
                done = commands.sidelight(*argv)
                assert done.returncode in (0, 2), argv
                assert set(found_in(done.said)) <= {"Vqz7value"}, argv
                continue
            assert scene.run(*argv)[0] == 2, argv
    assert set(found_in(scene.written())) <= {"Vqz7value"}


def test_a_value_that_does_not_fit_is_not_quoted_by_any_reader(scene):
    for source in ("strange.csv", f"{scene.urls()[0]}#strange"):
        code, said = scene.run("schema", "check", source, "--schema", "people.toml")
        assert (code, "sex" in said) == (2, True)


def calls(address, folder):
    """Every Python entry that takes a source."""
    schema = sl.Schema.read(folder / "people.toml")
    table = [["age"]]
    return [
        lambda: sl.release(address, schema=schema, epsilon=1, delta=1e-9, workload=table, progress=False),
        lambda: sl.release("people.csv", schema=schema, epsilon=1, workload=table, ledger=address),
        lambda: sl.release(
            "people.csv", schema=schema, public=address, epsilon=1, delta=1e-9, workload=table
        ),
        lambda: sl.release(Path(address), schema=schema, epsilon=1, delta=1e-9, workload=table),
        lambda: sl.Plan.of(schema=schema, epsilon=1, delta=1e-9, workload=table, public=address),
        lambda: sl.Table.read(address, schema),
        lambda: Table.read(Path(address), schema),
        lambda: sl.Schema.draft(address),
        lambda: sl.Schema.read(Path(address)),
        lambda: schema.check(address),
        lambda: sl.Release.load(address),
        lambda: sl.SqlLedger.open(address),
        lambda: sl.SqlLedger.open(Path(address)),
        lambda: sl.SqlLedger.create(address, promise("people")),
        lambda: sl.SqlLedger.create("new.ledger", promise(address)),
        lambda: sl.grouped_mean(
            address, "age", by="sex", cells=["f", "m"], bounds=(0, 9), epsilon=1, unit="replace"
        ),
        lambda: screen("people.csv", {"other": address}, schema=schema, epsilon=1),
        lambda: sl.best_mixture_error(address, "people.csv", schema=schema),
        lambda: sl.Workload.of(address, schema.domain),
        lambda: report(address, "r9.html"),
        lambda: sl.Synthesizer(epsilon=1, ledger=address, schema=schema).fit("people.csv"),
    ]


def promise(name):
    return Promise(Budget(epsilon=9.0, delta=1e-9), Unit("replace"), name)


@pytest.mark.parametrize("place", range(len(unreadable("db"))))
def test_errors_of_calls_hold_no_secret_not_even_in_their_traceback(scene, place):
    address = unreadable(scene.name)[place]
    for call in calls(address, scene.folder):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with pytest.raises((SidelightError, OSError)) as refused:
                call()
        if isinstance(refused.value, SidelightError):
            whole = "".join(traceback.format_exception(refused.value)) + str(
                [str(one.message) for one in warned]
            )
            assert not found_in(whole), whole


def test_what_python_shows_of_a_database_holds_no_secret(scene):
    url = scene.urls()[0]
    ledger = sl.SqlLedger.create(f"{url}#shown", promise("people"))
    schema = sl.Schema.read(scene.folder / "people.toml")
    made = sl.release(
        f"{url}#people", schema=schema, epsilon=5, workload=[["age"]], ledger=ledger, progress=False,
        checkpoint=scene.folder / "run",
    )  # fmt: skip
    table = Table.read(f"{url}#people", schema)
    fitted = sl.Synthesizer(epsilon=1, ledger=f"{url}#shown", schema=schema)
    for thing in (ledger, made, table, fitted, schema):
        assert not found_in(repr(thing))
        if hasattr(thing, "_repr_html_"):
            assert not found_in(thing._repr_html_())
    assert "postgresql: " in ledger._repr_html_()
    assert not found_in(json.dumps(made.card.as_json()))
    with pytest.raises(SidelightError) as refused:
        sl.release(
            f"{url}#people", schema=schema, epsilon=50, workload=[["age"]], ledger=ledger, progress=False
        )
    assert not found_in(str(refused.value))
    assert not found_in(scene.written())


@pytest.mark.parametrize(
    "name", [f"db?user={USER}&password=Pqz7#led1", f"{USER}:Pqz7@host", f"postgresql://{USER}:Pqz7@h/db#led1"]
)
def test_a_ledger_that_an_older_version_named_after_its_address_is_shown_without_its_secret(
    scene, monkeypatch, name
):
    with monkeypatch.context() as older:
        older.setattr(Promise, "shown", property(lambda promise: promise.name))
        SqlLedger.create("old.ledger", Promise(Budget(epsilon=9.0, delta=1e-9), Unit("replace"), name))

    small = ("--schema", "people.toml", "--workload", "1-way", "--ledger", "old.ledger")
    for argv in (
        ("ledger", "show", "old.ledger"),
        ("ledger", "show", "old.ledger", "--json"),
        ("ledger", "verify", "old.ledger"),
        ("release", "people.csv", *small, "--epsilon", "5", "--out", "r1"),
        ("report", "r1", "--to", "r1.html"),
    ):
        assert scene.run(*argv)[0] == 0
    assert scene.run("release", "people.csv", *small, "--epsilon", "50", "--out", "r2")[0] == 3
    assert not found_in(sl.SqlLedger.open("old.ledger")._repr_html_())
    (scene.folder / "old.ledger").unlink()  # which holds the name for ever
    assert not found_in(scene.written())


def test_a_release_that_an_older_version_wrote_is_reported_without_its_secret(scene):
    scene.run("ledger", "open", "people.ledger", "--epsilon", "9", "--delta", "1e-9")
    made = sl.release(
        "people.csv",
        schema="people.toml",
        epsilon=5,
        workload=[["age"]],
        ledger="people.ledger",
        progress=False,
    )
    ledger = replace(made.card.ledger, name=f"db?user={USER}&password=Pqz7#led1")
    made = replace(made, card=replace(made.card, ledger=ledger))

    page = report(made, "old.html").read_text()

    assert not found_in(page)
    assert "db#led1" in page


def test_a_planted_name_that_gives_an_address_away_is_caught(scene, monkeypatch):
    """The search sees what it should: were a source named by its address, most commands would be caught."""
    monkeypatch.setattr("sidelight.sources._parts", lambda text: (text, ""))
    address = unreadable(scene.name)[0]

    caught = 0
    for argv in failures(address):
        try:
            scene.run(*argv)
        except AssertionError as seen:
            caught += USER in str(seen)
    assert caught > 15
