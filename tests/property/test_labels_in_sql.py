"""Whatever a label says, each engine finds it letter by letter, and does nothing else."""

import secrets

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sidelight.data.columns.column import CategoricalColumn
from sidelight.data.engines.postgres import PostgresDialect, PostgresSource
from sidelight.data.engines.spark import SparkDialect
from sidelight.data.engines.sql import SqlEngine
from sidelight.data.engines.sql_encoding import Dialect
from sidelight.data.reading.read import open_source
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError

COLUMN = "n\"; DROP TABLE decoy; --'\\"
BREAK = "THEN 0 END AS a0 FROM (SELECT 1::text AS v0) AS p) AS e; COMMIT; DROP TABLE decoy; --"
HOSTILE = [
    f"\\' {BREAK}", f"' {BREAK}", f"\\\\' {BREAK}", f"''' {BREAK}", f"\\''{BREAK}", f"{BREAK}",
    "E'a'", "$$a$$", "$tag$ ' $tag$", "U&'\\0061'", "\\x61", "\\u0061", "\\n", "\n", "\r\n", "a\\", "\\",
    "'", '"', "''", "a'||'b", "a' 'b", "a'\n'b", "%s", "%(a)s", "%", ":a", "?", "{a}", "${env:PATH}",
    "${spark.app.name}", "`", "--", "/*", "*/", ";", "a", "A", "\u00e1", "a\u0301", "ß", "ss", "İ", "i", " a",
    "a ", "", "\t", "表", "😀", "\u2028", "\ufeff", "'" * 50, "\\" * 51, "x" * 900,
]  # fmt: skip
LABELS = st.lists(
    st.text(alphabet=st.one_of(st.sampled_from("'\\\"`$%{};-/*EUXx0 \n\r"), st.characters(codec="utf-8")))
    .filter(lambda label: "\0" not in label),
    min_size=1, max_size=6, unique=True,
)  # fmt: skip
OFTEN = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


def schema_of(labels):
    return Schema((CategoricalColumn(COLUMN, tuple(labels), outside="other"),))


def records_of(labels):
    alien = "alien"
    while alien in labels:
        alien += "!"
    return [label for place, label in enumerate(labels) for _ in range(place + 1)] + [alien]


def assert_found(table, labels):
    np.testing.assert_array_equal(table.count((COLUMN,)), [*range(1, len(labels) + 1), 1])


@OFTEN
@given(LABELS)
@example(HOSTILE)
def test_duckdb_finds_every_label_letter_by_letter(labels):
    schema = schema_of(labels)
    frame = pa.table({COLUMN: records_of(labels)})

    assert_found(Table.read(frame, schema), labels)
    engine = SqlEngine(open_source(frame, schema), schema, records=frame.num_rows)
    assert_found(Table(engine, schema=schema), labels)


class Place:
    """A PostgreSQL table of labels beside another one, the decoy, that a label may try to drop."""

    def __init__(self, server, url):
        self.server, self.url = server, url
        quoted = COLUMN.replace('"', '""')
        self.table = f"labels_{secrets.token_hex(4)}"
        self.do(f'CREATE TABLE {self.table} ("{quoted}" text)', "CREATE TABLE IF NOT EXISTS decoy (a int)")

    def do(self, *statements):
        return self.server.run(*statements, url=self.url)

    def read(self, labels):
        import psycopg

        with psycopg.connect(self.url) as connection:
            connection.execute(f"TRUNCATE {self.table}")
            lines = [(record,) for record in records_of(labels)]
            connection.cursor().executemany(f"INSERT INTO {self.table} VALUES (%s)", lines)
        return Table.read(f"{self.url}#{self.table}", schema_of(labels))

    def is_whole(self):
        return self.do("SELECT to_regclass('decoy') IS NOT NULL") == [(True,)]


@pytest.fixture(scope="module", params=["on", "off"])
def place(request, postgres):
    """A database in which a backslash escapes in plain literals, and one in which it does not."""
    with postgres.database(
        f"standard_conforming_strings = {request.param}", "escape_string_warning = off"
    ) as url:
        place = Place(postgres, url)
        assert place.do("SHOW standard_conforming_strings") == [(request.param,)]
        yield place


