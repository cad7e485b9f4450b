"""What ``mean`` and ``quantile`` share: options, the groups that these describe, how an answer is shown."""

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from sidelight._files import check_file, write_text
from sidelight.cli._shared import Json, remark_on_private, talk, tell, tell_json
from sidelight.data.columns.value import text_of
from sidelight.data.leak_guard import refuse_same
from sidelight.errors import DataError, SettingError
from sidelight.privacy.promise import agreed_unit
from sidelight.privacy.unit import Unit
from sidelight.statistics.answer import MixedAnswer
from sidelight.statistics.columns import Missing, numbers, read_columns
from sidelight.statistics.group import Group


def _can_be_written(svg: Path | None) -> Path | None:
    if svg is not None:
        check_file(svg, "the picture")
    return svg


@dataclass(frozen=True, kw_only=True)
class GroupOptions:
    """The options of both commands, one field each."""

    table: Annotated[str, typer.Argument(help="The table: CSV or Parquet, one record a person.")]
    value: Annotated[str, typer.Option(help="Column of the numbers.")]
    bounds: Annotated[
        tuple[float, float],
        typer.Option(help="Public bounds of a value, LOW HIGH; values outside are clamped to them."),
    ]
    epsilon: Annotated[float | None, typer.Option(help="ε of every person in the table.")] = None
    epsilon_column: Annotated[
        str | None, typer.Option(help="A public column with each person's own ε; 'inf' for a public person.")
    ] = None
    group_column: Annotated[
        str | None, typer.Option(help="A public column that names each person's group; needs --group.")
    ] = None
    group: Annotated[
        list[str] | None,
        typer.Option(help="A group's ε, such as patients=0.1 or staff=public. Repeat for each group."),
    ] = None
    public: Annotated[str | None, typer.Option(help="A public table with the same column.")] = None
    missing: Annotated[
        str,
        typer.Option(
            help="Number, within the bounds, that stands for a value that is missing or no number. With "
            "'refuse' a table that holds such a value is refused."
        ),
    ] = "refuse"
    bias: Annotated[
        str | None,
        typer.Option(
            help="How far public people may differ from private ones: a bound, or 'measure'. Default: 0."
        ),
    ] = None
    confidence: Annotated[float, typer.Option(help="Confidence of the interval.")] = 0.95
    unit: Annotated[
        str | None,
        typer.Option(
            help="What one person can change: replace or add-or-remove. Default: what the ledger says, else "
            "replace."
        ),
    ] = None
    accounting: Annotated[
        str, typer.Option(help="pure: Laplace noise, counted in ε. zcdp: Gaussian noise, with --delta.")
    ] = "pure"
    delta: Annotated[float | None, typer.Option(help="δ of every group. Only with zcdp.")] = None
    ledger: Annotated[
        str | None, typer.Option(help="Ledger that is charged: a file or a database's address.")
    ] = None
    svg: Annotated[
        Path | None,
        typer.Option(help="Also draw weights and intervals into this file.", callback=_can_be_written),
    ] = None
    as_json: Json = False

    @functools.cached_property
    def book(self) -> Any:
        """The ledger, which refuses a table that is not its own; None where there is none."""
        if self.ledger is None:
            return None
        from sidelight.data.fingerprint import marks_of_source
        from sidelight.privacy.sql_ledger import open_ledger

        book = open_ledger(self.ledger)
        book.for_table(marks_of_source(self.table, book.key))
        return book

    @property
    def agreed_unit(self) -> Unit:
        """What one person can change, by the command and by its ledger; where they differ, it is refused."""
        return agreed_unit(asked=self.unit, promise=None if self.book is None else self.book.promise)

    @property
    def stand_in(self) -> Missing:
        """What stands for a missing value, as the library takes it."""
        found = number_or("--missing", self.missing, "refuse")
        return "refuse" if isinstance(found, str) else found

    def settings(self) -> dict[str, Any]:
        """What the library takes of these, whatever is estimated."""
        return {
            "bounds": self.bounds,
            "confidence": self.confidence,
            "unit": self.unit,
            "accounting": self.accounting,
            "delta": self.delta,
            "ledger": self.book,
        }

    def mix_settings(self) -> dict[str, Any]:
        """Options of an estimate that is mixed of groups."""
        bias = None if self.bias is None else number_or("--bias", self.bias, "measure")
        return self.settings() | {"bias": bias, "alone": True}


