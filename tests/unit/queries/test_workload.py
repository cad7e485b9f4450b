import json
import math

import pytest

from sidelight.data.domain import Domain
from sidelight.errors import SettingError, WorkloadError
from sidelight.queries.query import Marginal, Range
from sidelight.queries.workload import Workload

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 2})


@pytest.mark.parametrize(("name", "number"), [("1-way", 4), ("2-way", 6), ("3-way", 4), ("cuboids", 16)])
def test_a_named_workload_holds_every_marginal_of_its_kind(name, number):
    assert len(Workload.of(name, DOMAIN)) == number


def test_random_marginals_are_distinct_and_the_same_for_the_same_seed():
    first = Workload.random_marginals(DOMAIN, degree=2, number=4, seed=5)
    again = Workload.random_marginals(DOMAIN, degree=2, number=4, seed=5)
    other = Workload.random_marginals(DOMAIN, degree=2, number=4, seed=6)

    assert first == again
    assert len(set(first.attribute_sets)) == 4
    assert first != other
    assert len(Workload.random_marginals(DOMAIN, degree=2, number=99, seed=0)) == math.comb(4, 2)


def test_all_ranges_and_prefixes_are_counted_right():
    assert len(Workload.ranges(DOMAIN, ["c"])) == 4 * 5 // 2
    assert len(Workload.ranges(DOMAIN, ["b", "c"])) == 6 * 10
    assert [q.bounds[0][2] for q in Workload.prefixes(DOMAIN, "c")] == [0, 1, 2, 3]
    assert all(isinstance(q, Range) for q in Workload.ranges(DOMAIN, ["b", "c"], number=7, seed=1))


def test_weights_follow_the_queries_through_a_file(tmp_path):
    workload = Workload([("a", "b"), Range((("c", 0, 1),))], weights=[2.5, 1])

    workload.write(tmp_path / "w.json")

    assert Workload.of(tmp_path / "w.json", DOMAIN) == workload


def test_a_file_may_list_attributes_alone(tmp_path):
    (tmp_path / "w.json").write_text(json.dumps([{"attrs": ["a", "b"]}, {"attrs": ["c"], "weight": 3}]))

    assert Workload.read(tmp_path / "w.json") == Workload([("a", "b"), ("c",)], weights=[1, 3])


def test_the_closure_weighs_each_subset_by_what_the_workload_asks():
    closure = Workload([Marginal(("a", "b", "c"))]).closure(DOMAIN)

    assert sorted((len(attrs), weight) for attrs, weight in closure.items()) == [
        (1, 1.0), (1, 1.0), (1, 1.0), (2, 2.0), (2, 2.0), (2, 2.0), (3, 3.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("5-way", "needs 5 attributes; there are 4"),
        ("nonsense", "neither a name"),
        ([("a", "zz")], "unknown attribute 'zz'"),
        ([], "at least one query"),
    ],
)
def test_a_workload_that_cannot_be_is_refused(asked, says):
    with pytest.raises(WorkloadError, match=says):
        Workload.of(asked, DOMAIN)


def test_weights_must_be_positive_and_as_many_as_queries():
    with pytest.raises(SettingError, match="weight must be a finite number above 0"):
        Workload([("a",)], weights=[0])
    with pytest.raises(WorkloadError, match="as many weights"):
        Workload([("a",)], weights=[1, 2])


def test_a_workload_of_too_many_marginals_says_how_many_and_names_the_next_smaller_one():
    domain = Domain.of({f"x{i}": 2 for i in range(200)})

    with pytest.raises(WorkloadError, match=r"1,313,400 marginals of 3.*'2-way' \(19,900\)"):
        Workload.of("3-way", domain)
