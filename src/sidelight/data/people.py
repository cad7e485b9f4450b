"""Who each record is about, and a table with at most k records of each person.

A table with people is read whole, so that it can be checked and recognised; ``keeping`` then gives the
table that a curator may hold. Which records are kept, ``engines/kept_records.py`` says. Records on a cluster
or in a database stay there, and so do the names of people (``engines/sql_people.py``).
"""

import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sidelight.data.engines.base import Engine
from sidelight.data.engines.kept_records import Word, kept_of_named, kept_of_sorted, packed
from sidelight.data.engines.numpy import NumpyEngine
from sidelight.data.engines.sql import records_in
from sidelight.data.engines.sql_encoding import Part, SqlSource, encode_sql
from sidelight.data.engines.sql_people import kept_sql, packed_sql, person_of, word_names
from sidelight.data.reading import frames
from sidelight.data.reading.read import files_of, open_source
from sidelight.data.schema import Schema
from sidelight.errors import SettingError
from sidelight.privacy.unit import Unit
from sidelight.sources import is_postgres

if TYPE_CHECKING:
    from sidelight.data.engines.dask import DaskSource
    from sidelight.data.engines.duckdb import DuckDBSource

COVERED = 0.95
"""``records = "auto"``: the share of people of whom no record is left out."""


class People(Protocol):
    """Who the records of an engine are about."""

    @property
    def names(self) -> Any:
        """One text a record, as Arrow; None where they are not in memory."""
        ...

    @property
    def person(self) -> str:
        """The column that names them."""
        ...

    def keeping(self, engine: Engine, unit: Unit, key: str) -> Engine:
        """At most ``unit.records`` records of each person, chosen under the key."""
        ...


@dataclass(frozen=True)
class PeopleHere:
    """People of records in memory."""

    names: Any
    person: str

    def keeping(self, engine: Engine, unit: Unit, key: str) -> NumpyEngine:
        assert isinstance(engine, NumpyEngine)
        words = packed(engine.columns, engine.domain.shape)
        kept = kept_of_named(self.names, words, records=unit.records, key=key)
        columns = [column[kept] for column in engine.columns]
        return NumpyEngine(engine.domain, columns, records=int(kept.sum()))


@dataclass(frozen=True)
class PeopleThere:
    """People of records that stay where they are."""

    packed: SqlSource
    """Who each record is about, and its codes as few numbers (``engines/sql_people.py``)."""
    schema: Schema
    person: str
    names: None = None

    @classmethod
    def of(cls, source: SqlSource, schema: Schema, person: str) -> "PeopleThere":
        """People of a table; DuckDB reads it once, and holds what was read."""
        return cls(_packed(source, schema, person), schema, person)

    def survey(self) -> tuple[int, bool, bool]:
        """How many records there are; whether some name nobody; whether something in them was refused."""
        flags = ["p IS NULL", "w0 < 0"]
        found = ", ".join(f"COALESCE(MAX(CASE WHEN {flag} THEN 1 ELSE 0 END), 0)" for flag in flags)
        packed = f"{self.packed.relation} AS packed({', '.join(self.packed.names)})"
        fetched = self.packed.fetch(f"SELECT COUNT(*), {found} FROM {packed}")
        records, *is_found = (int(column[0]) for column in fetched)
        return records, bool(is_found[0]), bool(is_found[1])

    def keeping(self, engine: Engine, unit: Unit, key: str) -> Engine:
        from sidelight.data.engines.duckdb import DuckDBEngine, DuckDBSource

        shape, packed = self.schema.domain.shape, self.packed
        coded = Schema.from_domain(self.schema.domain)
        if isinstance(packed, DuckDBSource):
            held = packed.holding_words(_kept_words(packed, shape, unit, key), self.schema.domain)
            return DuckDBEngine(held, coded, records=records_in(held))
        return self.keeping_there(unit, key)

    def keeping_there(self, unit: Unit, key: str) -> Engine:
        """The same in SQL, for records that stay in a database or on a cluster."""
        from sidelight.data.engines.choice import engine_of

        packed, domain = self.packed, self.schema.domain
        sql = kept_sql(packed.dialect, packed.relation, domain.shape, records=unit.records, key=key)
        there = packed.holding(sql, domain.attrs)
        return engine_of(there, Schema.from_domain(domain), records=records_in(there))


