"""One public table, read as far as it fits the schema.

    column absent            the table tells nothing of that attribute
    column unknown           left out, unless it holds the weights of the records
    value mapped             [public.map] says which label, or labels, it stands for
    value a bin              within one bin of the schema it is that bin; over several it is spread
    value outside            as the column says: clamped, or "other"; but if nearly all of them are outside,
                             the table means something else by the column, and tells nothing of it
    any other misfit         the record leaves this attribute open: it counts in marginals without it

What stands for several labels or bins is dealt out among them, record by record, in a fixed random order.

PRIVACY: public tables alone are read here; about them, anything may be said.
"""

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight._check import brief, listed
from sidelight._memory import check_room
from sidelight.data.columns.column import BinnedColumn, Column, NumericColumn, RealColumn
from sidelight.data.columns.intervals import covered
from sidelight.data.columns.value import is_missing, text_of
from sidelight.data.engines.duckdb import DuckDBSource, encoded_columns
from sidelight.data.engines.sql import records_in
from sidelight.data.engines.sql_encoding import SqlSource, values_sql
from sidelight.data.misfits import misfits_of_columns, require_fit
from sidelight.data.reading.each import Each
from sidelight.data.reading.frames import columns_of, kind_of
from sidelight.data.reading.read import describe, open_source
from sidelight.data.schema import Schema
from sidelight.data.table import ANYBODY, Table
from sidelight.errors import DataError, MisfitError, PublicDataNote, PublicDataWarning
from sidelight.models.rounding import round_to
from sidelight.public.source import UNKNOWN, WeightedRecords

Codes = NDArray[np.int32]

_SEED = 0
"""Deals out what stands for several values; it protects nobody."""
_BINNED = ("integer", "real")
_FRAMES = ("pandas", "polars", "pyarrow", "arrow")
_BYTES = 16
"""Memory that one value of a public table takes while it is read."""
_SHOWN = 3
"""Unknown values that a remark names."""
_FEW, _MANY = 0.01, 0.5
"""Shares of values outside the schema: up to the first nothing is said, and from the second on a warning is.

From 1 - _FEW on the column is left out. Rare labels and long tails are outside in the private table too, so
their place in the schema is right, and leaving them open would hide how frequent they are. Where next to
nothing is inside, labels, units or years are others: then the column says that everybody is "other", or in
the first bin, which is wrong, and ruins mechanisms that reweigh whole public records.
"""


def read_public_table(
    source: Any, schema: Schema, remarks: list[str] | None = None
) -> Table | WeightedRecords:
    """The table's records over the columns shared with the schema; a warning says what is left out.

    ``remarks`` gets the same sentences for a card: they name neither the table nor a remedy.
    """
    said = [] if remarks is None else remarks
    if hasattr(source, "read_all"):  # a stream, which can be read once
        source = source.read_all()
    elif hasattr(source, "collect") and kind_of(source) == "polars":  # lazy: worked out once
        source = source.collect()
    rules, names = schema.public, _names(source, schema)
    present = tuple(column for column in schema.columns if column.name in names)
    if not present:
        raise DataError(
            f"{describe(source)} has none of the schema's columns, so it tells nothing; the schema has "
            f"{listed(column.name for column in schema.columns)}."
        )
    shared = schema.only(column.name for column in present)
    weight = next((name for name in rules.weight if name in names), None)
    if weight is None and not any(column.name in rules.map for column in present):
        try:
            table = Table.read(source, shared)
        except MisfitError:
            if not records_in(open_source(source, shared)):
                raise
        else:
            if not _may_hold_bins(table):
                outside = _put_into_other(table) | _clamped(open_source(source, shared), shared)
                told = _told(describe(source), shared, outside, said)
                return table if told == shared.domain.attrs else Table.read(source, shared.only(told))
    opened = _brought(open_source(source, _with_weights(schema)), schema)
    return _Reading(describe(source), opened, shared, schema, said).records(weight)


def _brought(opened: SqlSource, schema: Schema) -> DuckDBSource:
    """A table that is elsewhere, with its columns brought here: it is public, and has to be looked at."""
    if isinstance(opened, DuckDBSource):
        return opened
    known = {column.name for column in _with_weights(schema).columns}
    places = [place for place, name in enumerate(opened.names) if name in known]
    check_room(_BYTES * records_in(opened) * len(places), "so many public records")
    found = open_source(opened.to_arrow(places), _with_weights(schema))
    assert isinstance(found, DuckDBSource)  # as all frames are
    found.kind = opened.kind
    return found