@OFTEN
@given(labels=LABELS)
@example(labels=HOSTILE)
@example(labels=HOSTILE[:1])
def test_postgres_finds_every_label_letter_by_letter_and_drops_nothing(place, labels):
    assert_found(place.read(labels), labels)
    assert place.is_whole()


def test_quotes_that_are_only_doubled_are_seen_through(place, monkeypatch):
    """The planted violation: the quoting of old lets a label out, where backslashes escape."""
    monkeypatch.setattr(PostgresDialect, "text", Dialect.text)
    monkeypatch.setattr("sidelight.data.engines.postgres._SETTINGS", ())

    if place.do("SHOW standard_conforming_strings") == [("on",)]:
        assert_found(place.read(HOSTILE), HOSTILE)
    else:
        with pytest.raises(DataError):
            place.read(HOSTILE[:1])
    assert place.is_whole()  # since a second statement is refused


def test_a_second_statement_is_refused_and_nothing_is_written(place):
    source = PostgresSource(f"{place.url}#{place.table}")

    for statement in (
        "SELECT 1 AS a; SELECT 2 AS b",
        "SELECT 1 AS a; COMMIT; DROP TABLE decoy",
        "DROP TABLE decoy",
        "WITH gone AS (DELETE FROM decoy RETURNING 1) SELECT COUNT(*) FROM gone",
        "INSERT INTO decoy VALUES (1)",
        "SELECT pg_catalog.nextval('numbers')",
    ):
        with pytest.raises(DataError):
            source.fetch(statement)
    assert place.is_whole()


def test_functions_and_operators_are_postgres_own_whatever_the_search_path_says(place):
    """A role that may make functions in a schema before pg_catalog cannot make us call them."""
    place.do(
        "CREATE SCHEMA IF NOT EXISTS planted",
        "CREATE OR REPLACE FUNCTION planted.equal(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "DROP OPERATOR IF EXISTS planted.= (text, text)",
        "CREATE OPERATOR planted.= (LEFTARG = text, RIGHTARG = text, FUNCTION = planted.equal)",
    )
    database = place.do("SELECT current_database()")[0][0]
    place.do(f"ALTER DATABASE {database} SET search_path = planted, public, pg_catalog")
    try:
        assert place.do("SELECT 'a'::text = 'b'::text") == [(True,)]
        assert_found(place.read(["a", "b"]), ["a", "b"])
    finally:
        place.do(f"ALTER DATABASE {database} RESET search_path")


def test_a_collation_that_holds_different_letters_for_equal_changes_nothing(place):
    if not place.do("SELECT 1 FROM pg_collation WHERE collprovider = 'i' LIMIT 1"):
        pytest.skip("this PostgreSQL was built without ICU collations")
    place.do(
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        f"DROP TABLE {place.table}",
        f"""CREATE TABLE {place.table} ("{COLUMN.replace('"', '""')}" text COLLATE loose)""",
    )

    labels = ["a", "A", "á", "b"]
    assert_found(place.read(labels), labels)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("escaped", ["false", "true"])
def test_spark_finds_every_label_letter_by_letter(spark, escaped):
    spark.conf.set("spark.sql.parser.escapedStringLiterals", escaped)
    try:
        for labels in (HOSTILE, HOSTILE[:7], ["a'b", "a\\'b", "a''b", "ab"]):
            frame = spark.createDataFrame([(record,) for record in records_of(labels)], [COLUMN])
            assert_found(Table.read(frame, schema_of(labels)), labels)
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")


@given(st.text(st.characters(codec="utf-8")))
def test_a_literal_holds_no_letter_that_could_end_it(label):
    spark = SparkDialect().text(label)
    assert set(spark.removeprefix("CAST(X'").removesuffix("' AS STRING)")) <= set("0123456789abcdef")

    inside = PostgresDialect().text(label).removeprefix("E'").removesuffix("'")
    assert inside.replace("\\\\", "").replace("''", "") == label.replace("\\", "").replace("'", "")
