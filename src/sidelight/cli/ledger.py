"""``sidelight ledger``: make a promise once, see what was spent, verify that nothing was changed."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli._shared import Json, talk, tell, tell_json, tell_table

if TYPE_CHECKING:
    from sidelight.privacy.ledger import Ledger

app = typer.Typer(
    help="A ledger holds the promise (ε, δ) about one table, and everything ever spent of it.",
    no_args_is_help=True,
)
_BAR = 30
"""Characters of a bar that shows the whole budget."""
_USED = "each release uses as many records of a person as its schema says"
Where = Annotated[str, typer.Argument(help="A ledger file, or a database URL.")]


@app.command("open", epilog="Example: sidelight ledger open people.ledger --epsilon 1 --delta 1e-9")
def open_(
    where: Where,
    epsilon: Annotated[float, typer.Option(help="ε promised for all releases from this table together.")],
    delta: Annotated[
        float,
        typer.Option(help="δ promised, well below 1/n, such as 1e-9; 0 allows only pure-ε mechanisms."),
    ],
    unit: Annotated[
        str,
        typer.Option(
            help="What one person can change: 'replace' (a record's values; the number of records is public) "
            "or 'add-or-remove' (also whether the record is there)."
        ),
    ] = "replace",
    records: Annotated[int, typer.Option(help="How many records one person may have, at most.")] = 1,
    person: Annotated[
        str | None,
        typer.Option(
            help="The column that says who each record is about. Each release then uses at most as many "
            "records of a person as its schema says."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the table. Default: the file's name, or the text after # in an address."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Make the promise even where it protects little (ε > 10, δ > 1e-5).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Open a ledger with its promise. The promise can never be changed afterwards."""
    from sidelight.errors import SettingError
    from sidelight.privacy.budget import Budget
    from sidelight.privacy.promise import Promise
    from sidelight.privacy.sql_ledger import SqlLedger
    from sidelight.privacy.unit import Unit
    from sidelight.sources import ledger_name, source_name

    if person is not None and records != 1:
        raise SettingError(
            "with --person, the schema says how many records of each are used ([unit] records); leave out "
            "--records."
        )
    protects = Unit(unit, records, person)  # type: ignore[arg-type]  # checked by Unit itself
    promise = Promise(Budget(epsilon=epsilon, delta=delta), protects, name or ledger_name(where))
    if promise.doubts and not yes:
        raise SettingError(
            " ".join(promise.doubts) + " A promise can never be changed. If you mean it, repeat the command "
            "with --yes. Nothing was opened."
        )
    ledger = SqlLedger.create(where, promise)
    if as_json:
        tell_json({"ledger": source_name(where), "promise": promise.as_json(), "head": ledger.head})
        return
    said = protects.describe() if person is None else f"{unit} of whoever is one {person}: {_USED}"
    talk(f"opened {source_name(where)}: ε = {epsilon:g} at δ = {delta:g}, {said}.")


@app.command(
    epilog="Example: sidelight ledger show people.ledger",
    short_help="Show what was promised, spent, and is left.",
)
def show(
    where: Where,
    events: Annotated[bool, typer.Option("--events", help="Also list every single payment.")] = False,
    as_json: Json = False,
) -> None:
    """Show what was promised, what was spent, and what is left, run by run.

    A run that is open was interrupted, or is still at work; until it is closed, everything it was allotted is
    set aside. The column `again` counts answers that were paid for a second time because a crash lost the
    first.
    """
    from sidelight.privacy.meaning import Meaning
    from sidelight.privacy.sql_ledger import open_ledger

    ledger = open_ledger(where)
    facts: dict[str, Any] = {
        "name": ledger.promise.shown,
        "epsilon": ledger.promise.budget.epsilon,
        "delta": ledger.promise.budget.delta,
        "unit": ledger.promise.unit.relation,
        "records": ledger.promise.unit.records,
        "person": ledger.promise.unit.person,
        "capacity": float(ledger.promise.budget.capacity),
        "spent": float(ledger.spent),
        "left": float(ledger.left),
        "epsilon_spent": ledger.promise.budget.epsilon_of(ledger.tally),
        "meaning": Meaning.of_tally(ledger.tally).sentence(ledger.promise.unit),
        "head": ledger.head,
        "runs": [run.as_json() for run in ledger.runs()],
    }
    if events:
        facts["events"] = [event.as_json() for event in ledger.events()]
    if as_json:
        tell_json(facts)
        return
    tell(f"{facts['name']}: promised ε = {facts['epsilon']:g} at δ = {facts['delta']:g} ({facts['unit']})")
    if facts["person"] is not None:
        tell(f"people one person is all records of one {facts['person']}; {_USED}")
    tell(f"spent  ε = {facts['epsilon_spent']:.4g}, {facts['spent'] / facts['capacity']:.1%} of the budget")
    tell(f"means  {facts['meaning']}")
    tell(f"left   {_left(ledger)}")
    tell(f"head   {facts['head']}")
    for line in _over_time(ledger):
        tell(line)
    if facts["runs"]:
        columns = list(facts["runs"][0])
        tell_table("runs", columns, [[_small(value) for value in run.values()] for run in facts["runs"]])
    if events:
        rows = [[e["event"], e["what"], next(iter(e["cost"].values()))] for e in facts["events"]]
        tell_table("events", ["event", "what", "cost"], rows)