def with_group_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer sees it: an option for each of ``GroupOptions``, its first parameter."""
    shared = get_type_hints(GroupOptions, include_extras=True)
    own = list(inspect.signature(command).parameters.values())[1:]
    listed = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=shared[field.name],
        )
        for field in fields(GroupOptions)
    ]
    listed += [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]

    @functools.wraps(command)
    def called(**given: Any) -> None:
        options = GroupOptions(**{name: given.pop(name) for name in shared})
        command(options, **given)

    called.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]  # what inspect looks for
    called.__annotations__ = {one.name: one.annotation for one in listed}
    return called


def number_or(option: str, text: str, *words: str) -> float | str:
    """An option's number, or one of the words that it takes instead."""
    if text in words:
        return text
    try:
        return float(text)
    except ValueError:
        listed = " or ".join(repr(word) for word in words)
        raise SettingError(f"{option} must be a number or {listed}; got {text!r}.") from None


def read_groups(asked: GroupOptions) -> list[Group]:
    """The groups that the options describe, in a fixed order; nothing is charged yet."""
    value, missing = asked.value, asked.stand_in
    ways = (asked.epsilon, asked.epsilon_column, asked.group_column)
    if sum(way is not None for way in ways) != 1:
        raise SettingError(
            "say who needs what in one way: --epsilon, --epsilon-column, or --group-column with --group."
        )
    if asked.epsilon_column is not None and not asked.agreed_unit.total_is_public:
        # PRIVACY: the groups would be the ε that the table holds, and one more person may bring another one.
        raise SettingError(
            "--epsilon-column finds its groups in the table, and under add-or-remove nobody may see whether "
            "a group has people. Declare them: --group-column with --group. Nothing was read."
        )
    refuse_same(asked.table, asked.public)
    by = asked.epsilon_column or asked.group_column
    columns = read_columns(asked.table, [value] if by is None else [value, by])
    # PRIVACY: who is in which group is public by declaration; even so, each record is read by itself.
    values = numbers(columns[value], f"column {value!r}", missing=missing)

    def group(some: Any, epsilon: float | None, name: str) -> Group:
        return Group(some, epsilon=epsilon, public=epsilon is None, name=name, missing=missing)

    if asked.epsilon is not None:
        groups = [group(values, asked.epsilon, "private")]
    elif asked.epsilon_column is not None:
        own = numbers(columns[asked.epsilon_column], f"column {asked.epsilon_column!r}")
        groups = [
            group(values[own == level], None, "public people")
            if level == math.inf
            else group(values[own == level], level, f"ε = {level:g}")
            for level in sorted(set(own.tolist()))
        ]
    else:
        assert asked.group_column is not None
        needs = _needs(asked.group)
        place = {name: code for code, name in enumerate(needs)}
        codes = columns[asked.group_column].codes(lambda label: place.get(text_of(label) or "", -1))
        if (codes < 0).any():
            raise DataError(
                f"column {asked.group_column!r} holds groups that no --group names. Nothing was charged."
            )
        groups = [group(values[codes == place[name]], need, name) for name, need in needs.items()]
    if asked.public is not None:
        shown = numbers(read_columns(asked.public, [value])[value], f"column {value!r}", missing=missing)
        groups.append(group(shown, None, "public"))
    return groups


def show(answer: MixedAnswer, title: str, asked: GroupOptions) -> None:
    """Print a mixed estimate, and draw it."""
    from sidelight.statistics.picture import svg_picture, text_picture

    if any(group.epsilon is not None for group in answer.groups):
        remark_on_private(asked.ledger)
    if asked.as_json:
        tell_json(answer.as_json())
    else:
        low, high = answer.interval
        tell(f"{title}: {answer.estimate:.6g}  (standard error {answer.standard_error:.3g})")
        tell(f"{asked.confidence:.0%} interval: {low:.6g} to {high:.6g}")
        tell("")
        tell(text_picture(answer))
    # Last: an answer that was paid for is told, whatever becomes of its picture.
    if asked.svg is not None:
        write_text(asked.svg, svg_picture(answer, title=title), "the picture")
        talk(f"wrote {asked.svg}.")


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
