"""Step 3: what is promised about the people in the table, once and for ever."""

from dataclasses import replace
from typing import Any

from starlette.responses import Response

from sidelight._files import write_text
from sidelight.data.schema import Schema
from sidelight.data.schema_edit import rewritten
from sidelight.errors import LedgerError, PrivacyWarning, SidelightError
from sidelight.privacy.budget import Budget
from sidelight.privacy.meaning import Meaning
from sidelight.privacy.promise import Promise, agreed_unit, delta_for
from sidelight.privacy.sql_ledger import SqlLedger, open_ledger
from sidelight.privacy.statement import Statement
from sidelight.privacy.unit import Unit
from sidelight.sources import shown_name
from sidelight.studio import figures
from sidelight.studio.quiet import quietly
from sidelight.studio.visit import FieldError, Visit, number_in, sentence

_SHOWN = (0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
"""ε whose meaning the page lists."""


def show(visit: Visit, status: int = 200, **about: Any) -> Response:
    """The promise that was made; or what one would mean."""
    project = visit.here.project()
    if project.ledger is not None:
        return _made(visit, status, project.ledger, about)
    schema = Schema.read(visit.here.schema) if visit.here.schema.is_file() else None
    delta = 1e-9 if project.records is None else delta_for(project.records)
    given = about.get("given", {})
    epsilon = number_in(given.get("epsilon") or visit.query.get("epsilon") or "1") or 1.0
    delta = number_in(given.get("delta") or visit.query.get("delta") or "") or delta
    unit = _unit(schema, given.get("relation") or visit.query.get("relation") or "")
    return visit.page(
        "promise.html.j2",
        status=status,
        schema=schema,
        epsilon=f"{epsilon:g}",
        delta=f"{delta:g}",
        relation=unit.relation,
        unit=unit,
        rows=_rows(epsilon, delta),
        meaning=_meaning(epsilon, delta).sentence(unit),
        curve=_curve(epsilon, delta),
        doubts=_doubts(epsilon, delta, unit, project.title),
        suggested=None if project.records is None else delta_for(project.records),
        **about,
    )


def make(visit: Visit) -> Response:
    """Open the ledger with its promise."""
    given = {name: visit.text(name) for name in ("epsilon", "delta", "relation", "name")}
    if visit.text("do") == "look":
        return visit.go("promise", **{name: given[name] for name in ("epsilon", "delta", "relation")})
    try:
        promise = _promise(visit, given)
    except FieldError as error:
        return show(visit, status=422, errors=error.errors, given=given)
    ledger = visit.here.ledger("people.ledger")
    try:
        with quietly(PrivacyWarning):  # its doubts were shown, and confirmed
            SqlLedger.create(visit.here.resolved(ledger), promise)
    except LedgerError as error:
        return show(visit, status=422, errors={"": sentence(error)}, given=given)
    _declare(visit, promise.unit)
    visit.here.save(replace(visit.here.project(), ledger=ledger))
    return visit.go("promise", said="promised")


def use(visit: Visit) -> Response:
    """Take a ledger that is there already."""
    said = visit.text("ledger")
    try:
        ledger = visit.here.ledger(said)
        book = open_ledger(visit.here.resolved(ledger))
        if visit.here.schema.is_file():
            agreed_unit(declared=Schema.read(visit.here.schema).declared_unit, promise=book.promise)
    except SidelightError as error:
        return show(visit, status=422, errors={"ledger": sentence(error)}, given={"ledger": said})
    visit.here.save(replace(visit.here.project(), ledger=ledger))
    return visit.go("promise", said="saved")


def _made(visit: Visit, status: int, ledger: str, about: dict[str, Any]) -> Response:
    book = open_ledger(visit.here.resolved(ledger))
    return visit.page("promised.html.j2", status=status, statement=Statement.of(book), **about)


def _promise(visit: Visit, given: dict[str, str]) -> Promise:
    """The promise that a form makes, if every field of it can be, and every box is ticked."""
    errors: dict[str, str] = {}
    epsilon, delta = number_in(given["epsilon"]), number_in(given["delta"])
    if epsilon is None or epsilon <= 0:
        errors["epsilon"] = "Give a number above 0, such as 1."
    if delta is None or not 0 <= delta < 1:
        errors["delta"] = "Give a small probability, such as 1e-9; or 0."
    if not given["name"] or len(given["name"]) > 100 or not given["name"].isprintable():
        errors["name"] = "Give the table a name of 1 to 100 characters; it stands on every release."
    schema = Schema.read(visit.here.schema) if visit.here.schema.is_file() else None
    unit = _unit(schema, given["relation"])
    if not errors:
        assert epsilon is not None  # as there is no error
        assert delta is not None
        promise = Promise(Budget(epsilon=epsilon, delta=delta), unit, given["name"])
        if shown_name(given["name"]) != given["name"]:
            errors["name"] = "That looks like an address. Name the table in plain words."
        if promise.doubts and not visit.ticked("doubts"):
            errors["doubts"] = "Tick this too, if you mean it."
        if (epsilon, delta, given["relation"]) != _said(visit):
            errors["confirm"] = (
                "You changed the promise. Read the sentence again, as it is now, and tick the box."
            )
        elif not visit.ticked("confirm"):
            errors["confirm"] = "Read the promise, and tick the box to make it."
        if not errors:
            return promise
    raise FieldError(errors)


def _said(visit: Visit) -> tuple[float | None, float | None, str]:
    """The facts in the sentence that was confirmed."""
    return (
        number_in(visit.text("said_epsilon")),
        number_in(visit.text("said_delta")),
        visit.text("said_relation"),
    )


def _declare(visit: Visit, unit: Unit) -> None:
    """Write the unit into the schema, too, so that both say the same."""
    path = visit.here.schema
    if path.is_file():
        text = path.read_text(encoding="utf-8")
        schema = replace(Schema.from_toml(text), unit=unit)
        write_text(path, rewritten(text, schema), "the schema")


def _unit(schema: Schema | None, relation: str) -> Unit:
    """The schema's unit, with the relation that was chosen."""
    declared = Unit() if schema is None else schema.unit
    if relation == "replace" or relation == "add-or-remove":
        return replace(declared, relation=relation)  # type: ignore[arg-type]  # mypy does not narrow text
    return declared


def _meaning(epsilon: float, delta: float) -> Meaning:
    budget = Budget(epsilon=max(epsilon, 1e-6), delta=min(max(delta, 0.0), 0.5))
    return Meaning.of(budget.pure() if budget.is_pure else budget.rho())


def _rows(epsilon: float, delta: float) -> list[tuple[str, float, float, bool]]:
    """ε, how many are found, how sure an accusation is, and whether it is the chosen one."""
    listed = sorted({*_SHOWN, epsilon})
    found = [(one, _meaning(one, delta)) for one in listed]
    return [(f"{one:g}", meaning.caught, meaning.posterior, one == epsilon) for one, meaning in found]


def _curve(epsilon: float, delta: float) -> str:
    points = [round(10 ** (step / 10 - 1), 4) for step in range(21)]
    found = [(one, _meaning(one, delta).caught) for one in points]
    return figures.meaning_curve("meaning", found, (epsilon, _meaning(epsilon, delta).caught))


def _doubts(epsilon: float, delta: float, unit: Unit, name: str) -> tuple[str, ...]:
    if epsilon <= 0 or not 0 <= delta < 1:
        return ()
    return Promise(Budget(epsilon=epsilon, delta=delta), unit, name).doubts
