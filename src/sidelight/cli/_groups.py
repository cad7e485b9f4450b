"""Common to ``mean`` and ``quantile``: options, the groups that these describe, how an answer is shown."""

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import numpy as np
import typer

from sidelight._files import check_file, write_text
from sidelight.cli._shared import ApprovedBy, ChargedLedger, Json, Project, talk, tell, tell_json
from sidelight.data.columns.value import text_of
from sidelight.data.leak_guard import refuse_same
from sidelight.errors import DataError, SettingError
from sidelight.privacy.promise import agreed_unit
from sidelight.privacy.unit import Unit
from sidelight.statistics.answer import MixedAnswer
from sidelight.statistics.columns import Missing, numbers, read_columns
from sidelight.statistics.group import Group
from sidelight.statistics.people import names_of

if TYPE_CHECKING:
    from sidelight.data.reading.file_format import FileFormat
    from sidelight.data.schema import Schema


def _can_be_written(svg: Path | None) -> Path | None:
    if svg is not None:
        check_file(svg, "the picture")
    return svg


@dataclass(frozen=True, kw_only=True)
class GroupOptions:
    """The options of both commands, one field each."""

    table: Annotated[
        str,
        typer.Argument(
            help="The table: CSV or Parquet. One record a person, unless the schema or the ledger names the "
            "column that says who each record is about."
        ),
    ]
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
            help="What one person can change: replace or add-or-remove. Default: what the schema and the "
            "ledger say, else replace."
        ),
    ] = None
    schema: Annotated[
        Path | None,
        typer.Option(help="A schema (TOML), for its [unit] and its [file]; its columns do not matter here."),
    ] = None
    records: Annotated[
        int | None,
        typer.Option(
            help="How many records of each person to use, where a column says who is who. Default: what the "
            "schema says, else 1."
        ),
    ] = None
    accounting: Annotated[
        str, typer.Option(help="pure: Laplace noise, counted in ε. zcdp: Gaussian noise, with --delta.")
    ] = "pure"
    delta: Annotated[float | None, typer.Option(help="δ of every group. Only with zcdp.")] = None
    ledger: ChargedLedger = None
    project: Project = None
    approved_by: ApprovedBy = None
    svg: Annotated[
        Path | None,
        typer.Option(help="Also draw weights and intervals into this file.", callback=_can_be_written),
    ] = None
    as_json: Json = False

    @functools.cached_property
    def book(self) -> Any:
        """The ledger; None where there is none."""
        if self.ledger is None:
            return None
        from sidelight.privacy.sql_ledger import open_ledger

        return open_ledger(self.ledger)

    @functools.cached_property
    def known(self) -> "Schema | None":
        """The schema, if there is one."""
        from sidelight.data.schema import Schema

        return None if self.schema is None else Schema.read(self.schema)

    @property
    def file(self) -> "FileFormat | None":
        """How files of text are written, if a schema says it."""
        return None if self.known is None else self.known.file

    @functools.cached_property
    def agreed_unit(self) -> Unit:
        """The unit that command, schema and ledger agree on; refused where they differ."""
        declared = None if self.known is None else self.known.declared_unit
        promise = None if self.book is None else self.book.promise
        unit = agreed_unit(asked=self.unit, declared=declared, promise=promise)
        if self.records is not None:
            if unit.person is None:
                raise SettingError(
                    "--records needs a column that says who each record is about: declare person in [unit] "
                    "of a schema (--schema), or open the ledger with --person."
                )
            return unit.with_records(self.records)
        if unit.is_auto:
            from sidelight.data.people import chosen_records

            assert self.known is not None  # no ledger and no call says "auto"
            return chosen_records(unit, self.public, self.known)
        return unit

    @property
    def stand_in(self) -> Missing:
        """The number that stands for a missing value, as the library takes it."""
        found = number_or("--missing", self.missing, "refuse")
        return "refuse" if isinstance(found, str) else found

    def settings(self) -> dict[str, Any]:
        """The options that the library takes for every estimate."""
        return {
            "bounds": self.bounds,
            "confidence": self.confidence,
            "unit": self.agreed_unit,
            "accounting": self.accounting,
            "delta": self.delta,
            "ledger": self.book,
            "project": self.project,
            "approved_by": self.approved_by,
        }

    def require(self, way: str, epsilon: float | None) -> None:
        """Ask the ledger and its policy before the table is read; then tell the ledger which table it is.

        ``epsilon`` is the most that somebody spends; None where nobody is private.
        """
        if self.book is None:
            return
        from sidelight.data.fingerprint import marks_of_source
        from sidelight.statistics.settings import of_keywords
        from sidelight.statistics.terms import GroupTerms

        if epsilon is not None:
            of_keywords(GroupTerms, self.settings()).require(epsilon, way=way)
        self.book.for_table(marks_of_source(self.table, self.book.key))

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


