"""What must hold within each record: an order, a column that determines another, a sum.

    [[constraint]]
    order = ["admitted", "discharged"]     # none is after the next

    [[constraint]]
    column = "ward"
    determines = "clinic"
    map = { A = "north", B = "north", C = "south" }

    [[constraint]]
    sum = ["inpatient", "outpatient"]
    total = "visits"

A synthetic record never violates one. Bins that cannot go together are impossible combinations, which no
model gives mass; values within bins are drawn so that they keep every constraint (``constrained_draws``). A
missing or "other" value violates nothing.

PRIVACY: constraints are declared, like all of the schema. What happens to a private record that violates one
is declared, too, and concerns that record alone: ``violated = "keep"`` reads it as it is, ``"missing"`` reads
the last column named as missing, ``"refuse"`` refuses the table. No message says which records, or how many.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sidelight._check import brief, listed
from sidelight.data.columns.column import (
    BinnedColumn,
    CategoricalColumn,
    Column,
    RealColumn,
    label_text,
)
from sidelight.data.columns.moment_columns import DateColumn, MomentColumn
from sidelight.data.domain import Combination
from sidelight.errors import SchemaError

Violated = Literal["keep", "missing", "refuse"]
_MOST_CODES = 400
"""Between columns of more bins, the draws alone make a constraint hold: models stay small."""


@dataclass(frozen=True)
class Constraint(ABC):
    """One declared constraint."""

    violated: Violated = field(default="keep", kw_only=True)
    """The fate of a private record that violates it."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The columns that it is about; the last one is read as missing where that is declared."""

    @abstractmethod
    def said(self) -> dict[str, Any]:
        """Its entry in a schema file."""

    @abstractmethod
    def check(self, columns: Mapping[str, Column]) -> None:
        """Refuse what cannot be."""

    @abstractmethod
    def impossible(self, columns: Mapping[str, Column]) -> list[Combination]:
        """Codes that cannot go together."""

    def __str__(self) -> str:
        return " and ".join(map(brief, self.names))

    def _check_names(self, columns: Mapping[str, Column]) -> None:
        if self.violated not in ("keep", "missing", "refuse"):
            raise SchemaError(
                f"[[constraint]]: violated must be 'keep', 'missing' or 'refuse'; got {brief(self.violated)}."
            )
        for name in self.names:
            if name not in columns:
                raise SchemaError(
                    f"[[constraint]] names the column {brief(name)}; the schema has {listed(columns)}."
                )
        if len(set(self.names)) < len(self.names):
            raise SchemaError(f"[[constraint]] names a column twice: {listed(self.names)}.")
        last = columns[self.names[-1]]
        if self.violated == "missing" and not last.missing:
            raise SchemaError(
                f'[[constraint]] on {self}: violated = "missing" needs missing = true for {brief(last.name)}.'
            )


@dataclass(frozen=True)
class Order(Constraint):
    """The first is not after the second, or not above it; dates are compared by their days."""

    first: str
    second: str

    @property
    def names(self) -> tuple[str, ...]:
        return self.first, self.second

    def said(self) -> dict[str, Any]:
        return {"order": self.names}

    def check(self, columns: Mapping[str, Column]) -> None:
        self._check_names(columns)
        first, second = ordered(columns[self.first]), ordered(columns[self.second])
        if _family(first) != _family(second):
            raise SchemaError(
                f"[[constraint]]: {brief(self.first)} and {brief(self.second)} cannot be compared; both must "
                "be dates, times, whole numbers, or real numbers of as many decimals."
            )
        if first.ends[0] // self.unit(columns) > second.ends[1] // self.unit(columns):
            raise SchemaError(
                f"[[constraint]]: every {brief(self.first)} is after every {brief(self.second)}, by their "
                "bounds; no record is possible."
            )

    def unit(self, columns: Mapping[str, Column]) -> int:
        """The unit in which values are compared: seconds, or whole days where one of them is a date."""
        both = (columns[self.first], columns[self.second])
        return max(column.step if isinstance(column, MomentColumn) else 1 for column in both)

    def impossible(self, columns: Mapping[str, Column]) -> list[Combination]:
        first, second = ordered(columns[self.first]), ordered(columns[self.second])
        unit = self.unit(columns) if isinstance(first, MomentColumn) else 0
        if max(first.declared, second.declared) > _MOST_CODES:
            return []
        lows, highs = _least(first), _most(second)
        if unit:
            lows, highs = lows // unit, highs // unit
        return _excluded(first, second, highs < lows[:, None])


