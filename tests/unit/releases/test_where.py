"""Asking for some records, and drawing records like these."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from cards import card_of
from sidelight.data.schema import Schema
from sidelight.errors import SettingError, WorkloadError
from sidelight.measurement import Measurement
from sidelight.models.histogram import Histogram
from sidelight.queries.query import Marginal
from sidelight.releases.release import Release
from sidelight.releases.where import codes_where
from sidelight.testing import SeededNoise

SCHEMA = Schema.from_toml("""
[columns.sex]
kind = "categorical"
labels = ["F", "M"]
aliases = { F = ["f", "female – stated"] }

[columns.age]
kind = "integer"
edges = [0, 18, 30, 65, 100]
missing = true

[columns.paid]
kind = "real"
low = 0.0
high = 100.0
bins = 4

[columns.day]
kind = "date"
low = 2020-01-01
high = 2020-12-31
by = "quarter"
""")


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(4)
    weights = rng.random(SCHEMA.domain.shape)
    weights[0, 0] = 0.0  # no F below 18
    model = Histogram.of_counts(SCHEMA.domain, weights, total=2000.0)
    measured = Measurement(Marginal(("sex", "age")), model.count(("sex", "age")).reshape(-1), 5.0)
    return Release(model, (measured,), card_of(model), SCHEMA)


@pytest.mark.parametrize(
    ("where", "codes"),
    [
        ({"sex": "F"}, [0]),
        ({"sex": ["F", "M"]}, [0, 1]),
        ({"sex": "F,M"}, [0, 1]),
        ({"sex": "f"}, [0]),
        ({"sex": "female - stated"}, [0]),
        ({"sex": ["f", "M"]}, [0, 1]),
        ({"sex": "M,f"}, [0, 1]),
        ({"age": "18–29"}, [1]),
        ({"age": "18-29"}, [1]),
        ({"age": "18-64"}, [1, 2]),
        ({"age": "18..64"}, [1, 2]),
        ({"age": "0-17..30-64"}, [0, 1, 2]),
        ({"age": "65+"}, [3]),
        ({"age": "under 30"}, [0, 1]),
        ({"age": ["under 18", "65+"]}, [0, 3]),
        ({"age": "missing"}, [4]),
        ({"age": None}, [4]),
        ({"age": range(18, 30)}, None),
        ({"paid": "[0, 50)"}, [0, 1]),
        ({"paid": "25-75"}, [1, 2]),
        ({"paid": "25..75"}, [1, 2]),
        ({"day": "2020-Q1..2020-Q3"}, [0, 1, 2]),
    ],
)
def test_what_people_say_and_the_codes_they_mean(where, codes):
    ((attr, asked),) = where.items()
    if codes is None:
        with pytest.raises(SettingError, match="where asks for age"):
            codes_where(where, SCHEMA)
    else:
        assert np.flatnonzero(codes_where({attr: asked}, SCHEMA)[attr]).tolist() == codes


@pytest.mark.parametrize(
    ("where", "match"),
    [
        ({"sx": "F"}, "where names 'sx'; the release has sex, age, paid, day. Did you mean 'sex'"),
        ({"sex": "female"}, "sex = 'female', which is no label of it; it has F, M"),
        ({"sex": []}, "no value of 'sex'"),
        ({"age": 20}, "cuts the bin 18–29.* ask for whole ones, the nearest: 18-29\\."),
        ({"age": "20-40"}, "cuts the bin 18–29.* the nearest: 18-64\\."),
        ({"age": "18-40"}, "cuts the bin 30–64.* the nearest: 18-29 or 18-64\\."),
        ({"age": "18..40"}, "cuts the bin 30–64.* the nearest: 18-29 or 18-64\\."),
        ({"paid": "25-80"}, "cuts the bin .* the nearest: 25-75 or 25-100\\."),
        ({"age": "adults"}, "no label of it.* A range of whole bins is written 0\\.\\.99\\."),
        ({"day": "2020"}, "no label of it.* is written 2020-Q1\\.\\.2020-Q4\\."),
        ({"day": "2020-05-09"}, "cuts the bin 2020-Q2.* ask for 2020-Q2, or .* 2020-Q2\\.\\.2020-Q4\\."),
        ({"day": "soon"}, "no label of it.* is written 2020-Q1\\.\\.2020-Q4\\."),
        ({"paid": 12.5}, "cuts the bin"),
        ({"age": "200+"}, "no label"),
        ({"age": "29-18"}, "ends before it begins; swap the two"),
    ],
)
def test_what_nobody_can_mean_is_refused(release, where, match):
    for ask in (release.sample, release.answer):
        with pytest.raises(SettingError, match=match):
            ask(where=where)


def test_an_unknown_column_is_guessed(release):
    with pytest.raises(WorkloadError, match=r"unknown attribute 'ag'; .* Did you mean 'age'\?"):
        release.answer("ag")


def test_a_condition_that_no_record_meets_is_refused(release):
    with pytest.raises(SettingError, match="no record of this release can have sex = 'F' and age = '0-17'"):
        release.sample(where={"sex": "F", "age": "0-17"}, seed=1)


def test_samples_meet_their_condition_and_follow_the_model(release):
    drawn = release.sample(4000, where={"sex": "M", "age": "18-64"}, seed=3)

    assert drawn.num_rows == 4000
    assert set(drawn["sex"].to_pylist()) == {"M"}
    ages = np.array(drawn["age"].to_pylist())
    assert ages.min() >= 18
    assert ages.max() < 65
    expected = release.count(["sex", "age"])[1, 1:3]
    assert (ages < 30).mean() == pytest.approx(expected[0] / expected.sum(), abs=0.03)


def test_without_a_number_as_many_are_drawn_as_the_release_counts(release):
    assert release.sample(where={"sex": "F"}, seed=1).num_rows == round(release.count("sex")[0])


def test_a_fresh_seed_is_drawn_noted_and_draws_the_same_again(release):
    first = release.sample(50, where={"sex": "F"})

    told = release.draws[-1]
    again = release.sample(told.records, where=told.where, seed=told.seed)
    assert first.equals(again)
    assert json.loads(first.schema.metadata[b"sidelight"]) == {
        "records": 50, "seed": told.seed, "where": {"sex": "F"},
    }  # fmt: skip
    assert not first.equals(release.sample(50, where={"sex": "F"}))


def test_a_pandas_frame_says_how_it_was_drawn(release):
    pytest.importorskip("pandas")
    frame = replace(release, kind="pandas").sample(10, seed=7)

    assert frame.attrs["sidelight"] == {"records": 10, "seed": 7, "where": {}}


def test_an_answer_is_about_the_records_asked_for(release):
    found = release.answer(["age"], where={"sex": "M", "age": "18-64"})

    assert found["age"].to_pylist() == ["18–29", "30–64"]
    assert found["estimate"].to_pylist() == pytest.approx(release.count(["sex", "age"])[1, 1:3].tolist())
    # σ = 5; the ten cells sum to the number of records, which is public.
    assert found["noise_error"].to_pylist() == pytest.approx([5 * np.sqrt(0.9)] * 2)


def test_errors_of_a_sum_are_those_of_its_cells_together(release):
    found = release.answer(["sex"], where={"age": "18-64"}).to_pylist()

    assert [one["estimate"] for one in found] == pytest.approx(
        release.count(["sex", "age"])[:, 1:3].sum(axis=1)
    )
    assert found[0]["noise_error"] == pytest.approx(5 * np.sqrt(2 - 2**2 / 10))


def test_no_column_asks_for_one_number(release):
    (whole,) = release.answer().to_pylist()
    (some,) = release.answer(where={"sex": "F", "paid": "0-50"}).to_pylist()

    assert whole["estimate"] == pytest.approx(2000)
    assert some["estimate"] == pytest.approx(release.count(["sex", "paid"])[0, :2].sum())


def test_groups_come_with_shares_and_their_intervals(release):
    found = release.answer(["age"], by="sex").to_pylist()

    counts = release.count(["sex", "age"])
    assert [one["sex"] for one in found] == ["F"] * 5 + ["M"] * 5
    shares = (counts / counts.sum(axis=1, keepdims=True)).reshape(-1)
    assert [one["share"] for one in found] == pytest.approx(shares.tolist())
    assert all(one["share_low"] <= one["share"] <= one["share_high"] for one in found)
    # With noise alone: σ √((1 − p)² + 4 p²)/n of a cell and the four others of its group, less what is known
    # of it since all ten cells sum to the number of records.
    p, group = shares[1], counts[0].sum()
    error = 5 * np.sqrt((1 - p) ** 2 + 4 * p**2 - (1 - 5 * p) ** 2 / 10) / group
    assert found[1]["share_high"] - p == pytest.approx(1.96 * error, rel=1e-3)


def test_a_column_that_is_named_twice_or_unknown_is_refused(release):
    with pytest.raises(WorkloadError, match="named twice"):
        release.answer(["age"], by=["age"])
    with pytest.raises(WorkloadError, match="unknown attribute 'hat'"):
        release.answer(["hat"])


def test_a_release_shows_itself_in_one_line(release):
    assert repr(release) == "Release(by hand, ε = 1 at δ = 1e-09, 2,000 records of sex, age, paid, day)"


def test_a_release_of_codes_takes_codes(release):
    coded = replace(release, schema=None)

    assert set(coded.sample(20, where={"sex": 1}, seed=1)["sex"].to_pylist()) == {1}


def test_frames_without_room_for_notes_are_given_as_they_are(release):
    polars = pytest.importorskip("polars")

    assert isinstance(replace(release, kind="polars").sample(5, seed=1), polars.DataFrame)
    assert isinstance(release.sample(5, seed=1), pa.Table)


def test_a_constraint_that_moves_values_keeps_to_the_condition():
    """Half of 600 codes are of each region; the model knows nothing of that, decoding does."""
    codes = [f"{place:03d}" for place in range(600)]
    regions = {code: "north" if place % 2 else "south" for place, code in enumerate(codes)}
    schema = Schema.from_toml(f"""
