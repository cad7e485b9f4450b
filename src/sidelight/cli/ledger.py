"""``sidelight ledger``: make a promise once, see what was spent, verify that nothing was changed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli._shared import Json, talk, tell, tell_json, tell_table

if TYPE_CHECKING:
    from sidelight.privacy.ledger import Ledger

app = typer.Typer(help="A table's promise (ε, δ), and all that was ever spent of it.", no_args_is_help=True)
Where = Annotated[str, typer.Argument(help="A ledger file, or a database URL.")]


@app.command("open", epilog="Example: sidelight ledger open people.ledger --epsilon 1 --delta 1e-9")
def open_(
    where: Where,
    epsilon: Annotated[float, typer.Option(help="ε promised for everything that will ever be released.")],
    delta: Annotated[float, typer.Option(help="δ promised; 0 for pure mechanisms only.")],
    unit: Annotated[
        str, typer.Option(help="What one person can change: replace or add-or-remove.")
    ] = "replace",
    records: Annotated[int, typer.Option(help="How many records one person may have.")] = 1,
    name: Annotated[
        str | None, typer.Option(help="Name of the table; the file's, or what follows #, unless said.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Open a ledger with its promise. The promise can never be changed."""
    from sidelight.privacy.budget import Budget
    from sidelight.privacy.promise import Promise
    from sidelight.privacy.sql_ledger import SqlLedger
    from sidelight.privacy.unit import Unit
    from sidelight.sources import ledger_name, source_name

    protects = Unit(unit, records)  # type: ignore[arg-type]  # checked by Unit itself
    promise = Promise(Budget(epsilon=epsilon, delta=delta), protects, name or ledger_name(where))
    ledger = SqlLedger.create(where, promise)
    if as_json:
        tell_json({"ledger": source_name(where), "promise": promise.as_json(), "head": ledger.head})
        return
    talk(f"opened {source_name(where)}: ε = {epsilon:g} at δ = {delta:g}, {protects.describe()}.")


@app.command(epilog="Example: sidelight ledger show people.ledger")
def show(
    where: Where,
    events: Annotated[bool, typer.Option("--events", help="List every single spending.")] = False,
    as_json: Json = False,
) -> None:
    """Show what was promised, spent and is left, run by run.

    An open run was interrupted, or is at work: it holds all that it was allotted. `again` counts answers that
    were paid for twice, since a crash lost the first.
    """
    from sidelight.privacy.sql_ledger import open_ledger

    ledger = open_ledger(where)
    facts: dict[str, Any] = {
        "name": ledger.promise.shown,
        "epsilon": ledger.promise.budget.epsilon,
        "delta": ledger.promise.budget.delta,
        "unit": ledger.promise.unit.relation,
        "records": ledger.promise.unit.records,
        "capacity": float(ledger.promise.budget.capacity),
        "spent": float(ledger.spent),
        "left": float(ledger.left),
        "epsilon_spent": ledger.promise.budget.epsilon_of(ledger.tally),
        "head": ledger.head,
        "runs": [run.as_json() for run in ledger.runs()],
    }
    if events:
        facts["events"] = [event.as_json() for event in ledger.events()]
    if as_json:
        tell_json(facts)
        return
    tell(f"{facts['name']}: promised ε = {facts['epsilon']:g} at δ = {facts['delta']:g} ({facts['unit']})")
    tell(f"spent  ε = {facts['epsilon_spent']:.4g}, {facts['spent'] / facts['capacity']:.1%} of the budget")
    tell(f"left   {_left(ledger)}")
    tell(f"head   {facts['head']}")
    if facts["runs"]:
        columns = list(facts["runs"][0])
        tell_table("runs", columns, [[_small(value) for value in run.values()] for run in facts["runs"]])
    if events:
        rows = [[e["event"], e["what"], next(iter(e["cost"].values()))] for e in facts["events"]]
        tell_table("events", ["event", "what", "cost"], rows)


@app.command(epilog="Example: sidelight ledger verify people.ledger --head 3f2a…")
def verify(
    where: Where,
    head: Annotated[
        str | None, typer.Option(help="A head noted earlier (on a release card) that must still be there.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check every line's hash and every sum; fail if anything was changed."""
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
    run: Annotated[str, typer.Argument(help="A run that died, as `ledger show` names it.")],
    as_json: Json = False,
) -> None:
    """Close a run that will never be resumed: what it did not spend goes back to the budget."""
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
    table: Annotated[str, typer.Argument(help="The ledger's own table, as it is now.")],
    schema: Annotated[
        Path | None, typer.Option("--schema", help="Also know the table's records under this schema (TOML).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell a ledger that its table was corrected or continued. Nothing of the budget comes back.

    A ledger keeps the spending of one table, and refuses another. It knows its own by a keyed digest, so
    that a table with one changed record is another one until you say that it is not. Say so only if it is
    about the same people.
    """
    from sidelight.data.fingerprint import marks_of, marks_of_source
    from sidelight.data.schema import Schema
    from sidelight.data.table import Table
    from sidelight.errors import DataError
    from sidelight.privacy.sql_ledger import open_ledger
    from sidelight.sources import source_name

    ledger = open_ledger(where)
    if schema is None:
        marks = marks_of_source(table, ledger.key)
    else:
        marks = marks_of(Table.read(table, Schema.read(schema)), table, ledger.key)
    if not marks:
        raise DataError(f"there is no file {source_name(table)!r}.")
    ledger.rebind(marks)
    if as_json:
        tell_json({"ledger": source_name(where), "table": source_name(table), "head": ledger.head})
    else:
        talk(f"{source_name(where)} now keeps the spending of {source_name(table)} as it is.")


def _left(ledger: "Ledger") -> str:
    """What one more release may ask for, and which runs hold budget back."""
    from sidelight.privacy.budget import Epsilon, Rho

    budget = ledger.promise.budget
    most = budget.largest(Epsilon if budget.is_pure else Rho, ledger.tally)
    said = f"at most ε = {most:g} for one more release" if most else "nothing"
    is_open = [run.id for run in ledger.runs() if run.is_open]
    if is_open:
        said += f", beside what {', '.join(is_open)} set aside (resume it, or `sidelight ledger close`)"
    return said


def _small(value: Any) -> Any:
    """Costs are often below a tenth: show their digits, not 0.0."""
    return f"{value:.4g}" if isinstance(value, float) else value