@app.command(
    epilog="Example: sidelight ledger verify people.ledger --head 3f2a…",
    short_help="Check every line and every sum.",
)
def verify(
    where: Where,
    head: Annotated[
        str | None,
        typer.Option(
            help="A head that you noted earlier, such as a release card's; the ledger must contain it."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check every line's hash and every sum; fail if a line was changed or is missing."""
    from sidelight.privacy.sql_ledger import open_ledger

    ledger = open_ledger(where)
    ledger.verify(head=head)
    if as_json:
        tell_json({"intact": True, "head": ledger.head})
    else:
        tell(f"intact; head {ledger.head}")


@app.command(epilog="Example: sidelight ledger close people.ledger RUN")
def close(
    where: Where,
    run: Annotated[str, typer.Argument(help="The run to close, as `ledger show` names it.")],
    as_json: Json = False,
) -> None:
    """Close a run that will never be resumed. What it did not spend goes back to the budget."""
    from sidelight.privacy.sql_ledger import open_ledger

    ledger = open_ledger(where)
    ledger.close(run)
    if as_json:
        tell_json({"closed": run, "left": float(ledger.left)})
    else:
        talk(f"closed {run}; it can no longer be resumed.")


@app.command(epilog="Example: sidelight ledger rebind people.ledger people.csv --schema people.toml")
def rebind(
    where: Where,
    table: Annotated[str, typer.Argument(help="The table that this ledger is about, as it is now.")],
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            help="Schema file (TOML), so that the same records are also recognised as a data frame.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell a ledger that its table was corrected or extended. No budget comes back.

    A ledger records the spending on one table and refuses every other. It recognises its table by a keyed
    digest, so after a single correction it refuses the table until you rebind it. Rebind only if the table is
    still about the same people.
    """
    from sidelight.data.fingerprint import marks_of, marks_of_source
    from sidelight.data.schema import Schema
    from sidelight.data.table import Table
    from sidelight.errors import DataError
    from sidelight.privacy.promise import agreed_unit
    from sidelight.privacy.sql_ledger import open_ledger
    from sidelight.sources import source_name

    ledger = open_ledger(where)
    if schema is None:
        marks = marks_of_source(table, ledger.key)
    else:
        known = Schema.read(schema)
        unit = agreed_unit(declared=known.declared_unit, promise=ledger.promise)
        read = Table.read(table, known, unit=unit, may_be_empty=not unit.total_is_public)
        marks = marks_of(read, table, ledger.key)
    if not marks:
        raise DataError(f"there is no file {source_name(table)!r}.")
    ledger.rebind(marks)
    if as_json:
        tell_json({"ledger": source_name(where), "table": source_name(table), "head": ledger.head})
    else:
        talk(f"{source_name(where)} now keeps the spending of {source_name(table)} as it is.")


def _left(ledger: "Ledger") -> str:
    """The largest ε that one more release may ask for, and the open runs that hold budget back."""
    from sidelight.privacy.budget import Epsilon, Rho

    budget = ledger.promise.budget
    most = budget.largest(Epsilon if budget.is_pure else Rho, ledger.tally)
    said = f"at most ε = {most:g} for one more release" if most else "nothing"
    is_open = [run.id for run in ledger.runs() if run.is_open]
    if is_open:
        said += f", beside what {', '.join(is_open)} set aside (resume it, or `sidelight ledger close`)"
    return said


def _over_time(ledger: "Ledger") -> Iterator[str]:
    """How much of the budget was used after each run, as bars; an open run uses all that it was allotted."""
    budget = ledger.promise.budget
    used = Fraction(0)
    for run in ledger.runs():
        used += budget.price(run.allotment if run.is_open else run.spent)
        share = min(1.0, float(used / budget.capacity))
        filled = round(_BAR * share)
        bar = "█" * filled + "░" * (_BAR - filled)
        yield f"{run.when[:16].replace('T', ' ')}  {bar} {share:4.0%}  {run.label}"


def _small(value: Any) -> Any:
    """Costs are often below a tenth: four significant digits show more than 0.0."""
    return f"{value:.4g}" if isinstance(value, float) else value