@dataclass(frozen=True)
class Determines(Constraint):
    """A label of one column has one label of the other; labels that are not mapped may have any."""

    column: str
    target: str
    mapped: tuple[tuple[str, Any], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.column, self.target

    def said(self) -> dict[str, Any]:
        return {"column": self.column, "determines": self.target, "map": self.mapped}

    def check(self, columns: Mapping[str, Column]) -> None:
        self._check_names(columns)
        if not self.mapped:
            raise SchemaError(
                f"[[constraint]] on {self}: map must give a label of {brief(self.target)} for each."
            )
        self.codes(columns)

    def codes(self, columns: Mapping[str, Column]) -> dict[int, int]:
        """From the codes of the column to those of the one that it determines."""
        own, theirs = (_labels(columns[name]) for name in self.names)
        found = {}
        for label, wanted in self.mapped:
            for name, known, said in ((self.column, own, label), (self.target, theirs, wanted)):
                if label_text(said) not in known:
                    raise SchemaError(
                        f"[[constraint]]: map names {brief(said)}, which is no label of {brief(name)}; it "
                        f"has {listed(known, 12)}."
                    )
            found[own[label_text(label)]] = theirs[label_text(wanted)]
        return found

    def impossible(self, columns: Mapping[str, Column]) -> list[Combination]:
        grouped: dict[int, list[int]] = {}
        for code, wanted in self.codes(columns).items():
            grouped.setdefault(wanted, []).append(code)
        declared = range(columns[self.target].declared)
        others = {wanted: tuple(code for code in declared if code != wanted) for wanted in grouped}
        return [
            Combination(self.names, (tuple(codes), others[wanted]))
            for wanted, codes in grouped.items()
            if others[wanted]
        ]


@dataclass(frozen=True)
class Sum(Constraint):
    """The parts add up to the total."""

    parts: tuple[str, ...]
    total: str

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.parts, self.total)

    def said(self) -> dict[str, Any]:
        return {"sum": self.parts, "total": self.total}

    def check(self, columns: Mapping[str, Column]) -> None:
        self._check_names(columns)
        if len(self.parts) < 2:
            raise SchemaError(f"[[constraint]]: a sum needs two parts or more; got {listed(self.parts)}.")
        found = [ordered(columns[name]) for name in self.names]
        if len({_family(column) for column in found}) > 1 or isinstance(found[0], MomentColumn):
            raise SchemaError(
                f"[[constraint]]: {listed(self.names)} cannot be added up; all must be whole numbers, or "
                "real numbers of as many decimals."
            )
        low, high = (sum(column.ends[end] for column in found[:-1]) for end in (0, 1))
        if low > found[-1].ends[1] or high < found[-1].ends[0]:
            raise SchemaError(
                f"[[constraint]]: {listed(self.parts)} never add up to {brief(self.total)}, by their "
                "bounds; no record is possible."
            )

    def impossible(self, columns: Mapping[str, Column]) -> list[Combination]:
        """Between each part and the total, whatever the other parts are: pairs keep models small."""
        total = ordered(columns[self.total])
        found = []
        for name in self.parts:
            part = ordered(columns[name])
            if max(part.declared, total.declared) > _MOST_CODES:
                continue
            others = [ordered(columns[other]) for other in self.parts if other != name]
            low = _least(part) + sum(other.ends[0] for other in others)
            high = _most(part) + sum(other.ends[1] for other in others)
            near = 1e-9 * (1 + abs(high).max() + abs(low).max())
            is_apart = (_most(total) + near < low[:, None]) | (_least(total) - near > high[:, None])
            found += _excluded(part, total, is_apart)
        return found


def ordered(column: Column) -> BinnedColumn:
    """The column, if its values have an order."""
    if not isinstance(column, BinnedColumn) or (isinstance(column, MomentColumn) and column.is_circular):
        raise SchemaError(
            f"[[constraint]]: column {brief(column.name)} has no order; it must hold numbers, dates or times "
            "in bins that follow each other."
        )
    return column


