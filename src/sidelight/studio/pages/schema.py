"""Step 2: the schema, drafted from public data, edited in a table, checked against the private one."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from sidelight._check import count_of
from sidelight._files import write_text
from sidelight.data.columns.column import BinnedColumn, Column
from sidelight.data.domain import Combination
from sidelight.data.schema import Schema
from sidelight.data.schema_edit import rewritten
from sidelight.data.schema_toml import constraints_of
from sidelight.errors import InputError, SchemaError, SettingError
from sidelight.privacy.unit import Unit
from sidelight.reports.words import shortened
from sidelight.studio import figures, schema_form
from sidelight.studio.jobs import Jobs
from sidelight.studio.looking import look
from sidelight.studio.places import Place
from sidelight.studio.visit import FieldError, Visit, attached, sentence

_VIOLATED = [
    ("keep", "read as it is; synthetic records keep the rule"),
    ("missing", "count the last column as missing"),
    ("refuse", "refuse the table"),
]


def show(visit: Visit, status: int = 200, **about: Any) -> Response:
    """The schema as a table; one column at a time is open."""
    place, jobs = visit.here, Jobs(visit.here)
    text, schema, broken = _read(place)
    looked = None if schema is None else look(place, schema)
    editing = about.pop("editing", visit.query.get("edit", ""))
    drafting, checking = jobs.latest("draft"), jobs.latest("check")
    is_busy = any(job is not None and not job.is_over for job in (drafting, checking))
    rows = []
    for column in () if schema is None else schema.columns:
        counts = None if looked is None else looked.counts.get(column.name)
        rows.append(
            {
                "column": column,
                "words": words_of(column),
                "spark": "" if counts is None else figures.spark(column, counts),
                "open": 0.0 if looked is None else looked.open_share(column.name),
            }
        )
    return visit.page(
        "schema.html.j2",
        status=status,
        schema=schema,
        text=text,
        broken=broken,
        version=_version(text),
        rows=rows,
        looked=looked,
        drafting=drafting,
        checking=checking,
        refresh=is_busy,
        misfits=_misfits(checking, schema),
        rules=[] if schema is None else _rules(schema),
        violated=_VIOLATED,
        opened=_opened(visit, schema, editing, looked, about),
        **about,
    )


def _opened(visit: Visit, schema: Schema | None, name: str, looked: Any, about: dict[str, Any]) -> Any:
    """The form of the column that is edited; None where none is."""
    if schema is None or not name:
        return None
    before = next((column for column in schema.columns if column.name == name), None)
    kind = visit.query.get("kind") or about.get("kind") or ("categorical" if before is None else before.kind)
    kind = kind if kind in schema_form.KIND_WORDS else "categorical"
    counts = None if looked is None or before is None else looked.counts.get(name)
    return {
        "name": name,
        "is_new": before is None,
        "kind": kind,
        "kinds": list(schema_form.KIND_WORDS.items()),
        "fields": schema_form.fields_of(kind),
        "values": schema_form.shown(before),
        "outsides": schema_form.outsides(kind),
        "periods": schema_form.periods(kind),
        "label_types": list(schema_form.LABEL_TYPES.items()),
        "chart": "" if counts is None or before is None else figures.histogram("public", before, counts),
    }


def draft(visit: Visit) -> Response:
    """Have a first schema drafted from a public table."""
    project, source = visit.here.project(), visit.text("draft_public")
    if source not in project.public:
        return show(visit, status=422, errors={"draft_public": "Choose one of the project's public tables."})
    bins = visit.text("draft_bins") or "32"
    if not bins.isdecimal() or not 1 <= int(bins) <= 1000:
        return show(visit, status=422, errors={"draft_bins": "Give a whole number of bins from 1 to 1000."})
    written = {name: visit.text(f"draft_{name}") for name in ("delimiter", "encoding")}
    file = {name: said for name, said in written.items() if said}
    if visit.text("draft_decimal") == ",":
        file["decimal"] = ","
    Jobs(visit.here).start(
        "draft",
        visit.person.name,
        public=source,
        bins=int(bins),
        missing=list(visit.lines("draft_missing")),
        file=file,
    )
    return visit.go("schema")


def save_column(visit: Visit) -> Response:
    """Declare one column anew."""
    name, kind = visit.text("name"), visit.text("kind")
    given = visit.given

    def changed(schema: Schema) -> Schema:
        before = next((column for column in schema.columns if column.name == name), None)
        made = schema_form.column_from(name, kind, given, before)
        columns = [made if column.name == name else column for column in schema.columns]
        return replace(schema, columns=tuple(columns if before is not None else [*columns, made]))

    if visit.text("do") == "kind":
        return visit.go("schema", edit=name, kind=kind, anchor="column")
    return _change(
        visit, changed, {"editing": name, "kind": kind, "given": given}, edit=name, anchor="column"
    )


def remove_column(visit: Visit) -> Response:
    """Take a column out of the schema: no release will be about it."""
    name = visit.text("name")

    def changed(schema: Schema) -> Schema:
        return replace(schema, columns=tuple(column for column in schema.columns if column.name != name))

    return _change(visit, changed, {"editing": name})


def save_person(visit: Visit) -> Response:
    """Which column says who a record is about, and how many records of each person are used."""
    person, records = visit.text("person"), visit.text("unit_records") or "1"

    def changed(schema: Schema) -> Schema:
        facts: dict[str, Any] = {"relation": schema.unit.relation}
        if records == "auto":
            facts["records"] = "auto"
        elif records.isdecimal():
            facts["records"] = int(records)
        else:
            raise FieldError({"unit_records": "Give a whole number; or auto, with a column of people."})
        if person:
            facts |= {"person": person, "missing_person": visit.text("missing_person") or "refuse"}
        try:
            return replace(schema, unit=Unit.said(**facts))
        except SettingError as error:
            raise FieldError(
                {"unit_records" if "records" in str(error) else "person": sentence(error)}
            ) from error

    return _change(visit, changed, {"given": visit.given}, anchor="person-h")


def add_rule(visit: Visit) -> Response:
    """Declare what holds within every record."""

    def changed(schema: Schema) -> Schema:
        shape = visit.text("shape")
        if shape == "impossible":
            said = {name: list(labels) for name, labels in _pairs(visit, "impossible")}
            if not said:
                raise FieldError({"impossible": "Write a line for each column: married = yes"})
            return schema.with_impossible(said)
        names = [part.strip() for part in visit.text("names").split(",") if part.strip()]
        last = visit.text("last")
        told: dict[str, Any] = {"violated": visit.text("violated") or "keep"}
        if shape == "order":
            told |= {"order": names}
        elif shape == "sum":
            told |= {"sum": names, "total": last}
        else:
            mapped = {name: labels[0] for name, labels in _pairs(visit, "map") if labels}
            told |= {"column": names[0] if names else "", "determines": last, "map": mapped}
        return replace(schema, constraints=(*schema.constraints, *constraints_of(told)))

    return _change(visit, changed, {"given": visit.given}, field="names", anchor="rules-h")


def remove_rule(visit: Visit) -> Response:
    """Take a rule back."""
    kind, _, place = visit.text("rule").partition("-")

    def changed(schema: Schema) -> Schema:
        if not place.isdecimal():
            raise InputError("there is no such rule.")
        at = int(place)
        if kind == "constraint":
            rules = schema.constraints
            return replace(schema, constraints=(*rules[:at], *rules[at + 1 :]))
        combinations = schema.impossible
        return replace(schema, impossible=(*combinations[:at], *combinations[at + 1 :]))

    return _change(visit, changed, {}, anchor="rules-h")


def save_text(visit: Visit) -> Response:
    """Save the file as it was typed."""
    text = str(visit.form.get("text", "")).replace("\r\n", "\n")
    place = visit.here
    if place.schema.is_file() and visit.text("version") != _version(_text(place)):
        return visit.go("schema", said="changed")
    try:
        Schema.from_toml(text)
    except SchemaError as error:
        return show(visit, status=422, errors={"text": sentence(error)}, given={"text": text})
    write_text(place.schema, text, "the schema")
    return visit.go("schema", said="saved")


def check(visit: Visit) -> Response:
    """Have the private table checked against the schema."""
    project = visit.here.project()
    if project.private is None:
        return show(visit, status=422, errors={"": "Name the private table first (step 1)."})
    Jobs(visit.here).start("check", visit.person.name, private=project.private)
    return visit.go("schema", anchor="check-h")


def download(visit: Visit) -> Response:
    """The schema file."""
    return attached(_text(visit.here), "schema.toml", "application/toml")


def words_of(column: Column) -> str:
    """The declaration of a column, in a few words."""
    if isinstance(column, BinnedColumn):
        low, high = column.code_labels()[0], column.code_labels()[column.declared - 1]
        span = f"{low}" if column.declared == 1 else f"{_first(low)} to {_last(high)}"
        return f"{count_of(column.declared, 'bin')}, {span}"
    labels = [str(label) for label in column.code_labels()[: column.declared]]
    return f"{count_of(len(labels), 'label')}: {shortened(', '.join(labels), 64)}"


def _first(label: object) -> str:
    return str(label).strip("[]()").split("–")[0].split(",")[0]


def _last(label: object) -> str:
    return str(label).strip("[]()").split("–")[-1].split(",")[-1].strip()


def _change(
    visit: Visit, changed: Callable[[Schema], Schema], about: dict[str, Any], *, field: str = "", **after: Any
) -> Response:
    """Change the schema file; a form that was filled in for an older one changes nothing."""
    place = visit.here
    text, schema, _ = _read(place)
    if schema is None:
        return show(visit, status=422, errors={"": "There is no schema yet, or it cannot be read."})
    if visit.text("version") != _version(text):
        return visit.go("schema", said="changed")
    try:
        made = changed(schema)
    except FieldError as error:
        return show(visit, status=422, errors=error.errors, **about)
    except SchemaError as error:
        return show(visit, status=422, errors={error.key or field or "": sentence(error)}, **about)
    except InputError as error:
        return show(visit, status=422, errors={field: sentence(error)}, **about)
    write_text(place.schema, rewritten(text, made), "the schema")
    return visit.go("schema", said="saved", **after)


def _read(place: Place) -> tuple[str, Schema | None, str]:
    """The file's text, the schema that it declares, and what is wrong with it if it declares none."""
    text = _text(place)
    if not text:
        return "", None, ""
    try:
        return text, Schema.from_toml(text), ""
    except SchemaError as error:
        return text, None, sentence(error)