def _names(source: Any, schema: Schema) -> set[str]:
    """The columns of a table; of a frame, without converting any."""
    if kind_of(source) in _FRAMES:
        return set(columns_of(source)[0])
    opened = open_source(source, file=schema.file)
    return {*opened.names, *opened.extra}


def columns_left_out(source: Any, schema: Schema) -> list[str]:
    """The columns that the schema does not have, and that weigh nothing: perhaps names were misspelt."""
    return sorted(_names(source, schema) - set(schema.domain.attrs) - set(schema.public.weight))


def _with_weights(schema: Schema) -> Schema:
    """The schema with columns for weights, so that these are opened, too."""
    names = {column.name for column in schema.columns}
    weights = [
        RealColumn(name, low=0.0, high=1.0, bins=1) for name in schema.public.weight if name not in names
    ]
    return Schema((*schema.columns, *weights), file=schema.file) if weights else schema


def _may_hold_bins(table: Table) -> bool:
    """Whether values of a column of numbers went to "other": they may be bins."""
    assert table.schema is not None
    return any(
        column.kind in _BINNED
        and column.other_code is not None
        and bool(table.count((column.name,))[column.other_code])
        for column in table.schema.columns
    )


def _put_into_other(table: Table) -> dict[str, float]:
    """Which share of the values of each column went to "other"; missing ones are no values."""
    assert table.schema is not None
    found = {}
    for column in table.schema.columns:
        if column.other_code is not None:
            counts = table.count((column.name,))
            values = counts[: column.other_code + 1].sum()
            found[column.name] = counts[column.other_code] / max(values, 1)
    return found


def _clamped(opened: SqlSource, schema: Schema) -> dict[str, float]:
    """Which share of the values of each column lies beyond the bounds to which it clamps them.

    A column with a map is not judged: what somebody mapped, somebody looked at.
    """
    clamped = [c for c in schema.columns if isinstance(c, BinnedColumn) and c.outside == "clamp"]
    clamped = [column for column in clamped if column.name not in schema.public.map]
    if not clamped:
        return {}
    sql, numbers = opened.dialect, list[str]()
    for i, column in enumerate(clamped):
        low, high = map(sql.number, column.ends)
        named = "".join(f" AND v{i} <> {sql.number(number)}" for number in column.missing_numbers)
        for found in (f"u{i} OR (v{i} IS NOT NULL{named})", f"(v{i} < {low} OR v{i} > {high}){named}"):
            numbers.append(f"COUNT(CASE WHEN {found} THEN 1 END) AS n{len(numbers)}")
    # Without constraints, which may change values of other columns than their own.
    values = values_sql(opened, Schema(tuple(clamped), file=schema.file))
    fetched = [int(one[0]) for one in opened.fetch(f"SELECT {', '.join(numbers)} FROM ({values}) AS found")]
    shares = (beyond / max(all_, 1) for all_, beyond in zip(fetched[::2], fetched[1::2], strict=True))
    return dict(zip((column.name for column in clamped), shares, strict=True))


def _told(what: str, schema: Schema, outside: Mapping[str, float], remarks: list[str]) -> tuple[str, ...]:
    """The columns that the table tells of, by the share of values outside; a remark says what that means."""
    told = tuple(name for name in schema.domain.attrs if outside.get(name, 0.0) < 1 - _FEW)
    for name, share in outside.items():
        if share <= _FEW:
            continue
        is_binned = isinstance(column := schema.column(name), BinnedColumn)
        places = "lie outside its bounds" if is_binned else "are none of its labels"
        done = "were clamped to the nearest bin"
        if column.outside == "other":
            places += " or cannot be read" if is_binned else ""
            done = 'count as "other"'
        remedy = "" if is_binned else f" [public.map.{name}] in the schema can map them."
        if name not in told:
            done = f"the table is taken to tell nothing of {name!r}"
            remedy = remedy or " Other units, or other years? Correct the public table, or the bounds."
        shown = f"{math.floor(1000 * share) / 10:g}%"
        remarks.append(f"{shown} of the public values of {name!r} {places}, and {done}.")
        warnings.warn(
            f"{what}: {remarks[-1]}{remedy}",
            PublicDataWarning if share >= _MANY else PublicDataNote,
            stacklevel=2,
        )
    if not told:
        raise DataError(f"{what} tells nothing: nearly all of its values are outside the schema.")
    return told


