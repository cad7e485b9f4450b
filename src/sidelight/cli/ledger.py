"""``sidelight ledger``: make a promise once, see what was spent, verify that nothing was changed."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidelight.cli import ledger_places
from sidelight.cli._shared import Json, talk, tell, tell_json, tell_table
from sidelight.cli.ledger_places import Where

if TYPE_CHECKING:
    from sidelight.privacy.chained_ledger import Ledger
    from sidelight.privacy.policy import Policy
    from sidelight.privacy.runs import RunSummary

app = typer.Typer(
    help="A ledger holds the promise (ε, δ) about one table, and everything ever spent of it.",
    no_args_is_help=True,
)
_BAR = 20
"""Characters of a bar that shows the whole budget."""


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
    policy: Annotated[
        Path | None,
        typer.Option(help="A policy (TOML): what runs may spend, by which mechanisms, approved by whom."),
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
    rules = None if policy is None else _read_policy(policy)
    ledger = SqlLedger.create(where, promise, policy=rules)
    if as_json:
        tell_json({"ledger": source_name(where), "promise": promise.as_json(), "head": ledger.head})
        return
    talk(f"opened {source_name(where)}: ε = {epsilon:g} at δ = {delta:g}, {promise.protects}.")
    for rule in () if rules is None else rules.sentences():
        talk(f"policy: {rule}.")


@app.command(
    epilog="Example: sidelight ledger show people.ledger",
    short_help="Show what was promised, spent, and is left.",
)
def show(
    where: Where,
    events: Annotated[bool, typer.Option("--events", help="Also list every single payment.")] = False,
    svg: Annotated[
        Path | None, typer.Option(help="Also draw how the budget was used up over time, into this file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what was promised, what was spent, and what is left, run by run.

    A run that is open was interrupted, or is still at work; until it is closed, everything it was allotted is
    set aside. An answer that a crash lost was paid for a second time, and the run says so.
    """
    from sidelight.privacy.promise import USED
    from sidelight.privacy.sql_ledger import open_ledger
    from sidelight.privacy.statement import Statement

    ledger = open_ledger(where)
    statement = Statement.of(ledger)
    facts = statement.as_json()
    if events:
        facts["events"] = [event.as_json() for event in ledger.events()]
    if svg is not None:
        _draw(ledger, svg)
    if as_json:
        tell_json(facts)
        return
    tell(f"{facts['name']}: promised ε = {facts['epsilon']:g} at δ = {facts['delta']:g} ({facts['unit']})")
    if facts["person"] is not None:
        tell(f"people one person is all records of one {facts['person']}; {USED}")
    used = f"ε = {facts['epsilon_spent']:.4g}, {statement.share_spent:.1%} of the budget"
    if statement.open_runs:
        used = f"ε = {facts['epsilon_paid']:.4g}; with what open runs have set aside, {used}"
    tell(f"spent  {used}")
    tell(f"means  {facts['meaning']}")
    tell(f"left   {statement.left}")
    tell(f"head   {facts['head']}")
    for rule in () if statement.policy is None else statement.policy.sentences():
        tell(f"policy {rule}")
    for run, share, epsilon in statement.after_each:
        tell(_bar(run, share, epsilon))
        for line in _lines(run):
            tell(f"  {line}")
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
    release: Annotated[
        list[Path] | None,
        typer.Option(
            "--release", help="A release folder; the ledger must contain the head on its card. Repeat it."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check every line's hash and every sum; fail if a line was changed or is missing."""
    from sidelight.privacy.sql_ledger import open_ledger
    from sidelight.releases.release import Release

    ledger = open_ledger(where)
    for seen in [head, *(Release.load(folder).card.ledger.head for folder in release or [])]:
        ledger.verify(head=seen)
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


@app.command(
    epilog="Example: sidelight ledger policy people.ledger policy.toml",
    short_help="Show, set or withdraw what runs are allowed.",
)
def policy(
    where: Where,
    file: Annotated[Path | None, typer.Argument(help="A policy (TOML) that holds from now on.")] = None,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="From now on the promise alone decides.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a ledger's policy, set another, or withdraw it. A change is a line of the ledger, like a spending.

    A policy limits what one run, one month and one project may spend, names the mechanisms that are allowed,
    and says who must approve. A run that it does not allow is refused, with exit code 3, before anything is
    read or charged.
    """
    from sidelight.errors import SettingError
    from sidelight.privacy.sql_ledger import open_ledger
    from sidelight.sources import source_name

    if file is not None and withdraw:
        raise SettingError("name a policy, or --withdraw the one there is: one of them.")
    rules = None if file is None else _read_policy(file)
    ledger = open_ledger(where)
    if rules is not None or withdraw:
        ledger.set_policy(rules)
    rules = ledger.policy
    if as_json:
        tell_json({"policy": None if rules is None else rules.as_json(), "head": ledger.head})
        return
    if file is not None or withdraw:
        done = "was withdrawn from" if withdraw else "was set; it holds from now on in"
        talk(f"the policy {done} {source_name(where)}.")
    for rule in ["none: the promise alone decides"] if rules is None else rules.sentences():
        tell(rule)


def _read_policy(path: Path) -> "Policy":
    """The policy in a file; mechanisms that nobody knows are refused, since they are slips of the pen."""
    from sidelight._check import listed
    from sidelight.errors import SettingError
    from sidelight.mechanisms.registry import names
    from sidelight.privacy.policy import OTHER_WAYS, Policy

    rules, known = Policy.read(path), (*names(), *OTHER_WAYS)
    unknown = [name for name in rules.mechanisms or () if name not in known]
    if unknown:
        raise SettingError(
            f"allow.mechanisms in {path} names {listed(map(repr, unknown))}; there are {listed(known)}."
        )
    return rules


app.command(epilog="Example: sidelight ledger move people.ledger postgresql://owner@db/ledgers#people")(
    ledger_places.move
)
app.command(epilog="Example: sidelight ledger compare people.ledger postgresql://owner@db/ledgers#people")(
    ledger_places.compare
)
app.command(epilog="Example: sidelight ledger backup people.ledger people.backup")(ledger_places.backup)
app.command(
    epilog="Example: sidelight ledger restore people.backup people.ledger --release out-2026q3 --yes",
    short_help="Make a new ledger out of a backup.",
)(ledger_places.restore)


@app.command(
    epilog="Example: sidelight ledger together people-2025.ledger people-2026.ledger",
    short_help="Add up what somebody loses who is in several tables.",
)
def together(
    where: Annotated[list[str], typer.Argument(help="The ledgers of tables that share people.")],
    as_json: Json = False,
) -> None:
    """Add up what somebody loses whose records are in the tables of several ledgers.

    A table that is made anew each period has a ledger for each. Somebody who stays from one period to the
    next is in several tables, and what was spent on all of them composes for that person.
    """
    from dataclasses import asdict

    from sidelight.privacy.sql_ledger import open_ledger
    from sidelight.privacy.together import together as composed

    found = composed([open_ledger(one) for one in where])
    if as_json:
        tell_json(asdict(found))
        return
    for name, spent in zip(found.names, found.apart, strict=True):
        tell(f"{name}: ε = {spent:.4g} spent")
    tell(found.sentence)


def _draw(ledger: "Ledger", path: Path) -> None:
    """The ledger's story, as a picture."""
    from sidelight._files import write_text
    from sidelight.errors import SettingError
    from sidelight.releases.history import history_of
    from sidelight.reports.story import story

    past = history_of(ledger)
    if not past:
        raise SettingError("nothing was spent yet, so there is nothing to draw; leave out --svg.")
    write_text(path, story("story", past, is_alone=True) + "\n", "the picture")


def _bar(run: "RunSummary", share: float, epsilon: float) -> str:
    """How much of the budget was used after a run, as a bar and as ε."""
    filled = round(_BAR * share)
    bar = "█" * filled + "░" * (_BAR - filled)
    return f"{run.when[:16].replace('T', ' ')}  {bar} {share:4.0%}  ε = {epsilon:.3g}  {run.label}"


def _lines(run: "RunSummary") -> Iterator[str]:
    """A run in short lines: its id and whether it is open, what it paid, and for whom."""
    from sidelight._check import count_of
    from sidelight.privacy.budget import Rho

    yield f"run {run.id} ({'open: interrupted, or still at work' if run.is_open else 'closed'})"
    currency = "ρ" if isinstance(run.allotment, Rho) else "ε"
    again = f", {run.repeats:,} for answers that a crash had lost" if run.repeats else ""
    yield (
        f"paid {currency} = {float(run.spent):.4g} of {float(run.allotment):.4g}, in "
        f"{count_of(run.events, 'payment')}{again}"
    )
    if run.purpose.project is not None:
        yield f"for the project {run.purpose.project}"
    if run.approval is not None and run.approval.asked_by:
        yield f"asked for by {run.approval.asked_by}"
    if run.purpose.approved_by:
        yield f"approved by {', '.join(run.purpose.approved_by)}"
