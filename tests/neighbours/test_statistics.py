"""One record's change moves no other record's value or cell in means and quantiles, whatever holds it."""

import math
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import changes

from sidelight.cli._groups import GroupOptions, read_groups
from sidelight.errors import DataError
from sidelight.privacy.unit import Unit
from sidelight.statistics.columns import Cells, numbers, read_columns
from sidelight.statistics.group import Group
from sidelight.statistics.grouped_mean import grouped_mean

VALUES = [10.0, 20.5, 30.0, 40.25, 50.0, 60.0, 70.0, 80.0]
CELLS: dict[str, tuple[list[Any], list[Any]]] = {
    "text": (["north", "south"], ["north", "south", "south", "north", "east", "south", "north", "north"]),
    "whole as text": (["1", "2"], [1, 2, 2, 1, 3, 2, 1, 1]),
    "whole numbers": ([1, 2], [1, 2, 2, 1, 3, 2, 1, 1]),
    "real numbers": ([1.0, 0.5], [1.0, 0.5, 0.5, 1.0, 7.25, 0.5, 1.0, 1.0]),
    "booleans": ([True, False], [True, False, False, True, True, False, True, True]),
    "dates": ([date(2020, 1, 1), date(2020, 6, 1)], [date(2020, 1, 1), date(2020, 6, 1)] * 4),
    "dates as text": (["2020-01-01", "2020-06-01"], [date(2020, 1, 1), date(2020, 6, 1)] * 4),
    "timestamps": (
        [datetime(2020, 1, 1), datetime(2020, 6, 1, 12)],
        [datetime(2020, 1, 1), datetime(2020, 6, 1, 12)] * 4,
    ),
}


class SeenError(Exception):
    """Raised where the curator would begin to pay: what it holds has been seen."""


@pytest.fixture
def behind_the_curator(monkeypatch):
    """Calls ``grouped_mean`` and gives the exact values and cells that it hands to its curator."""
    seen: list[tuple[list[float], list[int]]] = []

    def hand_over(values, codes, cells, grid, people, **settings):
        assert people is None
        seen.append((values.tolist(), codes.tolist()))
        raise SeenError

    monkeypatch.setattr("sidelight.statistics.grouped_mean.CellCurator", hand_over)

    def look(table, **options):
        with pytest.raises(SeenError):
            grouped_mean(table, "income", by="region", bounds=(0, 100), epsilon=1.0, **options)
        return list(zip(*seen.pop(), strict=True))

    return look


FILES = ("parquet", "parquet by pandas", "relation", "csv", "tsv", "csv.gz")


def cases(kinds):
    """Every kind in every holder with every place; and, quicker, some with one place for each change."""
    found = []
    for kind in kinds:
        for holder in changes.HOLDERS:
            slow = pytest.mark.slow
            found.append(pytest.param(kind, holder, True, id=f"{kind}, {holder}, everywhere", marks=slow))
            if holder not in FILES or (holder in ("csv", "parquet") and kind in ("whole as text", "real")):
                found.append(pytest.param(kind, holder, False, id=f"{kind}, {holder}"))
    return found


@pytest.mark.parametrize(("kind", "holder", "everywhere"), cases(CELLS))
def test_one_cell_changes_nobody_elses_value_or_cell(kind, holder, everywhere, behind_the_curator, tmp_path):
    labels, cells = CELLS[kind]
    columns = {"income": VALUES, "region": cells}

    def read(table):
        return behind_the_curator(table, cells=labels, missing=50.0)

    before = read(changes.HOLDERS[holder](columns, tmp_path))
    assert [value for value, _ in before] == VALUES
    assert {0, 1} <= {cell for _, cell in before}
    assert (
        changes.moved(read, changes.HOLDERS[holder], columns, "region", tmp_path, everywhere=everywhere) == []
    )


@pytest.mark.parametrize(("kind", "holder", "everywhere"), cases(["real", "whole"]))
def test_one_value_changes_nobody_elses_value_or_cell(kind, holder, everywhere, behind_the_curator, tmp_path):
    values = VALUES if kind == "real" else [round(value) for value in VALUES]
    columns = {"income": values, "region": CELLS["text"][1]}

    def read(table):
        return behind_the_curator(table, cells=CELLS["text"][0], missing=50.0)

    assert (
        changes.moved(read, changes.HOLDERS[holder], columns, "income", tmp_path, everywhere=everywhere) == []
    )


@pytest.mark.parametrize("holder", ["lists", "arrays", "pandas", "nullable", "polars", "arrow"])
def test_one_value_of_a_group_changes_no_other(holder, tmp_path):
    def read(table):
        column = table["income"] if holder != "polars" else table.get_column("income")
        return Group(column, epsilon=1.0, missing=50.0)._values.tolist()

    assert changes.moved(read, changes.HOLDERS[holder], {"income": VALUES}, "income", tmp_path) == []


