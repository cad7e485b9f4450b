"""``sidelight release``: spend budget once, write a release that anyone may see."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight._interrupt import told
from sidelight.cli._shared import (
    AcceptFile,
    ApprovedBy,
    BinsChoice,
    Json,
    MechanismName,
    Project,
    PublicData,
    QualityShare,
    Quiet,
    ReuseFolder,
    SchemaFile,
    Settings,
    WorkloadName,
    one_or_all,
    parse_settings,
    talk,
    tell_json,
)
from sidelight.errors import BudgetExhausted, ReleaseError, SettingError, UnsavedError

if TYPE_CHECKING:
    from sidelight.privacy.approval import Approval
    from sidelight.privacy.chained_ledger import Ledger
    from sidelight.releases.card import Card
    from sidelight.releases.plan import Plan

_UNCHARGED = "This attempt charged nothing: repeat the same command."
_TAKEN = "{} already exists and is not empty; name a new folder with --out."


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
    mechanism: MechanismName = "auto",
    workload: WorkloadName = "3-way",
    quality_share: QualityShare = 0.02,
    accept: AcceptFile = None,
    bins: BinsChoice = "auto",
    settings: Settings = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the journal that an interrupted run resumes from. Default: beside --out, and "
            "removed at the end."
        ),
    ] = None,
    approval: Annotated[
        Path | None,
        typer.Option(
            help="A JSON file that says who asked and who approved: digest (as --dry-run --json prints it), "
            "asked_by, and a list of names. It is written into the ledger; any other plan is refused."
        ),
    ] = None,
    reuse: ReuseFolder = None,
    project: Project = None,
    approved_by: ApprovedBy = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, as `plan` does, and stop.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Go on even if the ledger has seen this table only under another schema."),
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Spend privacy budget once, and write a release that anyone may see.

    Example: sidelight release people.csv --schema people.toml --ledger people.ledger --epsilon 0.5 --out out

    With --accept, a release that does not keep the criteria is written all the same, and the exit code is 4.

    If the run is interrupted, or the disk is full, repeat the same command: it resumes, and pays nothing
    twice.
    """
    with told(_UNCHARGED):
        from sidelight._files import check_room_for, named
        from sidelight.curator.journal import Journal
        from sidelight.data.leak_guard import refuse_same
        from sidelight.privacy.purpose import Purpose
        from sidelight.privacy.sql_ledger import open_ledger
        from sidelight.progress import progress_of
        from sidelight.releases.plan import Plan
        from sidelight.releases.plan_digest import plan_digest, plan_digests, require_approved
        from sidelight.releases.plan_words import describe, facts

        refuse_same(table, public)
        if approval is not None and approved_by:
            raise SettingError("--approval names those who approved; leave out --approved-by.")
        said = Purpose.of("", project=project, approved_by=approved_by)
        book = open_ledger(ledger)
        plan = Plan.of(
            schema=schema, epsilon=epsilon, delta=None, mechanism=mechanism,
            workload=workload, public=one_or_all(public), ledger=book,
            quality_share=quality_share, accept=accept, bins=bins, reuse=reuse,
            settings=parse_settings(settings),
        )  # fmt: skip
        if dry_run:
            plan = plan.asked(book, said)
            if as_json:
                digest = plan_digest(plan, private=table, public=public, ledger=book, project=project)
                tell_json(facts(plan) | {"digest": digest})
            else:
                talk(describe(plan))
            return
        approved = None if approval is None else _approval(approval)
        if approved is not None:
            require_approved(
                approved, plan_digests(plan, private=table, public=public, ledger=book, project=project)
            )
            plan, said = plan.fixed(), said.approved(approved)
        named(out, "the release")
        journal = checkpoint if checkpoint is not None else out.with_name(out.name + ".checkpoint")
        if _is_taken(out):
            card = _finished(out, journal, book) if checkpoint is None else None
            if card is not None:
                Journal.remove(journal)
                done = f"{out} was already complete; nothing more was spent."
                _say(out, card, [done], as_json=as_json, quiet=quiet)
                return
            raise ReleaseError(f"{_TAKEN.format(out)} Nothing was read.")
        check_room_for(out, "the release")
    bars = progress_of(not quiet)
    card = _written(
        plan, table, out, ledger=book, checkpoint=journal, progress=bars, is_confirmed=yes, said=said
    )
    if checkpoint is None:
        Journal.remove(journal)
    following = f"next: sidelight answer {out} {plan.domain.attrs[0]}"
    _say(out, card, [*_remarks(out, card), following], as_json=as_json, quiet=quiet)