def read_groups(asked: GroupOptions, *, way: str) -> list[Group]:
    """The groups that the options describe, in a fixed order; nothing is charged yet.

    ``way`` is how they will spend, as a policy names it: what the ledger would refuse is refused before the
    private table is read.
    """
    _check(asked)
    value, missing = asked.value, asked.stand_in
    by = asked.epsilon_column or asked.group_column
    person = asked.agreed_unit.person
    needs = {} if asked.group_column is None else _needs(asked.group)
    asked.require(way, _most(asked, needs))
    columns = read_columns(asked.table, [one for one in (value, by, person) if one is not None], asked.file)
    people = None if person is None else names_of(columns[person])
    # PRIVACY: who is in which group is public by declaration; even so, each record is read by itself.
    values = numbers(columns[value], f"column {value!r}", missing=missing)

    def group(some: Any, epsilon: float | None, name: str) -> Group:
        own = None if people is None or epsilon is None else people.filter(some)
        about: dict[str, Any] = {"name": name, "missing": missing, "people": own}
        return Group(values[some], epsilon=epsilon, public=epsilon is None, **about)

    if asked.epsilon is not None:
        groups = [group(np.ones(values.size, dtype=np.bool_), asked.epsilon, "private")]
    elif asked.epsilon_column is not None:
        own = numbers(columns[asked.epsilon_column], f"column {asked.epsilon_column!r}")
        groups = [
            group(own == level, None, "public people")
            if level == math.inf
            else group(own == level, level, f"ε = {level:g}")
            for level in sorted(set(own.tolist()))
        ]
    else:
        assert asked.group_column is not None
        place = {name: code for code, name in enumerate(needs)}
        codes = columns[asked.group_column].codes(lambda label: place.get(text_of(label) or "", -1))
        if (codes < 0).any():
            raise DataError(
                f"column {asked.group_column!r} holds groups that no --group names. Nothing was charged."
            )
        groups = [group(codes == place[name], need, name) for name, need in needs.items()]
    if asked.public is not None:
        column = read_columns(asked.public, [value], asked.file)[value]
        shown = numbers(column, f"column {value!r}", missing=missing)
        groups.append(Group(shown, public=True, name="public", missing=missing))
    return groups


def _check(asked: GroupOptions) -> None:
    """Refuse, before the table is read, options that do not go together."""
    said = (asked.epsilon, asked.epsilon_column, asked.group_column)
    if sum(one is not None for one in said) != 1:
        raise SettingError(
            "say who needs what in one way: --epsilon, --epsilon-column, or --group-column with --group."
        )
    unit = asked.agreed_unit
    if asked.epsilon_column is not None and not unit.total_is_public:
        # PRIVACY: the groups would be the ε that the table holds, and one more person may bring another one.
        raise SettingError(
            "--epsilon-column finds its groups in the table, and under add-or-remove nobody may see whether "
            "a group has people. Declare them: --group-column with --group. Nothing was read."
        )
    refuse_same(asked.table, asked.public)
    if unit.person is not None and unit.person in (asked.value, asked.epsilon_column, asked.group_column):
        raise SettingError(f"column {unit.person!r} says who each record is about; it cannot be averaged.")


def show(answer: MixedAnswer, title: str, asked: GroupOptions) -> None:
    """Print a mixed estimate, and draw it."""
    from sidelight.statistics.picture import svg_picture, text_picture

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


def _most(asked: GroupOptions, needs: dict[str, float | None]) -> float | None:
    """The largest ε of anybody; None where nobody is private. A column of everybody's ε is public."""
    if asked.epsilon_column is not None:
        column = read_columns(asked.table, [asked.epsilon_column], asked.file)[asked.epsilon_column]
        levels = numbers(column, f"column {asked.epsilon_column!r}").tolist()
        return max((level for level in levels if level != math.inf), default=None)
    return asked.epsilon or max((need for need in needs.values() if need is not None), default=None)


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