@pytest.mark.parametrize(
    "holder",
    [
        "csv",
        "parquet",
        *(pytest.param(h, marks=pytest.mark.slow) for h in ("parquet by pandas", "tsv", "csv.gz")),
    ],
)
@pytest.mark.parametrize(
    ("changed", "options"),
    [
        ("income", {"epsilon": 1.0}),
        ("income", {"epsilon_column": "need"}),
        ("income", {"group_column": "who", "group": ["1=0.5", "2=public"]}),
    ],
    ids=["one ε", "column of ε", "column of groups"],
)
def test_one_value_changes_nobody_elses_on_the_command_line(changed, options, holder, tmp_path):
    columns = {"income": VALUES, "need": [0.5, 1.0] * 4, "who": [1, 2] * 4}

    def read(table):
        asked = GroupOptions(table=table, value="income", bounds=(0, 100), missing="50", **options)
        groups = read_groups(asked, way="mean")
        return [value for group in groups for value in group._values.tolist()]

    before = read(changes.HOLDERS[holder](columns, tmp_path))
    # Groups keep the order of their records, so the changed record keeps its place among its group's.
    for name, place, neighbour in changes.neighbours(columns, changed, everywhere=False):
        try:
            table = changes.HOLDERS[holder](neighbour, tmp_path)
        except changes.CannotHoldError:
            continue
        differences = sum(a != b for a, b in zip(before, read(table), strict=True))
        assert differences <= 1, (name, place)


@pytest.mark.parametrize("holder", ["lists", "pandas", "polars", "arrow", "parquet", "csv"])
def test_a_table_is_refused_where_the_changed_record_itself_is_no_number_and_only_there(holder, tmp_path):
    columns = {"income": VALUES}

    for name, place, neighbour in changes.neighbours(columns, "income", everywhere=False):
        try:
            table = changes.HOLDERS[holder](neighbour, tmp_path)
        except changes.CannotHoldError:
            continue
        column = read_columns(table, ["income"])["income"]
        own = column.numbers()[place]
        if math.isnan(own):
            with pytest.raises(DataError, match="has missing values, or values that are not numbers"):
                numbers(column, "column 'income'")
        else:
            assert numbers(column, "column 'income'")[place] == own, name


def test_a_record_means_what_it_means_by_itself_in_every_holder(tmp_path):
    cells = Cells(["1", "2"])
    forms = [1, 1.0, np.int8(1), np.float32(1), "1", "01", True, "1.0", None, 2]

    assert [cells.code(value) for value in forms] == [0, 0, 0, 0, 0, 2, 2, 2, 2, 1]
    assert [Cells([1, 2]).code(value) for value in forms] == [0, 0, 0, 0, 0, 0, 0, 0, 2, 1]
    assert [Cells([True, False]).code(value) for value in ("t", 1, False, "0", "perhaps", None)] == [
        0,
        0,
        1,
        1,
        2,
        2,
    ]


def by_numpy(table):
    return np.asarray(table["region"]).tolist()


def by_text_of_numpy(table):
    return np.asarray(table["region"]).astype(str).tolist()


def by_pandas(table):
    import pandas

    return [str(value) for value in pandas.Series(list(table["region"]))]


def by_arrow_inference(path):
    import pyarrow.csv

    return [str(value) for value in pyarrow.csv.read_csv(path).column("region").to_pylist()]


def by_longest_text(table):
    return [str(value).ljust(max(len(str(each)) for each in table["region"])) for value in table["region"]]


def by_first_record(table):
    kind = type(table["region"][0])
    return [
        kind(value) if isinstance(value, (int, str)) and str(value).isdigit() else 0
        for value in table["region"]
    ]


@pytest.mark.parametrize(
    ("reader", "holder"),
    [
        (by_numpy, "lists"),
        (by_text_of_numpy, "lists"),
        (by_text_of_numpy, "pandas"),
        (by_pandas, "lists"),
        (by_arrow_inference, "csv"),
        (by_longest_text, "lists"),
        (by_first_record, "lists"),
    ],
)
def test_readers_that_look_at_the_whole_column_are_caught(reader, holder, tmp_path):
    columns = {"region": CELLS["whole numbers"][1]}

    assert changes.moved(reader, changes.HOLDERS[holder], columns, "region", tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"income,region\n1,a\n2,\xff\n", b"income,region\n1,a\n2,b,c\n", b"income,region\n1,a\n2\n"],
    ids=["not UTF-8", "a field too many", "a field too few"],
)
def test_a_file_that_is_no_table_is_refused_before_anything_is_paid(content, tmp_path):
    from sidelight.privacy.budget import Budget
    from sidelight.privacy.ledger import MemoryLedger
    from sidelight.privacy.promise import Promise

    (tmp_path / "people.csv").write_bytes(content)
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), Unit("replace"), "people"))

    with pytest.raises(DataError):
        grouped_mean(
            tmp_path / "people.csv", "income", by="region", cells=["a", "b"], bounds=(0, 1), epsilon=1.0,
            ledger=ledger, missing=0.0,
        )  # fmt: skip

    assert not ledger.runs()


@pytest.mark.spark
@pytest.mark.slow
def test_a_spark_frame_keeps_each_value_with_its_cell(spark, behind_the_curator):
    lines = [(float(i), i % 2 if i % 7 else None) for i in range(500)]
    frame = spark.createDataFrame(lines, "income double, region int").repartition(5)

    seen = behind_the_curator(frame, cells=["0", "1"])

    assert sorted(seen) == [(min(value, 500.0), 2 if cell is None else cell) for value, cell in lines]
