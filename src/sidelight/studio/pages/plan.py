"""Step 4: what to ask, what it will cost, and what to expect of it."""

import math
import re
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from sidelight._foreign import ForeignError
from sidelight.data.schema import Schema
from sidelight.errors import SidelightError
from sidelight.evaluation.rehearsal import CANNOT_KNOW, EPSILONS, Rehearsal
from sidelight.mechanisms.registry import AUTO, mechanism_of, names
from sidelight.privacy.purpose import is_name
from sidelight.privacy.sql_ledger import open_ledger
from sidelight.privacy.statement import Statement
from sidelight.queries.workload import Workload
from sidelight.releases.acceptance import Criteria
from sidelight.releases.typed_json import from_json
from sidelight.studio import figures
from sidelight.studio.jobs import Job, Jobs
from sidelight.studio.plans import FrozenPlan, Plans
from sidelight.studio.project import Ask, Picked, Threshold
from sidelight.studio.tasks import workload_of
from sidelight.studio.visit import FieldError, Visit, number_in, sentence

CRITERIA = 3
"""How many criteria of acceptance the form has room for."""
_MOST_RUNS = 5


def show(visit: Visit, status: int = 200, **about: Any) -> Response:
    """The wish, the rehearsal, and the plan as far as there is one."""
    project, place = visit.here.project(), visit.here
    lacking = _lacking(visit)
    if lacking or project.ledger is None:
        return visit.page("plan.html.j2", status=status, lacking=lacking)
    statement = Statement.of(open_ledger(place.resolved(project.ledger)))
    rehearsing = Jobs(place).latest("rehearse")
    plan = Plans(place).latest()
    stage = "" if plan is None else plan.stage()
    chosen = project.ask.epsilon or min(statement.largest or statement.promise.budget.epsilon, 1.0)
    is_busy = stage == "making" or (rehearsing is not None and not rehearsing.is_over)
    return visit.page(
        "plan.html.j2",
        status=status,
        lacking=[],
        ask=project.ask,
        epsilon=f"{chosen:g}",
        statement=statement,
        mechanisms=[(AUTO, "chosen for me")] + [(name, name) for name in names()],
        picked=picked_text(project.ask),
        criteria=[*project.ask.criteria, *[None] * CRITERIA][:CRITERIA],
        rehearsing=rehearsing,
        rehearsal=_rehearsal(rehearsing, chosen),
        is_rehearsed=rehearsing is not None
        and rehearsing.request.args.get("asked") == _asked(visit, project.ask),
        can_rehearse=bool(project.public),
        plan=plan,
        stage=stage,
        made=None if plan is None else plan.made(),
        is_current=plan is not None and _is_current(visit, plan),
        must_two=visit.studio.two_people,
        refresh=is_busy,
        **about,
    )


def _lacking(visit: Visit) -> list[tuple[str, str]]:
    """The steps that come first and were not taken, each with its address."""
    project = visit.here.project()
    wanted = (
        ("sources", "name the private table", project.private is not None),
        ("schema", "make the schema", visit.here.schema.is_file()),
        ("promise", "make the promise", project.ledger is not None),
    )
    return [(address, words) for address, words, is_there in wanted if not is_there]


def make(visit: Visit) -> Response:
    """Keep what is asked for, freeze it, and have the plan made."""
    return _after(visit, is_plan=True)


def rehearse(visit: Visit) -> Response:
    """Keep what is asked for, and have it played on public data."""
    return _after(visit, is_plan=False)


def _after(visit: Visit, *, is_plan: bool) -> Response:
    place = visit.here
    if _lacking(visit):
        return show(visit, status=422)
    try:
        ask = asked(visit)
        if not is_plan and not place.project().public:
            raise FieldError(
                {"": "A rehearsal is played on public data. Name a public table first (step 1)."}
            )
    except FieldError as error:
        return show(visit, status=422, errors=error.errors, given=visit.given)
    project = replace(place.project(), ask=ask)
    place.save(project)
    if not is_plan:
        _play(visit, ask)
        return visit.go("plan", anchor="rehearse-h")
    latest = Plans(place).latest()
    # A double click asks for the same plan twice: one of them is enough.
    if (
        latest is None
        or latest.stage() not in ("making", "waiting", "ready")
        or not _is_current(visit, latest)
    ):
        Plans(place).propose(project, visit.person)
    return visit.go("plan", anchor="plan-h")


def _play(visit: Visit, ask: Ask) -> None:
    project = visit.here.project()
    runs = visit.text("runs")
    Jobs(visit.here).start(
        "rehearse",
        visit.person.name,
        public=visit.text("on") if visit.text("on") in project.public else project.public[0],
        epsilon=list(EPSILONS),
        mechanism=ask.mechanism,
        workload=workload_of(ask),
        records=project.records,
        runs=int(runs) if runs.isdecimal() and 1 <= int(runs) <= _MOST_RUNS else 1,
        quality_share=ask.quality_share,
        alone=not ask.with_public,
        asked=_asked(visit, ask),
    )


