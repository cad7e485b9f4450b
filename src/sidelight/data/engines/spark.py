"""Spark: the same SQL on a cluster. Records stay there; only counts come back.

How a table becomes one of codes stands here; how these are counted, in ``spark_counting.py``.
"""

import contextlib
import uuid
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight._extras import need
from sidelight.data.engines.base import ValueKind
from sidelight.data.engines.sql_encoding import Dialect, Part
from sidelight.errors import DataError

_TYPES: dict[str, ValueKind] = {
    "string": "text",
    "boolean": "boolean",
    "float": "real",
    "double": "real",
    "tinyint": "integer",
    "smallint": "integer",
    "int": "integer",
    "bigint": "integer",
    "void": "integer",
    "date": "date",
    "timestamp_ntz": "timestamp",
    "timestamp": "instant",
    "binary": "bytes",
}


class SparkDialect(Dialect):
    """Spark's words."""

    def text(self, text: str) -> str:
        # PRIVACY: settings decide what a backslash, two quotes and ${…} mean in a literal. Bytes are bytes.
        return f"CAST(X'{text.encode().hex()}' AS STRING)"

    def matches(self, expression: str, pattern: str) -> str:
        # To Java $ also stands before a last line break.
        whole = pattern.replace("$", "\\z")
        return f"({expression} RLIKE {self.text(whole)})"

    def days(self, expression: str) -> str:
        return f"datediff(CAST({expression} AS DATE), DATE'1970-01-01')"

    def timestamp(self, expression: str) -> str:
        return f"({self.seconds(expression, 'date')} + {self.clock(expression)})"

    def instant(self, expression: str) -> str:
        return f"CAST(unix_seconds({expression}) AS DOUBLE)"

    def sha256(self, expression: str) -> str:
        return f"LEFT(sha2({expression}, 256), 16)"

    def hexadecimal_number(self, expression: str) -> str:
        return f"CAST(conv({expression}, 16, 10) AS BIGINT)"

    def code(self, expression: str, size: int) -> str:
        return expression

    def quotient(self, expression: str, divisor: int) -> str:
        return f"({expression} div {divisor})"

    def decoded(self, expression: str) -> str:
        return f"decode({expression}, 'UTF-8')"

    def blob(self, text: str) -> str:
        return f"X'{text.encode().hex()}'"


class SparkSource:
    """A Spark DataFrame, or a table by its name."""

    kind = "spark"
    extra: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    dialect: Dialect = SparkDialect(varchar="STRING")
    holds = True

    def __init__(self, frame: Any) -> None:
        self.blocks: tuple[Any, Any] | None = None
        """A schema, and the codes that workers made by it (``spark_counting.blocks_of``)."""
        self.relation = f"sidelight_{uuid.uuid4().hex}"
        with silent_errors():
            self.session = frame.sparkSession
            self.names = tuple(frame.columns)
            self.types = tuple(_kind_of(field.dataType.simpleString()) for field in frame.schema.fields)
            # Spark compares names without regard to case: by position there is no doubt.
            numbered = frame.toDF(*[f"c{place}" for place in range(len(self.names))])
            numbered.createOrReplaceTempView(self.relation)

    @classmethod
    def of_table(cls, name: str) -> "SparkSource":
        """The table of this name in the active Spark session's catalogue."""
        session = need("pyspark.sql", "to count a Spark table").SparkSession.getActiveSession()
        if session is None:
            raise DataError(f"there is no active Spark session in which to look for the table {name!r}.")
        errors = need("pyspark.errors", "to count a Spark table")
        try:
            return cls(session.table(name))
        except errors.PySparkException:
            raise DataError(f"the Spark session has no table {name!r} that can be read.") from None

    def fetch(self, sql: str) -> list[npt.NDArray[np.int64]]:
        with silent_errors():
            return columns_of(self.session.sql(sql))

    def fetch_labels(self, sql: str) -> list[tuple[str, int]]:
        with silent_errors():
            labels, numbers = (column.to_pylist() for column in brought_here(self.session.sql(sql)).columns)
        return [(label, int(number)) for label, number in zip(labels, numbers, strict=True)]

    def to_arrow(self, places: Sequence[int]) -> Any:
        with silent_errors():
            lines = self.session.table(self.relation).select(*[f"c{place}" for place in places])
            return brought_here(lines).rename_columns([self.names[place] for place in places])

    def holding(self, sql: str, names: Sequence[str]) -> "SparkSource":
        # It stays on the cluster until nobody asks any more.
        with silent_errors():
            frame = self.session.sql(sql).persist()
        held = SparkSource(frame)
        held.names = tuple(names)
        weakref.finalize(held, forget, frame).atexit = False
        return held


def columns_of(lines: Any) -> list[npt.NDArray[np.int64]]:
    """The columns of a frame of whole numbers, brought here."""
    return [column.to_numpy().astype(np.int64) for column in brought_here(lines).columns]


def brought_here(lines: Any) -> Any:
    """A frame as a pyarrow table, with all of its lines or not at all.

    ``collect`` of PySpark takes the end of a connection for the last line, so nobody would miss the lines
    that a failing network swallowed. Arrow's stream says that it has ended, and one line with a list of all
    lines is there or not.
    """
    if hasattr(lines, "toArrow"):
        return lines.toArrow()
    import pyarrow as pa

    functions = need("pyspark.sql.functions", "to count a Spark table")
    found = lines.select(functions.collect_list(functions.struct("*"))).collect()
    if not found:
        raise ConnectionError
    ((listed,),) = found
    names = [f"c{place}" for place in range(len(lines.columns))]
    return pa.table({name: [line[place] for line in listed] for place, name in enumerate(names)})


@contextlib.contextmanager
def silent_errors() -> Iterator[None]:
    """Spark quotes values in its messages: keep the fact, drop the text."""
    import pyarrow as pa

    errors = need("pyspark.errors", "to count a Spark table")
    java = need("py4j.protocol", "to count a Spark table")
    try:
        yield
    except errors.PySparkException as error:
        raise DataError(f"Spark could not read the table ({type(error).__name__}).") from None
    except (java.Py4JError, OSError, EOFError, OverflowError, pa.ArrowException):
        # A result that breaks off is no whole Arrow stream.
        raise DataError(
            "no whole result came back from Spark: its Java process ended, the network to it failed, or a "
            "column has a type that cannot be brought here. Repeat the call, in a new session if this one "
            "does not answer any more."
        ) from None


def forget(frame: Any) -> None:
    """Give back what a frame holds; a session that has ended holds nothing any more."""
    with contextlib.suppress(Exception):
        frame.unpersist()


def _kind_of(spark_type: str) -> ValueKind | None:
    if spark_type.startswith(("decimal", "varchar", "char")):
        return "decimal" if spark_type.startswith("decimal") else "text"
    return _TYPES.get(spark_type)
