"""What came in as a type of its library comes out so, by way of a schema drafted from a public frame."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from cards import card_of
from sidelight.data.columns.column import CategoricalColumn, IntegerColumn
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import SchemaError
from sidelight.models.support import Support
from sidelight.releases.release import Release

RECORDS = 60
LEVELS = ["low", "mid", "high"]


def came_out(public, **how):
    """A release's sample under a schema that was drafted from this frame, and written and read again."""
    schema = Schema.from_toml(Schema.draft(public, **how).to_toml())
    table = Table.read(public, schema)
    model = Support.of_table(table, total=RECORDS)
    return Release(model, (), card_of(model), schema, table.kind).sample(seed=3)


def pandas_frame():
    import pandas as pd

    n = np.arange(RECORDS)
    when = pd.Series(pd.date_range("2020-01-01 10:00", periods=RECORDS, freq="9h"))
    return pd.DataFrame(
        {
            "int8": pd.Series(n % 50, dtype="int8"),
            "Int16": pd.Series([None if i % 7 == 0 else i for i in n], dtype="Int16"),
            "int64": n * 3,
            "holes": pd.Series([np.nan if i % 9 == 0 else i for i in n]),
            "float32": pd.Series(n / 4, dtype="float32"),
            "boolean": pd.Series([None if i % 5 == 0 else bool(i % 2) for i in n], dtype="boolean"),
            "bool": n % 2 == 0,
            "text": [f"t{i % 3}" for i in n],
            "string": pd.Series([f"t{i % 3}" for i in n], dtype="string"),
            "category": pd.Categorical([f"t{i % 3}" for i in n]),
            "ordered": pd.Categorical([LEVELS[i % 3] for i in n], LEVELS, ordered=True),
            "when": when.astype("datetime64[ns]"),
            "zoned": when.dt.tz_localize("Europe/Berlin").astype("datetime64[ns, Europe/Berlin]"),
            "day": pd.Series(pd.date_range("2020-01-01", periods=RECORDS)).astype("datetime64[s]"),
        }
    )  # fmt: skip


def test_pandas_types_come_back():
    frame = pandas_frame()

    made = came_out(frame)

    assert {name: str(dtype) for name, dtype in made.dtypes.items()} == {
        name: str(dtype) for name, dtype in frame.dtypes.items()
    }
    assert made["ordered"].cat.ordered
    assert list(made["ordered"].cat.categories) == LEVELS
    assert made["zoned"].dt.tz.key == "Europe/Berlin"
    assert (made["day"] == made["day"].dt.normalize()).all()


def arrow_table():
    n = np.arange(RECORDS)
    moments = [dt.datetime(2020, 1, 1, 10) + dt.timedelta(hours=9 * int(i)) for i in n]
    words = pa.array([f"t{i % 3}" for i in n])
    return pa.table(
        {
            "int16": pa.array([None if i % 7 == 0 else int(i) for i in n], pa.int16()),
            "uint8": pa.array(n % 50, pa.uint8()),
            "float32": pa.array(n / 4, pa.float32()),
            "decimal": pa.array((n * 100 + 25).tolist(), pa.decimal128(12, 0)).cast(pa.decimal128(12, 2)),
            "large": words.cast(pa.large_string()),
            "dictionary": words.dictionary_encode(),
            "date32": pa.array([m.date() for m in moments], pa.date32()),
            "ms": pa.array(moments, pa.timestamp("ms")),
            "zoned": pa.array(moments, pa.timestamp("ns", tz="America/New_York")),
            "clock": pa.array([m.time() for m in moments], pa.time64("us")),
            "bool": pa.array([bool(i % 2) for i in n]),
        }
    )


def test_arrow_types_come_back():
    table = arrow_table()

    assert came_out(table).schema.types == table.schema.types


def test_polars_types_come_back():
    polars = pytest.importorskip("polars")
    n = list(range(RECORDS))
    moments = [dt.datetime(2020, 1, 1, 10) + dt.timedelta(hours=9 * i) for i in n]
    frame = polars.DataFrame(
        {
            "int16": polars.Series([None if i % 7 == 0 else i for i in n], dtype=polars.Int16),
            "float32": polars.Series([i / 4 for i in n], dtype=polars.Float32),
            "text": [f"t{i % 3}" for i in n],
            "categorical": polars.Series([f"t{i % 3}" for i in n], dtype=polars.Categorical),
            "enum": polars.Series([LEVELS[i % 3] for i in n], dtype=polars.Enum(LEVELS)),
            "date": [m.date() for m in moments],
            "ms": polars.Series(moments, dtype=polars.Datetime("ms")),
            "zoned": polars.Series(moments, dtype=polars.Datetime("us", "Europe/Berlin")),
            "time": [m.time() for m in moments],
            "bool": [bool(i % 2) for i in n],
        }
    )

    made = came_out(frame)

    assert made.schema == frame.schema


@pytest.mark.spark
@pytest.mark.slow
def test_spark_types_come_back(spark):
    from pyspark.sql import functions

    frame = spark.range(RECORDS).select(
        functions.col("id").cast("int").alias("n"),
        functions.expr("CAST(id AS decimal(12,2)) / 4").cast("decimal(12,2)").alias("amount"),
        functions.expr("date_add(DATE'2020-01-01', CAST(id AS int))").alias("day"),
        functions.expr("CAST(CONCAT('t', id % 3) AS string)").alias("word"),
        functions.expr("id % 2 = 0").alias("truth"),
    )

    assert came_out(frame).dtypes == frame.dtypes


def test_the_type_of_a_private_frame_changes_nothing():
    """One missing value makes int64 float64; the synthetic frame is the same in type."""
    import pandas as pd

    schema = Schema(
        (IntegerColumn("n", low=0, high=9, missing=True), CategoricalColumn("s", ("a", "b"), outside="other"))
    )
    found = []
    for n, s in (([1, 2], ["a", "b"]), ([1, None], ["a", 7]), ([1.5, "x"], pd.Categorical(["a", "z"]))):
        frame = pd.DataFrame({"n": n, "s": s})
        schema_here = Schema(
            (IntegerColumn("n", low=0, high=9, missing=True, outside="other"), schema.columns[1])
        )
        table = Table.read(frame, schema_here)
        made = Table.of_codes(
            schema_here.domain, np.zeros((2, 2), dtype=int), schema=schema_here, kind=table.kind
        )
        found.append([str(dtype) for dtype in made.to_frame(seed=1).dtypes])

    assert found[0] == found[1] == found[2]


def test_a_type_that_cannot_hold_the_values_is_said_and_left():
    schema = Schema((CategoricalColumn("s", ("a", "b"), dtype="pandas:int8"),))
    table = Table.of_codes(schema.domain, np.zeros((2, 1), dtype=int), schema=schema, kind="pandas")

    with pytest.warns(UserWarning, match="column 's' cannot be held as int8"):
        made = table.to_frame(seed=1)

    assert made["s"].tolist() == ["a", "a"]
    with pytest.raises(SchemaError, match="dtype must name a library"):
        CategoricalColumn("s", ("a",), dtype="int8")
