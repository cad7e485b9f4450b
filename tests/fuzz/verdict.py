"""What must be true of every command, whatever it was given."""

import contextlib
import sqlite3
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from material import IN_ODD_ALONE, PASSWORD, PLANTED

CODES = {0, 2, 3, 4, 130}
CHARGING = {"release", "screen", "mean", "quantile"}
"""Commands that may charge a ledger; and `ledger close` may write in one."""


@dataclass(frozen=True)
class Outcome:
    """One command, and all that can be seen of it."""

    argv: list[str]
    code: object
    out: str
    err: str
    before: dict[str, bytes] = field(repr=False)
    """Ledgers by name, each as bytes that change where a line is added."""
    after: dict[str, bytes] = field(repr=False)
    written: dict[str, bytes] = field(repr=False, default_factory=dict)
    """Files that the command wrote, but for those that are private by name."""


def ledgers(folder: Path) -> dict[str, bytes]:
    """Every ledger in the folder by its lines, since a run that begins adds one; if damaged, by its bytes."""
    return {path.name: _lines(path) for path in sorted(folder.glob("*.ledger")) if path.is_file()}


def _lines(path: Path) -> bytes:
    # Opened as a file that nobody changes, so that looking leaves no trace.
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as database:
        try:
            lines = database.execute("SELECT line, run, text, hash FROM sidelight_ledger ORDER BY line")
            return repr(lines.fetchall()).encode("utf-8", "backslashreplace")
        except (sqlite3.Error, UnicodeDecodeError):
            return path.read_bytes()


def faults(outcome: Outcome) -> list[str]:
    """What is wrong, in words; nothing where all is well."""
    found = []
    said = outcome.out + outcome.err
    if outcome.code not in CODES:
        found.append(f"ended with {outcome.code!r}: {outcome.err.strip()[-160:]}")
    if "Traceback" in said or "this is a bug" in said:
        found.append("spoke of a traceback or a bug")
    if outcome.code in (2, 3) and not outcome.err.strip() and not outcome.out.strip():
        found.append("refused without a word")
    touched = [name for name, content in outcome.before.items() if outcome.after.get(name) != content]
    if touched and outcome.code in (2, 3):
        found.append(f"refused ({outcome.code}), but wrote in {touched[0]}: {outcome.err.strip()[-160:]}")
    if touched and not may_write(outcome.argv):
        found.append(f"wrote in {touched[0]}, although it charges nothing")
    shown = [
        *said.splitlines(),
        *(content.decode("utf-8", "replace") for content in outcome.written.values()),
    ]
    for planted in secrets_of(outcome.argv):
        if any(planted in text for text in shown):
            found.append(f"showed {planted}")
    return found


def secrets_of(argv: list[str]) -> list[str]:
    """What this command must never show."""
    if argv[:2] == ["schema", "draft"]:  # shows what is in its table, which is public: passwords are not
        return [PASSWORD]
    before = [flag for flag, word in pairwise(["", *argv]) if "odd.csv" in word]
    # Values of public data may be spoken about: --public names it, and `prior fit` takes nothing else.
    is_public = before != [] and (set(before) == {"--public"} or argv[:2] == ["prior", "fit"])
    return [one for one in PLANTED if not (is_public and one in IN_ODD_ALONE)]


def may_write(argv: list[str]) -> bool:
    """Whether this command may write in a ledger that was there."""
    return bool(argv) and (argv[0] in CHARGING or argv[:2] == ["ledger", "close"]) and "--dry-run" not in argv
