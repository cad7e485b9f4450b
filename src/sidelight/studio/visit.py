"""One request, as a page sees it: who asks, about which project, with which form; and the ways to answer."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from starlette.datastructures import FormData, QueryParams, UploadFile
from starlette.responses import HTMLResponse, RedirectResponse, Response

from sidelight.errors import SidelightError
from sidelight.reports.templating import environment
from sidelight.studio.people import Person, form_token
from sidelight.studio.places import Place, Studio
from sidelight.studio.plans import STAGE_WORDS
from sidelight.studio.steps import STEPS, states_of

SAID = {
    "saved": "Saved.",
    "created": "The project is there. Say first which tables it is about.",
    "uploaded": "The public table is there.",
    "removed": "Removed.",
    "promised": "The promise is made. It can never be changed.",
    "approved": "Approved. Whoever asked can now release it.",
    "sent-back": "Sent back. Whoever asked sees your remark.",
    "judged": "Somebody has already judged this plan; nothing was changed.",
    "used": "This was already confirmed, here or in another window. Nothing was started a second time.",
    "cancelling": "The run was asked to stop. It writes down what it has, and stops.",
    "over": "There was nothing left to stop.",
    "closed": "The run is closed. What it did not spend went back to the budget.",
    "intact": "Every line of the ledger follows from the one before. Nothing was changed.",
    "changed": "The schema was changed in another window meanwhile. This is how it is now; change it again.",
}
"""The sentence on a page after a redirect, by a word in its address: nobody can put others there."""


class FieldError(Exception):
    """The faults of a form, field by field."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__()
        self.errors = dict(errors)


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One request."""

    studio: Studio
    person: Person
    secret: str
    path: Mapping[str, str]
    """The parts of the address that vary."""
    query: QueryParams
    form: FormData = field(default_factory=FormData)
    place: Place | None = None
    step: str = ""
    """The step that the page belongs to."""
    address: str = ""
    """Where a GET of the same page leads; empty after a POST."""

    @property
    def here(self) -> Place:
        """The project."""
        assert self.place is not None  # the route has found it
        return self.place

    def text(self, name: str) -> str:
        """A field of the form, without blanks around it."""
        given = self.form.get(name, "")
        return given.strip() if isinstance(given, str) else ""

    @property
    def given(self) -> dict[str, str]:
        """The form's texts, as they were typed, for a page that shows the form again."""
        return {name: value for name, value in self.form.items() if isinstance(value, str)}

    def lines(self, name: str) -> tuple[str, ...]:
        """The lines of a field, without blanks around them, without empty ones."""
        return tuple(line.strip() for line in self.text(name).splitlines() if line.strip())

    def ticked(self, name: str) -> bool:
        """Whether a box of the form is ticked."""
        return name in self.form

    def file(self, name: str) -> UploadFile | None:
        """An uploaded file; None where there is none."""
        given = self.form.get(name)
        return given if isinstance(given, UploadFile) and given.filename else None

    def page(self, template: str, *, status: int = 200, **shown: Any) -> Response:
        """A page; ``errors`` among what is shown maps fields to sentences."""
        project = None if self.place is None else self.place.project()
        text = templates().get_template(template).render(
            person=self.person,
            place=self.place,
            project=project,
            step=self.step,
            steps=() if project is None else states_of(self.here, self.person.role, project),
            all_steps=STEPS,
            token=form_token(self.secret),
            again=self.address or self.url(self.step),
            said=SAID.get(self.query.get("said", ""), ""),
            url=self.url,
            **{"errors": {}, "given": {}} | shown,
        )  # fmt: skip
        return HTMLResponse(text, status_code=status)

    def url(self, *parts: str, **query: Any) -> str:
        """An address within the project; or within the studio where there is none."""
        start = "" if self.place is None else f"/p/{self.place.slug}"
        path = "/".join(quote(part, safe="") for part in parts)
        asked = urlencode(
            {name: value for name, value in query.items() if value not in (None, "")}, doseq=True
        )
        return f"{start}/{path}" + (f"?{asked}" if asked else "")

    def go(self, *parts: str, said: str = "", **query: Any) -> Response:
        """To another page: after a POST, so that reloading repeats nothing."""
        anchor = query.pop("anchor", "")
        target = self.url(*parts, said=said, **query) + (f"#{quote(anchor)}" if anchor else "")
        return RedirectResponse(target, status_code=303)


def sentence(error: SidelightError) -> str:
    """An error's own words, as a sentence of the page."""
    words = str(error)
    return f"{words[:1].upper()}{words[1:]}"


def number_in(text: str) -> float | None:
    """The finite number that somebody typed, with a decimal point or comma; None where it is none."""
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def attached(content: bytes | str, name: str, kind: str) -> Response:
    """A file to download."""
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kind, headers=headers)


@cache
def templates() -> Any:
    """The studio's templates; those of the report are there, too."""
    made = environment("sidelight.studio", "sidelight.reports")
    made.globals["states"] = STAGE_WORDS
    made.filters["moment"] = lambda when: str(when)[:16].replace("T", " ")
    return made
