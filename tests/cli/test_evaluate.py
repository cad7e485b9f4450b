"""``sidelight evaluate``: the exact comparison, and what the synthetic table is worth to its users."""

import json

import numpy as np
import pytest

import commands
import sidelight as sl

SCHEMA = """
[columns.job]
kind = "categorical"
labels = ["none", "some", "two"]

[columns.income]
kind = "categorical"
labels = ["low", "high"]

[columns.age]
kind = "integer"
low = 0
high = 99
bins = 5
"""


@pytest.fixture
def made(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["job,income,age"]
    for _ in range(300):
        job = rng.integers(3)
        income = "high" if rng.random() < (0.1, 0.5, 0.9)[job] else "low"
        lines.append(f"{('none', 'some', 'two')[job]},{income},{rng.integers(100)}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    release = sl.release(
        str(tmp_path / "people.csv"), schema=sl.Schema.from_toml(SCHEMA), epsilon=2.0, delta=1e-9,
        mechanism="mwem", workload="2-way", rounds=2, noise=sl.testing.SeededNoise(1), progress=False,
    )  # fmt: skip
    release.save(tmp_path / "out")
    return tmp_path


def evaluate(folder, *args):
    return commands.sidelight("evaluate", "out", *args, folder=folder)


def test_another_table_than_the_released_one_is_noticed_by_its_number_of_records(made):
    lines = (made / "people.csv").read_text().splitlines()
    (made / "part.csv").write_text("\n".join(lines[:101]) + "\n")

    assert "records" not in evaluate(made, "people.csv")[2]
    code, _, err = evaluate(made, "part.csv")

    assert code == 0
    assert err.startswith("PRIVATE")
    assert "has 100 records, and the release counts 300: is it the table" in err


def test_a_target_adds_downstream_metrics_and_says_private_first(made):
    pytest.importorskip("sklearn", reason="the classifier comes with the extra 'learn'")

    code, out, err = evaluate(made, "--against", "people.csv", "--target", "income", "--json")

    assert code == 0, err
    assert err.startswith("PRIVATE")
    facts = json.loads(out)
    assert facts["private"] is True
    assert 0 <= facts["accuracy"] <= 1
    assert {"association_mean", "association_max", "nearer_share", "accuracy_majority"} <= set(facts)


def test_the_table_tells_goal_and_range(made):
    code, out, _ = evaluate(made, "people.csv", "--downstream")

    assert code == 0
    assert "PRIVATE" in out
    assert "share nearer than fresh records" in out
    assert "0 to 1" in out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["people.csv", "--target", "incom"], "choose one of 'job', 'income'"),
        (["people.csv", "--target", "age"], "bins of numbers"),
        ([], "name the private table once"),
        (["people.csv", "--against", "people.csv"], "name the private table once"),
    ],
)
def test_bad_input_exits_2_and_says_what_to_do(made, args, said):
    code, out, err = evaluate(made, *args)

    assert code == 2
    assert out == ""
    assert said in " ".join(err.split())