def asked(visit: Visit) -> Ask:
    """The wish in the form; FieldError says what is wrong at which field."""
    errors: dict[str, str] = {}
    schema = Schema.read(visit.here.schema)
    epsilon = _positive(visit.text("epsilon"))
    if epsilon is None:
        errors["epsilon"] = "Give a number above 0, such as 0.5."
    workload = visit.text("workload")
    if workload not in ("1-way", "2-way", "3-way", "picked"):
        errors["workload"] = "Choose which tables to get right."
    picked: tuple[Picked, ...] = ()
    if workload == "picked":
        picked = _picked(visit, schema, errors)
    elif not errors:
        try:
            Workload.of(workload, schema.domain)
        except SidelightError as error:
            errors["workload"] = sentence(error)
    share = _positive(visit.text("quality_percent") or "2")
    if share is None or share >= 100:
        errors["quality_percent"] = "Give a percentage above 0 and below 100."
    mechanism, with_public = visit.text("mechanism") or AUTO, visit.ticked("with_public")
    if mechanism not in (AUTO, *names()):
        errors["mechanism"] = "Choose one of the mechanisms."
    elif mechanism != AUTO and (wrong := _contradicted(visit, mechanism, is_helped=with_public)):
        errors["mechanism"] = wrong
    criteria = _criteria(visit, schema, errors)
    project = visit.text("project")
    if project and not is_name(project):
        errors["project"] = "Give a name of at most 200 characters on one line, or leave it empty."
    if errors:
        raise FieldError(errors)
    return Ask(
        workload=workload,  # type: ignore[arg-type]  # checked above
        picked=picked,
        epsilon=epsilon,
        mechanism=mechanism,
        with_public=with_public,
        quality_share=(share or 2.0) / 100,
        criteria=criteria,
        second_person=visit.ticked("second_person") or visit.studio.two_people,
        project=project,
        other_schema=visit.ticked("other_schema"),
    )


def _contradicted(visit: Visit, mechanism: str, *, is_helped: bool) -> str:
    """Why a mechanism does not go with the public tables; empty where it does."""
    needs = mechanism_of(mechanism).public_data
    has = is_helped and bool(visit.here.project().public)
    if needs == "unused" and has:
        return (
            f"{mechanism} does not use public data. Untick “Public data help”, or choose another mechanism."
        )
    if needs == "needed" and not has:
        return f"{mechanism} needs public data. Tick “Public data help”, or choose another mechanism."
    return ""


def _picked(visit: Visit, schema: Schema, errors: dict[str, str]) -> tuple[Picked, ...]:
    """Lines such as ``age × sex = 2``."""
    found = []
    for line in visit.lines("picked"):
        said, _, weight = line.rpartition("=") if "=" in line else (line, "", "1")
        attrs = tuple(name.strip() for name in re.split("[×*]", said) if name.strip())
        heavy = _positive(weight)
        if heavy is None:
            errors["picked"] = f"“{line[:60]}”: a weight is a number above 0, such as 2."
        found.append(Picked(attrs=attrs, weight=heavy or 1.0))
    if not found:
        errors["picked"] = "Write one table a line, such as: age × sex"
    if "picked" not in errors:
        try:
            Workload.of([one.attrs for one in found], schema.domain)
        except SidelightError as error:
            errors["picked"] = sentence(error)
    return tuple(found)


def _criteria(visit: Visit, schema: Schema, errors: dict[str, str]) -> tuple[Threshold, ...]:
    found = []
    for place in range(1, CRITERIA + 1):
        tables, most = visit.text(f"tables_{place}"), visit.text(f"at_most_{place}")
        if not tables and not most:
            continue
        share = _positive(most.removesuffix("%"))
        if share is None:
            errors[f"at_most_{place}"] = "Give a percentage above 0, such as 5."
            continue
        one = Threshold(tables=tables or "2-way", at_most=share / 100, worst=visit.ticked(f"worst_{place}"))
        try:
            Criteria.of(Ask(criteria=(one,)).accept() or {}, schema.domain)
        except SidelightError as error:
            errors[f"tables_{place}"] = sentence(error)
        found.append(one)
    return tuple(found)


def picked_text(ask: Ask) -> str:
    """Picked tables as the form writes them."""
    weights = ("" if one.weight == 1 else f" = {one.weight:g}" for one in ask.picked)
    return "\n".join(" × ".join(one.attrs) + weight for one, weight in zip(ask.picked, weights, strict=True))


def _rehearsal(job: Job | None, chosen: float) -> dict[str, Any] | None:
    """The rehearsal as the page shows it; None where none has ended well."""
    result = None if job is None or not job.is_over else job.result()
    if job is None or result is None:
        return None
    try:
        played: Rehearsal = from_json(Rehearsal, result, "rehearsal")
    except ForeignError:
        return None
    name = played.mechanisms[0]
    steps = figures.slider_steps(played)
    nearest = min(range(len(steps)), key=lambda place: abs(math.log(steps[place][0] / chosen)))
    return {
        "curve": figures.error_curve("curve", played, steps[nearest][0] if steps else None),
        "steps": steps,
        "at": nearest,
        "error": played.error_at(chosen, name),
        "mechanism": name,
        "rows": [
            (f"{one.epsilon:g}", one.error, min(one.errors), max(one.errors)) for one in played.of(name)
        ],
        "records": played.records,
        "cannot_know": CANNOT_KNOW,
        "on": job.request.args["public"],
    }


def _asked(visit: Visit, ask: Ask) -> str:
    """All that a rehearsal depends on; a later one is of something else if this differs."""
    schema = Schema.read(visit.here.schema).fingerprint
    return f"{schema} {ask.workload} {picked_text(ask)} {ask.mechanism} {ask.with_public} {ask.quality_share}"


def _is_current(visit: Visit, plan: FrozenPlan) -> bool:
    """Whether the latest plan is of what is asked for now."""
    project, was = visit.here.project(), plan.proposal
    is_same = (was.ask, was.private, was.public, was.ledger, was.records) == (
        project.ask, project.private, project.public if project.ask.with_public else (), project.ledger,
        project.records,
    )  # fmt: skip
    return is_same and plan.schema.read_bytes() == visit.here.schema.read_bytes()


def _positive(text: str) -> float | None:
    value = number_in(text)
    return value if value is not None and value > 0 else None
