"""Groups from a file: an ε for all, a column of ε, or a column of groups with an ε each."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from sidelight._files import check_file, write_text
from sidelight.cli._shared import remark_on_private, talk, tell, tell_json
from sidelight.data.leak_guard import refuse_same
from sidelight.data.value import text_of
from sidelight.errors import DataError, SettingError
from sidelight.privacy.promise import agreed_unit
from sidelight.privacy.unit import Unit
from sidelight.statistics.answer import MixedAnswer
from sidelight.statistics.columns import Missing, numbers, read_columns
from sidelight.statistics.group import Group

TableFile = Annotated[str, typer.Argument(help="The table: CSV or Parquet, one record a person.")]
Value = Annotated[str, typer.Option(help="The column of numbers.")]
Bounds = Annotated[
    tuple[float, float],
    typer.Option(help="Public bounds of a value, LOW HIGH; what lies outside is clamped."),
]
EveryEpsilon = Annotated[float | None, typer.Option("--epsilon", help="ε of every person in the table.")]
EpsilonColumn = Annotated[
    str | None, typer.Option(help="A public column with each person's own ε; 'inf' for a public person.")
]
GroupColumn = Annotated[str | None, typer.Option(help="A public column that names each person's group.")]
GroupNeeds = Annotated[
    list[str] | None,
    typer.Option("--group", help="A group's ε, such as patients=0.1 or staff=public. May be repeated."),
]
PublicFile = Annotated[str | None, typer.Option("--public", help="A public table with the same column.")]
LedgerPlace = Annotated[
    str | None, typer.Option("--ledger", help="Where spending is kept: file or database URL.")
]
UnitName = Annotated[
    str | None, typer.Option("--unit", help="replace, or add-or-remove; the ledger's unless said.")
]
Accounting = Annotated[str, typer.Option(help="pure (Laplace noise), or zcdp (Gaussian) with --delta.")]
Delta = Annotated[float | None, typer.Option(help="δ of every group, under zcdp.")]
BiasOption = Annotated[
    str | None, typer.Option("--bias", help="Of public groups: a bound on it, or 'measure'.")
]
MissingOption = Annotated[
    str,
    typer.Option(
        "--missing",
        help="What stands for a value that is missing or no number: a number within the bounds, or 'refuse'.",
    ),
]
Confidence = Annotated[float, typer.Option(help="Of the interval, such as 0.95.")]


def _can_be_written(svg: Path | None) -> Path | None:
    if svg is not None:
        check_file(svg, "the picture")
    return svg


SvgFile = Annotated[
    Path | None,
    typer.Option("--svg", help="Also draw weights and intervals into this file.", callback=_can_be_written),
]


def read_groups(
    table: str,
    value: str,
    *,
    epsilon: float | None,
    epsilon_column: str | None,
    group_column: str | None,
    needs: list[str] | None,
    public: str | None,
    unit: Unit,
    missing: Missing = "refuse",
) -> list[Group]:
    """The groups that the options describe, in a fixed order; nothing is charged yet."""
    ways = [epsilon is not None, epsilon_column is not None, group_column is not None]
    if sum(ways) != 1:
        raise SettingError(
            "say who needs what in one way: --epsilon, --epsilon-column, or --group-column with --group."
        )
    if epsilon_column is not None and not unit.total_is_public:
        # PRIVACY: the groups would be the ε that the table holds, and one more person may bring another one.
        raise SettingError(
            "--epsilon-column finds its groups in the table, and under add-or-remove nobody may see whether "
            "a group has people. Declare them: --group-column with --group. Nothing was read."
        )
    refuse_same(table, public)
    by = epsilon_column or group_column
    columns = read_columns(table, [value] if by is None else [value, by])
    # PRIVACY: who is in which group is public by declaration; even so, each record is read by itself.
    values = numbers(columns[value], f"column {value!r}", missing=missing)
    groups: list[Group] = []
    if epsilon is not None:
        groups = [_group(values, epsilon, "private", missing)]
    elif epsilon_column is not None:
        own = numbers(columns[epsilon_column], f"column {epsilon_column!r}")
        for level in sorted(set(own.tolist())):
            if math.isinf(level) and level > 0:
                groups.append(_group(values[own == level], None, "public people", missing))
            else:
                groups.append(_group(values[own == level], level, f"ε = {level:g}", missing))
    else:
        assert group_column is not None
        asked = _needs(needs)
        place = {name: code for code, name in enumerate(asked)}
        codes = columns[group_column].codes(lambda label: place.get(text_of(label) or "", -1))
        if (codes < 0).any():
            raise DataError(
                f"column {group_column!r} holds groups that no --group names. Nothing was charged."
            )
        groups = [_group(values[codes == place[name]], need, name, missing) for name, need in asked.items()]
    if public is not None:
        shown = numbers(read_columns(public, [value])[value], f"column {value!r}", missing=missing)
        groups.append(_group(shown, None, "public", missing))
    return groups


def _group(values: Any, epsilon: float | None, name: str, missing: Missing) -> Group:
    return Group(values, epsilon=epsilon, public=epsilon is None, name=name, missing=missing)


def parse_missing(text: str) -> Missing:
    """A number, or 'refuse'."""
    if text == "refuse":
        return "refuse"
    try:
        return float(text)
    except ValueError:
        raise SettingError(f"--missing must be a number or 'refuse'; got {text!r}.") from None


def parse_bias(text: str | None) -> Any:
    """A number, 'measure' or nothing."""
    if text is None or text == "measure":
        return text
    try:
        return float(text)
    except ValueError:
        raise SettingError(f"--bias must be a number or 'measure'; got {text!r}.") from None


def ledger_of(ledger: str | None, table: str) -> Any:
    """The ledger, which refuses a table that is not its own; None where there is none."""
    if ledger is None:
        return None
    from sidelight.data.fingerprint import marks_of_source
    from sidelight.privacy.sql_ledger import open_ledger

    book = open_ledger(ledger)
    book.for_table(marks_of_source(table, book.key))
    return book


def unit_of(unit: str | None, book: Any) -> Unit:
    """What one person can change, by this command and by its ledger; where they differ, it is refused."""
    return agreed_unit(asked=unit, promise=None if book is None else book.promise)


def remark_on(ledger: str | None, groups: list[Group]) -> None:
    """Say so where spending is kept nowhere."""
    if any(not group.is_public for group in groups):
        remark_on_private(ledger)


def show(answer: MixedAnswer, title: str, *, svg: Path | None, as_json: bool) -> None:
    """Print a mixed estimate, and draw it."""
    from sidelight.statistics.picture import svg_picture, text_picture

    if as_json:
        tell_json(answer.as_json())
    else:
        low, high = answer.interval
        share = answer.card.get("confidence", 0.95)
        tell(f"{title}: {answer.estimate:.6g}  (standard error {answer.standard_error:.3g})")
        tell(f"{share:.0%} interval: {low:.6g} to {high:.6g}")
        tell("")
        tell(text_picture(answer))
    # Last: an answer that was paid for is told, whatever becomes of its picture.
    if svg is not None:
        write_text(svg, svg_picture(answer, title=title), "the picture")
        talk(f"wrote {svg}.")


def _needs(given: list[str] | None) -> dict[str, float | None]:
    """``patients=0.1`` to an ε, ``staff=public`` to None."""
    needs: dict[str, float | None] = {}
    for item in given or []:
        name, equals, text = item.rpartition("=")
        try:
            needs[name] = None if text == "public" else float(text)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise SettingError(f"--group must look like name=0.1 or name=public; got {item!r}.")
    if not needs:
        raise SettingError("--group-column needs a --group for each of its groups.")
    return needs
