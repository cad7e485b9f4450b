"""Step 8: everything that was ever spent, and whether the ledger is intact."""

import csv
import io
import json
from typing import Any

from starlette.responses import Response

from sidelight.errors import InputError, LedgerError
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.sql_ledger import open_ledger
from sidelight.privacy.statement import Statement
from sidelight.studio import figures
from sidelight.studio.visit import Visit, attached, sentence

_TELLS = ("run", "label", "began", "open", "events", "again", "allotted", "spent", "currency",
          "asked_by", "approved_by", "digest")  # fmt: skip


def show(visit: Visit, status: int = 200, **about: Any) -> Response:
    """The statement: promised, spent, left, run by run."""
    if visit.here.project().ledger is None:
        return visit.page("ledger.html.j2", status=status, statement=None, **about)
    statement = Statement.of(_ledger(visit))
    budget = statement.promise.budget
    spent = {run.id: budget.epsilon_of(budget.tally(run.spent)) for run in statement.runs}
    return visit.page(
        "ledger.html.j2",
        status=status,
        statement=statement,
        spent=spent,
        picture=figures.timeline("timeline", statement) if statement.runs else "",
        **about,
    )


def verify(visit: Visit) -> Response:
    """Read every line again, and look for a head that somebody noted."""
    head = visit.text("head") or None
    try:
        _ledger(visit).verify(head=head)
    except LedgerError as error:
        return show(visit, status=422, errors={"head": sentence(error)}, given={"head": head or ""})
    return visit.go("ledger", said="intact")


def statement(visit: Visit) -> Response:
    """What ``sidelight ledger show --events --json`` prints."""
    book = _ledger(visit)
    told = Statement.of(book).as_json() | {"events": [event.as_json() for event in book.events()]}
    text = json.dumps(told, ensure_ascii=False, indent=2, default=str)
    return attached(text, "ledger.json", "application/json")


def runs(visit: Visit) -> Response:
    """The runs, for a spreadsheet."""
    made = io.StringIO()
    writer = csv.DictWriter(made, _TELLS, extrasaction="ignore")
    writer.writeheader()
    for run in Statement.of(_ledger(visit)).runs:
        # Names and labels could begin like a formula; see `--safe-cells`.
        told = {
            name: f"'{value}" if str(value)[:1] in "=+-@\t" else value
            for name, value in run.as_json().items()
        }
        writer.writerow(told)
    return attached(made.getvalue(), "runs.csv", "text/csv; charset=utf-8")


def _ledger(visit: Visit) -> Ledger:
    ledger = visit.here.project().ledger
    if ledger is None:
        raise InputError("there is no ledger yet: make the promise first.")
    return open_ledger(visit.here.resolved(ledger))
