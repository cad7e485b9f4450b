"""``sidelight release``: spend budget once, write a release that anyone may see."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli._shared import (
    Json,
    QualityShare,
    Quiet,
    SchemaFile,
    Settings,
    one_or_all,
    parse_settings,
    talk,
    tell_json,
)
from sidelight.cli.plan import describe
from sidelight.errors import ReleaseError, UnsavedError

if TYPE_CHECKING:
    from sidelight.privacy.ledger import Ledger


def release(
    table: Annotated[
        str, typer.Argument(help="The private table: CSV, Parquet, a glob, or postgresql://…#table.")
    ],
    schema: SchemaFile,
    ledger: Annotated[str, typer.Option(help="Where this table's spending is kept: a file or database URL.")],
    epsilon: Annotated[float, typer.Option(help="What to spend, at the ledger's δ.")],
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("release"),
    public: Annotated[
        list[str] | None,
        typer.Option(help="A public table of the same schema, or a prior; repeat for several tables."),
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="Which; mwem unless said, aperture where public data is given.")
    ] = None,
    workload: Annotated[str, typer.Option(help="Such as '3-way', 'cuboids', or a file.")] = "3-way",
    quality_share: QualityShare = 0.02,
    settings: Settings = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder of the journal; beside the release unless said.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan only.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Spend privacy budget once; write a release that anyone may see.

    Example: sidelight release people.csv --schema people.toml --ledger people.ledger --epsilon 0.5 --out out

    Interrupted, or out of disk? Repeat the same command: it resumes, and pays nothing twice.
    """
    from sidelight._files import check_room_for, named
    from sidelight.curator.journal import Journal
    from sidelight.data.leak_guard import refuse_same
    from sidelight.privacy.sql_ledger import open_ledger
    from sidelight.progress import progress_of
    from sidelight.releases import run as front_door
    from sidelight.releases.plan import Plan

    refuse_same(table, public)
    book = open_ledger(ledger)
    plan = Plan.of(
        schema=schema, epsilon=epsilon, delta=None, mechanism=mechanism,
        workload=workload, public=one_or_all(public), ledger=book,
        quality_share=quality_share, settings=parse_settings(settings),
    )  # fmt: skip
    if dry_run:
        facts = plan.as_json()
        facts["affordable"] = book.can_pay(plan.allotment)
        tell_json(facts) if as_json else talk(describe(facts))
        return
    named(out, "the release")
    journal = checkpoint if checkpoint is not None else out.with_name(out.name + ".checkpoint")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        card = _finished(out, journal, book) if checkpoint is None else None
        if card is not None:
            Journal.remove(journal)
            if as_json:
                tell_json({"out": str(out), "card": card})
            elif not quiet:
                talk(f"{out} had been written already, whole; nothing more was spent.")
            return
        raise ReleaseError(
            f"{out} already exists and is not empty; name a new folder with --out. Nothing was read."
        )
    check_room_for(out, "the release")
    made = front_door.run(plan, table, ledger=book, checkpoint=journal, progress=progress_of(not quiet))
    try:
        made.save(out)
    except ReleaseError as error:
        raise UnsavedError(
            f"{error} Nothing is lost: all that was paid for is kept in {journal}. Make room and repeat "
            "the same command; it pays nothing again."
        ) from error
    if checkpoint is None:
        Journal.remove(journal)
    if as_json:
        tell_json({"out": str(out), "card": made.card})
    elif not quiet:
        if made.quality is not None:
            talk(f"{made.quality.sentence}.")
        talk(f"wrote {out}: {plan.mechanism.name}, ε = {made.card['epsilon_spent']:.4g} spent.")
        if "paid_again" in made.card:
            talk(_said_of_repeats(made.card["paid_again"]["events"]))
        talk(f"next: sidelight answer {out} {plan.domain.attrs[0]}")


def _said_of_repeats(events: int) -> str:
    draws = "One answer was" if events == 1 else f"{events} answers were"
    return (
        f"{draws} drawn more than once, since a crash lost them or this checkpoint is a copy: every draw was "
        "paid for, and is in the ε above."
    )


def _finished(out: Path, journal: Path, ledger: "Ledger") -> dict[str, Any] | None:
    """The card of this command's own release, where its process died between writing and tidying up."""
    from sidelight.curator.journal import Journal
    from sidelight.releases.release import Release

    if not journal.is_dir() or not (out / "release.json").is_file():
        return None
    card = Release.load(out).card
    run = str(card.get("ledger", {}).get("run", ""))
    # The journal goes before its folder does.
    is_own = Journal.run_in(journal) == run or not any(journal.iterdir())
    return card if is_own and ledger.knows(run) else None