def _text(place: Place) -> str:
    return place.schema.read_text(encoding="utf-8", errors="replace") if place.schema.is_file() else ""


def _version(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _pairs(visit: Visit, name: str) -> list[tuple[str, list[str]]]:
    """Lines such as ``married = yes, no``."""
    found = []
    for line in visit.lines(name):
        left, equals, right = line.partition("=")
        if not equals:
            raise FieldError({name: "Write a name, then =, then labels, one line each."})
        found.append((left.strip(), [one.strip() for one in right.split(",") if one.strip()]))
    return found


def _rules(schema: Schema) -> list[tuple[str, str]]:
    """Each rule's name in forms, and its words."""
    found = [(f"constraint-{place}", _told(one.said())) for place, one in enumerate(schema.constraints)]
    return found + [
        (f"impossible-{place}", f"never together: {_never(one)}")
        for place, one in enumerate(schema.impossible)
    ]


def _told(said: dict[str, Any]) -> str:
    if "order" in said:
        return " ≤ ".join(said["order"])
    if "sum" in said:
        return f"{' + '.join(said['sum'])} = {said['total']}"
    mapped = ", ".join(f"{label} → {wanted}" for label, wanted in said["map"][:4])
    return f"{said['column']} determines {said['determines']}: {mapped}{' …' if len(said['map']) > 4 else ''}"


def _never(one: Combination) -> str:
    parts = zip(one.attrs, one.values, strict=True)
    return " and ".join(f"{attr} = {shortened(', '.join(map(str, labels)), 40)}" for attr, labels in parts)


def _misfits(checking: Any, schema: Schema | None) -> dict[str, Any] | None:
    """The findings of the last check; None where it failed, or is under way."""
    result = None if checking is None or not checking.is_over else checking.result()
    if result is None or schema is None:
        return None
    return {
        "is_current": result["schema"] == schema.fingerprint,
        "fatal": [one["problem"] for one in result["misfits"] if one["fatal"]],
        "others": [one["problem"] for one in result["misfits"] if not one["fatal"]],
        "when": checking.request.when,
    }
