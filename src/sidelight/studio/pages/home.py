"""The list of projects, starting one, the example, and the way out."""

from dataclasses import replace

from starlette.responses import Response

from sidelight.data.reading.frames import write_file
from sidelight.errors import InputError
from sidelight.example.people import simulated_survey
from sidelight.studio import store
from sidelight.studio.guard import COOKIE
from sidelight.studio.people import People
from sidelight.studio.places import Place, Studio
from sidelight.studio.plans import STAGE_WORDS, Plans
from sidelight.studio.steps import states_of
from sidelight.studio.visit import Visit, sentence


def show(visit: Visit) -> Response:
    """The projects that somebody may see."""
    return visit.page("home.html.j2", rows=_rows(visit))


def _rows(visit: Visit) -> list[dict[str, str]]:
    rows = []
    for place in visit.studio.places():
        stage = _stage(place)
        seen = {
            "curator": True,
            "approver": stage in ("waiting", "ready", "running", "done"),
            "reader": bool(place.releases()),
        }
        if seen[visit.person.role]:
            state = STAGE_WORDS.get(stage, "") or "being prepared"
            shown = "released" if visit.person.role == "reader" else state
            rows.append({"slug": place.slug, "title": place.project().title, "state": shown})
    return rows


def _stage(place: Place) -> str:
    plan = Plans(place).latest()
    return "" if plan is None else plan.stage()


def create(visit: Visit) -> Response:
    """A new project."""
    try:
        place = visit.studio.create(visit.text("title"))
    except InputError as error:
        shown = {"errors": {"title": sentence(error)}, "given": {"title": visit.text("title")}}
        return visit.page("home.html.j2", status=422, rows=_rows(visit), **shown)
    return _to(place, visit, "sources", "created")


def example(visit: Visit) -> Response:
    """A project about people who never lived."""
    return _to(example_project(visit.studio), visit, "sources", "created")


def example_project(studio: Studio) -> Place:
    """The example: a survey to protect, and earlier ones as public data."""
    private, public, _ = simulated_survey()
    place = studio.create("Survey 2006 (made-up people)")
    write_file(private, place.path / "survey-2006.csv")
    store.private_folder(place.path / "public")
    write_file(public, place.path / "public" / "surveys-1994-2004.csv")
    place.save(
        replace(
            place.project(),
            private="survey-2006.csv",
            public=("public/surveys-1994-2004.csv",),
            records=3000,
        )
    )
    return place


def enter_project(visit: Visit) -> Response:
    """To the step that comes next."""
    states = states_of(visit.here, visit.person.role, visit.here.project())
    chosen = next((step for step, state in states if state == "next"), None)
    if chosen is None:
        explore = [step for step, _ in states if step.address == "explore"]
        chosen = explore[0] if explore else states[0][0]
    return visit.go(chosen.address)


def leave(visit: Visit) -> Response:
    """End the session."""
    People(visit.studio.own).leave(visit.secret)
    response = visit.go("")
    response.delete_cookie(COOKIE, path="/")
    return response


def _to(place: Place, visit: Visit, step: str, said: str) -> Response:
    return replace(visit, place=place).go(step, said=said)
