"""Which engine counts a table that is not in memory, and checks it before."""

from sidelight.data.engines.base import Engine
from sidelight.data.engines.dask import DaskEngine, DaskSource
from sidelight.data.engines.duckdb import DuckDBEngine, DuckDBSource
from sidelight.data.engines.spark import SparkSource
from sidelight.data.engines.spark_counting import SparkEngine, SparkSqlEngine, blocks_of, has_workers
from sidelight.data.engines.sql import SqlEngine, survey
from sidelight.data.engines.sql_encoding import SqlSource
from sidelight.data.schema import Schema


def engine_of(source: SqlSource | DaskSource, schema: Schema, *, records: int) -> Engine:
    """The engine that counts where this table is."""
    if isinstance(source, DuckDBSource):
        return DuckDBEngine(source, schema, records=records)
    if isinstance(source, DaskSource):
        return DaskEngine(source.blocks(schema), schema, records=records)
    if isinstance(source, SparkSource):
        if has_workers(source.session):
            return SparkEngine(blocks_of(source, schema), schema, records=records)
        return SparkSqlEngine(source, schema, records=records)
    return SqlEngine(source, schema, records=records)


def surveyed(
    source: SqlSource | DaskSource, schema: Schema, person: str | None
) -> tuple[int, list[bool], list[bool]]:
    """``sql.survey``, by the engine that will count the table."""
    if isinstance(source, DaskSource):
        return source.survey(schema, person)
    if isinstance(source, SparkSource) and person is None and has_workers(source.session):
        records, *found = blocks_of(source, schema).survey()
        missing, outside = (flags or [False] * len(schema.columns) for flags in found)
        return records, missing, outside
    return survey(source, schema, person)
