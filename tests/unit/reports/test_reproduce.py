"""The command that a report prints asks for what the release was made with, to the last setting."""

import contextlib
import io
import json
import shlex
import sys
from unittest import mock

import numpy as np
import pytest

import sidelight as sl
from sidelight.cli.app import main
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Range
from sidelight.queries.workload import Workload
from sidelight.releases.release import Release
from sidelight.releases.run import release
from sidelight.reports.provenance import provenance
from sidelight.reports.report import render
from sidelight.testing import SeededNoise

SCHEMA = Schema.from_domain({"a": 2, "b": 2, "c": 2})
RANGES = Workload([Range((("a", 0, 1),)), ("b",)])
UNEVEN = Workload([("a", "b"), ("c",)], weights=[2, 1])
CASES = {
    "mwem": {"workload": "2-way", "rounds": 3, "output": "average", "clip": False, "total_share": 0.015625},
    "factored mwem": {"mechanism": "mwem", "workload": "cuboids", "rounds": 2, "model": "components"},
    "single numbers": {
        "mechanism": "mwem",
        "workload": RANGES,
        "rounds": 2,
    },
    "barak": {"workload": "2-way", "passes": 7},
    "aim": {"workload": UNEVEN, "max_model_mb": 1.5, "oversized": "skip"},
    "jam": {"workload": "2-way", "rounds": 3, "weighting": "public-error"},
    "pmw-pub": {"workload": UNEVEN, "rounds": 3, "prior": "uniform"},
    "mwem-pub": {"workload": "2-way", "rounds": 3},
    "aperture": {"workload": "2-way", "max_rounds": 2, "unit": Unit("add-or-remove", 2)},
}
PUBLIC = ("jam", "pmw-pub", "mwem-pub", "aperture")


def coded(seed: int) -> Table:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, 400)
    codes = np.stack([first, first ^ (rng.random(400) < 0.2), rng.integers(0, 2, 400)], axis=1)
    return Table.of_codes(SCHEMA.domain, codes)


@pytest.fixture(scope="module")
def made() -> dict[str, Release]:
    """One release a case."""
    found = {}
    for case, asked in CASES.items():
        options = {"mechanism": case, **asked}
        public = coded(2) if case in PUBLIC else None
        found[case] = release(
            coded(1), schema=SCHEMA, public=public, epsilon=0.123456789, delta=1e-7, noise=SeededNoise(3),
            progress=False, **options,
        )  # fmt: skip
    return found


def run(command: list[str], folder) -> str:
    out = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        mock.patch.object(sys, "argv", command),
        pytest.raises(SystemExit) as stop,
    ):
        main()
    assert stop.value.code == 0, command
    return out.getvalue()


@pytest.mark.parametrize("case", CASES)
def test_the_printed_command_plans_the_same_release(made, case, tmp_path):
    told = made[case]
    told.save(tmp_path / "FOLDER")
    (tmp_path / "PRIVATE.csv").write_text("a,b,c\n0,0,0\n")
    (tmp_path / "PUBLIC.csv").write_text("a,b,c\n0,1,0\n1,1,1\n")

    again = provenance(told, "t")
    run(shlex.split(again.ledger), tmp_path)
    plan = json.loads(
        run([*shlex.split(again.command.replace("\\\n", " ")), "--dry-run", "--json"], tmp_path)
    )

    card = told.card.as_json()
    assert Unit.from_json(plan["unit"]) == Unit.from_json(card["unit"])
    assert {name: plan[name] for name in ("mechanism", "settings", "epsilon", "delta")} == {
        name: card[name] for name in ("mechanism", "settings", "epsilon", "delta")
    }
    assert plan["queries"] == card["workload"]["queries"]


def test_the_same_table_keeps_its_ledger_and_every_option_is_repeated(tmp_path):
    codes = coded(1).codes()
    (tmp_path / "PRIVATE.csv").write_text("a,b,c\n" + "".join(f"{a},{b},{c}\n" for a, b, c in codes))
    (tmp_path / "CRITERIA.toml").write_text('[[criterion]]\ntables = "2-way"\nat_most = 1.5\n')
    ledger = sl.Ledger.open(tmp_path / "LEDGER", epsilon=3, delta=1e-7)
    asked = {"schema": SCHEMA, "epsilon": 0.5, "workload": "2-way", "mechanism": "aim", "ledger": ledger}
    first = release(tmp_path / "PRIVATE.csv", **asked, progress=False)
    first.save(tmp_path / "EARLIER")
    second = release(
        tmp_path / "PRIVATE.csv", **asked, reuse=first, accept=tmp_path / "CRITERIA.toml", progress=False,
        project="health survey", approved_by=["A. Ito", "B. Ng"],
    )  # fmt: skip
    second.save(tmp_path / "FOLDER")

    again = provenance(second, "t").command
    plan = json.loads(run([*shlex.split(again.replace("\\\n", " ")), "--dry-run", "--json"], tmp_path))

    assert plan["affordable"]  # by the table's own ledger
    assert plan["reused"]
    assert plan["accept"]
    assert "--project 'health survey'" in again
    assert again.endswith("--approved-by APPROVER_2")
    page = render(second)
    assert "For this table, LEDGER is the ledger that it has" in page
    assert page.index("For another table, open its own ledger first") < page.index("sidelight ledger open")
    assert "<td>health survey</td>" in page
    assert "<td>A. Ito, B. Ng</td>" in page


def test_a_workload_without_a_name_is_in_the_folder_with_its_weights(made, tmp_path):
    made["aim"].save(tmp_path / "out")

    assert Workload.read(tmp_path / "out" / "workload.json") == UNEVEN
    assert not made["mwem"].save(tmp_path / "named").joinpath("workload.json").exists()


@pytest.mark.parametrize("case", CASES)
def test_every_mechanism_has_every_part_of_the_report(made, case):
    text = render(made[case])

    for part in ("promise", "spent", "measured", "one", "error", "structure", "cite"):
        assert f'<section id="{part}">' in text
    assert 'class="whisker"' in text or case in ("barak", "single numbers", "pmw-pub", "mwem-pub")
    assert ('<section id="public">' in text) == (case in PUBLIC)
    if case in PUBLIC:
        assert "Where public and private data disagreed" in text
    assert "WORKLOAD" not in text


def test_disagreement_is_judged_from_noisy_answers_alone(made):
    """The card's figures follow from the measurements and the public table, without the private one."""
    told = made["jam"]
    public = coded(2)

    for found in told.card.public.disagreements:
        answers = [m for m in told.measurements if m.query.attrs == found.attrs]
        gaps = [m.answer - public.count(m.query.attrs).reshape(-1) for m in answers]
        excess = sum(
            float((gap**2).sum()) - gap.size * m.stddev**2 for gap, m in zip(gaps, answers, strict=True)
        )
        assert found.numbers == sum(gap.size for gap in gaps)
        assert found.difference == pytest.approx(np.sqrt(max(0, excess) / found.numbers) / 400, abs=1e-6)