class SurveyedPeople(People, Protocol):
    """People of records that stay where they are, checked there."""

    def survey(self) -> tuple[int, bool, bool]:
        """How many records there are; whether some name nobody; whether something in them was refused."""
        ...


def people_there(source: "SqlSource | DaskSource", schema: Schema, person: str) -> SurveyedPeople:
    """The people of a table that is not in memory, by the engine that counts it."""
    from sidelight.data.engines.dask import DaskSource
    from sidelight.data.engines.spark import SparkSource
    from sidelight.data.engines.spark_counting import has_workers, people_of

    if isinstance(source, DaskSource):
        return source.people(schema, person)
    if isinstance(source, SparkSource) and has_workers(source.session):
        return people_of(source, schema, person)
    return PeopleThere.of(source, schema, person)


def people_key(key: str) -> str:
    """The key for choosing records, from another key that is kept in the same place.

    PRIVACY: it is derived one way, so neither can be found from the other, and it is published nowhere.
    """
    return hmac.new(bytes.fromhex(key), b"which records of a person are kept", "sha256").hexdigest()


def chosen_records(unit: Unit, public: Any, schema: Schema) -> Unit:
    """The unit; where its records are "auto", with as many as ``COVERED`` of the public people have."""
    if not unit.is_auto:
        return unit
    assert unit.person is not None
    for source in public if isinstance(public, list | tuple) else [public]:
        if _can_be_opened(source):
            opened = open_source(source, schema, unit.person)
            if unit.person in opened.names:
                return unit.with_records(_covering(records_a_person(opened, unit.person)))
    raise SettingError(
        f'records = "auto" needs public data with the column {unit.person!r}, to see how many records people '
        "have. Give such a table, or a number; or pay for one: `sidelight discover … --records`. Nothing was "
        "read of the private table, and nothing was charged."
    )


def records_a_person(source: SqlSource, person: str) -> dict[int, int]:
    """How many people have so many records; records that name nobody are left out."""
    place = source.names.index(person)
    parts = source.parts or (Part(source.relation, source.types),)
    named = ", ".join(f"c{i}" for i in range(len(source.names)))
    who = " UNION ALL ".join(
        f"SELECT {person_of(source.dialect, f'c{place}', part.types[place])[0]} AS p "
        f"FROM {part.relation} AS raw({named})"
        for part in parts
    )
    own = f"SELECT p, COUNT(*) AS m FROM ({who}) AS who WHERE p IS NOT NULL GROUP BY p"
    many, often = source.fetch(f"SELECT m, COUNT(*) AS n FROM ({own}) AS own GROUP BY m")
    return dict(zip(many.tolist(), often.tolist(), strict=True))


def _covering(found: dict[int, int]) -> int:
    """The least number of records that ``COVERED`` of the people do not exceed."""
    reached, wanted = 0, COVERED * sum(found.values())
    for records in sorted(found):
        reached += found[records]
        if reached >= wanted:
            return records
    return 1


def _can_be_opened(source: Any) -> bool:
    """Whether this is a table, and not a release or the folder of a prior."""
    if isinstance(source, str | Path):
        return bool(files_of(str(source))) or is_postgres(str(source)) or str(source).startswith("spark:")
    return frames.kind_of(source) is not None


def _packed(source: SqlSource, schema: Schema, person: str) -> SqlSource:
    """Who each record is about, and its codes as few numbers; held where the engine can hold them."""
    shape = schema.domain.shape
    sql = packed_sql(encode_sql(source, schema, person), shape)
    return source.holding(sql, ("p", *word_names(shape)))


def _kept_words(source: "DuckDBSource", shape: Sequence[int], unit: Unit, key: str) -> Iterator[list[Word]]:
    """The records that are kept, batch by batch; DuckDB sorts all of them by person."""
    words = ", ".join(word_names(shape))
    batches = source.stream(f"SELECT p, {words} FROM {source.relation} ORDER BY p NULLS FIRST, {words}")
    return kept_of_sorted(batches, records=unit.records, key=key)
