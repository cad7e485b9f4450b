"""Dask: the same workers' code on another cluster. Records stay there; only counts come back.

    encode    each partition becomes blocks of codes (``spark_blocks.py``), which the cluster holds
    count     each partition's codes are counted, with the kernel that counts files (``partial.py``)
    add       counts of equal cells are added up, some partitions at a time, in the cluster
    return    the driver gets one number for each cell that is not empty

All that a further cluster has to bring is in this file: to run a function on every part of a table, to hold
what it made, and to add up. A task that is lost runs again by Dask, from the partition or from what is held.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sidelight._extras import need
from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines.base import Counts, Engine
from sidelight.data.engines.kept_records import Word
from sidelight.data.engines.partial import PartialEngine, count_part, distinct_of_part
from sidelight.data.engines.spark_blocks import MISSING, OUTSIDE, blocks, codes_of_blocks, kept_blocks, pieces
from sidelight.data.schema import Schema
from sidelight.errors import DataError, SidelightError
from sidelight.privacy.unit import Unit

_ADDED_AT_ONCE = 8
"""Partitions whose counts one task adds up."""
_MOST_BUCKETS = 64
"""Most groups into which people are split: each partition sends a piece to each of them."""

Summed = tuple[Sequence[Counts], Counts]
"""Keys, each of one or several whole numbers, an array a number; and how often each occurs."""
ToArrow = Callable[[Any, Schema, str | None], tuple[Any, tuple[str, ...], tuple[str, ...]]]


class DaskSource:
    """A Dask DataFrame. ``to_arrow`` turns a partition, a pandas frame, into Arrow, value by value."""

    kind = "dask"
    extra: tuple[str, ...] = ()

    def __init__(self, frame: Any, to_arrow: ToArrow) -> None:
        with silent_errors():  # Dask reads some tables, such as sorted ones, to see where partitions end
            self.names = tuple(str(name) for name in frame.columns)
            self._partitions, self._to_arrow = frame.to_delayed(), to_arrow
        self._held: tuple[Schema, Held] | None = None
        self._people: DaskPeople | None = None

    def blocks(self, schema: Schema) -> "Held":
        """The table's codes, which Dask holds; the same ones if they are asked for again."""
        if self._held is None or self._held[0] != schema:
            self._held = schema, self._mapped(_block, schema)
        return self._held[1]

    def people(self, schema: Schema, person: str) -> "DaskPeople":
        """The table's people, with the codes of their records, in pieces of one bucket of people each.

        They are the same ones if they are asked for again.
        """
        found = self._people
        if found is None or (found.schema, found.person) != (schema, person):
            buckets = min(len(self._partitions), _MOST_BUCKETS)
            pieces = self._mapped(_pieces, schema, person, buckets)
            found = self._people = DaskPeople(pieces, schema, person, buckets)
        return found

    def survey(self, schema: Schema, person: str | None) -> tuple[int, list[bool], list[bool]]:
        """How many records; which columns (the person's last) have missing values, which values outside."""
        columns = len(schema.columns)
        if person is None:
            return self.blocks(schema).survey(columns)
        return self.people(schema, person).pieces.survey(columns + 1)

    def _mapped(self, make: Callable[..., Any], schema: Schema, *more: Any) -> "Held":
        task = need("dask", "to count a Dask table").delayed(make)
        return Held([task(part, self._to_arrow, schema, *more) for part in self._partitions])


class Held:
    """Arrow tables, one a part, that tasks make once they are asked for; Dask holds them from then on."""

    def __init__(self, tasks: Sequence[Any]) -> None:
        self._tasks = tasks

    @cached_property
    def parts(self) -> tuple[Any, ...]:
        """The results of the tasks."""
        with silent_errors():
            return tuple(need("dask", "to count a Dask table").persist(*self._tasks))

    def survey(self, columns: int) -> tuple[int, list[bool], list[bool]]:
        """The number of records, and which of the columns have missing values, or values outside."""
        delayed = need("dask", "to count a Dask table").delayed
        with silent_errors():
            found = delayed(list)([delayed(_surveyed)(part, columns) for part in self.parts]).compute()
        flags = np.array([flag for _, flag in found], dtype=np.uint8).reshape(-1, columns)
        missing, outside = ([bool((flag & bit).any()) for flag in flags.T] for bit in (MISSING, OUTSIDE))
        return sum(records for records, _ in found), missing, outside

    def summed(self, count: Callable[..., Summed], *about: Any) -> Summed:
        """Keys and counts of all parts, the counts of equal keys added up."""
        delayed = need("dask", "to count a Dask table").delayed
        counts = [delayed(count)(part, *about) for part in self.parts]
        while len(counts) > 1:
            some = range(0, len(counts), _ADDED_AT_ONCE)
            counts = [delayed(_added)(counts[i : i + _ADDED_AT_ONCE]) for i in some]
        with silent_errors():
            found: Summed = counts[0].compute()
        return found


