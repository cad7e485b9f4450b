"""What is said of a source holds no part of it that could be a secret."""

import pytest

from sidelight.errors import DataError
from sidelight.sources import ledger_name, shown_name, source_name, without_addresses

SECRET = "s3cr3t"
# Each way in which a secret can stand in an address, percent-encoded or forgotten to be.
ADDRESSES = [
    f"postgresql://bob:{SECRET}@host:5432/db#people",
    f"postgresql://{SECRET}@host/db#people",
    f"postgresql://{SECRET}/db#people",
    f"postgresql://host:{SECRET}/db#people",
    f"postgresql://bob:a%40{SECRET}@host/db#people",
    f"postgresql://bob:a@{SECRET}@host/db#people",
    f"postgresql://bob:a/{SECRET}@host/db#people",
    f"postgresql://bob:a?{SECRET}@host/db#people",
    f"postgresql://bob:a/{SECRET}?b@host/db#people",
    f"postgresql://bob:a#{SECRET}@host/db",
    f"postgresql://bob:a/{SECRET}#x@host/db",
    f"postgresql://bob:a {SECRET}@host/db#people",
    f"postgresql://bob:a'{SECRET}@host/db#people",
    f"postgresql://host/db?user=bob&password={SECRET}#people",
    f"postgresql://host/db?%70assword={SECRET}#people",
    f"postgresql://host?password={SECRET}#people",
    f"postgresql:///?host={SECRET}&password=a#people",
    f"postgresql://host/db?passfile=/home/{SECRET}/p&sslpassword={SECRET}#people",
    f"postgresql://host/db?options=-c%20a.b%3D{SECRET}#people",
    f"POSTGRESQL://bob:{SECRET}@host/db#people",
    f"postgresql+psycopg://bob:{SECRET}@host/db#people",
    f"postgres://bob:{SECRET}@[::1/db#people",
    f"postgresql:/bob:{SECRET}@host/db#people",
    f"mysql://bob:{SECRET}@host/db",
    f"mssql+pyodbc:///?odbc_connect=PWD%3D{SECRET}",
    f"s3://{SECRET}@bucket/people.csv",
    f"https://host/people.csv?token={SECRET}",
    f"sqlite://bob:{SECRET}@/",
    f"sqlite:////{SECRET}/people.ledger?vfs={SECRET}",
    f"host=db user=bob password={SECRET}",
    f"user=bob sslpassword = '{SECRET}'",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_part_of_an_address_is_said_but_its_database_and_its_fragment(address):
    for said in (
        source_name(address),
        ledger_name(address),
        shown_name(address),
        shown_name(address.rpartition("/")[2] or "people"),
    ):
        assert SECRET not in said
        assert said


@pytest.mark.parametrize(
    "address", [address for address in ADDRESSES if " " not in address and "'" not in address]
)
def test_an_error_holds_no_address_even_if_its_sentence_did(address):
    assert SECRET not in str(DataError(f"there is no file '{address}'."))


def test_a_planted_sentence_that_nobody_looks_at_would_be_seen():
    assert SECRET in f"there is no file '{ADDRESSES[0]}'."
    assert "postgresql://…#table" in without_addresses(
        "a path, or postgresql://…#table, or https://host/page"
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("people.csv", "people.csv"),
        ("data/age=3/people*.parquet", "data/age=3/people*.parquet"),
        ("C:/people.csv", "C:/people.csv"),
        ("spark:survey.people", "spark:survey.people"),
        ("postgresql://reader@db/survey#people", "postgresql: survey#people"),
        ("postgresql://reader@db/survey#schema.people", "postgresql: survey#schema.people"),
        ("postgresql://reader@db/my%20survey", "postgresql: my survey"),
        ("postgresql://db", "postgresql://…"),
        ("mysql://host/survey#people", "mysql://…"),
        ("https://host/a-path-that-only-its-owner-knows/people.csv", "https://…"),
    ],
)
def test_a_path_is_said_as_it_is_and_a_database_by_its_names(source, said):
    assert source_name(source) == said


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("data/people.ledger", "people"),
        ("postgresql://office@db/ledgers#people", "people"),
        ("postgresql://office@db/ledgers", "ledgers"),
        ("postgresql://office@db", "postgresql"),
        ("sqlite:////data/people.ledger", "people"),
    ],
)
def test_a_ledger_is_called_after_its_fragment_its_database_or_its_file(where, name):
    assert ledger_name(where) == name


@pytest.mark.parametrize(
    "name", ["people", "Survey 2024 (first wave)", "who? what = where", "a&b", "5:30 @ noon"]
)
def test_names_that_people_choose_stay(name):
    assert shown_name(name) == name


def test_a_file_may_be_called_like_an_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    (tmp_path / "s3:" / "people.csv").write_text("a\n")

    assert source_name("s3:/people.csv") == "s3:/people.csv"


@pytest.mark.parametrize(
    "mistyped",
    ["bob:4711@host/survey", "//bob:4711@host/survey", "postgresql:bob:4711@host/survey#people",
     "postgresql//bob:4711@host/survey", "postgresql;//bob:4711@host/survey"],
)  # fmt: skip
def test_an_address_without_a_scheme_is_not_said(mistyped, tmp_path, monkeypatch):
    from sidelight.errors import SidelightError
    from sidelight.privacy.sql_ledger import open_ledger

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SidelightError) as refusal:
        open_ledger(mistyped)

    assert "4711" not in source_name(mistyped)
    assert "4711" not in str(refusal.value)


@pytest.mark.parametrize("path", ["/data/12:30@noon/*.csv", "./a:b@c.csv", "../a:b@c.csv", "C:/me@work.csv"])
def test_a_path_with_a_colon_and_an_at_stays_a_path(path):
    assert source_name(path) == path
