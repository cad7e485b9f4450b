"""What is drawn: merging keeps counts, noise grows as it must, and measured pairs come first."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from cards import card_of
from sidelight.data.columns.column import CategoricalColumn, IntegerColumn
from sidelight.data.domain import Domain
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.measurement import Measurement
from sidelight.models.histogram import Histogram
from sidelight.queries.query import Marginal
from sidelight.releases.release import Release
from sidelight.reports.exact import compare, with_exact
from sidelight.reports.figures import heat_map, one_way_chart, structure_graph
from sidelight.reports.layout import force_layout
from sidelight.reports.pictures import (
    OneWay,
    Values,
    mutual_information,
    one_way,
    structure,
    two_way,
    values_of,
)
from sidelight.uncertainty.model_error import ModelDispersion


def release_of(schema: Schema, counts: np.ndarray, *measured: Measurement) -> Release:
    model = Histogram.of_counts(schema.domain, counts.astype(float), total=float(counts.sum()))
    return Release(model, measured, card_of(model), schema=schema)


def test_neighbouring_bins_are_merged_and_missing_keeps_its_place():
    schema = Schema((IntegerColumn("age", low=0, high=199, missing=True),))
    counts = np.arange(201)
    release = release_of(schema, counts)

    values = values_of(release, "age")
    merged = values.merge(counts)

    assert len(values.labels) <= 60
    assert values.labels[0] == "0 … 3"
    assert values.labels[-1] == "missing"
    assert merged[0] == 0 + 1 + 2 + 3
    assert merged[-1] == 200
    assert merged.sum() == counts.sum()


def test_rare_labels_become_others_and_their_count_is_kept():
    schema = Schema((CategoricalColumn("town", tuple(f"town {i}" for i in range(50))),))
    counts = np.arange(50)[::-1] ** 2
    release = release_of(schema, counts)

    values = values_of(release, "town")

    assert values.labels[:2] == ("town 0", "town 1")
    assert values.labels[-1] == "37 others"
    assert values.rest == 13
    assert values.merge(counts)[-1] == counts[13:].sum()


def test_an_interval_over_merged_values_is_wider_by_the_root_of_their_number():
    schema = Schema((IntegerColumn("age", low=0, high=239),))
    measured = Measurement(Marginal(("age",)), np.zeros(240), 3.0)
    release = release_of(schema, np.full(240, 20), measured)

    drawn = one_way(release, "age")

    assert drawn.interval is not None
    # Four values a column; all 240 sum to the number of records, which is public.
    half = 1.96 * 3.0 * math.sqrt(4 - 4**2 / 240)
    assert [end[0] for end in drawn.interval] == pytest.approx([80 - half, 80 + half], rel=1e-4)
    assert drawn.stddev == pytest.approx(3.0 * math.sqrt(1 - 1 / 240))


def test_an_attribute_that_was_not_measured_has_no_interval():
    schema = Schema((CategoricalColumn("sex", ("f", "m")),))

    drawn = one_way(release_of(schema, np.array([4, 6])), "sex")

    assert drawn.interval is None
    assert "whisker" not in one_way_chart("k", drawn)
    assert "No interval: these attributes were not measured" in one_way_chart("k", drawn)


def test_the_bars_are_those_of_the_release_and_hold_its_models_error():
    schema = Schema((CategoricalColumn("sex", ("f", "m")), CategoricalColumn("work", ("no", "yes"))))
    measured = Measurement(Marginal(("sex",)), np.array([40.0, 60.0]), 2.0)
    release = release_of(schema, np.array([[20, 20], [30, 30]]), measured)
    told = ModelDispersion(levels={"unmet": 3.0}, trials={"unmet": 1})
    release = replace(release, card=replace(release.card, model_error=told))

    seen, unseen = one_way(release, "sex"), one_way(release, "work")

    for drawn, attr in ((seen, "sex"), (unseen, "work")):
        for end, told_end in zip(drawn.interval, release.error_bars(attr).interval(), strict=True):
            assert end == pytest.approx(told_end)
    assert (seen.stddev, unseen.stddev) == (pytest.approx(2.0 * math.sqrt(1 / 2)), None)
    assert unseen.model_error == pytest.approx(math.sqrt(3 * 50 * 0.5), rel=0.01)
    assert "these attributes were never measured" in one_way_chart("k", unseen)


def test_an_interval_that_is_not_symmetric_is_shown_from_end_to_end():
    values = Values("icd", ("other", "C50"), np.arange(2), is_ordered=False, size=2)
    ends = np.array([0.0, 300.0]), np.array([214.0, 320.0])
    drawn = OneWay(values, np.array([181.0, 310.0]), ends, stddev=None, model_error=None, about="")

    chart = one_way_chart("k", drawn)

    assert "181 (0–214)" in chart
    assert "other: 181 (0 to 214)" in chart
    assert "±" not in chart
    low, high = (float(x) for x in re.findall(r'whisker" d="M([0-9.]+) 14H([0-9.]+)', chart)[0])
    zero = float(re.findall(r'axis" d="M([0-9.]+)', chart)[0])
    assert low == zero < high


def test_measured_pairs_come_first_and_the_most_informative_of_them_before_the_others():
    schema = Schema.from_domain({"a": 2, "b": 2, "c": 2})
    joint = np.zeros((2, 2, 2))
    joint[0, 0, 0] = joint[1, 1, 1] = 50  # all three are the same bit
    noise = [Measurement(Marginal(pair), np.zeros(4), 1.0) for pair in (("b", "c"),)]

    pairs = two_way(release_of(schema, joint, *noise))

    assert [picture.name for picture in pairs] == ["b × c", "a × b", "a × c"]
    assert [picture.stddev is None for picture in pairs] == [False, True, True]
    assert pairs[0].information == pytest.approx(1.0)


def test_independent_attributes_share_no_information():
    assert mutual_information(np.outer([1.0, 3.0], [2.0, 2.0, 4.0])) == pytest.approx(0, abs=1e-12)


def test_the_structure_joins_what_was_measured_together_and_counts_how_often():
    schema = Schema.from_domain({"a": 2, "b": 2, "c": 2, "d": 2})
    measured = [
        Measurement(Marginal(attrs), np.zeros(4), 1.0) for attrs in (("b", "a"), ("a", "b"), ("b", "c"))
    ]

    drawn = structure(release_of(schema, np.ones((2, 2, 2, 2)), *measured))

    assert drawn.edges == {("a", "b"): 2, ("b", "c"): 1}
    assert drawn.measured == {"a", "b", "c"}
    svg = structure_graph("k", drawn)
    assert svg.count("<line") == 2
    assert svg.count('class="node alone"') == 1
    assert "Never measured: d." in svg


def test_bars_are_as_long_as_their_counts():
    schema = Schema((CategoricalColumn("sex", ("f", "m")),))

    svg = one_way_chart("k", one_way(release_of(schema, np.array([25, 100])), "sex"))

    short, long = (float(width) for width in re.findall(r'class="bar"[^>]* width="([\d.]+)"', svg))
    assert short / long == pytest.approx(0.25, abs=0.01)


def test_a_heat_map_shades_full_cells_most_and_empty_cells_not_at_all():
    schema = Schema.from_domain({"a": 2, "b": 2})
    (picture,) = two_way(release_of(schema, np.array([[90.0, 0.0], [30.0, 30.0]])))

    svg = heat_map("k", picture)

    shades = re.findall(r'fill-opacity="([\d.]+)" d="([^"]*)"', svg)
    assert [(shade, path.count("M")) for shade, path in shades] == [("0.33", 2), ("1.00", 1)]
    assert "0 and 0: 90" in svg


def test_the_layout_is_inside_its_frame_and_the_same_every_time():
    names = tuple("abcdefgh")
    edges = {("a", "b"): 1, ("b", "c"): 2, ("e", "f"): 1}

    first, second = force_layout(names, edges), force_layout(names, edges)

    assert np.array_equal(first, second)
    assert np.isfinite(first).all()
    assert first.min() >= 0
    assert first.max() <= 1
    near = np.linalg.norm(first[0] - first[1])
    assert near < np.linalg.norm(first[0] - first[6])


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b")])
def test_few_attributes_have_a_layout_too(names):
    assert force_layout(names, {}).shape == (len(names), 2)


def test_exact_comparisons_say_how_far_off_and_how_many_intervals_hold():
    domain = Domain.of({"a": 2})
    table = Table.of_codes(domain, np.repeat([[0], [1]], [60, 40], axis=0))
    measured = Measurement(Marginal(("a",)), np.array([50.0, 50.0]), 7.4)
    model = Histogram.uniform(domain, total=100.0)
    release = Release(model, (measured,), card_of(model))

    seen = compare(release, table, [("a",)])
    blind = compare(replace(release, measurements=()), table, [("a",)])
    narrow = compare(replace(release, measurements=(replace(measured, stddev=3.7),)), table, [("a",)])

    (gap,) = seen.gaps
    assert (gap.mean, gap.l1) == (10, pytest.approx(0.2))
    assert gap.worst is not None
    assert (seen.inside, narrow.inside, blind.inside) == (1.0, 0.0, None)
    exact = with_exact(one_way(release, "a"), table).exact
    assert exact is not None
    assert exact.tolist() == [60, 40]