class DaskEngine(PartialEngine):
    """Counts codes that Dask holds, in its workers."""

    counting = "in Dask, by its workers"

    def __init__(self, blocks: Held, schema: Schema, *, records: int) -> None:
        super().__init__(schema.domain, records=records)
        self._blocks = blocks

    def _cells(
        self, places: Sequence[int], domain: Domain, marginals: Sequence[Attrs]
    ) -> tuple[Counts, Counts]:
        # PRIVACY: what is expected decides on speed alone; counts are the same.
        expected = self.records // len(self._blocks.parts)
        (cells,), counts = self._blocks.summed(_counted, places, domain, marginals, expected)
        return cells, counts

    def _distinct_words(self) -> tuple[Sequence[Word], Counts]:
        return self._blocks.summed(_distinct, self.domain)


@dataclass(frozen=True)
class DaskPeople:
    """Who records on a cluster are about, split into buckets of people there."""

    pieces: Held
    schema: Schema
    person: str
    buckets: int
    names: None = None

    def survey(self) -> tuple[int, bool, bool]:
        """How many records there are; whether some name nobody; whether something in them was refused."""
        records, missing, outside = self.pieces.survey(len(self.schema.columns) + 1)
        return records, missing[-1], any(missing[:-1] + outside)

    def keeping(self, engine: Engine, unit: Unit, key: str) -> DaskEngine:
        delayed = need("dask", "to count a Dask table").delayed
        together = [
            [delayed(_of_bucket)(part, bucket) for part in self.pieces.parts]
            for bucket in range(self.buckets)
        ]
        keep = delayed(_kept)
        kept = Held([keep(some, self.schema.domain, unit.records, key) for some in together])
        return DaskEngine(kept, self.schema, records=kept.survey(len(self.schema.columns))[0])


def brought_here(frame: Any) -> Any:
    """The whole of a Dask DataFrame as a pandas frame."""
    with silent_errors():
        return frame.compute()


@contextlib.contextmanager
def silent_errors() -> Iterator[None]:
    """Whatever reads a partition may quote its values, in errors and warnings: keep the fact of an error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except SidelightError:
        raise
    except Exception as error:  # noqa: BLE001  # readers of partitions are the caller's, and fail in any way
        raise DataError(f"Dask could not read the table ({type(error).__name__}).") from None


# In the workers ----------------------------------------------------------------------------------------


def _block(frame: Any, to_arrow: ToArrow, schema: Schema) -> Any:
    table, names, _ = to_arrow(frame, schema, None)
    return _table(blocks(table.to_batches(), schema, names))


def _pieces(frame: Any, to_arrow: ToArrow, schema: Schema, person: str, buckets: int) -> Any:
    table, names, _ = to_arrow(frame, schema, person)
    return _table(pieces(table.to_batches(), schema, names, person, buckets=buckets))


def _of_bucket(table: Any, bucket: int) -> Any:
    return None if table is None else table.filter(np.equal(table.column("bucket").to_numpy(), bucket))


def _kept(tables: Sequence[Any], domain: Domain, records: int, key: str) -> Any:
    batches = [
        batch.select(["bucket", "flags", "held"])
        for table in tables
        if table is not None
        for batch in table.to_batches()
    ]
    return _table(kept_blocks(batches, domain, records=records, key=key))


def _table(batches: Iterator[Any]) -> Any:
    """One table of these batches; None of none, which have no columns."""
    import pyarrow as pa

    made = list(batches)
    return pa.Table.from_batches(made) if made else None


def _surveyed(table: Any, columns: int) -> tuple[int, list[int]]:
    if table is None:
        return 0, [0] * columns
    flags = np.frombuffer(b"".join(table.column("flags").to_pylist()), np.uint8).reshape(-1, columns)
    return sum(table.column("n").to_pylist()), np.bitwise_or.reduce(flags, axis=0).tolist()


def _counted(
    table: Any, places: Sequence[int], domain: Domain, marginals: Sequence[Attrs], expected: int
) -> Summed:
    asked = ["n", "flags", *(f"a{place}" for place in places)]
    batches = [] if table is None else table.select(asked).to_batches()
    cells, counts = count_part(codes_of_blocks(batches, domain), domain, marginals, expected=expected)
    return [cells], counts


def _distinct(table: Any, domain: Domain) -> Summed:
    nothing = [np.zeros(0, np.uint8)] * len(domain)
    found = codes_of_blocks([] if table is None else table.to_batches(), domain)
    return _added([distinct_of_part(codes, domain) for codes in (nothing, *found)])


def _added(parts: Sequence[Summed]) -> Summed:
    """Counts of equal keys as one.

    >>> one, other = ([np.array([3, 5])], np.array([1, 2])), ([np.array([5, 8])], np.array([4, 1]))
    >>> _added([one, other])
    ([array([3, 5, 8])], array([1, 6, 1]))
    """
    keys = np.concatenate([np.array(keys) for keys, _ in parts], axis=1)
    found, which = np.unique(keys, axis=1, return_inverse=True)
    times = np.zeros(found.shape[1], dtype=np.int64)
    np.add.at(times, which.reshape(-1), np.concatenate([times for _, times in parts]))
    return list(found), times
