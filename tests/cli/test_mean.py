import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from sidelight.cli.mean import mean
from sidelight.cli.quantile import quantile
from sidelight.errors import SidelightError

app = typer.Typer()
app.command()(mean)
app.command()(quantile)


@pytest.fixture
def people(tmp_path):
    """A table with a value, an ε, a group and a region; and a public one."""
    rng = np.random.default_rng(1)
    lines = ["income,epsilon,who,region"]
    needs = {"patients": "0.5", "staff": "2", "volunteers": "inf"}
    for place in range(900):
        who = list(needs)[place % 3]
        lines.append(f"{rng.normal(50, 5):.3f},{needs[who]},{who},{['north', 'south'][place % 2]}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "survey.csv").write_text("income,region\n" + "51.0,north\n49.0,south\n50.5,north\n" * 10)
    return tmp_path


def run(*arguments):
    outcome = CliRunner().invoke(app, [str(each) for each in arguments])
    if outcome.exception and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    return outcome


@pytest.mark.parametrize("command", ["mean", "quantile"])
def test_an_epsilon_column_makes_a_group_of_each_epsilon(command, people):
    outcome = run(
        command, people / "people.csv", "--value", "income", "--bounds", 0, 100,
        "--epsilon-column", "epsilon", "--json",
    )  # fmt: skip

    answer = json.loads(outcome.stdout)
    assert [group["epsilon"] for group in answer["groups"]] == [0.5, 2.0, None]
    assert sum(group["weight"] for group in answer["groups"]) == pytest.approx(1)
    assert 40 < answer["estimate"] < 60


@pytest.mark.parametrize("command", ["mean", "quantile"])
def test_groups_have_their_own_epsilon_and_a_picture(command, people):
    outcome = run(
        command, people / "people.csv", "--value", "income", "--bounds", -100, 200, "--group-column", "who",
        "--group", "patients=0.5", "--group", "staff=2", "--group", "volunteers=public",
        "--svg", people / "picture.svg",
    )  # fmt: skip

    assert "95% interval" in outcome.stdout
    assert "patients" in outcome.stdout
    assert "●" in outcome.stdout
    assert (people / "picture.svg").read_text().startswith("<svg")


def test_one_epsilon_and_a_public_table(people):
    outcome = run(
        "mean", people / "people.csv", "--value", "income", "--bounds", 0, 100, "--epsilon", 1,
        "--public", people / "survey.csv", "--variance", 25, "--bias", "measure", "--json",
    )  # fmt: skip

    assert [group["name"] for group in json.loads(outcome.stdout)["groups"]] == ["private", "public"]


def test_a_mean_for_every_region(people):
    options = ["--value", "income", "--bounds", 0, 100, "--by", "region", "--epsilon", 3, "--public"]

    table = run("mean", people / "people.csv", *options, people / "survey.csv")
    plain = run("mean", people / "people.csv", *options, people / "survey.csv", "--json")

    assert "north" in table.stdout
    assert [cell["cell"] for cell in json.loads(plain.stdout)["cells"]] == ["north", "south"]


def test_spending_is_kept_in_a_ledger(people):
    from sidelight.privacy.budget import Budget
    from sidelight.privacy.promise import Promise
    from sidelight.privacy.sql_ledger import SqlLedger
    from sidelight.privacy.unit import Unit

    where = str(people / "people.ledger")
    ledger = SqlLedger.create(where, Promise(Budget(epsilon=3.0, delta=0.0), Unit("replace"), "people"))
    options = ["--value", "income", "--bounds", 0, 100, "--epsilon", 2, "--ledger", where, "--json"]

    run("mean", people / "people.csv", *options)
    with pytest.raises(SidelightError, match="needs ε = 2"):
        run("quantile", people / "people.csv", *options)

    assert ledger.spent == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], "in one way"),
        (["--epsilon", 1, "--epsilon-column", "epsilon"], "in one way"),
        (["--epsilon", -1], "epsilon must be a finite number above 0"),
        (["--group-column", "who"], "needs a --group"),
        (["--group-column", "who", "--group", "patients"], "must look like"),
        (["--group-column", "who", "--group", "patients=0.5"], "no --group names"),
        (["--epsilon-column", "eps"], "no column 'eps'"),
        (["--epsilon", 1, "--bias", "lots"], "--bias"),
        (["--epsilon", 1, "--unit", "swap"], "unit must be one of"),
    ],
)
def test_bad_usage_is_a_sentence(wrong, message, people):
    with pytest.raises(SidelightError, match=message):
        run("mean", people / "people.csv", "--value", "income", "--bounds", 0, 100, *wrong)


def test_a_file_that_is_not_a_table_is_refused_without_quoting_it(people):
    (people / "broken.csv").write_text("income,epsilon\n1,2\nsecret\n")

    with pytest.raises(SidelightError, match="could not be read") as refusal:
        run("mean", people / "broken.csv", "--value", "income", "--bounds", 0, 1, "--epsilon", 1)

    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("command", ["mean", "quantile"])
def test_the_help_has_an_example(command):
    assert f"Example: sidelight {command}" in run(command, "--help").stdout


@pytest.mark.parametrize("command", ["mean", "quantile"])
@pytest.mark.parametrize("who_says", ["command", "ledger"])
def test_where_n_is_private_groups_are_declared_and_not_found_in_the_table(command, who_says, people):
    """One more person with an ε of their own would show as one more group."""
    from sidelight.privacy.budget import Budget
    from sidelight.privacy.promise import Promise
    from sidelight.privacy.sql_ledger import SqlLedger
    from sidelight.privacy.unit import Unit

    where = str(people / "people.ledger")
    ledger = SqlLedger.create(where, Promise(Budget(epsilon=9.0, delta=0.0), Unit("add-or-remove"), "people"))
    says = ["--unit", "add-or-remove"] if who_says == "command" else ["--ledger", where]
    options = ["--value", "income", "--bounds", 0, 100, *says]

    with pytest.raises(SidelightError, match="finds its groups in the table"):
        run(command, people / "people.csv", *options, "--epsilon-column", "epsilon")

    assert ledger.spent == 0


def test_a_mean_for_every_region_does_not_take_the_private_table_for_a_public_one(people):
    options = ["--value", "income", "--bounds", 0, 100, "--by", "region", "--epsilon", 1, "--public"]

    with pytest.raises(SidelightError, match="given as public data, too"):
        run("mean", people / "people.csv", *options, people / "people.csv")


def test_both_commands_have_every_option_of_groups():
    from dataclasses import fields

    from sidelight.cli._groups import GroupOptions

    shared = {field.name for field in fields(GroupOptions)}
    for command, own in ((mean, {"by", "cell", "variance", "merge"}), (quantile, {"q", "density"})):
        alone = typer.Typer()
        alone.command()(command)
        assert {option.name for option in typer.main.get_command(alone).params} >= shared | own


@pytest.mark.parametrize("text", ["x", "nan?", ""])
def test_a_variance_that_is_neither_a_number_nor_a_word_is_refused(text, people):
    with pytest.raises(SidelightError, match="--variance must be a number or 'bound' or 'public'"):
        run(
            "mean",
            people / "people.csv",
            "--value",
            "income",
            "--bounds",
            0,
            100,
            "--epsilon",
            1,
            "--variance",
            text,
        )
