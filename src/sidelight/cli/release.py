"""``sidelight release``: spend budget once, write a release that anyone may see."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidelight.cli._shared import (
    Json,
    MechanismName,
    PublicData,
    QualityShare,
    Quiet,
    SchemaFile,
    Settings,
    WorkloadName,
    one_or_all,
    parse_settings,
    talk,
    tell_json,
)
from sidelight.cli.plan import describe
from sidelight.errors import ReleaseError, UnsavedError

if TYPE_CHECKING:
    from sidelight.privacy.ledger import Ledger
    from sidelight.releases.card import Card


def release(
    table: Annotated[
        str,
        typer.Argument(
            help="The private table: a CSV or Parquet file, a pattern such as 'parts/*.parquet', or "
            "postgresql://…#table."
        ),
    ],
    schema: SchemaFile,
    ledger: Annotated[
        str, typer.Option(help="The table's ledger, a file or a database URL; see `ledger open`.")
    ],
    epsilon: Annotated[float, typer.Option(help="ε that this release spends, counted at the ledger's δ.")],
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("release"),
    public: PublicData = None,
    mechanism: MechanismName = None,
    workload: WorkloadName = "3-way",
    quality_share: QualityShare = 0.02,
    settings: Settings = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the journal that an interrupted run resumes from. Default: beside --out, and "
            "removed at the end."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, as `plan` does, and stop.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Go on where the ledger knows the table under another schema only.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Spend privacy budget once, and write a release that anyone may see.

    Example: sidelight release people.csv --schema people.toml --ledger people.ledger --epsilon 0.5 --out out

    If the run is interrupted, or the disk is full, repeat the same command: it resumes, and pays nothing
    twice.
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
        facts = plan.as_json() | {"meaning": plan.meaning}
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
                tell_json({"out": str(out), "card": card.as_json()})
            elif not quiet:
                talk(f"{out} was already complete; nothing more was spent.")
            return
        raise ReleaseError(
            f"{out} already exists and is not empty; name a new folder with --out. Nothing was read."
        )
    check_room_for(out, "the release")
    made = front_door.run(
        plan, table, ledger=book, checkpoint=journal, progress=progress_of(not quiet), is_confirmed=yes
    )
    try:
        made.save(out)
    except ReleaseError as error:
        raise UnsavedError(
            f"{error} Nothing is lost: everything that was paid for is kept in {journal}. Make room, and "
            "repeat the same command; it pays nothing again."
        ) from error
    if checkpoint is None:
        Journal.remove(journal)
    if as_json:
        tell_json({"out": str(out), "card": made.card.as_json()})
    elif not quiet:
        if made.quality is not None:
            talk(f"{made.quality.sentence}.")
        talk(f"wrote {out}: {plan.mechanism.name}, ε = {made.card.epsilon_spent:.4g} spent.")
        if made.card.paid_again is not None:
            talk(_said_of_repeats(made.card.paid_again.events))
        for sentence in made.card.unmeasured.sentences if made.card.unmeasured is not None else ():
            talk(sentence)
        talk(f"next: sidelight answer {out} {plan.domain.attrs[0]}")


def _said_of_repeats(events: int) -> str:
    draws = "One answer was" if events == 1 else f"{events} answers were"
    return (
        f"{draws} drawn more than once, because of a crash or because this checkpoint is a copy. Every draw "
        "was paid for, and is counted in the ε above."
    )


def _finished(out: Path, journal: Path, ledger: "Ledger") -> "Card | None":
    """The card in ``out``, if this command wrote it earlier and died before it could remove the journal."""
    from sidelight.curator.journal import Journal
    from sidelight.releases.release import Release

    if not journal.is_dir() or not (out / "release.json").is_file():
        return None
    card = Release.load(out).card
    run = card.ledger.run
    # An empty folder means that the journal was removed, but its folder was not yet.
    is_own = Journal.run_in(journal) == run or not any(journal.iterdir())
    return card if is_own and ledger.knows(run) else None
