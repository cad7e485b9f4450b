"""Step 6: spend once, watch it, stop it, come back to it."""

from starlette.responses import Response

from sidelight.curator.journal import Journal
from sidelight.errors import SidelightError
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.runs import RunSummary
from sidelight.privacy.sql_ledger import open_ledger
from sidelight.privacy.statement import Statement
from sidelight.studio.plans import FrozenPlan, Plans
from sidelight.studio.recipe import release_command, release_python
from sidelight.studio.visit import Visit


def show(visit: Visit) -> Response:
    """Where the latest plan stands, and the one button that spends."""
    plan = Plans(visit.here).at_work(visit.query.get("plan"))
    made = None if plan is None else plan.made()
    others = [one for one in Plans(visit.here).all() if plan is None or one.number != plan.number]
    if plan is None or made is None:
        return visit.page("release.html.j2", plan=None, others=others)
    stage = plan.stage()
    book = open_ledger(visit.here.resolved(plan.proposal.ledger))
    jobs = plan.jobs()
    return visit.page(
        "release.html.j2",
        plan=plan,
        made=made,
        stage=stage,
        others=others,
        verdict=plan.verdict(),
        statement=Statement.of(book),
        job=jobs[0] if jobs else None,
        run=_run(plan, book),
        spent=_spent(plan, book),
        number=plan.spending_number(),
        lacks_second=plan.lacks_second(two_people=visit.studio.two_people),
        command=release_command(plan),
        python=release_python(plan),
        refresh=stage == "running",
    )


def spend(visit: Visit) -> Response:
    """Carry the plan out: one confirmed POST, with the number that was shown for it."""
    plan = Plans(visit.here).get(visit.text("plan"))
    if plan is None or not visit.ticked("confirm"):
        return visit.go("release", said="used" if plan is None else "", plan=visit.text("plan"))
    job = plan.spend(
        visit.text("number"), visit.text("digest"), visit.person, two_people=visit.studio.two_people
    )
    return visit.go("release", said="" if job is not None else "used", plan=plan.number)


def cancel(visit: Visit) -> Response:
    """Ask the run to stop; it keeps what it paid for."""
    plan = Plans(visit.here).get(visit.text("plan"))
    asked = plan is not None and any(job.cancel() for job in plan.jobs()[:1])
    return visit.go("release", said="cancelling" if asked else "over", plan=visit.text("plan"))


def close(visit: Visit) -> Response:
    """Give up a run that was interrupted: what it did not spend goes back."""
    plan = Plans(visit.here).get(visit.text("plan"))
    if plan is None or not visit.ticked("confirm_close"):
        return visit.go("release", said="over" if plan is None else "", plan=visit.text("plan"))
    return visit.go("release", said="closed" if plan.close() else "", plan=plan.number)


def _run(plan: FrozenPlan, book: Ledger) -> RunSummary | None:
    """The plan's run as its ledger knows it; None before it has begun."""
    try:
        run = Journal.run_in(plan.checkpoint)
        return book.run(run) if run is not None and book.knows(run) else None
    except (SidelightError, OSError):
        return None


def _spent(plan: FrozenPlan, book: Ledger) -> float | None:
    """ε that an interrupted run has paid so far, by itself."""
    run = _run(plan, book)
    if run is None:
        return None
    budget = book.promise.budget
    return budget.epsilon_of(budget.tally(run.spent))
