"""The steps of a project, and how far each is: what the rail on every page shows."""

from dataclasses import dataclass
from typing import Literal

from sidelight.studio.people import Role
from sidelight.studio.places import Place
from sidelight.studio.plans import Plans
from sidelight.studio.project import Project

Progress = Literal["done", "next", "later"]


@dataclass(frozen=True)
class Step:
    """One step: its address within a project, its name, and who sees it."""

    address: str
    name: str
    roles: tuple[Role, ...] = ("curator",)


STEPS = (
    Step("sources", "Project"),
    Step("schema", "Schema"),
    Step("promise", "Promise"),
    Step("plan", "Plan"),
    Step("approve", "Approve", ("curator", "approver")),
    Step("release", "Release"),
    Step("explore", "Explore", ("curator", "reader")),
    Step("ledger", "Ledger"),
)


def states_of(place: Place, role: Role, project: Project) -> tuple[tuple[Step, Progress], ...]:
    """The steps that somebody sees, each with how far it is; the first that is not done comes next."""
    has_release = bool(place.releases())
    done = {"explore": has_release, "ledger": has_release}
    if role != "reader":
        plan = Plans(place).latest()
        stage = None if plan is None else plan.stage()
        done |= {
            "sources": project.private is not None,
            "schema": place.schema.is_file(),
            "promise": project.ledger is not None,
            "plan": stage not in (None, "making", "wrong"),
            "approve": stage in ("ready", "running", "resumable", "done", "closed"),
            "release": stage == "done",
        }
    seen = [step for step in STEPS if role in step.roles]
    following = next((step.address for step in STEPS if not done.get(step.address, True)), None)
    return tuple(
        (step, "done" if done[step.address] else "next" if step.address == following else "later")
        for step in seen
    )
