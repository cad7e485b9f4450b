"""``sidelight screen`` as a person would run it."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from sidelight.cli.screen import screen
from sidelight.data.schema import Schema
from sidelight.errors import SettingError

app = typer.Typer()
app.command()(screen)


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)

    def write(name, records):
        lines = ["age,sex", *(f"{a},{s}" for a, s in records)]
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    write("private.csv", zip(rng.integers(0, 4, 3000), rng.integers(0, 2, 3000), strict=True))
    write("good.csv", zip(rng.integers(0, 4, 2000), rng.integers(0, 2, 2000), strict=True))
    write("bad.csv", [(0, 0), (0, 1)])
    Schema.from_domain({"age": 4, "sex": 2}).write(tmp_path / "people.toml")
    return tmp_path


def ask(files, *more):
    arguments = [
        str(files / "private.csv"), "--schema", str(files / "people.toml"),
        "--public", str(files / "bad.csv"), "--public", str(files / "good.csv"),
        "--epsilon", "2", "--workload", "2-way",
    ]  # fmt: skip
    return CliRunner().invoke(app, [*arguments, *more], catch_exceptions=False)


def test_the_better_table_comes_first_with_a_sentence(files):
    outcome = ask(files)

    first, second = outcome.stdout.splitlines()
    assert first.startswith("1  good.csv: ")
    assert second.startswith("2  bad.csv: not worth using: ")


def test_a_program_gets_json(files):
    outcome = ask(files, "--json")

    ranked = json.loads(outcome.stdout)
    assert [found["name"] for found in ranked] == ["good.csv", "bad.csv"]
    assert set(ranked[0]) == {"name", "best_mixture_error", "stddev", "verdict", "sentence", "left_out"}


def test_files_that_are_called_alike_are_told_apart(files):
    (files / "older").mkdir()
    (files / "older" / "good.csv").write_bytes((files / "good.csv").read_bytes())

    outcome = ask(files, "--public", str(files / "older" / "good.csv"), "--json")

    names = {found["name"] for found in json.loads(outcome.stdout)}
    assert names == {"bad.csv", str(files / "good.csv"), str(files / "older" / "good.csv")}


def test_a_table_that_is_named_twice_is_refused(files):
    with pytest.raises(SettingError, match="both called"):
        ask(files, "--public", str(files / "good.csv"))


def test_a_table_that_lacks_a_column_is_judged_by_the_others(files):
    lines = (files / "good.csv").read_text().splitlines()
    (files / "part.csv").write_text("\n".join(line.split(",")[0] for line in lines) + "\n")
    options = ["--public", str(files / "part.csv"), "--json", "--workload", "1-way"]

    found = {one["name"]: one for one in json.loads(ask(files, *options).stdout)}

    assert found["part.csv"]["left_out"] == ["sex"]
    assert "It tells nothing of sex: tables with it are not judged" in found["part.csv"]["sentence"]
    assert found["good.csv"]["left_out"] == []
    assert abs(found["part.csv"]["best_mixture_error"]) < 0.1


def test_a_table_of_which_no_marginal_can_be_judged_is_refused_before_anything_is_read(files):
    (files / "part.csv").write_text("age\n1\n2\n")

    with pytest.raises(
        SettingError, match=r"'part\.csv' tells nothing of sex, and the workload has no table"
    ):
        ask(files, "--public", str(files / "part.csv"))
