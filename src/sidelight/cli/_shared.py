"""Common to all commands: results to stdout, talk to stderr, and options spelled once."""

import contextlib
import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sidelight._check import brief
from sidelight._foreign import ForeignError, parse_json
from sidelight.errors import SettingError
from sidelight.progress import one_line, plain

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print neither progress nor remarks.")]
SchemaFile = Annotated[
    Path,
    typer.Option("--schema", help="Schema file (TOML): columns, bins, labels, what one person can change."),
]
WorkloadName = Annotated[
    str,
    typer.Option(
        "--workload",
        help="Which counts: '2-way' is every pair of columns, '3-way' every triple, 'cuboids' every set; "
        "or a JSON file.",
    ),
]
MechanismName = Annotated[
    str,
    typer.Option(
        "--mechanism",
        help="Name of the mechanism; auto chooses one by workload, ε, δ, public data and, where public, "
        "the number of records.",
    ),
]
PublicData = Annotated[
    list[str] | None,
    typer.Option(
        "--public",
        help="A public table (it may lack columns), or the folder of a prior or of an earlier release. "
        "Repeat for several.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the mechanism, such as rounds=30. May be repeated."),
]
QualityShare = Annotated[
    float,
    typer.Option(help="Share of the budget that measures how far off the release is; 0 measures nothing."),
]
BinsChoice = Annotated[
    str,
    typer.Option(
        "--bins",
        help="auto models neighbouring values of a numeric column in groups where there are too many to be "
        "told apart; 'as declared' never does.",
    ),
]
AcceptFile = Annotated[
    Path | None,
    typer.Option(
        "--accept",
        help="A TOML file of criteria that the release must keep. --quality-share pays for looking at them.",
    ),
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        help="Only records like these: sex=F, region=north,south, age=18-64 (whole bins), age=65+, "
        "visit=2021-01..2021-12. Repeat for several columns.",
    ),
]
SafeCells = Annotated[
    bool,
    typer.Option(
        "--safe-cells", help="Put an apostrophe before texts that a spreadsheet would run as formulas (.csv)."
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file of --to if it is there.")]
ReuseFolder = Annotated[
    list[str] | None,
    typer.Option(
        "--reuse",
        help="An earlier release of the same records; its noisy answers are used again for nothing. "
        "Repeat for several.",
    ),
]
Project = Annotated[
    str | None,
    typer.Option("--project", help="What this is for, by a name that the ledger's policy knows."),
]
ApprovedBy = Annotated[
    list[str] | None,
    typer.Option("--approved-by", help="Who approved it, by name; the ledger keeps it. Repeat for several."),
]
ChargedLedger = Annotated[
    str | None,
    typer.Option("--ledger", help="Ledger that is charged: a file or a database's address."),
]
ReleaseFolder = Annotated[Path, typer.Argument(help="A folder that `sidelight release` wrote.")]
_CONTROL = re.compile("[\x7f-\x9f]")


def talk(text: str) -> None:
    """Print a remark to stderr; it is never part of the result."""
    with contextlib.suppress(OSError):  # stderr is closed: no reason to stop a run that has been paid for
        typer.echo(plain(text), err=True)


def tell(text: str) -> None:
    """Print a result."""
    typer.echo(plain(text))


def tell_json(value: Any) -> None:
    """Print a result for a program."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    # JSON escapes the first 32 control characters; a terminal also obeys those from 127 to 159.
    typer.echo(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def refuse_to_replace(to: Path, *, is_meant: bool) -> None:
    """Refuse a file that is there already, unless it is meant: it might be the private table itself."""
    if to.exists() and not is_meant:
        raise SettingError(
            f"{to} exists already. Name a new file with --to, or say --overwrite to replace it. Nothing was "
            "written."
        )


def tell_table(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """Print a result as a table, fitted to the terminal, or 160 characters wide where there is none."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Names and labels may come from strangers, so none of them is read as markup.
    table = Table(title=Text(one_line(title), style="table.title"), title_justify="left")
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], (int, float, type(None))) for row in rows)
        table.add_column(Text(one_line(column)), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(_shown(value)) for value in row))
    console = Console() if sys.stdout.isatty() else Console(width=160)
    with console.capture() as printed:
        console.print(table)
    # Printed like all results: rich itself would end the process on a closed pipe.
    typer.echo(printed.get(), nl=False)


def parse_settings(given: list[str] | None) -> dict[str, Any]:
    """``rounds=30`` to ``{"rounds": 30}``; numbers and true or false are read as such."""
    settings: dict[str, Any] = {}
    for item in given or []:
        name, equals, text = item.partition("=")
        if not equals or not name:
            raise SettingError(f"--set must look like name=value; got {brief(item)}.")
        try:
            settings[name] = parse_json(text)
        except ForeignError:
            settings[name] = text
    return settings


def parse_where(given: list[str] | None) -> dict[str, list[str]] | None:
    """``sex=F`` to ``{"sex": ["F"]}``; a column that is named twice may have either value."""
    if not given:
        return None
    where: dict[str, list[str]] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals or not name.strip():
            raise SettingError(f"--where must look like column=value; got {brief(item)}.")
        where.setdefault(name.strip(), []).append(text.strip())
    return where


def one_or_all(given: list[str] | None) -> str | list[str] | None:
    """The value of a repeatable option: None, the single value, or a list of several."""
    if not given:
        return None
    return given[0] if len(given) == 1 else given


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.1f}" if isinstance(value, float) else one_line(str(value))
