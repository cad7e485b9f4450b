"""``sidelight ledger move|backup|restore|compare``: a ledger in another place, and nothing lost."""

from pathlib import Path
from typing import Annotated

import typer

from sidelight.cli._shared import Json, talk, tell, tell_json
from sidelight.errors import LedgerError

Where = Annotated[str, typer.Argument(help="A ledger file, or a database URL.")]
Target = Annotated[
    str, typer.Argument(help="The new ledger: a file that is not there yet, or a database URL.")
]


def move(where: Where, target: Target, as_json: Json = False) -> None:
    """Move a ledger to another file or database. The old one spends no more, and says where it went.

    Every line is copied as it is; afterwards both are read again and compared line by line. If the command is
    interrupted, repeat it.
    """
    from sidelight.privacy.moving import move as moved
    from sidelight.sources import source_name

    found = moved(where, target)
    if as_json:
        tell_json({"from": source_name(where), "to": source_name(target), "lines": found.first})
    else:
        talk(f"moved to {source_name(target)}: {found.sentence}")


def compare(
    where: Where,
    other: Annotated[str, typer.Argument(help="The ledger that should hold all of its lines.")],
    as_json: Json = False,
) -> None:
    """Prove that one ledger holds every line of another: both are verified and compared, line by line."""
    from sidelight.privacy.moving import compare as compared

    found = compared(where, other)
    if as_json:
        lengths = {"same": found.same, "first": found.first, "second": found.second}
        tell_json({"whole": found.is_whole} | lengths)
    elif found.is_whole:
        tell(found.sentence)
    if not found.is_whole:
        raise LedgerError(found.sentence)


def backup(
    where: Where,
    file: Annotated[Path, typer.Argument(help="The file to write; an older backup there is replaced.")],
    as_json: Json = False,
) -> None:
    """Write every line of a ledger into a file that nothing can be spent from, and verify the file.

    Only its owner can read the file: it also holds the key of the ledger's marks.
    """
    from sidelight.privacy.moving import back_up

    lines = back_up(where, file)
    if as_json:
        tell_json({"file": str(file), "lines": lines})
    else:
        talk(f"wrote {file}: {lines:,} lines, verified.")


def restore(
    file: Annotated[Path, typer.Argument(help="A backup that `sidelight ledger backup` wrote.")],
    target: Target,
    release: Annotated[
        list[Path] | None,
        typer.Option(
            "--release",
            help="A release made since the backup; the ledger is charged for it. Repeat for each of them.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Later lines were seen on this machine, and are lost for good.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a new ledger out of a backup, after the ledger itself was lost.

    A backup does not know what was spent since. Name every release made since then with --release. What was
    spent on means, quantiles, screening and discoveries cannot be entered again.
    """
    from sidelight.releases.recovering import restore as restored
    from sidelight.sources import source_name

    made = restored(file, target, releases=release or [], is_confirmed=yes)
    if as_json:
        told = {"lines": made.gap.held, "entered": list(made.entered), "head": made.ledger.head}
        tell_json({"ledger": source_name(target)} | told)
        return
    talk(f"restored {source_name(target)}: {made.gap.sentence}")
    talk(f"charged it for {len(made.entered)} releases that the backup lacks.")
