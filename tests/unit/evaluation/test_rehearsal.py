"""A rehearsal: played on public data alone, with errors that are those of a release, and honest refusals."""

import xml.etree.ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.data.columns.column import CategoricalColumn, IntegerColumn
from sidelight.errors import DataError, InputError, PublicDataWarning, SettingError
from sidelight.evaluation import rehearsal
from sidelight.evaluation.rehearsal import LEAST_RECORDS, Played, Rehearsal
from sidelight.evaluation.rehearsal_picture import svg_picture, text_picture
from sidelight.evaluation.workload_errors import workload_error
from sidelight.queries.workload import Workload

SCHEMA = sl.Schema.from_domain({"a": 4, "b": 3, "c": 2})
QUICK = {"schema": SCHEMA, "workload": "2-way", "mechanism": "aim", "runs": 1, "progress": False}


def public(records=2000, seed=0):
    draw = np.random.default_rng(seed)
    a = draw.choice(4, records, p=[0.6, 0.2, 0.1, 0.1])
    b = (a + draw.choice(3, records, p=[0.8, 0.1, 0.1])) % 3
    return sl.Table.of_codes(SCHEMA.domain, np.stack([a, b, draw.integers(0, 2, records)], axis=1))


def made_up(*errors, epsilons=(0.1, 1.0, 10.0)):
    played = (Played(mechanism="aim", epsilon=e, errors=(x,)) for e, x in zip(epsilons, errors, strict=True))
    return Rehearsal(played=tuple(played), records=100, stand_in=100, helping=0)


def test_error_falls_with_epsilon_and_with_the_number_of_records():
    small = sl.rehearse(public(), epsilon=[0.1, 10], **QUICK)
    large = sl.rehearse(public(), epsilon=[0.1, 10], records=40_000, **QUICK)

    few, many = ([one.error for one in played.of("aim")] for played in (small, large))
    assert few[0] > 3 * few[1]
    assert many[0] < few[0] / 3
    assert (small.records, small.stand_in, small.helping) == (2000, 1000, 1000)
    assert large.records == 40_000


def test_the_error_is_about_that_of_a_release_of_such_a_table():
    played = sl.rehearse(public(20_000), epsilon=0.3, **(QUICK | {"runs": 3})).of("aim")[0]
    table = public(20_000, seed=9)  # another sample of the same people: what the private table may be

    made = sl.release(
        table, schema=SCHEMA, epsilon=0.3, delta=1e-9, workload="2-way", mechanism="aim", progress=False
    )
    actual = workload_error(table, made.model, Workload.marginals(SCHEMA.domain, degree=2), total=20_000)

    assert played.error / 2 < actual < 2 * played.error


def test_half_of_the_public_records_help_the_mechanisms_that_use_some_unless_it_is_played_alone():
    asked = QUICK | {"mechanism": "aperture"}

    helped, alone = (sl.rehearse(public(), epsilon=0.05, alone=alone, **asked) for alone in (False, True))

    assert helped.of("aperture")[0].error < alone.of("aperture")[0].error / 2
    assert (alone.stand_in, alone.helping) == (2000, 0)


@pytest.mark.parametrize("n", [100, 200, 1000])
def test_the_stand_in_is_not_among_the_records_that_help(n):
    domain = sl.Schema.from_domain({"number": 400}).domain
    everybody = sl.Table.of_codes(domain, np.arange(400).reshape(-1, 1))

    private, helping = rehearsal._halves(everybody, n, seed=1, alone=False)

    numbers = [set(table.codes()[:, 0].tolist()) for table in (private, helping)]
    assert (private.records, helping.records) == (n, 200)
    assert not numbers[0] & numbers[1]
    assert rehearsal._halves(everybody, n, seed=1, alone=True)[1] is None


def test_the_same_seed_plays_the_same_and_another_seed_another():
    first, again, other = (sl.rehearse(public(), epsilon=1, seed=seed, **QUICK) for seed in (1, 1, 2))

    assert first == again
    assert first != other


def test_auto_is_what_a_release_would_take():
    played = sl.rehearse(public(), epsilon=1, **(QUICK | {"mechanism": "auto"}))

    assert played.mechanisms == ("auto (ladder)",)


def test_the_epsilon_for_an_accuracy_is_read_between_the_points():
    played = made_up(0.4, 0.1, 0.1)

    assert played.epsilon_for(0.2, "aim") == pytest.approx(10**-0.5)
    assert played.epsilon_for(0.1, "aim") == pytest.approx(1.0)
    assert played.epsilon_for(0.5, "aim") == 0.1
    assert played.epsilon_for(0.09, "aim") is None
    with pytest.raises(SettingError, match="accuracy"):
        played.epsilon_for(0, "aim")


def test_a_point_that_noise_put_above_the_last_does_not_stop_the_reading():
    assert 1.0 < made_up(0.3, 0.35, 0.1, epsilons=(1.0, 2.0, 4.0)).epsilon_for(0.2, "aim") < 4.0


