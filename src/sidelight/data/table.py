"""Encoded records, wherever they live."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight import _check
from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines.base import Codes, Counts, Engine
from sidelight.data.engines.numpy import NumpyEngine
from sidelight.data.schema import Schema
from sidelight.errors import DataError, SettingError

ENGINES = ("numpy", "duckdb", "spark", "postgres")


class Table:
    """Encoded records. A public table you may hold; a private one belongs in a curator.

    >>> table = Table.of_codes(Domain.of({"age": 3, "sex": 2}), np.array([[0, 1], [2, 0], [2, 0]]))
    >>> table.count(("sex", "age")).tolist()
    [[0, 0, 2], [1, 0, 0]]
    """

    def __init__(self, engine: Engine, *, schema: Schema | None = None, kind: str = "codes") -> None:
        self._engine = engine
        self.schema = schema
        self.kind = kind
        """Which kind of frame came in; ``to_frame`` gives the same kind back."""

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
        cls, source: Any, schema: Schema, *, engine: str | None = None, may_be_empty: bool = False
    ) -> "Table":
        """Open, check and encode any accepted source; what does not fit is refused before it costs anything.

        A file without records is refused, too, unless ``may_be_empty``: where n is private, nobody may see
        whether there are any.

        Frames and most files are encoded once, in memory (``numpy``); large files and DuckDB
        relations are counted where they are (``duckdb``), and so are Spark and PostgreSQL tables.
        """
        if engine is not None:
            _check.one_of(ENGINES, engine=engine)
        if isinstance(source, Table):
            if source.domain != schema.domain:
                raise DataError(
                    "the table is already encoded, for another schema. Give that schema, or the raw table."
                )
            # Codes say nothing about what is impossible: that is the schema's to declare.
            is_same = source.domain.impossible == schema.domain.impossible
            return source if is_same else cls(source._engine, schema=schema, kind=source.kind)
        from sidelight.data.read import open_source

        if engine == "spark" and isinstance(source, str) and not source.startswith("spark:"):
            source = f"spark:{source}"
        opened = open_source(source, schema)
        made = _engine_for(opened, source, schema, engine, may_be_empty=may_be_empty)
        return cls(made, schema=schema, kind=opened.kind)

    @property
    def domain(self) -> Domain:
        """The attributes and their sizes."""
        return self._engine.domain if self.schema is None else self.schema.domain

    @property
    def records(self) -> int:
        """The exact number of records. PRIVACY: private under add-or-remove; for the curator alone."""
        return self._engine.records

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

    def count_many(self, marginals: Sequence[Attrs]) -> list[Counts]:
        """Several marginals, in one pass."""
        return self._engine.count_many([tuple(attrs) for attrs in marginals])

    def codes(self) -> Codes:
        """All records as codes, one line each, in memory."""
        return self._engine.codes()

    def distinct(self) -> tuple[Codes, Counts]:
        """The distinct records, and how often each occurs."""
        return self._engine.distinct()

    def decode(self, *, seed: int) -> Any:
        """The records as a pyarrow table of original labels, types and units.

        ``seed`` places the points within their bins.
        """
        from sidelight.data.decode import decode

        schema = self.schema if self.schema is not None else Schema.from_domain(self.domain)
        return decode(schema, self.codes(), seed=seed)

    def to_frame(self, kind: str | None = None, *, seed: int) -> Any:
        """The decoded records as a frame: of ``kind``, or of the kind that came in."""
        from sidelight.data.frames import from_arrow

        return from_arrow(self.decode(seed=seed), self.kind if kind is None else kind)


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
    opened: Any, source: Any, schema: Schema, engine: str | None, *, may_be_empty: bool
) -> Engine:
    from sidelight.data.engines.duckdb import DuckDBEngine, DuckDBSource
    from sidelight.data.engines.sql import SqlEngine, survey
    from sidelight.data.misfits import misfits_of_columns, misfits_of_values, require_fit
    from sidelight.data.read import describe

    what = describe(source)
    require_fit(misfits_of_columns(opened, schema), what=what)
    own = ("numpy", "duckdb") if isinstance(opened, DuckDBSource) else (opened.kind,)
    if engine is not None and engine not in own:
        raise SettingError(f"{what} can be counted by {' or '.join(map(repr, own))}; got {engine!r}.")
    if isinstance(opened, DuckDBSource) and (engine == "numpy" or (engine is None and not opened.is_large)):
        return _load(opened, schema, what, may_be_empty=may_be_empty)
    records, missing, outside = survey(opened, schema)
    require_fit(misfits_of_values(records, missing, outside, schema, may_be_empty=may_be_empty), what=what)
    if isinstance(opened, DuckDBSource):
        return DuckDBEngine(opened, schema, records=records)
    return SqlEngine(opened, schema, records=records)


def _load(opened: Any, schema: Schema, what: str, *, may_be_empty: bool) -> NumpyEngine:
    """Encode once, into memory; what is refused is found on the way."""
    from sidelight.data.engines.duckdb import encoded_columns, refused
    from sidelight.data.misfits import misfits_of_values, require_fit

    batches = list(encoded_columns(opened, schema))
    nothing = [np.zeros(0, dtype=np.uint8) for _ in schema.columns]
    columns = [np.concatenate(parts) for parts in zip(*batches, strict=True)] or nothing
    records = len(columns[0])
    found = [refused(column) for column in columns]
    missing, outside = [f[0] for f in found], [f[1] for f in found]
    require_fit(misfits_of_values(records, missing, outside, schema, may_be_empty=may_be_empty), what=what)
    return NumpyEngine(schema.domain, columns, records=records)
