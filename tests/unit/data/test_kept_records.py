"""Which records are kept: whatever the order, however records come in batches, and where hashes are equal."""

import numpy as np
import pyarrow as pa
import pytest

from sidelight.data.engines import kept_records
from sidelight.data.engines.kept_records import kept_of_named, kept_of_sorted, packed, unpacked

KEY = "5a" * 32


def sorted_records(people: int, most: int, seed: int = 1) -> pa.Table:
    draw = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), draw.integers(1, most, people))
    names = [None] * 3 + [f"p{i:04d}" for i in who]
    words = draw.integers(0, 5, len(names)), draw.integers(0, 2**61, len(names))
    order = np.lexsort((*words[::-1], np.array([name or "" for name in names])))
    columns = {"p": pa.array(names).take(pa.array(order))}
    return pa.table(columns | {f"w{i}": word[order] for i, word in enumerate(words)})


def kept_in_batches(table: pa.Table, rows: int, records: int) -> list[tuple[int, ...]]:
    found = kept_of_sorted(table.to_batches(max_chunksize=rows), records=records, key=KEY)
    return [line for words in found for line in zip(*(word.tolist() for word in words), strict=True)]


@pytest.mark.parametrize("rows", [1, 2, 7, 50])
@pytest.mark.parametrize("records", [1, 3, 1000])
def test_it_makes_no_difference_how_records_come_in_batches(rows, records):
    table = sorted_records(30, 12)

    once = kept_in_batches(table, 10_000, records)

    assert kept_in_batches(table, rows, records) == once
    assert len(once) < table.num_rows or records == 1000


def test_records_in_memory_are_kept_as_sorted_ones_are():
    table = sorted_records(30, 12)
    shuffled = table.take(pa.array(np.random.default_rng(2).permutation(table.num_rows)))
    words = [shuffled.column(name).to_numpy() for name in ("w0", "w1")]

    kept = kept_of_named(shuffled.column("p").dictionary_encode(), words, records=3, key=KEY)

    found = list(zip(*(word[kept].tolist() for word in words), strict=True))
    assert sorted(found) == sorted(kept_in_batches(table, 10_000, 3))


@pytest.mark.parametrize("rows", [3, 1000])
def test_of_equal_hashes_the_smaller_codes_come_first(rows, monkeypatch):
    monkeypatch.setattr(kept_records, "_hash", lambda words, number, a, b: np.zeros_like(number))
    table = sorted_records(10, 12)

    found = kept_in_batches(table, rows, 2)

    lines = {}
    for name, *words in zip(*table.to_pydict().values(), strict=True):
        lines.setdefault(name, []).append(tuple(words))
    expected = lines.pop(None) + [line for own in lines.values() for line in sorted(own)[:2]]
    assert found == expected


def test_nothing_is_kept_of_nothing():
    empty = sorted_records(0, 2).slice(3)

    assert kept_in_batches(empty, 10, 2) == []
    assert (
        kept_of_named(pa.chunked_array([[]], pa.string()).dictionary_encode(), [], records=1, key=KEY).size
        == 0
    )


@pytest.mark.parametrize("shape", [[2], [5, 300, 2], [2**20] * 5, [2**31, 2**31, 7]])
def test_codes_are_packed_and_unpacked(shape):
    draw = np.random.default_rng(3)
    columns = [draw.integers(0, size, 100) for size in shape]
    columns[0][0] = shape[0] - 1

    words = packed(columns, shape)

    assert all(word.min() >= 0 and word.max() < 2**62 for word in words)
    places = list(range(len(shape)))[::-1]
    for place, codes in zip(places, unpacked(words, shape, places), strict=True):
        assert codes.tolist() == columns[place].tolist()
