"""Pictures of some records: counts and intervals are those of the answer under the same condition."""

import numpy as np
import pytest

from sidelight.models.support import Support
from sidelight.reports.figures import one_way_chart
from sidelight.reports.pictures import Conditioned, one_way, pair


@pytest.mark.parametrize(
    "where", [None, {"sex": "male"}, {"sex": ["female"], "children": "2-5"}, {"age": "20-39"}]
)
def test_one_attribute_under_a_condition(released, where):
    told = released.answer("children", where=where)
    drawn = one_way(released, "children", where)

    assert drawn.counts == pytest.approx(told["estimate"].to_numpy())
    for end, name in zip(drawn.interval, ("low", "high"), strict=True):
        assert end == pytest.approx(told[name].to_numpy())
    assert [str(label) for label in told["children"].to_pylist()] == list(drawn.values.labels)


def test_merged_values_have_the_counts_and_the_interval_of_their_sum(released):
    drawn = one_way(released, "age", {"sex": "male"})
    told = released.answer("age", where={"sex": "male"})

    assert len(drawn.values.labels) <= 60 < len(told)
    assert drawn.counts.sum() == pytest.approx(told["estimate"].to_numpy().sum())
    first = drawn.values.place == 0
    whole = released.answer((), where={"sex": "male", "age": f"0-{int(first.sum()) - 1}"})
    for end, name in zip(drawn.interval, ("low", "high"), strict=True):
        assert end[0] == pytest.approx(whole[name][0].as_py(), rel=1e-6)


def test_a_pair_under_a_condition_shows_allowed_values_alone(released):
    drawn = pair(released, ("sex", "children"), {"children": "0-2"})
    told = released.answer(["children", "sex"], where={"children": "0-2"})

    assert drawn.counts.shape == (3, 2)
    assert drawn.down.attr == "children"
    assert drawn.counts.reshape(-1) == pytest.approx(told["estimate"].to_numpy())


def test_public_records_are_scaled_to_the_release_and_meet_the_condition(released, people):
    _, table = people
    public = Support.of_table(table, total=table.records)
    asked = Conditioned.of(released, ("children",), {"sex": "male"})
    codes = np.asarray(table.codes())
    exact = np.bincount(codes[codes[:, 0] == 1][:, 3], minlength=6)

    assert asked.public(public) == pytest.approx(exact * released.total / table.records)
    drawn = one_way(released, "children", {"sex": "male"}, public=public)
    assert one_way_chart("k", drawn).count('class="public"') == 6
    beside = pair(released, ("sex", "children"), public=public)
    assert beside.counts.sum() == pytest.approx(released.total)
