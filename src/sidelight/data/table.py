"""Encoded records, wherever they live."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight import _check
from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines.base import Codes, Counts, Engine, Tell, tell_nobody
from sidelight.data.engines.numpy import NumpyEngine
from sidelight.data.grouping import Grouping
from sidelight.data.people import People, PeopleHere, people_there
from sidelight.data.schema import Schema
from sidelight.errors import DataError, SettingError
from sidelight.privacy.unit import Unit

ANYBODY = Unit()
"""A unit that names no column of people."""
ENGINES = ("numpy", "duckdb", "spark", "dask", "postgres")


class Table:
    """Encoded records. A public table you may hold; a private one belongs in a curator.

    >>> table = Table.of_codes(Domain.of({"age": 3, "sex": 2}), np.array([[0, 1], [2, 0], [2, 0]]))
    >>> table.count(("sex", "age")).tolist()
    [[0, 0, 2], [1, 0, 0]]
    """

    def __init__(
        self,
        engine: Engine,
        *,
        schema: Schema | None = None,
        kind: str = "codes",
        people: People | None = None,
        kept: Unit | None = None,
    ) -> None:
        self._engine = engine
        self.schema = schema
        self.kind = kind
        """Which kind of frame came in; ``to_frame`` gives the same kind back."""
        self._people = people
        self.kept = kept
        """The unit whose ``records`` of each person were kept; None where all records are there."""

    @classmethod
    def of_codes(
        cls,
        domain: Domain,
        codes: npt.ArrayLike | Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike],
        *,
        schema: Schema | None = None,
        kind: str = "codes",
    ) -> "Table":
        """A table of codes: a records-by-attributes array, or one sequence of codes an attribute.

        A list or tuple is taken as columns, a NumPy array as records by attributes. Arrays of
        integers are not copied, so do not change them afterwards.
        """
        columns = _columns(domain, codes)
        records = len(columns[0]) if columns else 0
        for attr, size, column in zip(domain.attrs, domain.shape, columns, strict=True):
            if column.ndim != 1 or len(column) != records:
                raise DataError(f"attribute {attr!r} must have one code a record, as many as the others.")
            if column.dtype.kind not in "iu":
                raise DataError(f"attribute {attr!r} must hold integer codes; found {column.dtype}.")
            if records and (column.max() >= size or (column.dtype.kind == "i" and column.min() < 0)):
                raise DataError(f"attribute {attr!r} holds codes outside 0 to {size - 1}.")
        return cls(NumpyEngine(domain, columns, records=records), schema=schema, kind=kind)

    @classmethod
    def read(
        cls,
        source: Any,
        schema: Schema,
        *,
        engine: str | None = None,
        may_be_empty: bool = False,
        unit: Unit = ANYBODY,
    ) -> "Table":
        """Open, check and encode any accepted source; what does not fit is refused before it costs anything.

        A file without records is refused, too, unless ``may_be_empty``: where n is private, nobody may see
        whether there are any.

        Frames and most files are encoded once, in memory (``numpy``); large files and DuckDB
        relations are counted where they are (``duckdb``), and so are Spark, Dask and PostgreSQL tables.

        Where ``unit`` names a column of people, who is who is read too, and ``keeping`` bounds what one
        person contributes.
        """
        if engine is not None:
            _check.one_of(ENGINES, engine=engine)
        if isinstance(source, Table) and unit.person is not None and not source.knows(unit):
            raise DataError(
                f"the table is already encoded, without {unit.person!r}, which says who each record is "
                "about. Give the raw table."
            )
        if isinstance(source, Table):
            if source.domain != schema.domain:
                raise DataError(
                    "the table is already encoded, for another schema. Give that schema, or the raw table."
                )
            # Codes say nothing about what is impossible: that is the schema's to declare.
            is_same = source.domain.impossible == schema.domain.impossible
            if is_same:
                return source
            return cls(
                source._engine, schema=schema, kind=source.kind, people=source._people, kept=source.kept
            )
        from sidelight.data.reading.read import open_table

        if engine == "spark" and isinstance(source, str) and not source.startswith("spark:"):
            source = f"spark:{source}"
        opened = open_table(source, schema, unit.person)
        made, people = _engine_for(opened, source, schema, engine, unit, may_be_empty=may_be_empty)
        return cls(made, schema=schema, kind=opened.kind, people=people)

    def keeping(self, unit: Unit, key: str) -> "Table":
        """The same table with at most ``unit.records`` records of each person, chosen under the key.

        >>> raw = {"id": ["a", "a", "a", "b"], "sex": [0, 0, 0, 1]}
        >>> import pyarrow as pa
        >>> unit = Unit("add-or-remove", records=2, person="id")
        >>> table = Table.read(pa.table(raw), Schema.from_domain({"sex": 2}), unit=unit)
        >>> table.keeping(unit, "00").count(("sex",)).tolist()
        [2, 1]
        """
        assert self._people is not None, "the table was read without its people"
        assert self._people.person == unit.person
        engine = self._people.keeping(self._engine, unit, key)
        return Table(engine, schema=self.schema, kind=self.kind, kept=unit)

    def knows(self, unit: Unit) -> bool:
        """Whether the column of people that this unit names was read, or its records are kept already."""
        return self.kept == unit or (self._people is not None and self._people.person == unit.person)

    def standing_in(self, unit: Unit) -> "Table":
        """The same PUBLIC table, taken as one of which k records of each person were kept.

        PRIVACY: nothing is bounded here. It is for a rehearsal, in which public records play private ones.
        """
        return Table(self._engine, schema=self.schema, kind=self.kind, kept=unit)

    def people_in_memory(self) -> Any:
        """Who each record is about, as Arrow text, where the codes are in memory and the column was read."""
        return None if self._people is None else self._people.names

    @property
    def domain(self) -> Domain:
        """The attributes and their sizes."""
        return self._engine.domain if self.schema is None else self.schema.domain

    @property
    def records(self) -> int:
        """The exact number of records. PRIVACY: private under add-or-remove; for the curator alone."""
        return self._engine.records

    @property
    def counting(self) -> str:
        """Where and how records are counted, in a few words that do not depend on them."""
        return self._engine.counting

    @property
    def is_in_memory(self) -> bool:
        """Whether one more pass over the records costs little."""
        return isinstance(self._engine, NumpyEngine)

    def columns_in_memory(self) -> list[npt.NDArray[np.integer]] | None:
        """The codes, one array an attribute, where they are in memory."""
        return list(self._engine.columns) if isinstance(self._engine, NumpyEngine) else None

    def count(self, attrs: Attrs) -> Counts:
        """The marginal on ``attrs``, axes in the order asked; the total (0-d) if there are none."""
        return self._engine.count(tuple(attrs))

    def count_many(self, marginals: Sequence[Attrs], tell: Tell = tell_nobody) -> list[Counts]:
        """Several marginals, in one pass; ``tell`` hears how far it is."""
        return self._engine.count_many([tuple(attrs) for attrs in marginals], tell)

    def codes(self) -> Codes:
        """All records as codes, one line each, in memory."""
        return self._engine.codes()

    def distinct(self) -> tuple[Codes, Counts]:
        """The distinct records, and how often each occurs."""
        return self._engine.distinct()

    def grouped(self, grouping: Grouping) -> "Table":
        """The same records, whose values are counted in groups."""
        from sidelight.data.engines.grouped import grouped

        return Table(grouped(self._engine, grouping), kind=self.kind, kept=self.kept)

    def decode(self, *, seed: int) -> Any:
        """The records as a pyarrow table of original labels, types and units.

        ``seed`` places the points within their bins.
        """
        from sidelight.data.decode import decode

        schema = self.schema if self.schema is not None else Schema.from_domain(self.domain)
        return decode(schema, self.codes(), seed=seed)

    def to_frame(self, kind: str | None = None, *, seed: int) -> Any:
        """The decoded records as a frame: of ``kind``, or of the kind that came in."""
        from sidelight.data.dtypes import with_dtypes
        from sidelight.data.reading.frames import from_arrow

        kind = self.kind if kind is None else kind
        frame = from_arrow(self.decode(seed=seed), kind)
        return frame if self.schema is None else with_dtypes(frame, kind, self.schema)


def _columns(domain: Domain, codes: Any) -> list[npt.NDArray[Any]]:
    if isinstance(codes, Mapping):
        absent = [attr for attr in domain.attrs if attr not in codes]
        if absent:
            raise DataError(f"no codes are given for {', '.join(map(repr, absent))}.")
        return [np.asarray(codes[attr]) for attr in domain.attrs]
    if isinstance(codes, (list, tuple)):
        columns = [np.asarray(column) for column in codes]
    else:
        records = np.asarray(codes)
        if records.ndim != 2:
            raise DataError(
                f"codes must be an array of records by attributes; found {records.ndim} dimensions."
            )
        columns = [records[:, place] for place in range(records.shape[1])]
    if len(columns) != len(domain):
        raise DataError(f"the domain has {len(domain)} attributes, but codes of {len(columns)} are given.")
    return columns


def _engine_for(
    opened: Any, source: Any, schema: Schema, engine: str | None, unit: Unit, *, may_be_empty: bool
) -> tuple[Engine, People | None]:
    from sidelight.data.engines.choice import engine_of, surveyed
    from sidelight.data.engines.duckdb import DuckDBSource
    from sidelight.data.misfits import misfits_of_columns, misfits_of_values, require_fit
    from sidelight.data.reading.read import describe

    what = describe(source)
    require_fit(misfits_of_columns(opened, schema, unit), what=what)
    own = ("numpy", "duckdb") if isinstance(opened, DuckDBSource) else (opened.kind,)
    if engine is not None and engine not in own:
        raise SettingError(f"{what} can be counted by {' or '.join(map(repr, own))}; got {engine!r}.")
    if isinstance(opened, DuckDBSource) and (engine == "numpy" or (engine is None and not opened.is_large)):
        return _load(opened, schema, what, unit, may_be_empty=may_be_empty)
    people, records = None, 0
    if unit.person is not None:
        people = people_there(opened, schema, unit.person)
        records, has_nameless, has_refused = people.survey()
        if records and not has_refused and (unit.missing_person == "own" or not has_nameless):
            return engine_of(opened, schema, records=records), people
    # Something does not fit, or may not: say what, or that nothing is there.
    found = surveyed(opened, schema, unit.person)
    require_fit(misfits_of_values(*found, schema, unit, may_be_empty=may_be_empty), what=what)
    if people is not None and (records or found[0]):
        # PRIVACY: people of the first look would be bounded by names that could not be read.
        raise DataError(f"{what} was changed while it was being checked: it did not fit, and then it did.")
    return engine_of(opened, schema, records=found[0]), people


def _load(
    opened: Any, schema: Schema, what: str, unit: Unit, *, may_be_empty: bool
) -> tuple[NumpyEngine, People | None]:
    """Encode once, into memory; what is refused is found on the way."""
    import pyarrow as pa
    from pyarrow import compute

    from sidelight.data.engines.duckdb import encoded_batches, refused
    from sidelight.data.misfits import misfits_of_values, require_fit

    batches = list(encoded_batches(opened, schema, unit.person))
    codes = [[column.to_numpy(zero_copy_only=False) for column in batch.columns[: len(schema.columns)]]
             for batch in batches]  # fmt: skip
    nothing = [np.zeros(0, dtype=np.uint8) for _ in schema.columns]
    columns = [np.concatenate(parts) for parts in zip(*codes, strict=True)] or nothing
    records = len(columns[0])
    found = [refused(column) for column in columns]
    people = None
    if unit.person is not None:
        names = pa.chunked_array([batch.column("p") for batch in batches], type=pa.string())
        unread = pa.chunked_array([batch.column("pu") for batch in batches], type=pa.bool_())
        has_unread = bool(compute.any(unread, min_count=0).as_py())
        nameless = compute.and_(compute.is_null(names), compute.invert(unread))
        found.append((bool(compute.any(nameless, min_count=0).as_py()), has_unread))
        people = PeopleHere(names.dictionary_encode(), unit.person)
    missing, outside = [f[0] for f in found], [f[1] for f in found]
    misfits = misfits_of_values(records, missing, outside, schema, unit, may_be_empty=may_be_empty)
    require_fit(misfits, what=what)
    return NumpyEngine(schema.domain, columns, records=records), people
