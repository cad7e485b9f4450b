"""The schema: columns, bins and labels as people write them, and what one person can change.

It is a public document. It is written by hand or drafted from PUBLIC data, and never
learned from the private table: its size decides the noise, and its text is published.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidelight import _foreign
from sidelight._check import brief, listed
from sidelight.data.columns.column import (
    CategoricalColumn,
    Column,
    IntegerColumn,
    Label,
    NumericColumn,
    RealColumn,
)
from sidelight.data.columns.constraints import Constraint, check_together
from sidelight.data.columns.moment_columns import DateColumn, DatetimeColumn, TimeColumn
from sidelight.data.columns.public_rules import PublicRules
from sidelight.data.domain import Combination, Domain
from sidelight.data.impossible import as_codes, as_declared
from sidelight.data.reading.file_format import FileFormat
from sidelight.errors import SchemaError
from sidelight.privacy.unit import Unit

if TYPE_CHECKING:
    from sidelight.data.misfits import Misfit

__all__ = [
    "CategoricalColumn",
    "Column",
    "DateColumn",
    "DatetimeColumn",
    "IntegerColumn",
    "Label",
    "NumericColumn",
    "RealColumn",
    "Schema",
    "TimeColumn",
]

MOST_COLUMNS = 4096


def require_no_attribute(unit: Unit, columns: Iterable[Column]) -> None:
    """Refuse a column that says who is who and is an attribute too: a release would be about names."""
    if any(column.name == unit.person for column in columns):
        raise SchemaError(
            f"column {brief(unit.person)} says who each record is about ([unit] person), so it cannot be an "
            f"attribute too. Take [columns.{unit.person}] out of the schema."
        )


UNSAID = Unit()
"""The unit of a schema that declares none. Compared by identity, since a declared one may be equal."""


@dataclass(frozen=True)
class Schema:
    """How raw columns become attributes, and the unit of privacy.

    >>> schema = Schema.from_toml('''
    ... [columns.sex]
    ... kind = "categorical"
    ... labels = ["female", "male"]
    ... [columns.age]
    ... kind = "integer"
    ... low = 0
    ... high = 99
    ... bins = 20
    ... ''')
    >>> schema.domain.shape, schema.unit.relation
    ((2, 20), 'replace')
    """

    columns: tuple[Column, ...]
    unit: Unit = UNSAID
    """What one person can change; see ``declared_unit`` for whether the schema says it."""
    note: str = field(default="", compare=False)
    """A comment, written at the head of a schema file; it changes nothing."""
    impossible: tuple[Combination, ...] = ()
    """Labels that never occur together: no model gives them mass, no synthetic record holds them."""
    constraints: tuple[Constraint, ...] = ()
    """The constraints on each record; no synthetic one violates any."""
    file: FileFormat = FileFormat()
    """How CSV and Excel files are written."""
    public: PublicRules = field(default_factory=PublicRules, compare=False, repr=False)
    """How public tables are read where they differ from the schema; it says nothing about private records."""
    says_unit: bool = field(init=False, compare=False, repr=False)
    """Whether somebody gave the unit; a schema that leaves it out takes the ledger's."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "says_unit", self.unit is not UNSAID)
        if not self.columns:
            raise SchemaError("the schema has no columns; declare each one in a table such as [columns.age].")
        if len(self.columns) > MOST_COLUMNS:
            raise SchemaError(
                f"the schema has {len(self.columns):,} columns, more than {MOST_COLUMNS:,}. Leave out those "
                "that no query is about."
            )
        named = Counter(column.name for column in self.columns)
        twice = sorted(name for name, often in named.items() if often > 1)
        if twice:
            raise SchemaError(f"column names must be distinct; {', '.join(map(repr, twice))} appears twice.")
        require_no_attribute(self.unit, self.columns)
        # Spelled one way, whoever wrote them, so that equal schemas have equal fingerprints.
        object.__setattr__(self, "impossible", as_declared(self.impossible, self.columns))
        self.public.check(self.columns)
        by_name = {column.name: column for column in self.columns}
        for constraint in self.constraints:
            constraint.check(by_name)
        check_together(self.constraints, by_name)
        if self.impossible or self.constraints:
            _ = self.domain  # refuses combinations that leave no record possible

    @classmethod
    def of(cls, given: "Schema | str | Path") -> "Schema":
        """The schema itself, or the one in a file."""
        if isinstance(given, Schema):
            return given
        if not isinstance(given, str | Path):
            raise SchemaError(
                "schema must be a Schema, or the path of a schema file; got "
                f"{type(given).__name__}. Schema.draft, Schema.from_toml and Schema.from_domain make one."
            )
        return cls.read(given)

    @classmethod
    def read(cls, path: str | Path) -> "Schema":
        """The schema in a TOML file."""
        try:
            text = _foreign.read_text(Path(path))
        except FileNotFoundError:
            raise SchemaError(
                f"there is no schema file at {path}; draft one with `sidelight schema draft`."
            ) from None
        except OSError as error:
            reason = error.strerror or "the system refused"
            raise SchemaError(f"the schema file {path} cannot be read: {reason}.") from error
        except ValueError as error:
            raise SchemaError(f"the schema file {path} cannot be read: {error}.") from error
        return cls.from_toml(text)

    def write(self, path: str | Path) -> None:
        """Write the schema as a TOML file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    @classmethod
    def from_toml(cls, text: str) -> "Schema":
        """The schema that a TOML text declares."""
        from sidelight.data.schema_toml import parse

        return parse(text)

    def to_toml(self) -> str:
        """TOML from which ``from_toml`` gives back an equal schema, notes as comments."""
        from sidelight.data.schema_toml import render

        return render(self)

    @classmethod
    def draft(
        cls,
        public_table: Any,
        *,
        bins: int = 32,
        missing: Iterable[str] = (),
        file: FileFormat | None = None,
    ) -> "Schema":
        """A first schema from PUBLIC data, for a person to check and edit. Never give it private data.

        ``bins`` is the most that a column of numbers gets, all of one round width; dates have days, weeks,
        months, quarters or years instead, by the time that they span. ``missing`` are further texts that
        stand for a missing value, besides NA, N/A, null and -; ``file`` says how a CSV or Excel file is
        written.
        """
        from sidelight.data.drafting.draft import draft

        return draft(public_table, bins=bins, missing=missing, file=file).schema

    @classmethod
    def from_domain(cls, sizes: Mapping[str, int] | Domain, *, unit: Unit | str | None = None) -> "Schema":
        """The schema of a coded table, whose columns hold whole numbers from 0 to size − 1.

        >>> Schema.from_domain({"age": 32, "sex": 2}).domain.shape
        (32, 2)
        """
        domain = sizes if isinstance(sizes, Domain) else Domain.of(sizes)
        columns = [IntegerColumn(a, low=0, high=size - 1) for a, size in domain.sizes.items()]
        given = UNSAID if unit is None else Unit.of(unit)
        return cls(tuple(columns), given, impossible=domain.impossible)

    @property
    def declared_unit(self) -> Unit | None:
        """The unit that the schema declares; None where it declares none."""
        return self.unit if self.says_unit else None

    @cached_property
    def domain(self) -> Domain:
        """The attributes and their sizes."""
        return Domain(
            tuple(c.name for c in self.columns),
            tuple(c.size for c in self.columns),
            (*as_codes(self.impossible, self.columns), *self._excluded()),
        )

    def _excluded(self) -> tuple[Combination, ...]:
        """Codes that constraints exclude."""
        by_name = {column.name: column for column in self.columns}
        place = {column.name: i for i, column in enumerate(self.columns)}
        found = []
        for one in (
            excluded for constraint in self.constraints for excluded in constraint.impossible(by_name)
        ):
            said = sorted(zip(one.attrs, one.values, strict=True), key=lambda pair: place[pair[0]])
            found.append(Combination(tuple(a for a, _ in said), tuple(v for _, v in said)))
        return tuple(dict.fromkeys(found))

    def narrowed(self, names: Iterable[str]) -> "Schema":
        """The schema of these columns alone, and of those that rules for violated constraints look at."""
        wanted = set(names)
        rules = [constraint for constraint in self.constraints if constraint.violated != "keep"]
        for _ in rules:
            wanted |= {name for rule in rules if wanted & set(rule.names) for name in rule.names}
        columns = tuple(column for column in self.columns if column.name in wanted)
        kept = tuple(rule for rule in rules if set(rule.names) <= wanted)
        return Schema(columns, constraints=kept, file=self.file)

    def only(self, names: Iterable[str]) -> "Schema":
        """The schema of these columns alone, and of the rules that are about no other.

        >>> Schema.from_domain({"age": 3, "sex": 2}).only(["sex"]).domain.attrs
        ('sex',)
        """
        there = set(names)
        maps = {name: one for name, one in self.public.map.items() if name in there}
        return replace(
            self,
            columns=tuple(column for column in self.columns if column.name in there),
            impossible=tuple(one for one in self.impossible if set(one.attrs) <= there),
            constraints=tuple(one for one in self.constraints if set(one.names) <= there),
            public=replace(self.public, map=maps),
        )

    def with_impossible(self, *combinations: Mapping[str, Any]) -> "Schema":
        """The same schema, in which these combinations of labels never occur either.

        >>> schema = Schema.from_domain({"age": 3, "married": 2})
        >>> schema.with_impossible({"age": [0], "married": [1]}).domain.impossible[0].values
        ((0,), (1,))
        """
        more = tuple(Combination.of(said) for said in combinations)
        return replace(self, impossible=(*self.impossible, *more))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that the schema means for private records; notes and [public] do not count."""
        from sidelight.data.schema_toml import render

        # A unit that is not declared counts as the usual one, which keeps fingerprints what they always were.
        return hashlib.sha256(render(self, notes=False, unit=True, public=False).encode()).hexdigest()

    def column(self, name: str) -> Column:
        """The column of this name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError(
            f"unknown column {brief(name)}; the schema has {listed(c.name for c in self.columns)}."
        )

    def _repr_html_(self) -> str:
        from sidelight._html import table

        rows = [
            (column.name, column.kind, f"{column.size:,}", listed(map(str, column.code_labels()), 6),
             column.outside)
            for column in self.columns
        ]  # fmt: skip
        return table(
            "A schema",
            [("unit", self.unit.describe()), ("cells", f"about 10^{math.log10(self.domain.size()):.1f}")],
            columns=("column", "kind", "codes", "labels", "values outside"),
            rows=rows,
        )

    def check(self, source: Any) -> "list[Misfit]":
        """The columns of ``source`` that do not fit, in messages without any of its values or counts."""
        from sidelight.data.misfits import check

        return check(source, self)