class _Reading:
    """A table that does not fit as it is."""

    def __init__(
        self, what: str, opened: DuckDBSource, shared: Schema, schema: Schema, remarks: list[str]
    ) -> None:
        self._what, self._opened, self._schema, self._remarks = what, opened, shared, remarks
        self._maps = {column.name: schema.public.codes(column) for column in shared.columns}
        require_fit(misfits_of_columns(opened, shared, ANYBODY), what=self._what)

    def records(self, weight: str | None) -> Table | WeightedRecords:
        codes, outside = self._codes(), _clamped(self._opened, self._schema)
        rng = np.random.default_rng(_SEED)
        for place, column in enumerate(self._schema.columns):
            own = codes[place]
            is_other = own == column.other_code  # nowhere, if there is none
            is_other &= ~self._recode(own, column, rng)
            if column.other_code is not None:
                outside[column.name] = is_other.sum() / max((own != column.missing_code).sum(), 1)
            self._remark(own, column)
        told = _told(self._what, self._schema, outside, self._remarks)
        if told != self._schema.domain.attrs:
            codes = [codes[place] for place in self._schema.domain.index(told)]
            self._schema = self._schema.only(told)
        if weight is None and all((one != UNKNOWN).all() for one in codes):
            kind = self._opened.kind
            return Table.of_codes(self._schema.domain, codes, schema=self._schema, kind=kind)
        weights = None if weight is None else self._weights(weight)
        return WeightedRecords(self._schema.domain, np.stack(codes, axis=1), weights)

    def _codes(self) -> list[Codes]:
        """Every record's codes, one array an attribute; UNKNOWN where the schema would refuse the value."""
        batches = list(encoded_columns(self._opened, self._schema))
        parts = [np.concatenate(found) for found in zip(*batches, strict=True)]
        # The two largest numbers of each type stand for refused values.
        return [
            np.where(part >= np.iinfo(part.dtype).max - 1, UNKNOWN, part.astype(np.int64)).astype(np.int32)
            for part in parts
        ]

    def _raw(self, name: str) -> Each:
        """The column's own values, record by record."""
        place = self._opened.names.index(name)
        return Each.joined([Each(part.column(0)) for part in self._opened.columns([place])])

    def _recode(self, codes: Codes, column: Column, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Give mapped values, and bins of a column of numbers, their codes; say which records have such."""
        given = np.zeros(codes.size, dtype=np.bool_)
        mapped = self._maps[column.name]
        is_binned = column.kind in _BINNED
        is_open = (codes == UNKNOWN) | (
            codes == (UNKNOWN if column.other_code is None else column.other_code)
        )
        if not mapped and not (is_binned and is_open.any()):
            return given
        raw = self._raw(column.name)
        for place, value in enumerate(raw.values):
            text = text_of(value)
            if text is None:
                continue
            share = None
            if text in mapped:
                share = np.bincount(mapped[text], minlength=column.size).astype(np.float64)
            elif isinstance(column, NumericColumn) and is_binned:
                share = covered(column, text)
            if share is not None:
                lines = np.flatnonzero(raw.places == place)
                dealt = np.repeat(np.arange(share.size), round_to(share, lines.size, rng))
                codes[lines] = rng.permutation(dealt)
                given[lines] = True
        return given

    def _remark(self, codes: Codes, column: Column) -> None:
        """Say how many values were left open, and which."""
        is_open = codes == UNKNOWN
        if not is_open.any():
            return
        raw = self._raw(column.name)
        found = [raw.values[place] for place in np.unique(raw.places[is_open])]
        named = [brief(text_of(value)) for value in found if not is_missing(value)]
        shown = f" (such as {', '.join(named[:_SHOWN])})" if named else " (they are missing)"
        remedy = f"; [public.map.{column.name}] in the schema can map them" if named else ""
        place = (
            f"{int(is_open.sum()):,} of {codes.size:,} values of {column.name!r} have no place in the schema"
        )
        end = f"Those records tell nothing of {column.name!r}"
        self._remarks.append(f"{place}. {end}.")
        warnings.warn(
            f"{self._what}: {place}{shown}. {end}{remedy}.",
            PublicDataWarning,
            stacklevel=2,
        )

    def _weights(self, name: str) -> NDArray[np.float64]:
        weights = self._raw(name).numbers()
        if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
            raise DataError(
                f"{self._what}: the weights in {name!r} must be numbers of at least 0, not all of them 0."
            )
        return weights