def test_the_pictures_hold_every_point_and_strangers_text_is_no_markup():
    played = Rehearsal(
        played=tuple(
            Played(mechanism=name, epsilon=e, errors=(0.2 / e, 0.3 / e))
            for name in ("aim", "<b>&")
            for e in (1.0, 3.0)
        ),
        records=100, stand_in=50, helping=50,
    )  # fmt: skip

    drawing = svg_picture(played, title="a < b")
    tree = ET.fromstring(drawing)
    text = text_picture(played)

    assert len([one for one in tree.iter() if one.tag.endswith("circle")]) == 4
    assert "<b>&" in "".join(tree.itertext())
    assert text.count("ε = ") == 4
    assert "25.0%  (20.0% to 30.0%)" in text
    assert len(svg_picture(made_up(0.1, epsilons=(1.0,)), title="one")) > 200


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"epsilon": 0}, "epsilon must be a finite number above 0"),
        ({"epsilon": []}, "one number or several"),
        ({"epsilon": 1, "records": 0}, "records must be"),
        ({"epsilon": 1, "records": 10**9}, "at most 5,000,000"),
        ({"epsilon": 1, "runs": 0}, "runs must be"),
        ({"epsilon": 1, "mechanism": "best"}, "mechanism must be one of"),
        ({"epsilon": 1, "mechanism": []}, "at least one mechanism"),
        ({"epsilon": 1, "workload": [("a", "z")]}, "unknown attribute 'z'"),
    ],
)
def test_bad_input_is_refused(more, says):
    with pytest.raises(InputError, match=says):
        sl.rehearse(public(), **(QUICK | more))


def test_a_public_table_that_is_too_small_is_refused_and_the_least_size_is_said():
    with pytest.raises(DataError, match=f"has 199 records, too few to rehearse on: at least {LEAST_RECORDS}"):
        sl.rehearse(public(LEAST_RECORDS - 1), epsilon=1, **QUICK)

    sl.rehearse(public(LEAST_RECORDS), epsilon=1, **QUICK)


def test_columns_that_the_public_table_lacks_are_left_out_and_named():
    whole = public()
    part = sl.Table.of_codes(SCHEMA.domain.project(("a", "b")), np.asarray(whole.codes())[:, :2])

    played = sl.rehearse(part, epsilon=1.0, **QUICK)
    narrow = QUICK | {"schema": sl.Schema.from_domain({"a": 4, "b": 3})}

    assert played.left_out == ("c",)
    assert played.as_json()["left_out"] == ("c",)
    assert played.of("aim")[0].error == sl.rehearse(part, epsilon=1.0, **narrow).of("aim")[0].error


def test_values_that_a_record_leaves_open_keep_it_from_standing_in():
    """Of 600 records, 200 have a label that the schema does not know."""
    schema = sl.Schema((CategoricalColumn("sex", ("F", "M")), IntegerColumn("age", 0, 4)))
    table = pa.table({"sex": ["F", "M", "X"] * 200, "age": [0, 1, 2] * 200})
    with pytest.warns(PublicDataWarning, match="have no place in the schema"):
        played = sl.rehearse(table, epsilon=1.0, **(QUICK | {"schema": schema}))

    assert played.records == 400
    assert played.left_out == ()


def test_a_workload_that_needs_a_column_which_nobody_tells_of_is_refused():
    part = sl.Table.of_codes(SCHEMA.domain.project(("a", "b")), np.asarray(public().codes())[:, :2])

    with pytest.raises(SettingError, match="tells nothing of c, and the workload has no query without them"):
        sl.rehearse(part, epsilon=1.0, **(QUICK | {"workload": [("a", "c")]}))


@pytest.mark.parametrize("alone", [False, True])
def test_people_constraints_and_an_absent_column_go_together(alone):
    """The table is read anew for the constraint, and must still be one whose people are bounded."""
    schema = sl.Schema.from_toml(
        '[unit]\nperson = "who"\nrecords = 3\n'
        + "".join(f'[columns.{name}]\nkind = "integer"\nlow = 0\nhigh = 4\n' for name in "abc")
        + '[[constraint]]\norder = ["a", "b"]\n[public.map.c]\n"9" = "3"\n'
    )
    draw = np.random.default_rng(0)
    a, b = np.sort(draw.integers(0, 5, (2, 600)), axis=0)
    table = pa.table({"who": draw.integers(0, 200, 600), "a": a, "b": b})

    played = sl.rehearse(table, epsilon=1.0, alone=alone, **(QUICK | {"schema": schema}))

    assert played.left_out == ("c",)
    assert played.of("aim")[0].error < 1


def test_rules_about_columns_that_are_left_out_are_left_out_too():
    schema = SCHEMA.with_impossible({"a": [0], "c": [1]}, {"a": [3], "b": [2]})
    part = sl.Table.of_codes(SCHEMA.domain.project(("a", "b")), np.asarray(public().codes())[:, :2])

    played = sl.rehearse(part, epsilon=1.0, **(QUICK | {"schema": schema}))

    assert played.left_out == ("c",)
