"""What was never measured is named: by the plan, on the card, in answers and in the report."""

import itertools

import numpy as np
import pytest

import sidelight as sl
from sidelight.data.domain import Domain
from sidelight.measurement import Measurement
from sidelight.queries.query import Cell, Marginal
from sidelight.releases.unmeasured import Unmeasured
from sidelight.reports.report import render
from sidelight.testing import SeededNoise

SIZES = dict.fromkeys("abcdef", 3)
SCHEMA = sl.Schema.from_domain(SIZES)
DOMAIN = SCHEMA.domain


def measured(*sets):
    return [Measurement(Marginal(attrs), np.zeros(DOMAIN.size(attrs)), 1.0) for attrs in sets]


def released(**settings):
    codes = np.random.default_rng(1).integers(0, 3, (500, 6))
    given = {"mechanism": "mwem", "rounds": 2, "workload": "2-way"} | settings
    return sl.release(
        sl.Table.of_codes(DOMAIN, codes), schema=SCHEMA, epsilon=1, delta=1e-9, noise=SeededNoise(4),
        progress=False, **given,
    )  # fmt: skip


def test_what_some_measurement_covers_is_not_unmeasured():
    found = Unmeasured.after(measured(("a", "b", "c")), [("a", "b"), ("c",), ("c", "d"), ("d",)], DOMAIN)

    assert found.attributes == ("d", "e", "f")
    assert found.marginals == (("c", "d"), ("d",))
    assert (found.number, found.of) == (2, 4)


def test_two_measurements_that_share_an_attribute_do_not_cover_the_pair_between_them():
    found = Unmeasured.after(measured(("a", "b"), ("b", "c")), [("a", "c")], DOMAIN)

    assert found.marginals == (("a", "c"),)


def test_a_single_number_is_a_measurement_of_its_attributes_too():
    made = [Measurement(Cell(("a", "b"), (0, 0)), np.zeros(1), 1.0)]

    assert Unmeasured.after(made, [("a", "b")], DOMAIN).number == 0


def test_the_total_is_no_marginal_that_could_be_missing():
    assert Unmeasured.after([], [()], DOMAIN).of == 0


def test_public_data_tell_of_what_was_not_measured():
    found = Unmeasured.after(measured(("a",)), [("a", "b")], DOMAIN, public_attrs=("a", "b", "c"))

    assert found.told_by_public == ("b", "c")
    assert found.guessed == ("d", "e", "f")
    assert "comes from public data alone" in " ".join(found.warnings)


def test_the_card_the_notebook_the_answer_and_the_report_name_it(tmp_path):
    release = released()

    unmeasured = release.card.unmeasured
    about = {attr for made in release.measurements for attr in made.query.attrs}
    assert set(unmeasured.attributes) == set(DOMAIN.attrs) - about
    assert unmeasured.attributes
    name = unmeasured.attributes[0]
    assert "never measured" in release._repr_html_()
    assert set(release.answer([name]).column("source").to_pylist()) == {"unmeasured"}
    assert set(release.answer([next(iter(about))]).column("source").to_pylist()) == {"private"}
    page = render(release)
    assert page.index(f"Never measured: {name}") < page.index("What was promised")
    assert sl.Release.load(release.save(tmp_path / "out")).card.unmeasured == unmeasured


def test_a_mechanism_that_measures_every_attribute_leaves_none_out():
    codes = np.random.default_rng(1).integers(0, 3, (500, 6))

    release = sl.release(
        sl.Table.of_codes(DOMAIN, codes), schema=SCHEMA, epsilon=1, delta=1e-9, noise=SeededNoise(4),
        progress=False, mechanism="aim", workload="2-way", rounds_per_attribute=2,
    )  # fmt: skip

    assert release.card.unmeasured.attributes == ()
    assert release.card.unmeasured.warnings == ()


def plan(**settings):
    given = {"workload": "2-way", "mechanism": "mwem"} | settings
    return sl.Plan.of(schema=SCHEMA, epsilon=1, delta=1e-9, settings=given.pop("with_", None), **given)


def test_a_plan_says_how_much_can_be_measured_at_most():
    said = " ".join(plan(with_={"rounds": 2}).unmeasurable)

    assert "At most 2 of the workload's 15 marginals can be measured" in said
    assert "At most 4 of the workload's 6 attributes can be measured at all" in said
    assert plan(with_={"rounds": 15}).unmeasurable == ()


def test_a_plan_names_what_is_too_large_and_what_nobody_asked_for():
    wide = sl.Schema.from_domain({"a": 900, "b": 900, "c": 2, "d": 2})
    planned = sl.Plan.of(
        schema=wide, epsilon=1, delta=1e-9, mechanism="mwem", workload=[("a", "b"), ("b", "c")]
    )

    said = " ".join(planned.unmeasurable)
    assert "Too large to be measured, so the model fills them in: a × b." in said
    assert "Not in the workload, so not measured: d." in said
    assert set(planned.unmeasurable) <= set(planned.as_json()["notes"])


@pytest.mark.parametrize("mechanism", ["aim", "aperture"])
def test_a_skipped_marginal_is_named_whatever_the_mechanism(mechanism):
    wide = sl.Schema.from_domain({"a": 900, "b": 900, "c": 2})
    planned = sl.Plan.of(
        schema=wide, epsilon=1, delta=1e-9, mechanism=mechanism, workload=[("a", "b"), ("b", "c")],
        settings={"max_model_mb": 1, "oversized": "skip"},
    )  # fmt: skip

    assert any("a × b" in note for note in planned.as_json()["notes"])


def test_a_mechanism_that_learns_by_selecting_alone_is_not_said_to_guess():
    codes = np.random.default_rng(1).integers(0, 3, (500, 6))

    release = sl.release(
        sl.Table.of_codes(DOMAIN, codes), schema=SCHEMA, epsilon=1, delta=1e-9, noise=SeededNoise(4),
        progress=False, mechanism="dualquery", workload="2-way",
    )  # fmt: skip

    assert release.card.unmeasured is None
    assert plan(mechanism="dualquery").unmeasurable == ()
    assert set(release.answer(["a"]).column("source").to_pylist()) == {"model"}


def test_a_mechanism_that_selects_alone_says_which_attributes_nobody_asked_about():
    schema = sl.Schema.from_domain({"a": 2, "b": 2, "c": 2})
    table = sl.Table.of_codes(schema.domain, np.random.default_rng(0).integers(0, 2, (500, 3)))
    asked = {
        "schema": schema, "epsilon": 1.0, "delta": 1e-9, "workload": [("a", "b")], "mechanism": "dualquery"
    }  # fmt: skip

    made = sl.release(table, noise=SeededNoise(1), progress=False, max_rounds=3, **asked)

    assert any("c" in said for said in sl.plan(**asked).unmeasurable)
    assert made.card.unmeasured.guessed == ("c",)
    assert made.error_bars(("a", "c")).source == "unmeasured"
    assert made.error_bars(("a", "b")).source == "model"


def test_the_largest_tables_are_named_first_and_the_rest_can_be_found():
    domain = Domain.of({"a": 2, "b": 2, "c": 2, "d": 2, "z": 9})

    found = Unmeasured.after([], list(itertools.combinations("abcdz", 2)), domain)

    (_, said, caution) = found.sentences
    assert "fills them in: a × z, b × z, c × z, d × z, a × b and 5 more" in said
    assert "release.json" in said
    assert "intervals may be far too narrow" in caution
    assert found.marginals[0] == ("a", "z")
