"""Every address of the studio, with who may use it: one table, which tests try with every role and with none.

GET changes nothing. Every POST carries its session's form token, and ends in a redirect or in a page that
says what is wrong.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from sidelight.errors import SidelightError
from sidelight.studio.guard import MOST_FORM
from sidelight.studio.pages import (
    approve,
    explore,
    home,
    ledger,
    plan,
    promise,
    release,
    schema,
    sources,
    work,
)
from sidelight.studio.people import ROLES, Role, is_form_token
from sidelight.studio.places import Studio
from sidelight.studio.visit import Visit, sentence, templates

Handler = Callable[[Visit], Response]
Endpoint = Callable[[Request], Awaitable[Response]]
_MOST_THREADS = 6
_limiter: RunVar[CapacityLimiter] = RunVar("studio threads")
CURATOR: tuple[Role, ...] = ("curator",)
CAN_READ: tuple[Role, ...] = ("curator", "reader")
CAN_APPROVE: tuple[Role, ...] = ("curator", "approver")


@dataclass(frozen=True)
class Address:
    """One route: its method and path, who may use it, and what answers."""

    method: str
    path: str
    roles: tuple[Role, ...]
    handler: Handler

    @property
    def step(self) -> str:
        """The step of a project that it belongs to."""
        parts = self.path.split("/")
        return parts[3].partition(".")[0] if self.path.startswith("/p/") and len(parts) > 3 else ""


_P = "/p/{project}"
ADDRESSES = (
    Address("GET", "/", ROLES, home.show),
    Address("POST", "/leave", ROLES, home.leave),
    Address("POST", "/projects", CURATOR, home.create),
    Address("POST", "/example", CURATOR, home.example),
    Address("GET", f"{_P}/", ROLES, home.enter_project),
    Address("GET", f"{_P}/sources", CURATOR, sources.show),
    Address("POST", f"{_P}/sources", CURATOR, sources.save),
    Address("POST", f"{_P}/sources/upload", CURATOR, sources.upload),
    Address("POST", f"{_P}/sources/add", CURATOR, sources.add),
    Address("POST", f"{_P}/sources/remove", CURATOR, sources.remove),
    Address("GET", f"{_P}/schema", CURATOR, schema.show),
    Address("POST", f"{_P}/schema/draft", CURATOR, schema.draft),
    Address("POST", f"{_P}/schema/column", CURATOR, schema.save_column),
    Address("POST", f"{_P}/schema/remove", CURATOR, schema.remove_column),
    Address("POST", f"{_P}/schema/person", CURATOR, schema.save_person),
    Address("POST", f"{_P}/schema/rule", CURATOR, schema.add_rule),
    Address("POST", f"{_P}/schema/unrule", CURATOR, schema.remove_rule),
    Address("POST", f"{_P}/schema/text", CURATOR, schema.save_text),
    Address("POST", f"{_P}/schema/check", CURATOR, schema.check),
    Address("GET", f"{_P}/schema.toml", CURATOR, schema.download),
    Address("GET", f"{_P}/promise", CURATOR, promise.show),
    Address("POST", f"{_P}/promise", CURATOR, promise.make),
    Address("POST", f"{_P}/promise/use", CURATOR, promise.use),
    Address("GET", f"{_P}/plan", CURATOR, plan.show),
    Address("POST", f"{_P}/plan", CURATOR, plan.make),
    Address("POST", f"{_P}/plan/rehearse", CURATOR, plan.rehearse),
    Address("GET", f"{_P}/approve", CAN_APPROVE, approve.show),
    Address("POST", f"{_P}/approve", CAN_APPROVE, approve.judge),
    Address("GET", f"{_P}/approve/schema.toml", CAN_APPROVE, approve.schema),
    Address("GET", f"{_P}/release", CURATOR, release.show),
    Address("POST", f"{_P}/release", CURATOR, release.spend),
    Address("POST", f"{_P}/release/cancel", CURATOR, release.cancel),
    Address("POST", f"{_P}/release/close", CURATOR, release.close),
    Address("GET", f"{_P}/explore", CAN_READ, explore.index),
    Address("GET", f"{_P}/explore/{{release}}", CAN_READ, explore.show),
    Address("GET", f"{_P}/explore/{{release}}/table.csv", CAN_READ, explore.table),
    Address("POST", f"{_P}/explore/{{release}}/sample", CAN_READ, explore.sample),
    Address("GET", f"{_P}/explore/{{release}}/sample/{{job}}", CAN_READ, explore.download_sample),
    Address("GET", f"{_P}/explore/{{release}}/report", CAN_READ, explore.report),
    Address("GET", f"{_P}/explore/{{release}}/report.html", CAN_READ, explore.download_report),
    Address("GET", f"{_P}/explore/{{release}}/card.json", CAN_READ, explore.card),
    Address("GET", f"{_P}/explore/{{release}}/release.zip", CAN_READ, explore.download_release),
    Address("GET", f"{_P}/ledger", CURATOR, ledger.show),
    Address("POST", f"{_P}/ledger/verify", CURATOR, ledger.verify),
    Address("GET", f"{_P}/ledger/statement.json", CURATOR, ledger.statement),
    Address("GET", f"{_P}/ledger/runs.csv", CURATOR, ledger.runs),
    Address("GET", f"{_P}/jobs/{{job}}", CAN_READ, work.progress),
    Address("POST", f"{_P}/jobs/{{job}}/cancel", CURATOR, work.cancel),
)


def routes(studio: Studio) -> list[Route]:
    """The table as Starlette's routes."""
    return [Route(one.path, _endpoint(studio, one), methods=[one.method]) for one in ADDRESSES]