[columns.code]
kind = "categorical"
labels = {json.dumps(codes)}

[columns.region]
kind = "categorical"
labels = ["north", "south"]

[[constraint]]
column = "code"
determines = "region"
map = {{ {", ".join(f'"{code}" = "{region}"' for code, region in regions.items())} }}
""")
    bare = Schema(schema.columns)
    release = Release(
        Histogram.uniform(bare.domain, total=1000.0),
        (),
        card_of(Histogram.uniform(bare.domain, total=1.0)),
        schema,
    )

    drawn = release.sample(200, where={"region": "north"}, seed=1)

    assert drawn.num_rows == 200
    assert all(regions[code] == "north" for code in drawn["code"].to_pylist())
    assert set(drawn["region"].to_pylist()) == {"north"}


def test_a_condition_that_the_schema_rules_out_is_refused_for_answers_and_samples():
    schema = Schema.from_toml("""
[columns.ward]
kind = "categorical"
labels = ["A", "B", "C"]

[columns.clinic]
kind = "categorical"
labels = ["north", "south"]

[[constraint]]
column = "ward"
determines = "clinic"
map = { A = "north", B = "north", C = "south" }
""")
    model = Histogram.uniform(Schema(schema.columns).domain, total=600.0)
    release = Release(model, (), card_of(model), schema)

    for ask in (release.answer, release.sample):
        with pytest.raises(SettingError, match="no record can have ward = 'A' or 'B' and clinic = 'south'"):
            ask(where={"ward": ["A", "B"], "clinic": "south"})
    assert release.answer(where={"ward": ["B", "C"], "clinic": "south"}).num_rows == 1


def test_intervals_of_shares_hold_where_a_cell_and_the_rest_of_its_group_do_not_err_apart():
    """The sums of age are known better than its pairs with work: what a cell has too many, the rest lacks."""
    schema = sl.Schema.from_domain({"age": 8, "work": 4, "sex": 2})
    held = []
    for seed in range(12):
        draw = np.random.default_rng(seed)
        codes = draw.integers(0, (8, 4, 2), (5000, 3))
        codes[:, 1] = np.where(draw.random(5000) < 0.6, (codes[:, 0] + codes[:, 2]) % 4, codes[:, 1])
        release = sl.release(
            sl.Table.of_codes(schema.domain, codes), schema=schema, epsilon=1, delta=1e-9, workload="2-way",
            mechanism="ladder", noise=SeededNoise(seed), progress=False,
        )  # fmt: skip
        exact = np.zeros((8, 4))
        np.add.at(exact, (codes[:, 0], codes[:, 1]), 1)
        shares = (exact / exact.sum(axis=1, keepdims=True)).ravel()
        found = release.answer("work", by="age").to_pydict()
        held += list((found["share_low"] <= shares) & (shares <= found["share_high"]))

    assert np.mean(held) > 0.92
