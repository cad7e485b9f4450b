"""Every way to spend meets the ledger's policy: a refusal costs nothing, ends with 3, and says what to do."""

import json

import numpy as np
import pytest

from commands import sidelight
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.releases.release import Release

SCHEMA = ["people.csv", "--schema", "people.toml", "--workload", "1-way"]
AGES = ["people.csv", "--value", "age", "--bounds", "0", "3"]
WAYS = {
    "mwem": ["release", *SCHEMA, "--mechanism", "mwem", "--set", "rounds=1", "--out", "out", "--quiet"],
    "mean": ["mean", *AGES],
    "mean by": ["mean", *AGES, "--by", "sex", "--cell", "0", "--cell", "1"],
    "quantile": ["quantile", *AGES],
    "screen": ["screen", *SCHEMA, "--public", "public.csv"],
    "discover": [
        "discover", "people.csv", "--schema", "sex.toml", "--column", "age", "--bounds", "0", "3",
        "--bins", "2",
    ],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    draw = np.random.default_rng(1)
    for name in ("people", "public"):
        rows = draw.integers(0, [4, 2], size=(400, 2))
        (tmp_path / f"{name}.csv").write_text("age,sex\n" + "".join(f"{a},{s}\n" for a, s in rows))
    column = '[columns.{}]\nkind = "integer"\nlow = 0\nhigh = {}\n'
    (tmp_path / "people.toml").write_text(column.format("age", 3) + column.format("sex", 1))
    (tmp_path / "sex.toml").write_text(column.format("sex", 1))
    return tmp_path


def opened(folder, **policy):
    SqlLedger.open(folder / "l.ledger", epsilon=5, delta=1e-9, policy=policy)


def spend(folder, way, *more):
    return sidelight(*WAYS[way], "--ledger", "l.ledger", "--epsilon", "0.5", *more, folder=folder)


@pytest.mark.parametrize("way", WAYS)
def test_what_the_policy_does_not_allow_is_refused_and_costs_nothing(folder, way):
    allowed = [name for name in ("mwem", "mean", "quantile", "screen", "discover") if name != way.split()[0]]
    opened(
        folder,
        most={"release": 0.4, "month": 0.4},
        projects={"flu": True},
        allow={"mechanisms": allowed},
        approval={"by": ["A. Ito", "B. Okafor"], "needed": 2},
    )
    head = SqlLedger.open(folder / "l.ledger").head

    done = spend(folder, way, "--project", "fly", "--approved-by", "A. Ito")

    assert done.returncode == 3, done.said
    for reason in (
        "is not allowed; name one that is",
        "'fly' is not one of flu",
        "A. Ito did",
        "a month",
        "a release",
    ):
        assert reason in done.stderr
    assert "Nothing was read and nothing was charged" in done.stderr
    assert SqlLedger.open(folder / "l.ledger").head == head
    assert not (folder / "out").exists()


ASKED_FIRST = {
    **{way: (way, []) for way in WAYS},
    "mean of groups": ("mean", ["--group-column", "sex", "--group", "0=0.5", "--group", "1=public"]),
    "quantile by ε": ("quantile", ["--epsilon-column", "own"]),
}


@pytest.mark.parametrize("asked", ASKED_FIRST)
def test_the_policy_is_asked_before_the_private_table_is_read(folder, asked):
    """A table that would be refused is not even looked at: the refusal is the policy's."""
    way, groups = ASKED_FIRST[asked]
    opened(folder, projects={"flu": True})
    (folder / "people.csv").write_text("age,sex,own\nsecret,0,0.5\n,1,0.5\n")

    done = sidelight(*WAYS[way], "--ledger", "l.ledger", *(groups or ["--epsilon", "0.5"]), folder=folder)

    assert done.returncode == 3, done.said
    assert "none was named; name one with --project: flu" in done.stderr


def test_the_table_itself_may_be_out_of_reach_where_the_policy_refuses(folder):
    opened(folder, projects={"flu": True})
    (folder / "people.csv").unlink()

    for way in WAYS:
        assert spend(folder, way).returncode == 3, way


@pytest.mark.parametrize("way", WAYS)
def test_what_the_policy_allows_is_paid_for_and_the_ledger_says_for_whom(folder, way):
    opened(
        folder,
        most={"release": 0.5},
        projects={"flu": 1.0},
        allow={"mechanisms": [way.split()[0]]},
        approval={"by": ["A. Ito", "B. Okafor"], "needed": 2},
    )

    done = spend(folder, way, "--project", "flu", "--approved-by", "B. Okafor", "--approved-by", "A. Ito")

    assert done.returncode == 0, done.said
    (run,) = SqlLedger.open(folder / "l.ledger").runs()
    assert (run.purpose.mechanism, run.purpose.project) == (way.split()[0], "flu")
    assert run.purpose.approved_by == ("B. Okafor", "A. Ito")
    if way == "mwem":
        entry = Release.load(folder / "out").card.ledger
        assert (entry.project, entry.approved_by) == ("flu", ("B. Okafor", "A. Ito"))


def opened_under_its_policy(folder):
    """What the command says that opens a ledger under policy.toml."""
    promise = ("--epsilon", "1", "--delta", "1e-9", "--policy", "policy.toml")
    return sidelight("ledger", "open", "l.ledger", *promise, folder=folder)


def test_a_policy_is_shown_changed_and_withdrawn(folder):
    (folder / "policy.toml").write_text("[most]\nrelease = 0.25\n")
    opened_under_its_policy(folder)
    shown = sidelight("ledger", "policy", "l.ledger", folder=folder)
    (folder / "policy.toml").write_text('[allow]\nmechanisms = ["aim"]\n')
    changed = sidelight("ledger", "policy", "l.ledger", "policy.toml", "--json", folder=folder)
    listed = sidelight("ledger", "show", "l.ledger", folder=folder)
    withdrawn = sidelight("ledger", "policy", "l.ledger", "--withdraw", folder=folder)
    again = sidelight("ledger", "policy", "l.ledger", "policy.toml", folder=folder)

    assert shown.stdout.startswith("ε = 0.25 at most for one release")
    assert json.loads(changed.stdout)["policy"] == {"allow": {"mechanisms": ["aim"]}}
    assert "policy mechanisms: aim" in listed.stdout
    assert withdrawn.stdout == "none: the promise alone decides\n"
    assert withdrawn.stderr == "the policy was withdrawn from l.ledger.\n"
    assert again.stderr == "the policy was set; it holds from now on in l.ledger.\n"
    assert (shown.stderr, changed.stderr) == ("", "")
    with SqlLedger.open(folder / "l.ledger")._transaction(to_write=False) as pages:
        assert [line.kind for line in pages.lines()] == ["promise", *["policy"] * 4]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[allow]\nmechanisms = ["apperture"]\n', "names 'apperture'; there are aperture"),
        ("[most\n", "is no TOML file"),
        ("[most]\nyear = 1\n", "what may stand there is release, month, project"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_policy_with_a_slip_is_refused_before_a_ledger_is_opened(folder, text, said):
    if text is not None:
        (folder / "policy.toml").write_text(text)

    done = opened_under_its_policy(folder)

    assert done.returncode == 2
    assert said in done.stderr
    assert not (folder / "l.ledger").exists()


def test_a_plan_tells_what_the_policy_would_say(folder):
    opened(folder, most={"release": 0.1})

    asked = ["plan", *SCHEMA[1:], "--ledger", "l.ledger", "--epsilon", "0.5"]
    done = sidelight(*asked, folder=folder)

    assert done.returncode == 0
    assert "ledger     can pay for it, but its policy does not allow it: " in done.stdout
    assert "CANNOT pay" not in done.stdout
    assert "--epsilon 0.1 would fit" in done.stdout

    facts = json.loads(sidelight(*asked, "--json", folder=folder).stdout)
    assert (facts["affordable"], facts["allowed"]) == (True, False)
    assert "--epsilon 0.1 would fit" in facts["refusal"]


def test_a_ledger_says_what_is_left_and_how_much_of_it_the_policy_allows_now(folder):
    opened(folder, most={"release": 0.5, "month": 0.6})

    def left():
        shown = sidelight("ledger", "show", "l.ledger", folder=folder).stdout
        return next(line for line in shown.splitlines() if line.startswith("left"))

    assert left() == "left   at most ε = 5 for one more release (the policy allows 0.5 now)"
    assert spend(folder, "mwem").returncode == 0
    allowed = float(left().rpartition("allows ")[2].partition(" ")[0])
    assert 0.2 < allowed < 0.5  # what the month has left, in which ε adds up by its squares
    assert spend(folder, "mwem", "--out", "more", "--epsilon", allowed * 1.05).returncode == 3
    assert spend(folder, "mwem", "--out", "more", "--epsilon", allowed).returncode == 0
    assert spend(folder, "mean", "--epsilon", "0.3").returncode == 3
    SqlLedger.open(folder / "l.ledger").set_policy(None)
    assert "policy" not in left()


def test_a_run_is_shown_in_short_lines_with_its_whole_id_and_for_whom_it_was(folder):
    opened(folder, projects={"flu": True})
    people = ["--approved-by", "A. Ito", "--approved-by", "B. Okafor"]
    assert spend(folder, "mean", "--project", "flu", *people).returncode == 0

    shown = sidelight("ledger", "show", "l.ledger", folder=folder).stdout.splitlines()

    (run,) = SqlLedger.open(folder / "l.ledger").runs()
    place = shown.index(f"  run {run.id} (closed)")
    assert shown[place - 1].endswith("mean of 1 group")
    assert shown[place + 1 :] == [
        "  paid ε = 0.5 of 0.5, in 1 payment",
        "  for the project flu",
        "  approved by A. Ito, B. Okafor",
    ]
    assert all(len(line) <= 80 for line in shown[place - 1 :])