def _endpoint(studio: Studio, address: Address) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        person, secret = request.state.person, request.state.secret
        if person is None:
            return stranger()
        if person.role not in address.roles:
            return problem(403, "This page is not for you", f"A link for a {person.role} does not open it.")
        slug = request.path_params.get("project")
        place = None if slug is None else studio.place(slug)
        if slug is not None and place is None:
            return problem(404, "There is no such project", "It was removed, or its address is misspelt.")
        form = FormData()
        if address.method == "POST":
            form = await request.form(max_files=1, max_fields=2000, max_part_size=MOST_FORM)
            if not is_form_token(secret, str(form.get("token", ""))):
                return problem(403, "This form is too old", "Go back, reload the page, and send it again.")
        asked = request.url.query
        here = "" if form else request.url.path + (f"?{asked}" if asked else "")
        visit = Visit(
            studio=studio, person=person, secret=secret, path=request.path_params,
            query=request.query_params, form=form, place=place, step=address.step, address=here,
        )  # fmt: skip
        try:
            return await to_thread.run_sync(address.handler, visit, limiter=_threads())
        except SidelightError as error:
            return problem(422, "That cannot be done", sentence(error))
        except HTTPException as error:
            return problem(error.status_code, "There is no such page", str(error.detail))
        finally:
            await form.close()

    return endpoint


def _threads() -> CapacityLimiter:
    """Pages are made by a few threads: more would wait for each other, and each takes memory."""
    try:
        return _limiter.get()
    except LookupError:
        made = CapacityLimiter(_MOST_THREADS)
        _limiter.set(made)
        return made


def stranger() -> Response:
    """The page for whoever has no session."""
    return HTMLResponse(templates().get_template("closed.html.j2").render(), status_code=401)


def problem(status: int, title: str, words: str) -> Response:
    """A page that says what went wrong."""
    page = templates().get_template("problem.html.j2").render(title=title, words=words)
    return HTMLResponse(page, status_code=status)


def to(address: str) -> Response:
    """A redirect after a POST."""
    return RedirectResponse(address, status_code=303)
