"""What Python workers beside Spark's executors make of records, so that Spark moves few lines.

    raw      Arrow batches of the columns, as Spark holds them
    block    one line for many records: the codes of each attribute are one value of bytes
    piece    one line for many records of one bucket of people: who they are about and their codes, as Arrow

Records are encoded by DuckDB, in the worker, by the SQL that encodes files. Spark could run the same SQL, but
Java does not compile what it makes of some 15 columns, and is then many times slower. Java handles lines one
value at a time, so lines that hold many records cost it next to nothing.

PRIVACY: all of this runs, and all of it stays, on the cluster. Which bucket a person is in depends on the
name alone, so all records of one person meet in one worker, which keeps k of them (``kept_records.py``).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight.data.domain import Domain
from sidelight.data.engines.base import smallest_dtype
from sidelight.data.engines.duckdb import VIEW, DuckDBSource, connect, encoded_batches, refused
from sidelight.data.engines.kept_records import Word, kept_of_named, packed, unpacked
from sidelight.data.engines.sql_people import word_names
from sidelight.data.schema import Schema
from sidelight.errors import DataError

MISSING, OUTSIDE = 1, 2
"""Bits of a flag: what was refused among the values of one column. There is one byte of flags a column."""
_BYTES_AT_ONCE = 1 << 25
"""Raw bytes that are encoded together: DuckDB plans each query anew, and Spark hands over smaller batches."""
_BYTES_OF_BLOCK = 1 << 18
"""Codes in a line: Java clears away larger values far more slowly."""
_SPLIT_AT_ONCE = 1 << 20
"""Records that are split into buckets together: fewer would make many small pieces."""
_LETTERS = 32
"""The last bytes of a name that decide on its bucket."""

Column = npt.NDArray[np.unsignedinteger]


def columns_of_blocks(schema: Schema) -> str:
    """The columns of a block, in Spark's words."""
    return ", ".join(["n bigint", "flags binary", *(f"a{i} binary" for i in range(len(schema.columns)))])


COLUMNS_OF_PIECES = "bucket int, n bigint, flags binary, held binary"


def blocks(batches: Iterable[Any], schema: Schema, names: Sequence[str]) -> Iterator[Any]:
    """Raw batches, whose columns have these names, as blocks."""
    for table in _encoded(batches, schema, names, None):
        codes = [column.to_numpy() for column in table.columns]
        yield from _blocks(codes, _flags(codes))


def codes_of_blocks(batches: Iterable[Any], domain: Domain) -> Iterator[list[Column] | None]:
    """The codes in each block, an array an attribute; None where some value was refused.

    Batches have the columns n, flags, and those of the domain's attributes.
    """
    dtypes = [_dtype(size) for size in domain.shape]
    for batch in batches:
        for line in range(batch.num_rows):
            if any(batch.column(1)[line].as_py()):
                yield None
                continue
            held = [column[line].as_buffer() for column in batch.columns[2:]]
            yield [np.frombuffer(value, dtype) for value, dtype in zip(held, dtypes, strict=True)]


def pieces(
    batches: Iterable[Any], schema: Schema, names: Sequence[str], person: str, *, buckets: int
) -> Iterator[Any]:
    """Raw batches as pieces; the last flag is that of ``person``."""
    import pyarrow as pa

    shape = schema.domain.shape
    found: list[Any] = []
    flags = bytes(len(shape) + 1)
    for table in _encoded(batches, schema, names, person):
        codes = [column.to_numpy() for column in table.columns[:-2]]
        flags = _or(flags, _flags(codes) + _flag_of_person(table))
        words = packed(codes, shape)
        found.append(pa.table([table.column("p"), *words], names=["p", *word_names(shape)]))
        if sum(map(len, found)) >= _SPLIT_AT_ONCE:
            yield from _split(pa.concat_tables(found), flags, buckets)
            found = []
    if found:
        yield from _split(pa.concat_tables(found), flags, buckets)


def kept_blocks(batches: Iterable[Any], domain: Domain, *, records: int, key: str) -> Iterator[Any]:
    """At most ``records`` records of each person, as blocks, from pieces that are sorted by bucket."""
    import pyarrow as pa

    for _, lines in groupby(_lines(batches), key=lambda line: line[0]):
        held, flags = [], bytes(len(domain))
        for _, more, piece in lines:
            flags = _or(flags, more[:-1])
            held.append(pa.ipc.open_stream(piece).read_all())
        table = pa.concat_tables(held)
        words = [table.column(name).to_numpy() for name in word_names(domain.shape)]
        kept = kept_of_named(table.column("p").dictionary_encode(), words, records=records, key=key)
        codes = unpacked([word[kept] for word in words], domain.shape, range(len(domain)))
        yield from _blocks([c.astype(_dtype(m)) for c, m in zip(codes, domain.shape, strict=True)], flags)


