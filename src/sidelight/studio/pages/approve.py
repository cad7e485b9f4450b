"""Step 5: a second person looks at the plan, and approves exactly what will run."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from sidelight.errors import InputError
from sidelight.privacy.approval import same_person
from sidelight.privacy.sql_ledger import open_ledger
from sidelight.privacy.statement import Statement
from sidelight.studio.plans import FrozenPlan, Plans
from sidelight.studio.visit import Visit, sentence


def show(visit: Visit, status: int = 200, **about: Any) -> Response:
    """The latest plan, whole, and what was said of it."""
    plan = _looked_at(visit)
    made = None if plan is None else plan.made()
    waiting = [one for one in Plans(visit.here).all() if one.stage() == "waiting"]
    if plan is None or made is None:
        return visit.page("approve.html.j2", status=status, plan=None, waiting=waiting, **about)
    book = open_ledger(visit.here.resolved(plan.proposal.ledger))
    return visit.page(
        "approve.html.j2",
        status=status,
        plan=plan,
        made=made,
        stage=plan.stage(),
        verdict=plan.verdict(),
        waiting=[one for one in waiting if one.number != plan.number],
        statement=Statement.of(book),
        is_own=same_person(visit.person.name, plan.proposal.asked_by),
        text=plan.schema.read_text(encoding="utf-8"),
        **about,
    )


def judge(visit: Visit) -> Response:
    """Approve the plan that was looked at, or send it back."""
    plan = _waiting(visit)
    is_approved = visit.text("do") == "approve"
    if is_approved and not visit.ticked("read"):
        return show(visit, status=422, errors={"read": "Tick the box once you have read the plan."})
    if not is_approved and not visit.text("remark"):
        return show(visit, status=422, errors={"remark": "Say what should be changed."})
    try:
        is_first = plan.judge(
            visit.person, visit.text("digest"), is_approved=is_approved, remark=visit.text("remark")
        )
    except InputError as error:
        return show(visit, status=422, errors={"": sentence(error)})
    return visit.go(
        "approve",
        said=("approved" if is_approved else "sent-back") if is_first else "judged",
        plan=plan.number,
    )


def schema(visit: Visit) -> Response:
    """The schema that the plan was made with."""
    plan = _looked_at(visit)
    if plan is None:
        raise HTTPException(404, "There is no such plan.")
    return Response(plan.schema.read_bytes(), media_type="text/plain; charset=utf-8")


def _looked_at(visit: Visit) -> FrozenPlan | None:
    """The plan that an address or a form names; without a name, the latest."""
    plans, asked = Plans(visit.here), visit.query.get("plan") or visit.text("plan")
    return plans.get(asked) if asked else plans.latest()


def _waiting(visit: Visit) -> FrozenPlan:
    """The plan that a form names, if it waits for approval."""
    plan = Plans(visit.here).get(visit.text("plan"))
    if plan is None or plan.stage() != "waiting":
        raise InputError("this plan does not wait for approval; somebody judged it, or it was made anew.")
    return plan