def _written(plan: "Plan", table: str, out: Path, *, checkpoint: Path, **how: Any) -> "Card":
    """Carry a plan out, and write its release; gives the card."""
    from sidelight.releases.run import run

    try:
        made = run(plan, table, checkpoint=checkpoint, **how)
    except BudgetExhausted as error:
        if _is_taken(out):  # another process has finished this very command meanwhile
            raise ReleaseError(_TAKEN.format(out)) from error
        raise
    try:
        made.save(out)
    except ReleaseError as error:
        raise UnsavedError(
            f"{error} Nothing is lost: everything that was paid for is kept in {checkpoint}. Make room, and "
            "repeat the same command; it pays nothing again."
        ) from error
    return made.card


def _is_taken(out: Path) -> bool:
    """Whether something is there already."""
    return out.exists() and (not out.is_dir() or any(out.iterdir()))


def _approval(path: Path) -> "Approval":
    """The approval in a JSON file."""
    from sidelight._foreign import ForeignError, parse_json, read_text
    from sidelight.errors import InputError
    from sidelight.privacy.approval import Approval

    try:
        return Approval.from_json(parse_json(read_text(path)))
    except ForeignError as error:
        raise InputError(f"{path} cannot be read as an approval: {error}.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


def _say(out: Path, card: "Card", remarks: Iterable[str], *, as_json: bool, quiet: bool) -> None:
    """The card for a program, or remarks for a person; exit code 4 where the release is not accepted."""
    if as_json:
        tell_json({"out": str(out), "card": card.as_json()})
    elif not quiet:
        for remark in remarks:
            talk(remark)
    if card.acceptance is not None and card.acceptance.verdict != "passed":
        raise typer.Exit(4)


def _remarks(out: Path, card: "Card") -> Iterator[str]:
    """Remarks for a person about the release just written."""
    from sidelight.reports.provenance import left_out

    if card.quality is not None:
        yield f"{card.quality.sentence}."
    yield f"wrote {out}: {card.mechanism}, ε = {card.epsilon_spent:.4g} spent."
    yield from (f"{one.sentence}." for one in card.reused)
    if card.why is not None:
        yield f"why {card.mechanism}: {card.why}"
    if card.paid_again is not None:
        yield _said_of_repeats(card.paid_again.events)
    yield from (grouped.sentence for grouped in card.groups)
    if card.unmeasured is not None:
        yield from card.unmeasured.sentences
    yield from left_out(card)
    if card.acceptance is not None:
        yield from (f"{finding.sentence}." for finding in card.acceptance.findings)
        yield card.acceptance.sentence


def _said_of_repeats(events: int) -> str:
    draws = "One answer was" if events == 1 else f"{events} answers were"
    return (
        f"{draws} drawn more than once, because of a crash or because this checkpoint is a copy. Every draw "
        "was paid for, and is counted in the ε above."
    )


def _finished(out: Path, journal: Path, ledger: "Ledger") -> "Card | None":
    """The card in ``out``, if this command wrote it earlier and died before it could remove the journal."""
    from sidelight.curator.journal import Journal
    from sidelight.releases.folder import load_card

    if not journal.is_dir() or not (out / "release.json").is_file():
        return None
    card = load_card(out)
    run = card.ledger.run
    # An empty folder means that the journal was removed, but its folder was not yet.
    is_own = Journal.run_in(journal) == run or not any(journal.iterdir())
    return card if is_own and ledger.knows(run) else None
