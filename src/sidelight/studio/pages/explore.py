"""Step 7: what was released: how good it is, what it says, and everything to take away."""

import io
import json
import secrets
import zipfile
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

from sidelight.data.reading.frames import write_file
from sidelight.errors import SidelightError
from sidelight.releases.folder import load_card
from sidelight.releases.quality import WORDS
from sidelight.releases.where import codes_where
from sidelight.reports.facts import by_attribute
from sidelight.studio import answers, recipe, store
from sidelight.studio.guard import REPORT_POLICY
from sidelight.studio.jobs import Jobs
from sidelight.studio.project import is_release
from sidelight.studio.visit import Visit, attached, sentence

_MOST_RECORDS = 2_000_000
_SHOWN = 12
"""Attributes whose error is shown at once."""


def index(visit: Visit) -> Response:
    """All releases of the project."""
    rows = [{"name": name, "card": load_card(visit.here.release(name))} for name in visit.here.releases()]
    return visit.page("releases.html.j2", rows=rows)


def show(visit: Visit, status: int = 200, **about: Any) -> Response:
    """Measured quality first; then whatever is asked."""
    name = _name(visit)
    opened = answers.open_release(visit.here, name)
    attrs = [attr for attr in visit.query.getlist("by") if attr in opened.domain.attrs]
    attrs = attrs or [opened.domain.attrs[0]]
    where, filtered = _where(visit, opened)
    errors: dict[str, str] = {}
    answered: Any = ""
    try:
        asked = answers.question_of(attrs, where, compare=visit.query.get("compare") == "yes")
        answered = answers.answer(visit.here, name, asked)
    except SidelightError as error:
        status, errors["filters"] = 422, sentence(error)
    card, folder = opened.release.card, f"releases/{name}"
    chosen = list(dict.fromkeys(attrs))[: answers.MOST_ATTRS]
    jobs = [job for job in Jobs(visit.here).all("sample") if job.request.args.get("release") == name][:3]
    return visit.page(
        "explore.html.j2",
        status=status,
        **{
            "name": name,
            "release": opened.release,
            "card": card,
            "quality": opened.release.quality,
            "quality_words": WORDS,
            "by_attribute": by_attribute(opened.release.quality)[:_SHOWN],
            "attrs": opened.domain.attrs,
            "chosen": chosen,
            "filters": filtered,
            "free": [attr for attr in opened.domain.attrs if attr not in [one["attr"] for one in filtered]],
            "compare": visit.query.get("compare") == "yes",
            "can_compare": opened.public is not None,
            "answer": answered,
            "asked": visit.query.multi_items(),
            "jobs": jobs,
            "refresh": any(not job.is_over for job in jobs),
            "command": recipe.answer_command(folder, chosen, where),
            "python": recipe.answer_python(folder, chosen, where),
            "sampling": recipe.sample_command(folder, where),
            "errors": errors,
        }
        | about,
    )


def table(visit: Visit) -> Response:
    """The whole table, as a file."""
    opened = answers.open_release(visit.here, _name(visit))
    attrs = [attr for attr in visit.query.getlist("by") if attr in opened.domain.attrs]
    where, _ = _where(visit, opened)
    asked = answers.question_of(attrs or [opened.domain.attrs[0]], where, compare=False)
    answers.require_small(opened, asked)
    with opened.lock:
        frame = opened.release.answer(asked.attrs, where=asked.condition or None)
    path = store.private_folder(visit.here.own / "samples") / f"{secrets.token_hex(8)}.csv"
    write_file(frame, path, safe_cells=visit.query.get("safe") == "yes")
    content = path.read_bytes()
    path.unlink()
    return attached(content, "table.csv", "text/csv; charset=utf-8")


