from fractions import Fraction

import numpy as np
import pytest

from sidelight.errors import DataError, SettingError
from sidelight.privacy.budget import Budget
from sidelight.privacy.event import Laplace
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.statistics.grouped_mean import grouped_mean
from sidelight.statistics.pooling import pool
from sidelight.testing import SeededNoise


def people(n: int, seed: int, shift: float = 0.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    region = rng.choice(np.array(["east", "north", "south", "west"]), n)
    level = {"east": 40, "north": 45, "south": 55, "west": 60}
    return {"income": rng.normal([level[name] for name in region], 5) + shift, "region": region}


def a_ledger(unit: str = "replace") -> MemoryLedger:
    return MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), Unit.of(unit), "people"))


def test_one_call_spends_one_epsilon_on_all_cells():
    ledger = a_ledger()

    answer = grouped_mean(
        people(8000, 1), "income", by="region", public=people(500, 2), bounds=(0, 100), epsilon=1.0,
        ledger=ledger, noise=SeededNoise(7),
    )  # fmt: skip

    assert ledger.spent == 1
    assert sum(event.cost.value for event in answer.events) == 1
    assert [mean.cell for mean in answer.cells] == ["east", "north", "south", "west"]
    assert [mean.estimate for mean in answer.cells] == pytest.approx([40, 45, 55, 60], abs=1.5)


@pytest.mark.parametrize(
    ("relation", "sizes", "width"), [("replace", 2, 1), ("add-or-remove", 1, Fraction(1, 2))]
)
def test_a_person_may_move_between_cells_and_the_noise_knows_it(relation, sizes, width):
    answer = grouped_mean(
        people(1000, 1), "income", by="region", public=people(50, 2), bounds=(0, 100), epsilon=1.0,
        variance=25.0, unit=relation, noise=SeededNoise(7),
    )  # fmt: skip

    of_sizes, of_sums = answer.events
    assert isinstance(of_sizes, Laplace)
    assert isinstance(of_sums, Laplace)
    assert of_sizes.l1 == sizes
    assert of_sums.l1 / 2**30 == width


def test_a_cell_without_people_leans_on_the_public_table():
    private = people(8000, 1)
    keep = private["region"] != "west"
    private = {name: column[keep] for name, column in private.items()}

    answer = grouped_mean(
        private,
        "income",
        by="region",
        public=people(4000, 2),
        bounds=(0, 100),
        epsilon=1.0,
        noise=SeededNoise(7),
    )

    assert answer["west"].own < 0.2 < answer["east"].own
    assert answer["west"].estimate == pytest.approx(60, abs=3)
    assert answer["west"].standard_error > answer["east"].standard_error


def test_a_public_table_of_other_people_shifts_all_cells_alike():
    answer = grouped_mean(
        people(20_000, 1), "income", by="region", public=people(4000, 2, shift=15.0), bounds=(0, 100),
        epsilon=0.5, noise=SeededNoise(7),
    )  # fmt: skip

    assert [mean.estimate for mean in answer.cells] == pytest.approx([40, 45, 55, 60], abs=2)


def test_records_of_undeclared_cells_count_nowhere():
    answer = grouped_mean(
        people(4000, 1), "income", by="region", cells=["east", "north"], bounds=(0, 100), epsilon=1.0,
        noise=SeededNoise(7),
    )  # fmt: skip

    assert len(answer.cells) == 2
    assert sum(mean.records for mean in answer.cells) == pytest.approx(2000, abs=200)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"value": "wage"}, DataError, "no column 'wage'"),
        ({"cells": None}, SettingError, "declared"),
        ({"cells": ["east"]}, SettingError, "at least two"),
        ({"cells": ["east", "east"]}, SettingError, "different"),
        ({"epsilon": 0.0}, SettingError, "epsilon"),
        ({"variance": "public"}, SettingError, "public table"),
        ({"size_share": 0.0}, SettingError, "size_share"),
        ({"bounds": (1, 0)}, SettingError, "low below high"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_spent(wrong, error, message):
    ledger = a_ledger()
    options = {
        "value": "income",
        "by": "region",
        "cells": ["east", "west"],
        "bounds": (0, 100),
        "epsilon": 1.0,
    }

    with pytest.raises(error, match=message):
        grouped_mean(people(100, 1), **(options | wrong), ledger=ledger)

    assert ledger.spent == 0


def test_missing_values_are_refused_without_saying_how_many():
    table = people(100, 1)
    table["income"][3] = np.nan

    with pytest.raises(DataError, match="missing values") as refusal:
        grouped_mean(table, "income", by="region", cells=["east", "west"], bounds=(0, 100), epsilon=1.0)

    assert "1 " not in str(refusal.value)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "csv", "parquet"])
def test_tables_of_all_kinds_are_read(kind, tmp_path):
    import pandas
    import polars
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    columns = {name: column.tolist() for name, column in people(300, 1).items()}
    arrow = pyarrow.table(columns)
    pyarrow.csv.write_csv(arrow, tmp_path / "people.csv")
    pyarrow.parquet.write_table(arrow, tmp_path / "people.parquet")
    table = {
        "pandas": pandas.DataFrame(columns),
        "polars": polars.DataFrame(columns),
        "pyarrow": arrow,
        "csv": tmp_path / "people.csv",
        "parquet": tmp_path / "people.parquet",
    }[kind]
    options = {"by": "region", "cells": ["east", "west"], "bounds": (0, 100), "epsilon": 1.0}

    answer = grouped_mean(table, "income", **options, noise=SeededNoise(7))
    expected = grouped_mean(people(300, 1), "income", **options, noise=SeededNoise(7))

    assert answer.cells == expected.cells


def test_pooling_follows_the_noise():
    y = np.array([-1.0, 0.0, 1.0, 8.0])

    sharp, sharp_error, sharp_own = pool(y, np.full(4, 1e-6), np.zeros(4), most=50.0)
    blunt, _, blunt_own = pool(y, np.full(4, 1e4), np.zeros(4), most=50.0)

    assert sharp == pytest.approx(y, abs=1e-3)
    assert sharp_own.min() > 0.99
    assert sharp_error.max() < 2e-3
    assert np.ptp(blunt) < np.ptp(y) / 2
    assert blunt_own.max() < 0.5
