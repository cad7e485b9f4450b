"""A messy health table, from its file through a draft to a release and synthetic records."""

import csv
import datetime as dt
import random

import pytest

import sidelight as sl
from commands import sidelight
from sidelight.data.reading.file_format import FileFormat
from sidelight.data.table import Table

NAMES = ("patient_id", "sex", "age", "income", "admitted", "discharged", "smoker", "icd", "note")


def write(path, records: int, seed: int) -> None:
    """Ids, f and F, NA, amounts, days before months, codes, stories, in the latin-1 of old offices."""
    draw = random.Random(seed)
    with path.open("w", encoding="latin-1", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(NAMES)
        for i in range(records):
            admitted = dt.date(2023, 1, 1) + dt.timedelta(days=draw.randrange(360))
            discharged = admitted + dt.timedelta(days=draw.randrange(30))
            income = f"{draw.lognormvariate(10, 0.5):.2f}".replace(".", ",")
            line = [
                f"P{seed}{i:05d}",
                draw.choice(["f", "F", "m", "m ", "M"]),
                draw.choice([str(draw.randrange(18, 95)), "NA"]),
                draw.choice([income, income, "N/A"]),
                f"{admitted:%d.%m.%Y}",
                f"{discharged:%d.%m.%Y}" if draw.random() < 0.9 else "-",
                draw.choice(["ja", "nein", ""]),
                f"{draw.choice('ABC')}{draw.randrange(10, 40)}.{draw.randrange(9)}",
                f"came in for the {draw.randrange(99)}th time with pain in the größe {i}",
            ]
            writer.writerow(line)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messy")
    write(folder / "public.csv", 2500, seed=1)
    write(folder / "private.csv", 2000, seed=2)
    return folder


@pytest.mark.slow
def test_from_the_file_to_synthetic_records(folder):
    file = ("--encoding", "latin-1", "--delimiter", ";", "--decimal", ",")
    drafted = sidelight("schema", "draft", folder / "public.csv", "--out", folder / "people.toml", *file)

    assert drafted.returncode == 0, drafted.stderr
    lines = drafted.stderr.splitlines()
    assert [line.split("'")[1] for line in lines if line.startswith("column")] == [
        "patient_id", "sex", "age", "income", "admitted", "discharged", "icd", "note",
    ]  # fmt: skip
    text = (folder / "people.toml").read_text()
    assert len(text.splitlines()) < 260
    rule = '\n[[constraint]]\norder = ["admitted", "discharged"]\nviolated = "missing"\n'
    (folder / "people.toml").write_text(text + rule)
    schema = sl.Schema.read(folder / "people.toml")
    assert [(c.name, c.kind) for c in schema.columns] == [
        ("sex", "categorical"),
        ("age", "integer"),
        ("income", "real"),
        ("admitted", "date"),
        ("discharged", "date"),
        ("smoker", "categorical"),
        ("icd", "categorical"),
    ]
    assert len(schema.column("sex").labels) == 2
    assert schema.column("icd").prefix == 3
    assert schema.column("income").decimals == 2

    checked = sidelight("schema", "check", folder / "private.csv", "--schema", folder / "people.toml")
    assert checked.returncode == 0, checked.stdout
    assert "P2" not in checked.stdout + checked.stderr

    release = sl.release(
        str(folder / "private.csv"),
        schema=schema,
        epsilon=1,
        delta=1e-9,
        workload=sl.Workload([("sex", "age"), ("admitted", "discharged"), ("income", "smoker"), ("icd",)]),
        mechanism="mst",
        noise=sl.testing.SeededNoise(1),
        progress=False,
    )
    synthetic = release.sample(500, seed=1).to_pylist()

    assert {record["sex"] for record in synthetic} == set(schema.column("sex").labels)
    assert all(
        record["income"] is None or record["income"] == round(record["income"], 2) for record in synthetic
    )
    assert all(type(record["admitted"]) is dt.date for record in synthetic)
    assert all(
        record["discharged"] is None or record["admitted"] <= record["discharged"] for record in synthetic
    )
    assert any(record["age"] is None for record in synthetic)


def test_every_misfit_is_listed_at_once_without_a_value(folder, tmp_path):
    schema = sl.Schema.draft(folder / "public.csv", file=FileFormat("latin-1", delimiter=";", decimal=","))
    (tmp_path / "people.toml").write_text(schema.to_toml().replace('outside = "clamp"\n', ""))
    (tmp_path / "a.csv").write_text(
        "sex;age;income;admitted;discharged;smoker;icd\nqueer;7;-1,00;31.12.1999;x;vielleicht;A10.1\n"
    )

    found = sidelight("schema", "check", tmp_path / "a.csv", "--schema", tmp_path / "people.toml")

    assert found.returncode == 2
    named = [line.split("'")[1] for line in found.stdout.splitlines()]
    assert named == ["sex", "age", "income", "admitted", "discharged", "smoker"]
    for secret in ("queer", "31.12", "vielleicht", "-1,00"):
        assert secret not in found.stdout + found.stderr
    assert Table.read(folder / "public.csv", schema).records == 2500