def sample(visit: Visit) -> Response:
    """Have a synthetic table drawn."""
    name = _name(visit)
    opened = answers.open_release(visit.here, name)
    errors: dict[str, str] = {}
    records, seed = visit.text("records").replace(",", ""), visit.text("seed")
    if records and not (records.isdecimal() and 0 < int(records) <= _MOST_RECORDS):
        errors["records"] = f"Give a whole number from 1 to {_MOST_RECORDS:,}; or leave it empty."
    if seed and not (seed.isdecimal() and int(seed) < 2**32):
        errors["seed"] = "Give a whole number; or leave it empty for a fresh one."
    where = {attr: list(values) for attr, values in _posted(visit).items()}
    try:
        if where and opened.release.schema is not None:
            codes_where(where, opened.release.schema)
    except SidelightError as error:
        errors["records"] = sentence(error)
    if errors:
        return show(visit, status=422, errors=errors, given={"records": records, "seed": seed})
    ending = "parquet" if visit.text("format") == "parquet" else "csv"
    job = Jobs(visit.here).start(
        "sample",
        visit.person.name,
        release=name,
        records=int(records) if records else None,
        seed=int(seed) if seed else None,
        where=where,
        safe_cells=visit.ticked("safe_cells") and ending == "csv",
        file=f"{name}-{secrets.token_hex(4)}.{ending}",
    )
    return visit.go("explore", name, anchor=f"job-{job.id}")


def download_sample(visit: Visit) -> Response:
    """A synthetic table that was drawn."""
    job = Jobs(visit.here).get(visit.path["job"])
    if job is None or job.request.kind != "sample" or job.request.args.get("release") != _name(visit):
        raise HTTPException(404, "There is no such sample.")
    path = visit.here.own / "samples" / str(job.request.args["file"])
    if not path.is_file():
        raise HTTPException(404, "The sample is not drawn yet, or was removed.")
    return FileResponse(path, filename=f"synthetic-{path.name}", media_type=_kind(path))


def report(visit: Visit) -> Response:
    """The report, to read here."""
    path = _report(visit)
    return Response(
        path.read_bytes(),
        media_type="text/html; charset=utf-8",
        headers={"content-security-policy": REPORT_POLICY},
    )


def download_report(visit: Visit) -> Response:
    """The report, to pass on."""
    path = _report(visit)
    return attached(path.read_bytes(), path.name, "text/html; charset=utf-8")


def card(visit: Visit) -> Response:
    """All facts about how the release was made."""
    opened = answers.open_release(visit.here, _name(visit))
    text = json.dumps(opened.release.card.as_json(), ensure_ascii=False, indent=2, default=str)
    return attached(text.encode(), "card.json", "application/json")


def download_release(visit: Visit) -> Response:
    """The release's folder, as the command line reads it."""
    name = _name(visit)
    folder, packed = visit.here.release(name), io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.iterdir()):
            if path.is_file():
                archive.write(path, f"{name}/{path.name}")
    return attached(packed.getvalue(), f"{name}.zip", "application/zip")


def _name(visit: Visit) -> str:
    name = visit.path["release"]
    if not is_release(name) or not (visit.here.release(name) / "release.json").is_file():
        raise HTTPException(404, "There is no such release.")
    return name


def _where(visit: Visit, opened: answers.Opened) -> tuple[dict[str, tuple[str, ...]], list[dict[str, Any]]]:
    """The filters of an address: what they ask for, and how the page shows them."""
    where, shown = {}, []
    for attr in opened.domain.attrs:
        values = tuple(value for value in visit.query.getlist(f"f.{attr}") if value.strip())
        if values:
            where[attr] = values
        if values or visit.query.get("add") == attr or f"f.{attr}" in visit.query:
            labels = opened.labels(attr) if opened.is_ticked(attr) else ()
            shown.append({"attr": attr, "labels": labels, "values": values, "hint": opened.labels(attr)[0]})
    return where, shown


def _posted(visit: Visit) -> dict[str, tuple[str, ...]]:
    """The filters of a form."""
    found: dict[str, tuple[str, ...]] = {}
    for name, value in visit.form.multi_items():
        if name.startswith("f.") and isinstance(value, str) and value.strip():
            found[name[2:]] = (*found.get(name[2:], ()), value.strip())
    return found


def _report(visit: Visit) -> Path:
    name = _name(visit)
    path = visit.here.release(name).with_name(f"{name}.html")
    if not path.is_file():
        raise HTTPException(404, "There is no report of this release.")
    return path


def _kind(path: Path) -> str:
    return "text/csv; charset=utf-8" if path.suffix == ".csv" else "application/vnd.apache.parquet"