def check_together(constraints: Sequence[Constraint], columns: Mapping[str, Column]) -> None:
    """Refuse constraints that contradict each other, or that cannot be made to hold at once."""
    summed: list[str] = [name for one in constraints if isinstance(one, Sum) for name in one.names]
    in_order = {name for one in constraints if isinstance(one, Order) for name in one.names}
    twice = sorted({name for name in summed if summed.count(name) > 1 or name in in_order})
    if twice:
        raise SchemaError(
            f"[[constraint]]: column {brief(twice[0])} is in a sum and in another constraint of numbers. "
            "A column can be in one sum, or in orders."
        )
    _check_maps([one for one in constraints if isinstance(one, Determines)], columns)
    for one in in_turn(constraints):  # refuses circles
        caps = highest(constraints, columns)
        if caps[one.first] < ordered(columns[one.first]).ends[0]:
            raise SchemaError(
                f"[[constraint]]: by their bounds, no record keeps the order up to {brief(one.first)}."
            )


def _check_maps(rules: Sequence[Determines], columns: Mapping[str, Column]) -> None:
    """Refuse a label to which the maps, side by side or one after another, give two labels of a column."""
    maps = [(rule, rule.codes(columns)) for rule in rules]
    for rule, mapped in maps:
        for code in mapped:
            target = _given_twice(maps, rule.column, code)
            if target is not None:
                label = columns[rule.column].code_labels()[code]
                raise SchemaError(
                    f"[[constraint]]: by the maps, {brief(rule.column)} = {brief(label)} has two labels of "
                    f"{brief(target)}; no record is possible. Correct one of the maps."
                )


def _given_twice(maps: Sequence[tuple[Determines, dict[int, int]]], column: str, code: int) -> str | None:
    """A column that gets two codes where all maps are followed from one code on."""
    known, left = {column: code}, [column]
    while left:
        name = left.pop()
        for rule, mapped in maps:
            if rule.column != name or known[name] not in mapped:
                continue
            wanted = mapped[known[name]]
            if rule.target not in known:
                known[rule.target] = wanted
                left.append(rule.target)
            elif known[rule.target] != wanted:
                return rule.target
    return None


def in_turn(constraints: Sequence[Constraint]) -> list[Order]:
    """Orders, those of earlier columns first."""
    left = [one for one in constraints if isinstance(one, Order)]
    turn: list[Order] = []
    while left:
        later = {one.second for one in left}
        ready = [one for one in left if one.first not in later]
        if not ready:
            names = sorted({one.first for one in left})
            raise SchemaError(f"[[constraint]]: the orders of {listed(names)} go round in a circle.")
        turn += ready
        left = [one for one in left if one not in ready]
    return turn


def highest(constraints: Sequence[Constraint], columns: Mapping[str, Column]) -> dict[str, float]:
    """The largest number of each ordered column after which the later columns still have room."""
    caps: dict[str, float] = {}
    for one in reversed(in_turn(constraints)):
        for name in one.names:
            caps.setdefault(name, ordered(columns[name]).ends[1])
        unit = one.unit(columns)
        room = (caps[one.second] // unit + 1) * unit - 1 if unit > 1 else caps[one.second]
        caps[one.first] = min(caps[one.first], room)
    return caps


def _family(column: BinnedColumn) -> tuple[str, int | None]:
    if isinstance(column, DateColumn):
        return "date", None
    return column.kind, column.decimals if isinstance(column, RealColumn) else None


def _least(column: BinnedColumn) -> Any:
    return column.bounds[:-1]


def _most(column: BinnedColumn) -> Any:
    return column.bounds[1:] if isinstance(column, RealColumn) else column.bounds[1:] - 1


def _excluded(
    first: BinnedColumn, second: BinnedColumn, is_apart: npt.NDArray[np.bool_]
) -> list[Combination]:
    """Combinations of bins, those of the first grouped by which of the second they exclude."""
    grouped: dict[tuple[int, ...], list[int]] = {}
    for code in range(first.declared):
        others = tuple(int(other) for other in np.flatnonzero(is_apart[code]))
        if others:
            grouped.setdefault(others, []).append(code)
    names = (first.name, second.name)
    return [Combination(names, (tuple(codes), others)) for others, codes in grouped.items()]


def _labels(column: Column) -> dict[str, int]:
    """Labels as text, as a TOML table writes them; a bin's dash may be typed as a hyphen."""
    shown = column.code_labels()[: column.declared]
    texts = [label_text(label) for label in shown]
    if isinstance(column, CategoricalColumn):
        return {text: code for code, text in enumerate(texts)}
    typed = [text.replace("–", "-") for text in texts]
    return {text: code for spelled in (typed, texts) for code, text in enumerate(spelled)}
