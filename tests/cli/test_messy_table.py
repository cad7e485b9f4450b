"""A messy health table, from its file to a report, as a newcomer would do it.

Ids and free text, NA and -, f and F, yes and Y, dates, incomes with decimals; and public data that lack a
column, have one too many, use codes of their own and write ages as bins.
"""

import contextlib
import csv
import json
import random
import warnings

import pytest
from typer.testing import CliRunner

import commands
from sidelight.cli.app import app
from sidelight.data.schema import Schema
from sidelight.errors import PublicDataWarning, SettingError

PEOPLE = 300


def write(path, seed, columns, fields):
    draw = random.Random(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(columns)
        for place in range(PEOPLE):
            person = {
                "patient_id": f"P{seed}{place:05d}",
                "sex": draw.choice(["f", "F", "m", "M", "NA"]),
                "age": draw.randint(0, 99),
                "admitted": f"2024-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d}",
                "insured": draw.choice(["yes", "no", "Y", "N"]),
                "income": draw.choice(["NA", "-", f"{10 * draw.randint(0, 9000)}.50"]),
                "remark": " ".join(draw.choices("abcdefghij", k=12)) + str(place),
            }
            lines.writerow(fields(person, draw))


def decade(age):
    return f"{age // 10 * 10}-{age // 10 * 10 + 9}"


@pytest.fixture
def hospital(tmp_path):
    """Last year's published table, for a draft; this year's private one; and a census of other columns."""
    names = ["patient_id", "sex", "age", "admitted", "insured", "income", "remark"]
    for year, seed in (("published", 1), ("private", 2)):
        write(tmp_path / f"{year}.csv", seed, names, lambda person, draw: [person[name] for name in names])
    write(
        tmp_path / "census.csv", 3, ["income_band", "age", "sex", "weight"],
        lambda person, draw: ["B", decade(person["age"]), draw.choice("123"), draw.randint(1, 3)],
    )  # fmt: skip
    with contextlib.chdir(tmp_path):
        yield tmp_path


def sidelight(*args, code=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PublicDataWarning)
        done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == code, done.output
    return done


@pytest.mark.slow
def test_from_the_file_to_the_report(hospital):
    drafted = sidelight("schema", "draft", "published.csv", "--out", "people.toml")

    assert "'patient_id': left out" in drafted.stderr
    assert "'remark': left out" in drafted.stderr
    schema = Schema.read("people.toml")
    assert [column.name for column in schema.columns] == ["sex", "age", "admitted", "insured", "income"]
    assert schema.column("admitted").kind == "date"
    assert "P1" not in (hospital / "people.toml").read_text(encoding="utf-8")

    rules = '\n[public]\nweight = "weight"\n\n[public.map.sex]\n"1" = "m"\n"2" = "f"\n'
    labels = schema.column("sex").labels
    for wanted, known in (("m", "M"), ("f", "F")):
        rules = rules.replace(f'"{wanted}"', f'"{wanted if wanted in labels else known}"')
    with (hospital / "people.toml").open("a", encoding="utf-8") as file:
        file.write(rules)
    assert "fits the schema" in sidelight("schema", "check", "private.csv", "--schema", "people.toml").stdout

    sidelight("ledger", "open", "people.ledger", "--epsilon", 2, "--delta", 1e-9)
    planned = sidelight(
        "plan", "--schema", "people.toml", "--ledger", "people.ledger", "--epsilon", 1,
        "--public", "census.csv", "--workload", "1-way",
    )  # fmt: skip
    assert "records tell of age" in planned.stdout
    assert "nothing is told of admitted, insured, income" in planned.stdout
    released = sidelight(
        "release", "private.csv", "--schema", "people.toml", "--ledger", "people.ledger", "--epsilon", 1,
        "--public", "census.csv", "--workload", "1-way", "--set", "max_rounds=2", "--out", "out", "--quiet",
    )  # fmt: skip
    assert "P2" not in released.output

    answered = json.loads(sidelight("answer", "out", "sex", "--where", "insured=true", "--json").stdout)
    assert {one["sex"] for one in answered} == {*labels, "missing"}
    sidelight("sample", "out", "--records", 40, "--where", "insured=true", "--to", "synthetic.csv")
    with (hospital / "synthetic.csv").open(encoding="utf-8") as file:
        drawn = list(csv.DictReader(file))
    assert {one["insured"] for one in drawn} == {"true"}
    assert {one["sex"] for one in drawn} <= {*labels, ""}
    assert all(one["admitted"].startswith("2024-") for one in drawn)
    assert all(len(one["income"].partition(".")[2]) <= 2 for one in drawn)
    sidelight("report", "out", "--to", "report.html")
    page = (hospital / "report.html").read_text(encoding="utf-8")
    assert "nothing is told of admitted, insured, income" in page
    assert "P2" not in page


@pytest.fixture
def ward(tmp_path):
    """Visits of people who come several times, as a spreadsheet in the south of Germany writes them."""
    for name, seed in (("old", 1), ("new", 2)):
        draw = random.Random(seed)
        lines = ["Nummer;Geschlecht;Straße;Kosten"]
        for place in range(400):
            who = 7 if place < 150 else draw.randrange(120)
            cost = f"{draw.randint(10, 99)},{draw.randint(0, 9)}0" if draw.random() > 0.05 else "n/a"
            lines.append(f"P{who};{draw.choice('wmWM')};{draw.choice(['Ödweg', 'Höhe', 'Au'])};{cost}")
        (tmp_path / f"{name}.csv").write_bytes("\r\n".join([*lines, ""]).encode("latin-1"))
    with contextlib.chdir(tmp_path):
        yield tmp_path


@pytest.mark.slow
def test_how_a_file_is_written_holds_for_every_command(ward):
    how = ["--encoding", "latin-1", "--delimiter", ";", "--decimal", ","]
    sidelight("schema", "draft", "old.csv", "--out", "ward.toml", *how)
    text = (ward / "ward.toml").read_text(encoding="utf-8")
    unit = 'relation = "replace"\nrecords = "auto"\nperson = "Nummer"'
    text = text.replace('relation = "replace"\nrecords = 1', unit)
    # A hundred and twenty texts are few enough for labels: the person who drafts knows better.
    before, _, rest = text.partition("[columns.Nummer]")
    (ward / "ward.toml").write_text(before + "[columns." + rest.partition("[columns.")[2], encoding="utf-8")
    schema = Schema.read("ward.toml")
    assert [column.name for column in schema.columns] == ["Geschlecht", "Straße", "Kosten"]
    assert schema.column("Straße").labels == ("Au", "Höhe", "Ödweg")

    assert "fits the schema" in sidelight("schema", "check", "new.csv", "--schema", "ward.toml").stdout
    asked = ["--schema", "ward.toml", "--epsilon", 1]
    helped = ["--public", "old.csv", "--workload", "1-way", "--mechanism", "aperture"]
    planned = sidelight("plan", *asked, "--delta", 1e-9, *helped).stdout
    assert "400 records tell of Geschlecht, Straße, Kosten" in planned
    assert "of each Nummer are used" in planned
    sidelight("discover", "new.csv", *asked, "--delta", 1e-9, "--column", "Straße", "--public", "old.csv")
    for command in ("mean", "quantile"):
        told = sidelight(
            command, "new.csv", *asked, "--value", "Kosten", "--bounds", 0, 100, "--missing", 50,
            "--public", "old.csv", "--json",
        )  # fmt: skip
        answer = json.loads(told.stdout)
        assert 30 < answer["estimate"] < 80
        assert answer["card"]["unit"]["person"] == "Nummer"
    by = sidelight(
        "mean", "new.csv", *asked, "--value", "Kosten", "--bounds", 0, 100, "--missing", 50, "--by", "Straße",
        "--public", "old.csv", "--records", 2, "--json",
    )  # fmt: skip
    assert [cell["cell"] for cell in json.loads(by.stdout)["cells"]] == ["Au", "Höhe", "Ödweg"]


def test_records_of_people_need_a_column_of_people(ward):
    asked = ["mean", "new.csv", "--value", "Kosten", "--bounds", 0, 100, "--epsilon", 1, "--records", 2]

    done = CliRunner().invoke(app, [str(one) for one in asked])

    assert isinstance(done.exception, SettingError)
    assert "--records needs a column that says who each record is about" in str(done.exception)


def test_what_lies_outside_of_public_data_is_said_before_anything_is_spent_and_of_private_data_never(
    tmp_path,
):
    (tmp_path / "people.toml").write_text(
        '[columns.age]\nkind = "integer"\nedges = [0, 50, 100]\noutside = "clamp"\n'
        '[columns.ward]\nkind = "categorical"\nlabels = ["medicine", "surgery"]\noutside = "other"\n'
    )
    lines = ["101,3"] * 3 + ["30,3"] * 4 + ["30,surgery"] * 3
    (tmp_path / "a.csv").write_text("\n".join(["age,ward", *lines, ""]))
    (tmp_path / "b.csv").write_text("\n".join(["age,ward", *lines[::-1], *lines, ""]))
    asked = ["--schema", "people.toml", "--epsilon", 1, "--workload", "1-way"]
    paid = ["--ledger", "people.ledger", "--mechanism", "mst", "--out", "made"]
    opened = ["ledger", "open", "people.ledger", "--epsilon", 1, "--delta", 1e-9]
    assert commands.sidelight(*opened, folder=tmp_path).returncode == 0

    for public in (["schema", "check", "b.csv", "--schema", "people.toml", "--public"],
                   ["plan", *asked, "--delta", 1e-9, "--public", "b.csv"]):  # fmt: skip
        told = commands.sidelight(*public, folder=tmp_path).stderr
        assert "note: b.csv: 30% of the public values of 'age' lie outside its bounds, and were " in told
        assert "warning: b.csv: 70% of the public values of 'ward' are none of its labels" in told
    for private in (["schema", "check", "a.csv", "--schema", "people.toml"],
                    ["release", "a.csv", *asked, *paid]):  # fmt: skip
        done = commands.sidelight(*private, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "outside its bounds" not in done.said
        assert "none of its labels" not in done.said