def bucket_of(names: Any, words: Sequence[Word], buckets: int) -> npt.NDArray[np.uint16]:
    """The bucket of each record: by its person's name, or by its codes where nobody is named.

    PRIVACY: a name has the same bucket whatever other names there are; else k records could be kept twice.

    >>> import pyarrow as pa
    >>> bucket_of(pa.array(["p1", "p2", None, "p1"]), [np.array([5, 5, 5, 6])], 1000).tolist()
    [303, 238, 959, 303]
    """
    _, ends, letters = names.buffers()
    place = np.frombuffer(ends, np.int32)[names.offset : names.offset + len(names) + 1]
    text = np.frombuffer(letters, np.uint8) if letters is not None else np.zeros(0, np.uint8)
    lengths = np.diff(place)
    mixed = lengths.astype(np.uint64)
    for back in range(1, min(int(lengths.max(initial=0)), _LETTERS) + 1):
        has = np.flatnonzero(lengths >= back)
        mixed[has] = mixed[has] * np.uint64(31) + text[place[has + 1] - back]
    nobody = np.flatnonzero(np.asarray(names.is_null()))
    for word in words:
        mixed[nobody] = mixed[nobody] * np.uint64(31) + word[nobody].astype(np.uint64)
    # Fibonacci hashing: the upper half of a product with 2⁶⁴ over the golden ratio.
    spread = (mixed * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return (spread % np.uint64(buckets)).astype(np.uint16)


def _encoded(
    batches: Iterable[Any], schema: Schema, names: Sequence[str], person: str | None
) -> Iterator[Any]:
    """Arrow tables of codes a0, a1, …; with ``person``, also p and pu (``duckdb.encoded_batches``)."""
    import pyarrow as pa

    connection = connect(threads=1)
    for raw in _together(batches):
        connection.register(VIEW, _readable(raw.rename_columns(list(names))))
        source = DuckDBSource(connection.table(VIEW), kind="spark", names=names, owner=connection)
        yield pa.Table.from_batches(list(encoded_batches(source, schema, person))).combine_chunks()
        connection.unregister(VIEW)


def _readable(table: Any) -> Any:
    """The same table; text that is no UTF-8, which Spark holds without asking, as the bytes that it is."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            try:
                table.column(place).validate(full=True)
            except pa.ArrowInvalid:
                table = table.set_column(place, field.name, table.column(place).cast(pa.binary()))
    return table


def _together(batches: Iterable[Any]) -> Iterator[Any]:
    """The same records as fewer, larger tables, and no empty one."""
    import pyarrow as pa

    held: list[Any] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size >= _BYTES_AT_ONCE:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _blocks(codes: Sequence[Column], flags: bytes) -> Iterator[Any]:
    import pyarrow as pa

    records = max(_BYTES_OF_BLOCK // sum(code.itemsize for code in codes), 1)
    for start in range(0, len(codes[0]), records):
        some = [code[start : start + records] for code in codes]
        columns = {f"a{i}": pa.array([code.tobytes()], pa.binary()) for i, code in enumerate(some)}
        about = {"n": pa.array([len(some[0])], pa.int64()), "flags": pa.array([flags], pa.binary())}
        yield pa.RecordBatch.from_pydict(about | columns)


def _split(table: Any, flags: bytes, buckets: int) -> Iterator[Any]:
    """Pieces of a table of p and words, one for each bucket that is not empty."""
    import pyarrow as pa

    table = table.combine_chunks()
    if table.column("p").num_chunks > 1:  # Arrow holds 2 GiB of text in one
        raise DataError("the names of people are too long for Spark's workers: shorten them, or number them.")
    words = [column.to_numpy() for column in table.columns[1:]]
    bucket = bucket_of(table.column("p").chunk(0), words, buckets)
    table = table.take(pa.array(np.argsort(bucket, kind="stable")))
    sizes = np.bincount(bucket, minlength=buckets)
    starts = np.cumsum(sizes) - sizes
    for own in np.flatnonzero(sizes).tolist():
        sink = pa.BufferOutputStream()
        some = table.slice(int(starts[own]), int(sizes[own])).combine_chunks()
        with pa.ipc.new_stream(sink, some.schema) as writer:
            writer.write_table(some)
        line = [[own], [int(sizes[own])], [flags], [sink.getvalue().to_pybytes()]]
        types = (pa.int32(), pa.int64(), pa.binary(), pa.binary())
        arrays = [pa.array(value, kind) for value, kind in zip(line, types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=["bucket", "n", "flags", "held"])


def _lines(batches: Iterable[Any]) -> Iterator[tuple[int, bytes, Any]]:
    """The bucket, flags and bytes of each piece."""
    for batch in batches:
        bucket, flags, held = batch.columns
        for line in range(batch.num_rows):
            yield bucket[line].as_py(), flags[line].as_py(), held[line].as_buffer()


def _flags(codes: Sequence[Column]) -> bytes:
    found = (refused(column) for column in codes)
    return bytes([MISSING * is_missing + OUTSIDE * is_outside for is_missing, is_outside in found])


def _flag_of_person(table: Any) -> bytes:
    """Whether some records name nobody, and whether some name people in a way that cannot be read."""
    from pyarrow import compute

    unread = table.column("pu")
    nameless = compute.and_(table.column("p").is_null(), compute.invert(unread))
    is_found = [bool(compute.any(which, min_count=0).as_py()) for which in (nameless, unread)]
    return bytes([MISSING * is_found[0] + OUTSIDE * is_found[1]])


def _or(one: bytes, other: bytes) -> bytes:
    return bytes(a | b for a, b in zip(one, other, strict=True))


def _dtype(size: int) -> np.dtype[np.unsignedinteger]:
    """The type of codes in a block: with room for the two that stand for refused values."""
    return smallest_dtype(size, spare=2)
