"""A release of people is compared with as many records of each as it used."""

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.data.schema import Schema
from sidelight.evaluation.evaluate import evaluate
from sidelight.privacy.unit import Unit
from sidelight.reports.report import render


@pytest.fixture(scope="module")
def made():
    """Three hundred people, and one who has half of all records, all of them alike."""
    rng = np.random.default_rng(4)
    who = np.append(rng.integers(0, 300, 900), np.full(900, 1000))
    sex = np.append(rng.integers(0, 2, 900), np.ones(900, dtype=np.int64))
    table = pa.table({"who": who, "sex": sex, "age": rng.integers(0, 3, 1800)})
    schema = Schema.from_domain({"sex": 2, "age": 3}, unit=Unit("replace", 2, "who"))
    release = sl.release(
        table, schema=schema, epsilon=10, delta=1e-9, workload="2-way", mechanism="mwem", progress=False
    )
    return table, release


def test_the_records_of_people_are_bounded_before_they_are_compared(made):
    table, release = made

    found = evaluate(release, table, workload="1-way")
    again = evaluate(release, table, workload="1-way")

    assert found.workload_error < 0.15
    assert found == again
    assert "up to 2 records of each who" in str(found).splitlines()[1]
    assert "chosen anew" in found.remark


def test_a_table_that_does_not_say_who_is_who_is_compared_whole_and_that_is_said_first(made):
    table, release = made

    found = evaluate(release, table.drop_columns(["who"]), workload="1-way")

    assert found.workload_error > 0.4
    assert "does not say who is who" in str(found).splitlines()[1]


def test_a_private_report_compares_them_too_and_says_so(made):
    table, release = made

    page = render(release, against=table)

    assert "is compared with as many" in page
