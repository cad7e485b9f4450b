"""Step 1: which private table, which public ones, about how many people."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.responses import Response

from sidelight._files import writing
from sidelight.data.leak_guard import refuse_same
from sidelight.errors import InputError
from sidelight.sources import source_name
from sidelight.studio import store
from sidelight.studio.places import Place
from sidelight.studio.project import Project
from sidelight.studio.visit import Visit, sentence

UPLOADED = (".csv", ".tsv", ".parquet", ".xlsx")
"""Kinds of public tables that may be uploaded; compressed text could grow without bound."""
_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def show(visit: Visit, status: int = 200, **shown: Any) -> Response:
    """The tables of the project."""
    project, place = visit.here.project(), visit.here
    return visit.page(
        "sources.html.j2",
        status=status,
        private=None if project.private is None else source_name(project.private),
        public=[(public, source_name(public), _size(place, public)) for public in project.public],
        files=_files(place),
        upload_mb=visit.studio.upload_mb,
        kinds=", ".join(UPLOADED),
        **shown,
    )


def save(visit: Visit) -> Response:
    """Name the private table, and about how many records it has."""
    project, errors, given = visit.here.project(), {}, {"private": visit.text("private")}
    given["records"] = visit.text("records")
    private, records = project.private, None
    try:
        private = visit.here.source(given["private"]) if given["private"] else None
        if private is not None:
            refuse_same(visit.here.resolved(private), [visit.here.resolved(one) for one in project.public])
    except InputError as error:
        errors["private"] = sentence(error)
    digits = given["records"].replace(",", "").replace(" ", "")
    if digits:
        if digits.isascii() and digits.isdecimal() and 0 < len(digits) < 12 and int(digits) > 0:
            records = int(digits)
        else:
            errors["records"] = "Give a whole number, such as 20000; or leave it empty."
    if errors:
        return show(visit, status=422, errors=errors, given=given)
    visit.here.save(replace(project, private=private, records=records))
    return visit.go("sources", said="saved")


def upload(visit: Visit) -> Response:
    """Take in a public table; it is parsed by a worker, later."""
    given = visit.file("table")
    if given is None or given.filename is None:
        return show(visit, status=422, errors={"table": "Choose a file first."})
    name = _NAME.sub("-", Path(given.filename).name).strip("-.") or "table"
    if not name.lower().endswith(UPLOADED):
        return show(visit, status=422, errors={"table": f"A public table must end in {', '.join(UPLOADED)}."})
    folder = store.private_folder(visit.here.path / "public")
    target = folder / name
    if target.exists():
        return show(
            visit, status=422, errors={"table": f"There is a public table {name} already; rename the file."}
        )
    with writing(target, "the public table", private=True) as file:
        shutil.copyfileobj(given.file, file, 1 << 20)
    return _with_public(visit, visit.here.shown(target), "uploaded")


def add(visit: Visit) -> Response:
    """Name a public table that lies in the folder already, or an earlier release."""
    said = visit.text("source")
    try:
        is_folder = bool(said) and (visit.here.path / said).is_dir()
        source = visit.here.folder_of_prior(said) if is_folder else visit.here.source(said)
        private = visit.here.project().private
        if private is not None:
            refuse_same(visit.here.resolved(private), visit.here.resolved(source))
    except InputError as error:
        return show(visit, status=422, errors={"source": sentence(error)}, given={"source": said})
    return _with_public(visit, source, "saved")


def remove(visit: Visit) -> Response:
    """Take a public table out of the project; the file stays where it is."""
    project, source = visit.here.project(), visit.text("source")
    visit.here.save(replace(project, public=tuple(one for one in project.public if one != source)))
    return visit.go("sources", said="removed")


def _with_public(visit: Visit, source: str, said: str) -> Response:
    project: Project = visit.here.project()
    visit.here.save(replace(project, public=tuple(dict.fromkeys((*project.public, source)))))
    return visit.go("sources", said=said)


def _files(place: Place) -> list[str]:
    """Tables that lie in the project's folder."""
    found = [path for path in place.path.iterdir() if path.is_file() and path.suffix.lower() in UPLOADED]
    return sorted(path.name for path in found)


def _size(place: Place, source: str) -> str:
    path = place.path / source
    return f"{path.stat().st_size / 1e6:,.1f} MB" if path.is_file() else ""
