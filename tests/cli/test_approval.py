"""``sidelight release --approval``: what runs is what was approved, and the ledger names both people."""

import json

import numpy as np
import pytest

from commands import sidelight

TOML = "\n".join(f"[columns.{name}]\nkind = 'integer'\nlow = 0\nhigh = {high}" for name, high in
                 (("a", 2), ("b", 3)))  # fmt: skip


@pytest.fixture
def opened(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("t.csv", "old.csv"):
        lines = ["a,b"] + [f"{rng.integers(0, 3)},{rng.integers(0, 4)}" for _ in range(300)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    (tmp_path / "t.toml").write_text(TOML)
    assert sidelight("ledger", "open", "t.ledger", "--epsilon", 1, "--delta", "1e-9", folder=tmp_path)[0] == 0
    return tmp_path


def release(folder, *more, epsilon=0.5):
    return sidelight("release", "t.csv", "--schema", "t.toml", "--ledger", "t.ledger", "--epsilon", epsilon,
                     "--public", "old.csv", "--workload", "2-way", "--mechanism", "mwem-pub",
                     *more, folder=folder)  # fmt: skip


def digest(folder, **about):
    return json.loads(release(folder, "--dry-run", "--json", **about).stdout)["digest"]


def approve(folder, plan):
    said = {"digest": plan, "asked_by": "Ada Lovelace", "names": ["Grace Hopper"]}
    (folder / "approved.json").write_text(json.dumps(said))


@pytest.mark.slow
def test_what_was_approved_runs_and_the_ledger_names_both(opened):
    approve(opened, digest(opened))

    done = release(opened, "--approval", "approved.json", "--out", "out")

    assert done.returncode == 0, done.said
    (run,) = json.loads(sidelight("ledger", "show", "t.ledger", "--json", folder=opened).stdout)["runs"]
    assert (run["asked_by"], run["approved_by"]) == ("Ada Lovelace", "Grace Hopper")
    assert run["digest"] == json.loads((opened / "approved.json").read_text())["digest"]
    assert "Grace Hopper" in sidelight("ledger", "show", "t.ledger", folder=opened).stdout


@pytest.mark.parametrize("change", ["epsilon", "schema", "public", "ledger"])
def test_anything_else_is_refused_and_costs_nothing(opened, change):
    approve(opened, digest(opened))
    epsilon = 0.5
    if change == "epsilon":
        epsilon = 0.51
    elif change == "schema":
        (opened / "t.toml").write_text(TOML.replace("high = 3", "high = 4"))
    elif change == "public":
        (opened / "old.csv").write_text((opened / "old.csv").read_text() + "0,0\n")
    else:
        (opened / "t.ledger").unlink()
        sidelight("ledger", "open", "t.ledger", "--epsilon", 1, "--delta", "1e-9", folder=opened)

    done = release(opened, "--approval", "approved.json", "--out", "out", epsilon=epsilon)

    assert done.returncode == 2
    assert "not what was approved" in done.stderr
    assert json.loads(sidelight("ledger", "show", "t.ledger", "--json", folder=opened).stdout)["spent"] == 0


def test_the_digest_does_not_depend_on_private_records(opened):
    before = digest(opened)
    (opened / "t.csv").write_text("a,b\n0,0\n" * 2)

    assert digest(opened) == before


@pytest.mark.parametrize("content", ["", "[]", "{", '{"digest": "x", "asked_by": "Ada", "names": []}'])
def test_a_file_that_is_no_approval_is_refused(opened, content):
    (opened / "approved.json").write_text(content)

    assert release(opened, "--approval", "approved.json", "--out", "out").returncode == 2
